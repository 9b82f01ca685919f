//! Specification of a server that is reached over HTTP.

use std::fmt;
use std::path::PathBuf;

use url::Url;

use crate::mask::{MASK, is_long_enough_to_mask};
use crate::{AuthSettings, HeadersSource, LaunchCheck, Secret, StdioSpec};

/// Connection settings of a server that is reached over HTTP.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpSpec {
    /// URL of the server: `http` or `https`.
    pub url: Url,
    /// HTTP transport that the server speaks.
    pub form: HttpTransport,
    /// Headers sent with every request, after those that the protocol requires.
    pub headers: Vec<(String, Secret)>,
    /// Source of further headers. They replace those of `headers` and a login.
    pub headers_source: Option<HeadersSource>,
    /// Proxy URL for all requests. Proxy variables in the environment are ignored.
    pub proxy: Option<Secret>,
    /// PEM files of CA certificates trusted in addition to the system's.
    pub extra_ca: Vec<PathBuf>,
    /// PEM file with the client certificate and its private key.
    pub client_certificate: Option<PathBuf>,
    /// Copies arguments into headers where a tool's schema asks for it. If false, such tools are withheld.
    pub mirror_arguments: bool,
    /// Login settings. Values that are absent here are discovered.
    pub login: Box<AuthSettings>,
    /// Account to use when there are several. `None` selects the default account.
    pub account: Option<String>,
    /// Key under which logins are stored. `None` means the server's name.
    pub login_key: Option<String>,
    /// Values in the URL that must be masked when the URL is displayed.
    pub hidden: Vec<Secret>,
    /// Check that runs immediately before a connection is opened.
    pub launch_check: Option<LaunchCheck>,
}

/// Connection settings of a server, by transport.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerSpec {
    /// A local server, started as a child process.
    Stdio(StdioSpec),
    /// A remote server, reached over HTTP.
    Http(HttpSpec),
}

/// Transports that the protocol defines over HTTP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HttpTransport {
    /// Detected from the server's responses.
    #[default]
    Automatic,
    /// Streamable HTTP (since 2025-03-26).
    Streamable,
    /// HTTP+SSE (2024-11-05).
    Sse,
}

impl HttpSpec {
    /// Creates a specification with default settings for this URL.
    pub fn new(url: Url) -> Self {
        Self {
            url,
            form: HttpTransport::Automatic,
            headers: Vec::new(),
            headers_source: None,
            proxy: None,
            extra_ca: Vec::new(),
            client_certificate: None,
            mirror_arguments: true,
            login: Box::default(),
            account: None,
            login_key: None,
            hidden: Vec::new(),
            launch_check: None,
        }
    }

    /// Returns the server's URL with secrets masked as `***`.
    pub fn masked_url(&self) -> String {
        self.mask_url(&self.url)
    }

    /// Returns any URL of this server with secrets masked as `***`.
    pub fn mask_url(&self, url: &Url) -> String {
        let shown = mask_url_secrets(url);
        let Some((scheme, rest)) = shown.split_once("://") else { return shown };
        let mut spellings: Vec<String> = self.hidden_url_parts().flat_map(|part| url_spellings(url, &part)).collect();
        // Longest first: masking a short spelling would break up a longer one that contains it.
        spellings.sort_by_key(|spelling| std::cmp::Reverse(spelling.len()));
        let hide = |text: String, spelling: &String| text.replace(spelling.as_str(), MASK);
        format!("{scheme}://{}", spellings.iter().fold(rest.to_owned(), hide))
    }

    /// Returns the hidden values, split into the parts of a URL in which they may appear. For a value that is itself a
    /// URL, that is its path: the host is not secret, and the other parts are always masked.
    pub(crate) fn hidden_url_parts(&self) -> impl Iterator<Item = String> {
        let parts = |secret: &Secret| -> Vec<String> {
            match Url::parse(secret.reveal()).ok().filter(Url::has_host) {
                Some(url) => vec![url.path().trim_matches('/').to_owned()],
                None => secret.reveal().split(['?', '#', '@']).map(|part| part.trim_matches('/').to_owned()).collect(),
            }
        };
        self.hidden.iter().flat_map(parts).filter(|part| is_long_enough_to_mask(part))
    }
}

