//! The ways to tokens: by a person with a code, on another device, and by nobody.

mod code;
mod device;
mod unattended;

use crate::client::Client;
use crate::discovery::ServerMetadata;
use crate::dpop::DpopKey;
use crate::error::LoginError;
use crate::fetch::Named;
use crate::login::Attempt;
use crate::token::{TokenRequest, Tokens};

pub(crate) use code::by_code;
pub(crate) use device::by_device;
pub(crate) use unattended::by_nobody;

/// What tokens are wanted, where, and as whom.
pub(crate) struct Errand<'a> {
    /// Where.
    pub server: &'a ServerMetadata,
    /// As whom.
    pub client: &'a Client,
    /// For which server, as it calls itself.
    pub resource: Option<&'a str>,
    /// To do what.
    pub scope: Option<&'a str>,
    /// What they are to be bound to.
    pub dpop: Option<&'a DpopKey>,
}

impl<'a> Errand<'a> {
    /// Gets tokens for these fields.
    async fn tokens(&self, attempt: &Attempt<'_>, fields: Vec<(&'static str, &'a str)>) -> Result<Tokens, LoginError> {
        self.request(attempt, self.token_endpoint()?, fields).tokens(attempt).await
    }

    /// A request to an endpoint of the authorization server: these fields, and which server it is about.
    fn request(
        &self,
        attempt: &Attempt<'_>,
        endpoint: &'a str,
        mut fields: Vec<(&'static str, &'a str)>,
    ) -> TokenRequest<'a> {
        fields.extend(self.resource.map(|resource| ("resource", resource)));
        let named = Named::of(endpoint, attempt.settings);
        TokenRequest { endpoint, named, issuer: &self.server.issuer, client: self.client, dpop: self.dpop, fields }
    }

    fn token_endpoint(&self) -> Result<&'a str, LoginError> {
        self.server.token_endpoint.as_deref().ok_or_else(|| missing("token_endpoint"))
    }
}

fn missing(endpoint: &str) -> LoginError {
    LoginError::Discovery(format!("the authorization server names no `{endpoint}`"))
}
