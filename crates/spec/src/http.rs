//! A server that is reached over HTTP.

use std::fmt;
use std::path::PathBuf;

use url::Url;

use crate::mask::{MASK, is_worth_hiding};
use crate::{AuthSettings, LaunchCheck, Secret, StdioSpec};

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
    /// How to log in, as far as that is said and not discovered.
    pub login: Box<AuthSettings>,
    /// Which of several accounts there is used; the usual one when absent.
    pub account: Option<String>,
    /// What its logins are kept under; its name when absent.
    pub login_key: Option<String>,
    /// Values in the URL that may not be shown.
    pub hidden: Vec<Secret>,
    /// Checked immediately before the server is dialled.
    pub launch_check: Option<LaunchCheck>,
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
            login: Box::default(),
            account: None,
            login_key: None,
            hidden: Vec::new(),
            launch_check: None,
        }
    }

    /// The URL as it may be shown: what is secret in it is `***`.
    pub fn shown_url(&self) -> String {
        self.shown(&self.url)
    }

    /// Any URL of this server's as it may be shown.
    pub fn shown(&self, url: &Url) -> String {
        let shown = shown_url(url);
        let Some((scheme, rest)) = shown.split_once("://") else { return shown };
        let mut spellings: Vec<String> = self.hidden_parts().flat_map(|part| in_url(url, &part)).collect();
        // What is a part of something longer would keep that from being found.
        spellings.sort_by_key(|spelling| std::cmp::Reverse(spelling.len()));
        let hide = |text: String, spelling: &String| text.replace(spelling.as_str(), MASK);
        format!("{scheme}://{}", spellings.iter().fold(rest.to_owned(), hide))
    }

    /// The hidden values, in the parts of a URL they may stand in. Of a whole URL that is its path: whom it names is
    /// no secret, and everything else is never shown.
    pub(crate) fn hidden_parts(&self) -> impl Iterator<Item = String> {
        let parts = |secret: &Secret| -> Vec<String> {
            match Url::parse(secret.reveal()).ok().filter(Url::has_host) {
                Some(url) => vec![url.path().trim_matches('/').to_owned()],
                None => secret.reveal().split(['?', '#', '@']).map(|part| part.trim_matches('/').to_owned()).collect(),
            }
        };
        self.hidden.iter().flat_map(parts).filter(|part| is_worth_hiding(part))
    }
}

/// A part of a URL as it may be spelled there: as it is, as a host, as a path, and with everything escaped.
fn in_url(url: &Url, part: &str) -> [String; 4] {
    let mut path = url.clone();
    path.set_path(part);
    let path = path.path().trim_start_matches('/');
    // Where nothing is left, the part itself is as good.
    let path = if is_worth_hiding(path) { path } else { part };
    [part.to_owned(), part.to_lowercase(), path.to_owned(), escaped(part)]
}

/// Percent-encoded but for what is never in need of it (RFC 3986, 2.3).
pub(crate) fn escaped(value: &str) -> String {
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
            .field("url", &self.shown_url())
            .field("form", &self.form)
            .field("headers", &self.headers)
            .field("proxy", &self.proxy)
            .field("extra_ca", &self.extra_ca)
            .field("client_certificate", &self.client_certificate)
            .field("mirror_arguments", &self.mirror_arguments)
            .field("login", &self.login)
            .field("account", &self.account)
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
    fn hidden_values_are_not_shown_wherever_they_stand() {
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
            assert_eq!(spec.shown_url(), expected);
            assert!(format!("{spec:?}").contains(expected), "{spec:?}");
        }
    }

    #[test]
    fn nothing_secret_is_in_the_debug_form() {
        let mut spec = HttpSpec::new(Url::parse("https://me:hush@example.org/?key=hush").unwrap());
        spec.headers.push(("Authorization".to_owned(), Secret::new("hush")));
        spec.proxy = Some(Secret::new("http://u:hush@proxy"));
        spec.login.client_secret = Some(Secret::new("hush"));
        assert!(!format!("{spec:?}").contains("hush"));
    }
}
