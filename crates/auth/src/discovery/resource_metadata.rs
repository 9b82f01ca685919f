//! Protected resource metadata (RFC 9728).

use serde_json::Value;
use url::Url;
use wharf_spec::{UntrustedText, shown_url};

use super::attempts::DiscoveryAttempts;
use super::untrusted_json::{is_true, text, words};
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
pub async fn description(
    outside: &AuthHttpClient,
    server: &Url,
    challenge: Option<&AuthChallenge>,
    tried: &mut DiscoveryAttempts,
) -> Result<Option<ResourceMetadata>, LoginError> {
    if let Some(address) = challenge.and_then(|challenge| challenge.resource_metadata.as_ref()) {
        let found = description_at(outside, server, address, tried).await?;
        return found.map(Some).ok_or_else(|| tried.error("the metadata URL sent by the server is not usable"));
    }
    for address in well_known::of_server(server) {
        if let Some(found) = description_at(outside, server, &address, tried).await? {
            return Ok(Some(found));
        }
    }
    // A server that is temporarily unavailable must not be treated as a server without metadata.
    if tried.may_pass() {
        Err(tried.error("the server's OAuth metadata are temporarily unavailable"))
    } else {
        Ok(None)
    }
}

async fn description_at(
    outside: &AuthHttpClient,
    server: &Url,
    address: &str,
    tried: &mut DiscoveryAttempts,
) -> Result<Option<ResourceMetadata>, LoginError> {
    let Some(document) = tried.document(outside, address).await else { return Ok(None) };
    let Some(resource) = text(&document, "resource") else {
        tried.note(address, "has no `resource`");
        return Ok(None);
    };
    if !is_of(&resource, server) {
        let found = UntrustedText::new(resource.as_str()).shortened(200).to_string();
        return Err(LoginError::WrongResource { found, dialled: shown_url(server) });
    }
    let read = read(&document, resource);
    if read.issuers.is_empty() {
        tried.note(address, "lists no authorization servers");
        return Ok(None);
    }
    Ok(Some(read))
}

fn read(document: &Value, resource: String) -> ResourceMetadata {
    let issuers = words(document, "authorization_servers");
    let needs_dpop = is_true(document, "dpop_bound_access_tokens_required");
    ResourceMetadata { resource, issuers, scopes: words(document, "scopes_supported"), needs_dpop }
}

/// Reports whether a resource identifier is valid for a server: same origin, and the server's path or a parent of it
/// (RFC 9728, 3.3; many servers use the bare origin).
pub(crate) fn is_of(resource: &str, server: &Url) -> bool {
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
        is_of(resource, &Url::parse(server).unwrap())
    }

    #[test]
    fn t43_a_server_goes_by_no_name_but_its_own() {
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
