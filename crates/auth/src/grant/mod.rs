//! OAuth grants: authorization code, device code, and grants without user interaction.

mod code;
mod device;
mod unattended;

use crate::auth_http::UrlSource;
use crate::client::OAuthClient;
use crate::discovery::AuthServerMetadata;
use crate::dpop::DpopKey;
use crate::error::LoginError;
use crate::login::AuthServerContext;
use crate::token::{TokenRequest, TokenSet};

pub(crate) use code::request_with_code;
pub(crate) use device::request_with_device_code;
pub(crate) use unattended::request_unattended;

/// Parameters of a token request.
pub(crate) struct GrantRequest<'a> {
    /// The authorization server.
    pub server: &'a AuthServerMetadata,
    /// The client.
    pub client: &'a OAuthClient,
    /// Resource identifier of the MCP server.
    pub resource: Option<&'a str>,
    /// Requested scope.
    pub scope: Option<&'a str>,
    /// Key to bind the tokens to.
    pub dpop: Option<&'a DpopKey>,
}

impl<'a> GrantRequest<'a> {
    /// Requests tokens with these form fields.
    async fn request_tokens(
        &self,
        attempt: &AuthServerContext<'_>,
        fields: Vec<(&'static str, &'a str)>,
    ) -> Result<TokenSet, LoginError> {
        self.token_request(attempt, self.token_endpoint()?, fields).request_tokens(attempt).await
    }

    /// Creates a request to an endpoint of the authorization server, with these form fields and the resource
    /// identifier.
    fn token_request(
        &self,
        attempt: &AuthServerContext<'_>,
        endpoint: &'a str,
        mut fields: Vec<(&'static str, &'a str)>,
    ) -> TokenRequest<'a> {
        fields.extend(self.resource.map(|resource| ("resource", resource)));
        let named = UrlSource::from_settings(endpoint, attempt.settings);
        TokenRequest { endpoint, named, issuer: &self.server.issuer, client: self.client, dpop: self.dpop, fields }
    }

    fn token_endpoint(&self) -> Result<&'a str, LoginError> {
        self.server.token_endpoint.as_deref().ok_or_else(|| missing_endpoint("token_endpoint"))
    }
}

fn missing_endpoint(endpoint: &str) -> LoginError {
    LoginError::Discovery(format!("the authorization server has no `{endpoint}`"))
}
