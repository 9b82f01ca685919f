//! Discovery of the authorization server of an MCP server.
//!
//! A metadata document is used as a whole or not at all. A document of another server is ignored.

mod attempts;
mod resource_metadata;
mod server_metadata;
#[cfg(test)]
mod tests;
mod untrusted_json;
mod well_known;

use url::Url;

use crate::auth_http::{AuthHttpClient, check_url, display_url};
use crate::challenge::AuthChallenge;
use crate::error::LoginError;
use crate::settings::{AuthSettings, TokenGrant};
use attempts::DiscoveryAttempts;
pub(crate) use attempts::INSTEAD;
use resource_metadata::ResourceMetadata;
pub(crate) use resource_metadata::is_valid_resource;

/// Discovered facts about a server and its authorization server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiscoveryResult {
    /// Resource identifier of the server, as in its metadata. Tokens are requested for it. If the server has no
    /// metadata, this is the server's URL when the user configured the authorization server, else absent (2025-03-26).
    pub resource: Option<String>,
    /// Scopes that the server's metadata list.
    pub scopes: Vec<String>,
    /// The server accepts only DPoP-bound tokens.
    pub needs_dpop: bool,
    /// Issuers that the server's metadata list, as written. Empty if the user configured the issuer.
    pub issuers: Vec<String>,
    /// The authorization server to use.
    pub server: AuthServerMetadata,
}

/// Metadata of an authorization server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuthServerMetadata {
    /// Issuer identifier, compared byte by byte.
    pub issuer: String,
    /// URL of the login page.
    pub authorization_endpoint: Option<String>,
    /// URL of the token endpoint.
    pub token_endpoint: Option<String>,
    /// URL of the client registration endpoint.
    pub registration_endpoint: Option<String>,
    /// URL of the revocation endpoint.
    pub revocation_endpoint: Option<String>,
    /// URL of the device authorization endpoint (RFC 8628).
    pub device_authorization_endpoint: Option<String>,
    /// Supported scopes. `offline_access` is requested only if listed here.
    pub scopes: Vec<String>,
    /// Supported client authentication methods.
    pub proofs: Vec<String>,
    /// The URL of a metadata document is accepted as a client ID.
    pub takes_documents: bool,
    /// Authorization responses always contain `iss` (RFC 9207).
    pub names_itself: bool,
    /// Supported DPoP signature algorithms. Empty if DPoP is not supported.
    pub dpop_algorithms: Vec<String>,
    /// PKCE with S256 is known to be supported.
    pub takes_s256: bool,
    /// Source of the endpoints.
    pub named: EndpointSource,
    /// The issuer identifier is derived, neither configured nor from metadata.
    pub is_guessed: bool,
}

/// Source of an authorization server's endpoints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EndpointSource {
    /// Its own metadata.
    #[default]
    Metadata,
    /// The default paths of 2025-03-26 for servers without metadata.
    Presumed,
    /// The user's settings.
    Owner,
}

/// Discovers the authorization server of a server. `challenge` is from the server's 401 or 403 response.
pub(crate) async fn discover(
    outside: &AuthHttpClient,
    server: &Url,
    challenge: Option<&AuthChallenge>,
    settings: &AuthSettings,
) -> Result<DiscoveryResult, LoginError> {
    let mut tried = DiscoveryAttempts::default();
    let description = resource_metadata::fetch_resource_metadata(outside, server, challenge, &mut tried).await;
    let (description, found) = match (from_settings(settings), description) {
        // Missing metadata are tolerated here. Metadata of another server, and a server that is temporarily
        // unavailable, are not.
        (Some(found), Err(LoginError::Discovery(_))) => (None, found),
        (_, Err(error)) => return Err(error),
        (Some(found), Ok(description)) => (description, found),
        (None, Ok(description)) => {
            let found = match (&settings.issuer, &description) {
                (Some(issuer), _) => {
                    server_metadata::fetch_first_issuer(outside, std::slice::from_ref(issuer), &mut tried).await?
                }
                (None, Some(description)) => {
                    server_metadata::fetch_first_issuer(outside, &description.issuers, &mut tried).await?
                }
                (None, None) => server_metadata::fetch_at_origin(outside, server, &mut tried).await?,
            };
            (description, found)
        }
    };
    let found = with_settings(found, settings);
    check_usable(&found, settings)?;
    check_same_origin(&found, settings)?;
    Ok(discovery_result(server, description, found, settings))
}

