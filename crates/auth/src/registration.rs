//! Choice of the client: preregistered, described by a metadata document, or dynamically registered.

#[cfg(test)]
mod tests;

use serde_json::{Value, json};
use wharf_net::StatusCode;
use wharf_spec::Secret;

use crate::auth_http::{AuthHttpClient, FetchedResponse, UrlSource, check_url, display_url};
use crate::client::{ClientOrigin, OAuthClient, TokenEndpointAuth};
use crate::discovery::{AuthServerMetadata, EndpointSource, INSTEAD};
use crate::error::LoginError;
use crate::settings::{AuthSettings, TokenGrant};

/// Error codes of a rejected registration (RFC 7591, 3.2.2; RFC 6749, 5.2; RFC 6750, 3.1). Only these are quoted in
/// error messages.
const KNOWN_ERROR_CODES: [&str; 9] = [
    "access_denied",
    "invalid_client_metadata",
    "invalid_redirect_uri",
    "invalid_request",
    "invalid_scope",
    "invalid_software_statement",
    "invalid_token",
    "unapproved_software_statement",
    "unauthorized_client",
];
/// Advice to the user after a failed registration.
const MANUAL_HINT: &str = "register a client manually and set `oauth.client_id`";
/// Maximum length of a client ID or secret in bytes.
const MAX_REGISTRATION_BYTES: usize = 16 << 10;

/// Requirements on the client.
pub(crate) struct ClientRequirements<'a> {
    /// Redirect URI of logins. `None` for grants without user interaction.
    pub redirect_uri: Option<&'a str>,
    /// Scope that will be requested.
    pub scope: Option<&'a str>,
}

/// Returns the client to use at this authorization server, in order of preference: configured, metadata document, newly
/// registered.
pub(crate) async fn choose_client(
    outside: &AuthHttpClient,
    server: &AuthServerMetadata,
    settings: &AuthSettings,
    wanted: ClientRequirements<'_>,
) -> Result<OAuthClient, LoginError> {
    if let Some(id) = &settings.client_id {
        return Ok(configured_client(id, server, settings));
    }
    let Some(redirect_uri) = wanted.redirect_uri else {
        return Err(registration_error("grants without a user require a preregistered client; set `oauth.client_id`"));
    };
    if let Some(id) = settings.client_metadata_url.as_ref().filter(|_| server.takes_documents) {
        return document_client(id);
    }
    let Some(address) = &server.registration_endpoint else {
        return Err(registration_error_with_hint(
            server,
            &format!("`{}` does not support dynamic client registration", display_url(&server.issuer)),
        ));
    };
    let named = UrlSource::from_settings(address, settings);
    let answer = outside.post_json(address, named, &registration_request(server, redirect_uri, wanted.scope)).await;
    match answer {
        Ok(answer) => parse_registration(&answer, address, server),
        Err(error) if error.may_pass => Err(error.into()),
        Err(error) => Err(registration_error_with_hint(server, &error.reason)),
    }
}

fn configured_client(id: &str, server: &AuthServerMetadata, settings: &AuthSettings) -> OAuthClient {
    let secret = settings.client_secret.clone();
    let only_post = !server.proofs.is_empty()
        && !supports_auth_method(server, AUTH_BASIC)
        && supports_auth_method(server, AUTH_POST);
    let proof = match (&settings.grant, &secret) {
        (TokenGrant::ClientKey { .. }, _) => TokenEndpointAuth::PrivateKeyJwt,
        (_, None) => TokenEndpointAuth::None,
        (_, Some(_)) if only_post => TokenEndpointAuth::ClientSecretPost,
        (_, Some(_)) => TokenEndpointAuth::ClientSecretBasic,
    };
    OAuthClient { id: id.to_owned(), secret, proof, origin: ClientOrigin::Given, expires_at: None }
}

/// Creates a client whose ID is the URL of a metadata document. The URL must be https and have a path (SEP-991).
fn document_client(id: &str) -> Result<OAuthClient, LoginError> {
    let url = check_url(id).map_err(|flaw| registration_error(format!("`oauth.client_metadata_url`: {flaw}")))?;
    if url.scheme() != "https" || url.path() == "/" {
        return Err(registration_error("`oauth.client_metadata_url`: not an https URL with a path"));
    }
    let (id, origin) = (id.to_owned(), ClientOrigin::Document);
    Ok(OAuthClient { id, secret: None, proof: TokenEndpointAuth::None, origin, expires_at: None })
}

