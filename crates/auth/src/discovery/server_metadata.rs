//! Authorization server metadata (RFC 8414, OpenID Connect Discovery).

use serde_json::Value;
use url::Url;

use super::attempts::DiscoveryAttempts;
use super::untrusted_json::{is_true, text, words};
use super::{AuthServerMetadata, EndpointSource, well_known};
use crate::auth_http::AuthHttpClient;
use crate::error::LoginError;

/// Maximum number of issuers tried for one server.
const MAX_ISSUERS: usize = 5;

/// Returns the first of these authorization servers with usable metadata. If one is temporarily unavailable, this fails
/// instead of trying the next: the next is another issuer, and would be used from then on.
pub async fn of_any(
    outside: &AuthHttpClient,
    issuers: &[String],
    tried: &mut DiscoveryAttempts,
) -> Result<AuthServerMetadata, LoginError> {
    tried.begin_anew();
    for issuer in issuers.iter().take(MAX_ISSUERS) {
        match well_known::of_issuer(issuer) {
            Ok(addresses) => match at_any(outside, &addresses, &[issuer], tried).await {
                Some(found) => return Ok(found),
                None if tried.may_pass() => break,
                None => {}
            },
            Err(flaw) => tried.note(issuer, flaw),
        }
    }
    Err(tried.error("none of the server's authorization servers has usable metadata"))
}

/// Returns the authorization server at the server's own origin, the default of 2025-03-26: with its metadata, or with
/// the default paths if it has none.
pub async fn at_origin(
    outside: &AuthHttpClient,
    server: &Url,
    tried: &mut DiscoveryAttempts,
) -> Result<AuthServerMetadata, LoginError> {
    let origin = well_known::origin(server);
    let addresses = well_known::of_issuer(&origin).map_err(|flaw| LoginError::Unsafe(format!("`{origin}`: {flaw}")))?;
    // No issuer identifier was given, so both spellings of an origin are accepted.
    let names = [origin.as_str(), &format!("{origin}/")];
    match at_any(outside, &addresses, &names, tried).await {
        Some(found) => Ok(found),
        None if tried.may_pass() || tried.found_others() => {
            Err(tried.error("no usable authorization server metadata at the server's own origin"))
        }
        None => Ok(presumed(origin)),
    }
}

/// Returns the first metadata at these URLs whose issuer is one of `names`, byte by byte.
async fn at_any(
    outside: &AuthHttpClient,
    addresses: &[String],
    names: &[&str],
    tried: &mut DiscoveryAttempts,
) -> Option<AuthServerMetadata> {
    for address in addresses {
        let Some(document) = tried.document(outside, address).await else { continue };
        match text(&document, "issuer") {
            Some(issuer) if names.contains(&issuer.as_str()) => return Some(read(&document, issuer)),
            Some(issuer) => tried.note_other(address, &issuer),
            None => tried.note(address, "has no `issuer`"),
        }
    }
    None
}

fn read(document: &Value, issuer: String) -> AuthServerMetadata {
    AuthServerMetadata {
        issuer,
        authorization_endpoint: text(document, "authorization_endpoint"),
        token_endpoint: text(document, "token_endpoint"),
        registration_endpoint: text(document, "registration_endpoint"),
        revocation_endpoint: text(document, "revocation_endpoint"),
        device_authorization_endpoint: text(document, "device_authorization_endpoint"),
        scopes: words(document, "scopes_supported"),
        proofs: words(document, "token_endpoint_auth_methods_supported"),
        takes_documents: is_true(document, "client_id_metadata_document_supported"),
        names_itself: is_true(document, "authorization_response_iss_parameter_supported"),
        dpop_algorithms: words(document, "dpop_signing_alg_values_supported"),
        takes_s256: words(document, "code_challenge_methods_supported").iter().any(|method| method == "S256"),
        named: EndpointSource::Metadata,
        is_guessed: false,
    }
}

/// Returns the default endpoints of 2025-03-26 (authorization, 2.3.3).
fn presumed(origin: String) -> AuthServerMetadata {
    AuthServerMetadata {
        authorization_endpoint: Some(format!("{origin}/authorize")),
        token_endpoint: Some(format!("{origin}/token")),
        registration_endpoint: Some(format!("{origin}/register")),
        issuer: origin,
        named: EndpointSource::Presumed,
        is_guessed: true,
        ..AuthServerMetadata::default()
    }
}
