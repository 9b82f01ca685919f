//! A server that is reached over HTTP.

use std::fmt;
use std::path::PathBuf;

use url::Url;

use crate::{Secret, StdioSpec};

/// How to reach a server over HTTP.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpSpec {
    /// Where it is: `http` or `https`.
    pub url: Url,
    /// Which of the protocol's forms over HTTP it speaks.
    pub form: HttpForm,
    /// Sent with every request, after what the protocol itself needs.
    pub headers: Vec<(String, Secret)>,
    /// The proxy everything goes through, a URL; nothing in the environment names one.
    pub proxy: Option<Secret>,
    /// Files of certificates trusted beside the system's own, in PEM.
    pub extra_ca: Vec<PathBuf>,
    /// A file with the client's own certificate and its key, in PEM.
    pub client_certificate: Option<PathBuf>,
    /// Repeats arguments in headers where a tool's schema says so. Without it such tools are withheld.
    pub mirror_arguments: bool,
}

/// How to reach a server, whichever way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerSpec {
    /// By starting it.
    Stdio(StdioSpec),
    /// By dialling it.
    Http(HttpSpec),
}

/// The forms the protocol has over HTTP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HttpForm {
    /// Whichever the server turns out to speak.
    #[default]
    Automatic,
    /// Streamable HTTP (since 2025-03-26).
    Streamable,
    /// HTTP+SSE (2024-11-05).
    Sse,
}

impl HttpSpec {
    /// A server at this address, with nothing special about it.
    pub fn new(url: Url) -> Self {
        Self {
            url,
            form: HttpForm::Automatic,
            headers: Vec::new(),
            proxy: None,
            extra_ca: Vec::new(),
            client_certificate: None,
            mirror_arguments: true,
        }
    }
}

impl fmt::Debug for HttpSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpSpec")
            .field("url", &shown_url(&self.url))
            .field("form", &self.form)
            .field("headers", &self.headers)
            .field("proxy", &self.proxy)
            .field("extra_ca", &self.extra_ca)
            .field("client_certificate", &self.client_certificate)
            .field("mirror_arguments", &self.mirror_arguments)
            .finish()
    }
}

/// A URL as it may be shown: without who logs in, and without what its query says.
pub fn shown_url(url: &Url) -> String {
    let mut shown = url.clone();
    if url.password().is_some() || !url.username().is_empty() {
        // Fails only where there can be none. Tokens stand in either place.
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
    fn a_url_is_shown_without_its_secrets() {
        for (url, expected) in [
            ("https://example.org/mcp", "https://example.org/mcp"),
            ("https://me:hush@example.org/mcp", "https://***@example.org/mcp"),
            ("https://hush@example.org/mcp", "https://***@example.org/mcp"),
            ("https://example.org/mcp?key=hush&b=2#x", "https://example.org/mcp?key=***&b=***"),
            ("https://example.org/mcp?hush", "https://example.org/mcp?***"),
        ] {
            assert_eq!(shown_url(&Url::parse(url).unwrap()), expected);
        }
    }

    #[test]
    fn nothing_secret_is_in_the_debug_form() {
        let mut spec = HttpSpec::new(Url::parse("https://me:hush@example.org/?key=hush").unwrap());
        spec.headers.push(("Authorization".to_owned(), Secret::new("hush")));
        spec.proxy = Some(Secret::new("http://u:hush@proxy"));
        assert!(!format!("{spec:?}").contains("hush"));
    }
}
