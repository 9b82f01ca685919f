//! From a server that wants a login to the authorization server that gives one.
//!
//! A document is used whole or not at all: one that describes somebody else is as good as none.

mod addresses;
mod document;
mod metadata;
mod resource;
#[cfg(test)]
mod tests;
mod tried;

use url::Url;

use crate::challenge::Challenge;
use crate::error::LoginError;
use crate::fetch::{Outside, checked, shown};
use crate::settings::{AuthSettings, Grant};
use resource::Description;
pub(crate) use resource::is_of;
pub(crate) use tried::INSTEAD;
use tried::Tried;

/// What is known of a server and its authorization server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discovered {
    /// The server's own name for itself, as it says; what tokens are asked for. Its address where it does not describe
    /// itself and its owner says where to log in; else absent (2025-03-26).
    pub resource: Option<String>,
    /// What the server's description says it knows.
    pub scopes: Vec<String>,
    /// Whether the server takes only tokens that are bound to a key.
    pub needs_dpop: bool,
    /// All the authorization servers that the server names, as it writes them; none where its owner names one.
    pub issuers: Vec<String>,
    /// Where to log in.
    pub server: ServerMetadata,
}

/// An authorization server, as it describes itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerMetadata {
    /// Its name, compared byte by byte.
    pub issuer: String,
    /// Where people log in.
    pub authorization_endpoint: Option<String>,
    /// Where tokens come from.
    pub token_endpoint: Option<String>,
    /// Where clients are registered.
    pub registration_endpoint: Option<String>,
    /// Where tokens are given back.
    pub revocation_endpoint: Option<String>,
    /// Where a login on another device begins (RFC 8628).
    pub device_authorization_endpoint: Option<String>,
    /// What it knows; `offline_access` may be asked for only where it is among them.
    pub scopes: Vec<String>,
    /// How clients may prove themselves.
    pub proofs: Vec<String>,
    /// Whether the address of a document can be a client's id.
    pub takes_documents: bool,
    /// Whether every answer to a login names it (RFC 9207).
    pub names_itself: bool,
    /// How proofs of possession may be signed; empty where it knows none.
    pub dpop_algorithms: Vec<String>,
    /// Whether PKCE with S256 is known to be understood.
    pub takes_s256: bool,
    /// Where its endpoints come from.
    pub named: NamedBy,
    /// Whether nobody has said what it is called.
    pub is_guessed: bool,
}

/// Where an authorization server's endpoints come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NamedBy {
    /// Its own description.
    #[default]
    Metadata,
    /// The paths that 2025-03-26 presumes where nothing is described.
    Presumed,
    /// The owner of this program.
    Owner,
}

/// Finds out where to log in for a server. `challenge` is what it said when it turned us away.
pub(crate) async fn discover(
    outside: &Outside,
    server: &Url,
    challenge: Option<&Challenge>,
    settings: &AuthSettings,
) -> Result<Discovered, LoginError> {
    let mut tried = Tried::default();
    let description = resource::description(outside, server, challenge, &mut tried).await;
    let (description, found) = match (owners_own(settings), description) {
        // Who describes nothing need not; who describes another server, or cannot be heard now, is not passed over.
        (Some(found), Err(LoginError::Discovery(_))) => (None, found),
        (_, Err(error)) => return Err(error),
        (Some(found), Ok(description)) => (description, found),
        (None, Ok(description)) => {
            let found = match (&settings.issuer, &description) {
                (Some(issuer), _) => metadata::of_any(outside, std::slice::from_ref(issuer), &mut tried).await?,
                (None, Some(description)) => metadata::of_any(outside, &description.issuers, &mut tried).await?,
                (None, None) => metadata::at_origin(outside, server, &mut tried).await?,
            };
            (description, found)
        }
    };
    let found = with_settings(found, settings);
    check_usable(&found, settings)?;
    check_paired(&found, settings)?;
    Ok(discovered(server, description, found, settings))
}