/// Returns the ways a value may be spelled in a URL: as is, as a host, as a path, and fully percent-encoded.
fn url_spellings(url: &Url, part: &str) -> [String; 4] {
    let mut path = url.clone();
    path.set_path(part);
    let path = path.path().trim_start_matches('/');
    // Fall back to the value itself if the normalized path is too short to mask.
    let path = if is_long_enough_to_mask(path) { path } else { part };
    [part.to_owned(), part.to_lowercase(), path.to_owned(), percent_encode(part)]
}

/// Percent-encodes everything but unreserved characters (RFC 3986, 2.3).
pub(crate) fn percent_encode(value: &str) -> String {
    let spell = |byte: u8| match byte {
        b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    value.bytes().map(spell).collect()
}

impl fmt::Debug for HttpSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpSpec")
            .field("url", &self.masked_url())
            .field("form", &self.form)
            .field("headers", &self.headers)
            .field("headers_source", &self.headers_source)
            .field("proxy", &self.proxy)
            .field("extra_ca", &self.extra_ca)
            .field("client_certificate", &self.client_certificate)
            .field("mirror_arguments", &self.mirror_arguments)
            .field("login", &self.login)
            .field("account", &self.account)
            .finish()
    }
}

/// Returns a URL with its credentials and query values masked and its fragment removed.
pub fn mask_url_secrets(url: &Url) -> String {
    let mut shown = url.clone();
    if url.password().is_some() || !url.username().is_empty() {
        // Fails only for URLs that cannot have credentials. A token may be in either field.
        let _ = shown.set_password(None).and_then(|()| shown.set_username("***"));
    }
    if let Some(query) = url.query() {
        let masked = |pair: &str| pair.split_once('=').map_or("***".to_owned(), |(name, _)| format!("{name}=***"));
        let pairs: Vec<String> = query.split('&').map(masked).collect();
        shown.set_query(Some(&pairs.join("&")));
    }
    shown.set_fragment(None);
    shown.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_secrets_are_masked() {
        for (url, expected) in [
            ("https://example.org/mcp", "https://example.org/mcp"),
            ("https://me:hush@example.org/mcp", "https://***@example.org/mcp"),
            ("https://hush@example.org/mcp", "https://***@example.org/mcp"),
            ("https://example.org/mcp?key=hush&b=2#x", "https://example.org/mcp?key=***&b=***"),
            ("https://example.org/mcp?hush", "https://example.org/mcp?***"),
        ] {
            assert_eq!(mask_url_secrets(&Url::parse(url).unwrap()), expected);
        }
    }

    #[test]
    fn hidden_values_are_masked_anywhere_in_the_url() {
        for (url, hidden, expected) in [
            ("https://h/hushhush/mcp", "hushhush", "https://h/***/mcp"),
            ("https://h/a b{c/mcp", "a b{c", "https://h/***/mcp"),
            ("https://h/a%2Fb%20c/mcp", "a/b c", "https://h/***/mcp"),
            ("https://Hush.example.org/mcp", "Hush", "https://***.example.org/mcp"),
            ("https://h/hush?key=hush#hush", "hush?key=hush", "https://h/***?key=***"),
            ("https://me:hush@h/hush/mcp", "https://me:hush@h/hush/", "https://***@h/***/mcp"),
            ("https://h/https/v1", "v1", "https://h/https/v1"),
            ("https://h/https/v1", "https", "https://h/***/v1"),
        ] {
            let mut spec = HttpSpec::new(Url::parse(url).unwrap());
            spec.hidden.push(Secret::new(hidden));
            assert_eq!(spec.masked_url(), expected);
            assert!(format!("{spec:?}").contains(expected), "{spec:?}");
        }
    }

    #[test]
    fn debug_output_contains_no_secrets() {
        let mut spec = HttpSpec::new(Url::parse("https://me:hush@example.org/?key=hush").unwrap());
        spec.headers.push(("Authorization".to_owned(), Secret::new("hush")));
        spec.proxy = Some(Secret::new("http://u:hush@proxy"));
        spec.login.client_secret = Some(Secret::new("hush"));
        assert!(!format!("{spec:?}").contains("hush"));
    }
}