/// Builds the registration request (RFC 7591, 2).
fn registration_request(server: &AuthServerMetadata, redirect_uri: &str, scope: Option<&str>) -> Value {
    let mut grants = vec!["authorization_code", "refresh_token"];
    if server.device_authorization_endpoint.is_some() {
        grants.push("urn:ietf:params:oauth:grant-type:device_code");
    }
    let mut request = json!({
        "client_name": "Wharf",
        "redirect_uris": [redirect_uri],
        "grant_types": grants,
        "response_types": ["code"],
        "token_endpoint_auth_method": preferred_auth_method(server),
        "application_type": "native",
    });
    if let Some(scope) = scope {
        request["scope"] = scope.into();
    }
    request
}

const AUTH_NONE: &str = "none";
const AUTH_BASIC: &str = "client_secret_basic";
const AUTH_POST: &str = "client_secret_post";

fn supports_auth_method(server: &AuthServerMetadata, method: &str) -> bool {
    server.proofs.iter().any(|listed| listed == method)
}

/// Returns the preferred authentication method. A native application cannot protect a secret, so `none` comes first.
fn preferred_auth_method(server: &AuthServerMetadata) -> &'static str {
    [AUTH_NONE, AUTH_BASIC, AUTH_POST]
        .into_iter()
        .find(|method| supports_auth_method(server, method))
        .unwrap_or(AUTH_NONE)
}

fn parse_registration(
    answer: &FetchedResponse,
    address: &str,
    server: &AuthServerMetadata,
) -> Result<OAuthClient, LoginError> {
    let said = answer.json.as_ref();
    if answer.status.is_server_error() {
        return Err(LoginError::Unreachable(format!("{}: responded with {}", display_url(address), answer.status)));
    }
    if answer.status == StatusCode::TOO_MANY_REQUESTS {
        let (address, status) = (display_url(address), answer.status);
        let told = format!("{address}: responded with {status}; if this persists, {MANUAL_HINT}");
        return Err(LoginError::Unreachable(told));
    }
    let text =
        |name: &str| said?.get(name)?.as_str().filter(|text| !text.is_empty() && text.len() <= MAX_REGISTRATION_BYTES);
    if !matches!(answer.status, StatusCode::CREATED | StatusCode::OK) {
        let code = text("error").filter(|code| KNOWN_ERROR_CODES.contains(code)).map(|code| format!(" (`{code}`)"));
        let code = code.unwrap_or_default();
        return Err(registration_error_with_hint(
            server,
            &format!("{}: responded with {}{code}", display_url(address), answer.status),
        ));
    }
    let Some(id) = text("client_id") else {
        return Err(registration_error_with_hint(
            server,
            &format!("{}: the response has no `client_id`", display_url(address)),
        ));
    };
    let secret = text("client_secret").map(Secret::new);
    let proof = registered_auth_method(text("token_endpoint_auth_method"), secret.is_some(), server);
    let expires_at = said.and_then(|said| said.get("client_secret_expires_at")).and_then(Value::as_u64);
    let expires_at = expires_at.filter(|at| *at > 0 && secret.is_some()).map(|at| at.saturating_mul(1000));
    Ok(OAuthClient { id: id.to_owned(), secret, proof, origin: ClientOrigin::Registered, expires_at })
}

/// Returns the authentication method of a newly registered client: the one in the registration response, else one that
/// the authorization server lists. Several servers list only `none` but still issue secrets. Those secrets are not
/// used.
fn registered_auth_method(method: Option<&str>, has_secret: bool, server: &AuthServerMetadata) -> TokenEndpointAuth {
    match method {
        _ if !has_secret => TokenEndpointAuth::None,
        Some(AUTH_NONE) => TokenEndpointAuth::None,
        Some(AUTH_BASIC) => TokenEndpointAuth::ClientSecretBasic,
        Some(AUTH_POST) => TokenEndpointAuth::ClientSecretPost,
        // The default of RFC 7591 (2).
        _ if server.proofs.is_empty() || supports_auth_method(server, AUTH_BASIC) => {
            TokenEndpointAuth::ClientSecretBasic
        }
        _ if supports_auth_method(server, AUTH_POST) => TokenEndpointAuth::ClientSecretPost,
        _ => TokenEndpointAuth::None,
    }
}

fn registration_error(reason: impl Into<String>) -> LoginError {
    LoginError::Registration(reason.into())
}

/// Creates a registration error with advice to the user (O11).
fn registration_error_with_hint(server: &AuthServerMetadata, reason: &str) -> LoginError {
    let instead = if server.named == EndpointSource::Presumed { format!("; {INSTEAD}") } else { String::new() };
    registration_error(format!("{reason}; {MANUAL_HINT}{instead}"))
}