/// The authorization server, where the owner says all there is to know. What it is called need not be told; the origin of
/// its token endpoint tells it from others then.
fn owners_own(settings: &AuthSettings) -> Option<ServerMetadata> {
    let token = settings.token_url.as_ref()?;
    let begins = settings.authorization_url.is_some() || settings.device_url.is_some();
    let origin = || Url::parse(token).map(|url| url.origin().ascii_serialization()).unwrap_or_default();
    let (issuer, is_guessed) = (settings.issuer.clone().unwrap_or_else(origin), settings.issuer.is_none());
    let enough = begins || settings.grant != Grant::Person;
    enough.then(|| ServerMetadata { issuer, named: NamedBy::Owner, is_guessed, ..ServerMetadata::default() })
}

/// What was found, with what the owner says in its place.
fn with_settings(mut found: ServerMetadata, settings: &AuthSettings) -> ServerMetadata {
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

/// Refuses an authorization server where a login would fail, or be open to others: one that does not say that it knows
/// PKCE with S256, or whose addresses nobody should go to.
fn check_usable(found: &ServerMetadata, settings: &AuthSettings) -> Result<(), LoginError> {
    let issuer = shown(&found.issuer);
    let begins = found.authorization_endpoint.is_some() || found.device_authorization_endpoint.is_some();
    let missing = match (&found.token_endpoint, &settings.grant) {
        (None, _) => Some("token_endpoint"),
        (Some(_), Grant::Person) if !begins => Some("authorization_endpoint"),
        _ => None,
    };
    if let Some(missing) = missing {
        return Err(LoginError::Discovery(format!("`{issuer}` names no `{missing}`")));
    }
    for endpoint in [&found.authorization_endpoint, &found.token_endpoint].into_iter().flatten() {
        checked(endpoint).map_err(|flaw| LoginError::Unsafe(format!("`{}`: {flaw}", shown(endpoint))))?;
    }
    let sends_code = settings.grant == Grant::Person && found.authorization_endpoint.is_some();
    if sends_code && found.named == NamedBy::Metadata && !found.takes_s256 {
        let lacks =
            format!("`{issuer}` does not say that it knows PKCE with S256, without which a login can be stolen");
        return Err(LoginError::Unsafe(lacks));
    }
    Ok(())
}

/// Refuses a token endpoint that a server named beside a page that the owner did, unless both are in one place: what a
/// person brings back from the page, and what proves the client, would be shown to somebody else (RFC 9700, 4.4).
fn check_paired(found: &ServerMetadata, settings: &AuthSettings) -> Result<(), LoginError> {
    if settings.token_url.is_some() || settings.grant != Grant::Person {
        return Ok(());
    }
    let origin = |address: &str| Url::parse(address).ok().map(|url| url.origin());
    let token = found.token_endpoint.as_deref().unwrap_or_default();
    for (name, page) in [("authorization_url", &settings.authorization_url), ("device_url", &settings.device_url)] {
        if page.as_deref().is_some_and(|page| origin(page) != origin(token)) {
            let token = shown(token);
            return Err(LoginError::Unsafe(format!(
                "the server has tokens come from `{token}`, which is not where `oauth.{name}` is; set `oauth.token_url` too"
            )));
        }
    }
    Ok(())
}

fn discovered(
    dialled: &Url,
    description: Option<Description>,
    server: ServerMetadata,
    settings: &AuthSettings,
) -> Discovered {
    let is_owners = server.named == NamedBy::Owner;
    let Some(description) = description else {
        let resource = is_owners.then(|| addresses::name(dialled));
        return Discovered { resource, scopes: Vec::new(), needs_dpop: false, issuers: Vec::new(), server };
    };
    let Description { resource, mut issuers, scopes, needs_dpop } = description;
    if is_owners || settings.issuer.is_some() {
        issuers.clear();
    }
    Discovered { resource: Some(resource), scopes, needs_dpop, issuers, server }
}