/// Returns the authorization server if the settings describe it completely. Without a configured issuer, the origin of
/// the token endpoint serves as its identifier.
fn from_settings(settings: &AuthSettings) -> Option<AuthServerMetadata> {
    let token = settings.token_url.as_ref()?;
    let begins = settings.authorization_url.is_some() || settings.device_url.is_some();
    let origin = || Url::parse(token).map(|url| url.origin().ascii_serialization()).unwrap_or_default();
    let (issuer, is_guessed) = (settings.issuer.clone().unwrap_or_else(origin), settings.issuer.is_none());
    let enough = begins || settings.grant != TokenGrant::Person;
    enough.then(|| AuthServerMetadata {
        issuer,
        named: EndpointSource::Owner,
        is_guessed,
        ..AuthServerMetadata::default()
    })
}

/// Overrides discovered endpoints with configured ones.
fn with_settings(mut found: AuthServerMetadata, settings: &AuthSettings) -> AuthServerMetadata {
    for (place, given) in [
        (&mut found.authorization_endpoint, &settings.authorization_url),
        (&mut found.token_endpoint, &settings.token_url),
        (&mut found.registration_endpoint, &settings.registration_url),
        (&mut found.device_authorization_endpoint, &settings.device_url),
    ] {
        if given.is_some() {
            place.clone_from(given);
        }
    }
    found
}

/// Rejects an authorization server at which a login would fail or be insecure: without required endpoints, without PKCE
/// with S256, or with unsafe endpoint URLs.
fn check_usable(found: &AuthServerMetadata, settings: &AuthSettings) -> Result<(), LoginError> {
    let issuer = display_url(&found.issuer);
    let begins = found.authorization_endpoint.is_some() || found.device_authorization_endpoint.is_some();
    let missing = match (&found.token_endpoint, &settings.grant) {
        (None, _) => Some("token_endpoint"),
        (Some(_), TokenGrant::Person) if !begins => Some("authorization_endpoint"),
        _ => None,
    };
    if let Some(missing) = missing {
        return Err(LoginError::Discovery(format!("the metadata of `{issuer}` have no `{missing}`")));
    }
    for endpoint in [&found.authorization_endpoint, &found.token_endpoint].into_iter().flatten() {
        check_url(endpoint).map_err(|flaw| LoginError::Unsafe(format!("`{}`: {flaw}", display_url(endpoint))))?;
    }
    let sends_code = settings.grant == TokenGrant::Person && found.authorization_endpoint.is_some();
    if sends_code && found.named == EndpointSource::Metadata && !found.takes_s256 {
        let lacks =
            format!("`{issuer}` does not declare support for PKCE (S256), which is required for a secure login");
        return Err(LoginError::Unsafe(lacks));
    }
    Ok(())
}

/// Rejects a discovered token endpoint that has another origin than a configured login page. Otherwise the
/// authorization code and the client credentials would go to a third party (RFC 9700, 4.4).
fn check_same_origin(found: &AuthServerMetadata, settings: &AuthSettings) -> Result<(), LoginError> {
    if settings.token_url.is_some() || settings.grant != TokenGrant::Person {
        return Ok(());
    }
    let origin = |address: &str| Url::parse(address).ok().map(|url| url.origin());
    let token = found.token_endpoint.as_deref().unwrap_or_default();
    for (name, page) in [("authorization_url", &settings.authorization_url), ("device_url", &settings.device_url)] {
        if page.as_deref().is_some_and(|page| origin(page) != origin(token)) {
            let token = display_url(token);
            return Err(LoginError::Unsafe(format!(
                "the discovered token endpoint `{token}` has another origin than `oauth.{name}`; set `oauth.token_url` as well"
            )));
        }
    }
    Ok(())
}

fn discovery_result(
    dialled: &Url,
    description: Option<ResourceMetadata>,
    server: AuthServerMetadata,
    settings: &AuthSettings,
) -> DiscoveryResult {
    let is_owners = server.named == EndpointSource::Owner;
    let Some(description) = description else {
        let resource = is_owners.then(|| well_known::canonical_uri(dialled));
        return DiscoveryResult { resource, scopes: Vec::new(), needs_dpop: false, issuers: Vec::new(), server };
    };
    let ResourceMetadata { resource, mut issuers, scopes, needs_dpop } = description;
    if is_owners || settings.issuer.is_some() {
        issuers.clear();
    }
    DiscoveryResult { resource: Some(resource), scopes, needs_dpop, issuers, server }
}
