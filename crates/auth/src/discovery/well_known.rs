//! Well-known URLs of metadata. Built by string concatenation, so that identifiers stay as written.

use url::Url;

use crate::auth_http::check_url;

const RESOURCE_PATH: &str = "/.well-known/oauth-protected-resource";
const ISSUER_PATH: &str = "/.well-known/oauth-authorization-server";
const OPENID_PATH: &str = "/.well-known/openid-configuration";

/// Returns the metadata URLs of a server, in order of preference: for its path, then for its origin (RFC 9728, 3.1).
pub fn resource_metadata_urls(server: &Url) -> Vec<String> {
    let origin = origin(server);
    let path = server.path().trim_end_matches('/');
    let mut paths = vec![path];
    // The RFC keeps a trailing slash, but most servers publish without it.
    if !path.is_empty() && path != server.path() {
        paths.push(server.path());
    }
    if !path.is_empty() {
        paths.push("");
    }
    paths.into_iter().map(|path| format!("{origin}{RESOURCE_PATH}{path}")).collect()
}

/// Returns the metadata URLs of an issuer, in order of preference (RFC 8414, 3.1 and 5; OpenID Connect Discovery, 4).
///
/// # Errors
/// Returns a short description of the problem if the issuer is not a valid identifier.
pub fn issuer_metadata_urls(issuer: &str) -> Result<Vec<String>, &'static str> {
    check_url(issuer)?;
    if issuer.contains(['?', '\\']) {
        return Err("not a valid issuer URL");
    }
    let (scheme, rest) = issuer.split_once("://").ok_or("not a valid URL")?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (origin, path) = (format!("{scheme}://{authority}"), path.trim_end_matches('/'));
    let mut addresses = vec![format!("{origin}{ISSUER_PATH}{path}"), format!("{origin}{OPENID_PATH}{path}")];
    if !path.is_empty() {
        addresses.push(format!("{origin}{path}{OPENID_PATH}"));
    }
    Ok(addresses)
}

/// Returns the origin of a URL, without a trailing slash.
pub fn origin(server: &Url) -> String {
    server.origin().ascii_serialization()
}

/// Returns the resource identifier of a server without metadata: its canonical URI (2025-06-18, authorization).
pub fn canonical_uri(server: &Url) -> String {
    let path = if server.path() == "/" { "" } else { server.path() };
    format!("{}{path}", origin(server))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_uri_has_no_credentials_or_query() {
        for (server, expected) in [
            ("https://example.org", "https://example.org"),
            ("https://example.org:443/?key=hush", "https://example.org"),
            ("https://me:hush@example.org:8443/a/mcp?key=hush#x", "https://example.org:8443/a/mcp"),
            ("http://localhost:3000/a/", "http://localhost:3000/a/"),
        ] {
            assert_eq!(canonical_uri(&Url::parse(server).unwrap()), expected);
        }
    }

    fn check_server(server: &str, expected: &[&str]) {
        let found = resource_metadata_urls(&Url::parse(server).unwrap());
        assert_eq!(found, expected, "{server}");
    }

    #[test]
    fn resource_metadata_urls_are_path_then_root() {
        let root = "http://localhost:3000/.well-known/oauth-protected-resource";
        check_server("http://localhost:3000", &[root]);
        check_server("http://localhost:3000/", &[root]);
        check_server("http://localhost:3000/mcp?key=hush", &[&format!("{root}/mcp"), root]);
        check_server("http://localhost:3000/a/b/", &[&format!("{root}/a/b"), &format!("{root}/a/b/"), root]);
        let plain = "https://example.org/.well-known/oauth-protected-resource";
        check_server("https://me:hush@example.org:443/mcp", &[&format!("{plain}/mcp"), plain]);
    }

    #[test]
    fn o07_issuer_metadata_urls_are_two_or_three() {
        for (issuer, expected) in [
            (
                "https://h:8443",
                "https://h:8443/.well-known/oauth-authorization-server https://h:8443/.well-known/openid-configuration",
            ),
            (
                "https://h/",
                "https://h/.well-known/oauth-authorization-server https://h/.well-known/openid-configuration",
            ),
            (
                "https://H/t%2Fu/v/",
                "https://H/.well-known/oauth-authorization-server/t%2Fu/v \
                 https://H/.well-known/openid-configuration/t%2Fu/v https://H/t%2Fu/v/.well-known/openid-configuration",
            ),
        ] {
            assert_eq!(issuer_metadata_urls(issuer).unwrap().join(" "), expected);
        }
        for issuer in
            ["", "https:/h/t", "https://h?x", "https://h\\t", "http://h", "https://u@h", "https://h#", "javascript:x"]
        {
            assert!(issuer_metadata_urls(issuer).is_err(), "{issuer}");
        }
    }
}
