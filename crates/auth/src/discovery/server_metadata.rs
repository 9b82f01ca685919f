//! Authorization server metadata (RFC 8414, OpenID Connect Discovery).

use serde_json::Value;
use url::Url;

use super::attempts::DiscoveryAttempts;
use super::untrusted_json::{is_true, string_list, string_member};
use super::{AuthServerMetadata, EndpointSource, well_known};
use crate::auth_http::AuthHttpClient;
use crate::error::LoginError;

/// Maximum number of issuers tried for one server.
const MAX_ISSUERS: usize = 5;

/// Returns the first of these authorization servers with usable metadata. If one is temporarily unavailable, this fails
/// instead of trying the next: the next is another issuer, and would be used from then on.
pub async fn fetch_first_issuer(
    outside: &AuthHttpClient,
    issuers: &[String],
    tried: &mut DiscoveryAttempts,
) -> Result<AuthServerMetadata, LoginError> {
    tried.reset_transient();
    for issuer in issuers.iter().take(MAX_ISSUERS) {
        match well_known::issuer_metadata_urls(issuer) {
            Ok(addresses) => match fetch_first_url(outside, &addresses, &[issuer], tried).await {
                Some(found) => return Ok(found),
                None if tried.is_transient() => break,
                None => {}
            },
            Err(flaw) => tried.record_problem(issuer, flaw),
        }
    }
    Err(tried.to_error("none of the server's authorization servers has usable metadata"))
}

/// Returns the authorization server at the server's own origin, the default of 2025-03-26: with its metadata, or with
/// the default paths if it has none.
pub async fn fetch_at_origin(
    outside: &AuthHttpClient,
    server: &Url,
    tried: &mut DiscoveryAttempts,
) -> Result<AuthServerMetadata, LoginError> {
    let origin = well_known::origin(server);
    let addresses =
        well_known::issuer_metadata_urls(&origin).map_err(|flaw| LoginError::Unsafe(format!("`{origin}`: {flaw}")))?;
    // No issuer identifier was given, so both spellings of an origin are accepted.
    let names = [origin.as_str(), &format!("{origin}/")];
    match fetch_first_url(outside, &addresses, &names, tried).await {
        Some(found) => Ok(found),
        None if tried.is_transient() || tried.found_other_issuer() => {
            Err(tried.to_error("no usable authorization server metadata at the server's own origin"))
        }
        None => Ok(default_endpoints(origin)),
    }
}

/// Returns the first metadata at these URLs whose issuer is one of `names`, byte by byte.
async fn fetch_first_url(
    outside: &AuthHttpClient,
    addresses: &[String],
    names: &[&str],
    tried: &mut DiscoveryAttempts,
) -> Option<AuthServerMetadata> {
    for address in addresses {
        let Some(document) = tried.fetch_document(outside, address).await else { continue };
        match string_member(&document, "issuer") {
            Some(issuer) if names.contains(&issuer.as_str()) => return Some(parse_metadata(&document, issuer)),
            Some(issuer) => tried.record_other_issuer(address, &issuer),
            None => tried.record_problem(address, "has no `issuer`"),
        }
    }
    None
}

fn parse_metadata(document: &Value, issuer: String) -> AuthServerMetadata {
    AuthServerMetadata {
        issuer,
        authorization_endpoint: string_member(document, "authorization_endpoint"),
        token_endpoint: string_member(document, "token_endpoint"),
        registration_endpoint: string_member(document, "registration_endpoint"),
        revocation_endpoint: string_member(document, "revocation_endpoint"),
        device_authorization_endpoint: string_member(document, "device_authorization_endpoint"),
        scopes: string_list(document, "scopes_supported"),
        proofs: string_list(document, "token_endpoint_auth_methods_supported"),
        takes_documents: is_true(document, "client_id_metadata_document_supported"),
        names_itself: is_true(document, "authorization_response_iss_parameter_supported"),
        dpop_algorithms: string_list(document, "dpop_signing_alg_values_supported"),
        takes_s256: string_list(document, "code_challenge_methods_supported").iter().any(|method| method == "S256"),
        named: EndpointSource::Metadata,
        is_guessed: false,
    }
}

/// Returns the default endpoints of 2025-03-26 (authorization, 2.3.3).
fn default_endpoints(origin: String) -> AuthServerMetadata {
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
