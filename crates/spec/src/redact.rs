//! Redaction of a server's secrets in text.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use memchr::memmem::Finder;
use url::Url;

use crate::http::percent_encode;
use crate::mask::{MASK, find_argument_secrets, is_secret_name, mask_ranges, merge_ranges};
use crate::{EnvValue, Environment, HttpSpec, ServerSpec, StdioSpec};

/// Minimum length of a secret. Redacting shorter values would remove ordinary words.
const MIN_SECRET_LENGTH: usize = 6;

/// Maximum number of learned spellings. The oldest are dropped first.
const MAX_LEARNED_SPELLINGS: usize = 64;

/// Headers with common values that are not secret.
const NON_SECRET_HEADERS: [&str; 6] =
    ["accept", "accept-encoding", "accept-language", "content-type", "mcp-protocol-version", "user-agent"];

/// Redacts the secrets of one server in text, in every spelling that is likely there.
///
/// The redactor searches for values, not names, so it finds a secret in any context. A search takes one fast pass over
/// the text per spelling and copies nothing if there is no match.
#[derive(Clone, Default)]
pub struct Redactor {
    spellings: Vec<Finder<'static>>,
    /// Spellings of short-lived secrets, added while the server is in use. Shared between clones.
    learned: Arc<RwLock<VecDeque<Finder<'static>>>>,
}

impl Redactor {
    /// Creates a redactor for the secrets in a server's environment, headers, arguments, URL, proxy and login settings.
    pub fn new(spec: &ServerSpec, around: &Environment) -> Self {
        match spec {
            ServerSpec::Stdio(spec) => Self::for_stdio(spec, around),
            ServerSpec::Http(spec) => Self::for_http(spec),
        }
    }

    /// Creates a redactor for the secrets of a local server.
    pub fn for_stdio(spec: &StdioSpec, around: &Environment) -> Self {
        let mut redactor = Self::default();
        for (name, value) in &spec.env {
            let announced = is_secret_name(&name.to_string_lossy());
            match value {
                EnvValue::Secret(secret) if announced || is_distinctive(secret.reveal()) => {
                    redactor.add(secret.reveal())
                }
                EnvValue::Secret(secret) => redactor.add_url(secret.reveal()),
                EnvValue::Plain(value) if announced => redactor.add(&value.to_string_lossy()),
                EnvValue::Plain(value) => redactor.add_url(&value.to_string_lossy()),
                EnvValue::Inherit => {
                    let inherited = around.env.iter().find(|(known, _)| known == name && announced);
                    inherited.into_iter().for_each(|(_, value)| redactor.add(&value.to_string_lossy()));
                }
            }
        }
        if spec.inherit_env {
            let telling = around.env.iter().filter(|(name, _)| is_secret_name(&name.to_string_lossy()));
            telling.for_each(|(_, value)| redactor.add(&value.to_string_lossy()));
        }
        spec.hidden.iter().for_each(|secret| redactor.add(secret.reveal()));
        for secret in find_argument_secrets(&spec.args) {
            redactor.add_login(&secret);
        }
        redactor
    }

