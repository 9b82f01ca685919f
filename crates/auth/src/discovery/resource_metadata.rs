//! Protected resource metadata (RFC 9728).

use serde_json::Value;
use url::Url;
use wharf_spec::{UntrustedText, mask_url_secrets};

use super::attempts::DiscoveryAttempts;
use super::untrusted_json::{is_true, string_list, string_member};
use super::well_known;
use crate::auth_http::AuthHttpClient;
use crate::challenge::AuthChallenge;
use crate::error::LoginError;

/// Metadata of a server.
pub struct ResourceMetadata {
    /// Resource identifier, as written.
    pub resource: String,
    /// Issuers that the server trusts. At least one.
    pub issuers: Vec<String>,
    pub scopes: Vec<String>,
    pub needs_dpop: bool,
}

/// Fetches the metadata of a server. A URL in the challenge is the only one tried, and must yield metadata. Without
/// one, metadata are optional (2025-03-26).
pub async fn fetch_resource_metadata(
    outside: &AuthHttpClient,
    server: &Url,
    challenge: Option<&AuthChallenge>,
    tried: &mut DiscoveryAttempts,
) -> Result<Option<ResourceMetadata>, LoginError> {
    if let Some(address) = challenge.and_then(|challenge| challenge.resource_metadata.as_ref()) {
        let found = fetch_resource_metadata_at(outside, server, address, tried).await?;
        return found.map(Some).ok_or_else(|| tried.to_error("the metadata URL sent by the server is not usable"));
    }
    for address in well_known::resource_metadata_urls(server) {
        if let Some(found) = fetch_resource_metadata_at(outside, server, &address, tried).await? {
            return Ok(Some(found));
        }
    }
    // A server that is temporarily unavailable must not be treated as a server without metadata.
    if tried.is_transient() {
        Err(tried.to_error("the server's OAuth metadata are temporarily unavailable"))
    } else {
        Ok(None)
    }
}

async fn fetch_resource_metadata_at(
    outside: &AuthHttpClient,
    server: &Url,
    address: &str,
    tried: &mut DiscoveryAttempts,
) -> Result<Option<ResourceMetadata>, LoginError> {
    let Some(document) = tried.fetch_document(outside, address).await else { return Ok(None) };
    let Some(resource) = string_member(&document, "resource") else {
        tried.record_problem(address, "has no `resource`");
        return Ok(None);
    };
    if !is_valid_resource(&resource, server) {
        let found = UntrustedText::new(resource.as_str()).truncate(200).to_string();
        return Err(LoginError::WrongResource { found, dialled: mask_url_secrets(server) });
    }
    let read = parse_resource_metadata(&document, resource);
    if read.issuers.is_empty() {
        tried.record_problem(address, "lists no authorization servers");
        return Ok(None);
    }
    Ok(Some(read))
}

fn parse_resource_metadata(document: &Value, resource: String) -> ResourceMetadata {
    let issuers = string_list(document, "authorization_servers");
    let needs_dpop = is_true(document, "dpop_bound_access_tokens_required");
    ResourceMetadata { resource, issuers, scopes: string_list(document, "scopes_supported"), needs_dpop }
}

/// Reports whether a resource identifier is valid for a server: same origin, and the server's path or a parent of it
/// (RFC 9728, 3.3; many servers use the bare origin).
pub(crate) fn is_valid_resource(resource: &str, server: &Url) -> bool {
    let Ok(named) = Url::parse(resource) else { return false };
    let strays = named.fragment().is_some() || !named.username().is_empty() || named.password().is_some();
    let above = named.path().trim_end_matches('/');
    let below = server.path().strip_prefix(above);
    let within = below.is_some_and(|below| below.is_empty() || below.starts_with('/'));
    let same_query = named.query().is_none() || named.query() == server.query();
    named.origin() == server.origin() && !strays && within && same_query
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(server: &str, resource: &str) -> bool {
        is_valid_resource(resource, &Url::parse(server).unwrap())
    }

    #[test]
    fn t43_resource_must_be_a_prefix_of_the_server_url() {
        let server = "https://example.org/a/mcp?x=y";
        for resource in [
            "https://example.org",
            "https://example.org/",
            "https://example.org:443/a",
            "https://example.org/a/",
            "https://EXAMPLE.org/a/mcp",
            "https://example.org/a/mcp/",
            "https://example.org/a/mcp?x=y",
        ] {
            assert!(check(server, resource), "{resource}");
        }
        for resource in [
            "",
            "/a/mcp",
            "example.org",
            "http://example.org/a/mcp",
            "https://example.org:8443/a/mcp",
            "https://example.org.evil.example/a/mcp",
            "https://evil.example/a/mcp",
            "https://sub.example.org/a/mcp",
            "https://user@example.org/a/mcp",
            "https://example.org/a/mc",
            "https://example.org/a/mcp/more",
            "https://example.org/A/mcp",
            "https://example.org/b",
            "https://example.org/a/mcp?x=z",
            "https://example.org/a/mcp#x",
            "urn:example.org",
            "javascript:alert(1)",
        ] {
            assert!(!check(server, resource), "{resource}");
        }
        assert!(!check("http://localhost:3000/mcp", "http://127.0.0.1:3000/mcp"));
        assert!(check("http://localhost:3000/mcp", "http://localhost:3000"));
    }
}
