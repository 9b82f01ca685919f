//! Checks of URLs before a request is sent.

use url::{Host, Url};
use wharf_spec::{UntrustedText, is_control_or_bidi, mask_url_secrets};

/// Maximum length of a URL in bytes.
const MAX_URL_BYTES: usize = 4 << 10;

/// Checks a URL: https, or http on the local machine; no credentials, no fragment.
///
/// # Errors
/// Returns a short description of the problem.
pub(crate) fn check_url(address: &str) -> Result<Url, &'static str> {
    if address.len() > MAX_URL_BYTES {
        return Err("URL too long");
    }
    // The URL parser would silently drop some of these.
    if address.chars().any(|character| character.is_whitespace() || is_control_or_bidi(character)) {
        return Err("invalid characters in the URL");
    }
    let url = Url::parse(address).map_err(|_| "not a valid URL")?;
    match url.scheme() {
        "https" => {}
        "http" if is_loopback_url(&url) => {}
        "http" => return Err("not https (http is allowed on this machine only)"),
        _ => return Err("unsupported scheme (https required)"),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("the URL contains credentials");
    }
    if url.fragment().is_some() {
        return Err("the URL has a fragment");
    }
    Ok(url)
}

/// Reports whether a name always means the local machine (RFC 6761, 6.3).
pub(crate) fn is_localhost(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}

/// Formats a URL for display: escaped, shortened, and without credentials and query values. A URL without these parts
/// is shown as written.
pub(crate) fn display_url(address: &str) -> String {
    let hides = address.contains(['?', '@', '#']);
    let masked = Url::parse(address).ok().filter(|_| hides).map(|url| mask_url_secrets(&url));
    UntrustedText::new(masked.as_deref().unwrap_or(address)).truncate(200).to_string()
}

fn is_loopback_url(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => is_localhost(name),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t39_only_https_and_loopback_urls_are_accepted() {
        for address in [
            "https://example.org",
            "https://example.org:8443/a/b?c=d",
            "HTTPS://EXAMPLE.ORG/",
            "https://10.0.0.1/",
            "http://localhost:1234/x",
            "http://LOCALHOST/x",
            "http://as.localhost/x",
            "http://127.0.0.1/",
            "http://127.9.9.9/",
            "http://0x7f.1/",
            "http://[::1]:80/",
        ] {
            assert!(check_url(address).is_ok(), "{address}");
        }
        for address in [
            "",
            "example.org",
            "//example.org/x",
            "/x",
            "http://example.org/",
            "http://10.0.0.1/",
            "http://0.0.0.0/",
            "http://[::ffff:127.0.0.1]/",
            "http://localhost.example.org/",
            "http://notlocalhost/",
            "http://127.0.0.1.example.org/",
            "ftp://example.org/",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "data:application/json,{}",
            "gopher://127.0.0.1/",
            "ws://localhost/",
            "https:",
            "https://",
            "https://user@example.org/",
            "https://:secret@example.org/",
            "https://example.org/#x",
            "https://example.org/#",
            "https://exa\nmple.org/",
            "https://example.org/\u{202e}",
            " https://example.org/",
            "https://[fe80::1%25lo]/",
            "https://256.1.1.1/",
        ] {
            assert!(check_url(address).is_err(), "{address}");
        }
        assert!(check_url(&format!("https://example.org/{}", "x".repeat(MAX_URL_BYTES))).is_err());
    }

    #[test]
    fn t50_displayed_url_hides_query_and_credentials() {
        for (address, expected) in [
            ("https://example.org/a?key=hush", "https://example.org/a?key=***"),
            ("https://me:hush@example.org/a", "https://***@example.org/a"),
            ("https://Example.org", "https://Example.org"),
            ("no address \u{1b}[2J", "no address \\u{1b}[2J"),
        ] {
            assert_eq!(display_url(address), expected);
        }
    }
}