    /// Creates a redactor for the secrets of a remote server.
    pub fn for_http(spec: &HttpSpec) -> Self {
        let mut redactor = Self::default();
        for (name, value) in &spec.headers {
            if !NON_SECRET_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
                redactor.add_header(value.reveal());
            }
        }
        redactor.add_url(spec.url.as_str());
        spec.hidden.iter().for_each(|secret| redactor.add(secret.reveal()));
        spec.hidden_url_parts().for_each(|part| redactor.add(&part));
        if let Some(proxy) = &spec.proxy {
            redactor.add_url(proxy.reveal());
        }
        spec.login.secrets().for_each(|secret| redactor.add(secret.reveal()));
        redactor
    }

    /// Adds a value to redact. Ignores lines that are too short.
    pub fn add(&mut self, value: &str) {
        for line in value.lines().map(str::trim).filter(|line| line.chars().count() >= MIN_SECRET_LENGTH) {
            for spelling in spellings(line) {
                if !self.spellings.iter().any(|known| known.needle() == spelling.as_bytes()) {
                    self.spellings.push(Finder::new(&spelling).into_owned());
                }
            }
        }
    }

    /// Adds a header's credentials, in this redactor and all its clones. For values that are renewed while the server
    /// is in use. Only the most recent spellings are retained.
    pub fn learn_header(&self, value: &str) {
        let mut new = Self::default();
        new.add_header(value);
        let mut learned = self.learned.write().unwrap_or_else(PoisonError::into_inner);
        for spelling in new.spellings {
            if !learned.iter().any(|known| known.needle() == spelling.needle()) {
                learned.push_back(spelling);
            }
        }
        let surplus = learned.len().saturating_sub(MAX_LEARNED_SPELLINGS);
        learned.drain(..surplus);
    }

    fn lock_learned(&self) -> RwLockReadGuard<'_, VecDeque<Finder<'static>>> {
        self.learned.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a header's value: the part after the scheme, and for `Basic` also the decoded user name and password.
    fn add_header(&mut self, value: &str) {
        match value.split_once(' ') {
            Some((scheme, credentials)) if scheme.chars().all(|letter| letter.is_ascii_alphabetic()) => {
                let credentials = credentials.trim();
                self.add(credentials);
                let login = STANDARD.decode(credentials).ok().and_then(|bytes| String::from_utf8(bytes).ok());
                if let Some(login) = login.filter(|_| scheme.eq_ignore_ascii_case("basic")) {
                    self.add_login(&login);
                }
            }
            _ => self.add(value),
        }
    }

    /// Adds a user name and a password, either of which may be a token, or any other value.
    fn add_login(&mut self, login: &str) {
        self.add(login);
        if let Some((user, password)) = login.split_once(':') {
            self.add(user);
            self.add(password);
        }
        if let Some((scheme, token)) = login.split_once(' ')
            && ["bearer", "basic", "token"].contains(&scheme.to_ascii_lowercase().as_str())
        {
            self.add(token.trim());
        }
    }

    fn add_url(&mut self, text: &str) {
        let Ok(url) = Url::parse(text) else { return };
        let (user, password) = (percent_decode(url.username()), percent_decode(url.password().unwrap_or_default()));
        if !user.is_empty() || !password.is_empty() {
            self.add_login(&format!("{user}:{password}"));
            self.add(url.username());
            self.add(url.password().unwrap_or_default());
        }
        for pair in url.query().unwrap_or_default().split('&') {
            let value = pair.split_once('=').map_or(pair, |(_, value)| value);
            self.add(value);
            self.add(&percent_decode(&value.replace('+', " ")));
        }
    }

    /// Reports whether there are no values to redact.
    pub fn is_empty(&self) -> bool {
        self.spellings.is_empty() && self.lock_learned().is_empty()
    }

    /// Replaces every secret in the text with `***`.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let found = self.find(text.as_bytes());
        if found.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(mask_ranges(text, &found)) }
    }

    /// Redacts a text that may be truncated. Also replaces a partial secret at the end of the text or before an
    /// ellipsis.
    pub fn redact_truncated<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut found = self.find(text.as_bytes());
        for end in text.match_indices('…').map(|(at, _)| at).chain([text.len()]) {
            let begun = |spelling: &Finder<'_>| {
                partial_match_at_end(&text.as_bytes()[..end], spelling.needle()).map(|from| from..end)
            };
            let learned = self.lock_learned();
            let begun = self.spellings.iter().chain(&*learned).filter_map(begun);
            found.extend(begun.filter(|range| text.is_char_boundary(range.start)));
        }
        let found = merge_ranges(found);
        if found.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(mask_ranges(text, &found)) }
    }

    /// Redacts bytes, which need not be valid UTF-8.
    pub fn redact_bytes<'t>(&self, bytes: &'t [u8]) -> Cow<'t, [u8]> {
        let found = self.find(bytes);
        if found.is_empty() {
            return Cow::Borrowed(bytes);
        }
        let mut shown = Vec::with_capacity(bytes.len());
        let mut from = 0;
        for range in found {
            shown.extend_from_slice(&bytes[from..range.start]);
            shown.extend_from_slice(MASK.as_bytes());
            from = range.end;
        }
        shown.extend_from_slice(&bytes[from..]);
        Cow::Owned(shown)
    }

    /// Returns the ranges of secrets, sorted and disjoint.
    fn find(&self, text: &[u8]) -> Vec<Range<usize>> {
        let learned = self.lock_learned();
        let all = self
            .spellings
            .iter()
            .chain(&*learned)
            .flat_map(|spelling| spelling.find_iter(text).map(|at| at..at + spelling.needle().len()));
        merge_ranges(all.collect())
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").field("spellings", &self.spellings.len()).finish()
    }
}

/// Reports whether a value differs from a short word such as `production`, which occurs in ordinary text.
fn is_distinctive(value: &str) -> bool {
    value.chars().count() >= 12 || !value.chars().all(|letter| letter.is_ascii_alphabetic())
}

/// Returns the start of the longest prefix of a value with which the text ends.
fn partial_match_at_end(text: &[u8], value: &[u8]) -> Option<usize> {
    let longest = text.len().min(value.len().saturating_sub(1));
    (MIN_SECRET_LENGTH..=longest)
        .rev()
        .find(|length| text.ends_with(&value[..*length]))
        .map(|length| text.len() - length)
}

/// Returns the value as is and as encoded in JSON, URLs and Base64.
fn spellings(value: &str) -> [String; 8] {
    [
        value.to_owned(),
        escape_json(value, false),
        escape_json(value, true),
        escape_json(value, false).replace('/', "\\/"),
        url::form_urlencoded::byte_serialize(value.as_bytes()).collect(),
        percent_encode(value),
        STANDARD_NO_PAD.encode(value),
        URL_SAFE_NO_PAD.encode(value),
    ]
}

/// Escapes a value as the inside of a JSON string. `ascii` also escapes all non-ASCII characters.
fn escape_json(value: &str, ascii: bool) -> String {
    let mut text = String::with_capacity(value.len());
    for letter in value.chars() {
        match letter {
            '"' | '\\' => text.extend(['\\', letter]),
            '\t' => text.push_str("\\t"),
            _ if letter.is_ascii_control() || (ascii && !letter.is_ascii()) => {
                let mut units = [0; 2];
                text.extend(letter.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
            }
            _ => text.push(letter),
        }
    }
    text
}

/// Decodes percent-encoding. Returns the value unchanged if the result is not UTF-8.
fn percent_decode(value: &str) -> String {
    let bytes = value.as_bytes();
    let (mut plain, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while at < bytes.len() {
        let digits = value.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                plain.push(byte);
                at += 3;
            }
            None => {
                plain.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8(plain).unwrap_or_else(|_| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AssertionSource, Secret, TokenGrant};

    fn known(value: &str) -> Redactor {
        let mut redactor = Redactor::default();
        redactor.add(value);
        redactor
    }

    #[test]
    fn secret_is_redacted_in_every_encoding() {
        let redactor = known("h\"sh/é w%rd");
        for text in [
            "h\"sh/é w%rd",
            r#"{"a":"h\"sh/é w%rd"}"#,
            r#"{"a":"h\"sh/\u00e9 w%rd"}"#,
            r#"{"a":"h\"sh\/é w%rd"}"#,
            "?q=h%22sh%2F%C3%A9+w%25rd",
            "?q=h%22sh%2F%C3%A9%20w%25rd",
            "aCJzaC/DqSB3JXJk",
            "aCJzaC_DqSB3JXJk",
        ] {
            let shown = redactor.redact(text);
            assert!(shown.contains("***") && !shown.contains("sh") && !shown.contains("aCJ"), "{text} → {shown}");
        }
    }

    #[test]
    fn overlapping_and_truncated_secrets_are_redacted() {
        let mut redactor = known("abcdefgh");
        redactor.add("efghijkl");
        assert_eq!(redactor.redact("<abcdefghijkl> abcdefghabcdefgh."), "<***> ***.");
        assert_eq!(redactor.redact("abcdefg"), "abcdefg");
        assert_eq!(redactor.redact_truncated("say abcdefg"), "say ***");
        assert_eq!(redactor.redact_truncated("abcdefgh, abcde"), "***, abcde");
        assert_eq!(redactor.redact_truncated("say abcdef… (code 3)"), "say ***… (code 3)");
        assert_eq!(&*redactor.redact_bytes(b"\xffabcdefgh\xff"), b"\xff***\xff");
    }

    #[test]
    fn t50_recently_learned_secrets_are_redacted_in_all_clones() {
        let redactor = Redactor::default();
        let clone = redactor.clone();
        assert!(clone.is_empty());
        redactor.learn_header("Bearer first-token");
        assert!(!clone.is_empty());
        assert_eq!(clone.redact("Bearer first-token, Zmlyc3QtdG9rZW4"), "Bearer ***, ***");
        assert_eq!(clone.redact_truncated("first-tok"), "***");
        for number in 0..1000 {
            redactor.learn_header(&format!("DPoP token-{number}"));
        }
        assert_eq!(clone.redact("token-997 token-998 token-999"), "*** *** ***");
        assert!(clone.lock_learned().len() <= MAX_LEARNED_SPELLINGS);
    }

    #[test]
    fn text_without_secrets_is_borrowed() {
        let redactor = known("hushhush");
        assert!(matches!(redactor.redact("plain"), Cow::Borrowed(_)));
        assert!(matches!(redactor.redact_bytes(b"plain"), Cow::Borrowed(_)));
        assert!(known("short").is_empty() && known("").is_empty());
    }

    #[test]
    fn multi_line_keys_are_redacted_per_line() {
        let redactor = known("-----BEGIN KEY-----\nMIIEvQIBADAN\n");
        assert_eq!(redactor.redact("it says MIIEvQIBADAN"), "it says ***");
    }

    #[test]
    fn stdio_secrets_come_from_variables_and_arguments() {
        let around = Environment {
            env: [("MY_TOKEN", "inherited1"), ("LANG", "inherited2")].map(|(k, v)| (k.into(), v.into())).to_vec(),
            ..Environment::default()
        };
        let mut spec = StdioSpec { args: ["--api-key", "argument1"].map(Into::into).to_vec(), ..StdioSpec::default() };
        spec.env = vec![
            ("ANY".into(), EnvValue::Secret(Secret::new("variable1"))),
            ("ROLE".into(), EnvValue::Secret(Secret::new("server"))),
            ("DB_PASSWORD".into(), EnvValue::Plain("variable2".into())),
            ("DB".into(), EnvValue::Plain("pg://u:variable3@h/".into())),
            ("MODE".into(), EnvValue::Plain("variable4".into())),
            ("MY_TOKEN".into(), EnvValue::Inherit),
            ("LANG".into(), EnvValue::Inherit),
        ];
        let redactor = Redactor::new(&ServerSpec::Stdio(spec), &around);
        let text = "argument1 variable1 variable2 variable3 variable4 inherited1 inherited2 server";
        assert_eq!(redactor.redact(text), "*** *** *** *** variable4 *** inherited2 server");
        assert!(!format!("{redactor:?}").contains("variable"));
        let whole = StdioSpec { inherit_env: true, ..StdioSpec::default() };
        assert_eq!(Redactor::for_stdio(&whole, &around).redact("inherited1 inherited2"), "*** inherited2");
    }

    #[test]
    fn http_secrets_come_from_headers_url_proxy_and_login() {
        let mut spec = HttpSpec::new(Url::parse("https://me:url%2Dpass@h/?k=query%201&l=abc").unwrap());
        spec.proxy = Some(Secret::new("http://proxyuser:proxypass@proxy:1"));
        spec.hidden.push(Secret::new("hidden-1?"));
        spec.login.client_secret = Some(Secret::new("client-pass"));
        spec.login.grant = TokenGrant::Enterprise {
            token_url: "https://idp/token".to_owned(),
            client_id: "public".to_owned(),
            client_secret: Some(Secret::new("idp-pass")),
            id_token: AssertionSource::Given(Secret::new("identity-token")),
        };
        spec.headers = [
            ("Authorization", "Bearer bearer-token"),
            ("X-Login", "Basic dXNlcm5hbWU6cGFzc3dvcmQx"),
            ("X-Key", "header-key"),
            ("Accept", "application/json"),
        ]
        .map(|(name, value)| (name.to_owned(), Secret::new(value)))
        .to_vec();
        let redactor = Redactor::new(&ServerSpec::Http(spec), &Environment::default());
        let text = "url-pass url%2Dpass query 1 query%201 proxyuser proxypass bearer-token Bearer header-key username \
                    password1 dXNlcm5hbWU6cGFzc3dvcmQx bWU6dXJsLXBhc3M hidden-1 client-pass idp-pass identity-token \
                    application/json";
        let expected = "*** *** *** *** *** *** *** Bearer *** *** *** *** *** *** *** *** *** application/json";
        assert_eq!(redactor.redact(text), expected);
    }
}
