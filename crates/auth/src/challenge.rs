//! Lenient, bounded parsing of `WWW-Authenticate`.

use wharf_net::{HeaderMap, header};

/// Maximum number of challenges read from one response.
const MAX_CHALLENGES: usize = 8;
/// Maximum length of a value in bytes. Longer values are ignored.
const MAX_VALUE_BYTES: usize = 4 << 10;

/// An OAuth challenge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthChallenge {
    /// Authentication scheme of the token.
    pub scheme: TokenScheme,
    /// URL of the server's metadata.
    pub resource_metadata: Option<String>,
    /// Scopes that the request needs, separated by spaces.
    pub scope: Option<String>,
    /// Error code: `invalid_token`, `insufficient_scope`, `use_dpop_nonce`.
    pub error: Option<String>,
}

/// Authentication scheme of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenScheme {
    /// Bearer token, usable by every holder.
    Bearer,
    /// Token with a DPoP proof.
    Dpop,
}

impl AuthChallenge {
    /// Parses the challenges in the headers of a response, in order. Schemes other than `Bearer` and `DPoP` are
    /// skipped.
    pub fn from_headers(headers: &HeaderMap) -> Vec<Self> {
        let mut reading = ChallengeParser::default();
        for value in headers.get_all(header::WWW_AUTHENTICATE) {
            reading.parse_header(&String::from_utf8_lossy(value.as_bytes()));
        }
        reading.challenges.truncate(MAX_CHALLENGES);
        reading.challenges
    }

    /// Returns the first challenge with a metadata URL, else the first challenge.
    pub fn most_specific(challenges: Vec<Self>) -> Option<Self> {
        let index = challenges.iter().position(|challenge| challenge.resource_metadata.is_some()).unwrap_or(0);
        challenges.into_iter().nth(index)
    }

    fn new(scheme: TokenScheme) -> Self {
        Self { scheme, resource_metadata: None, scope: None, error: None }
    }

    /// Sets a known parameter that is not set yet.
    fn set_parameter(&mut self, name: &str, value: String) {
        let places = [
            ("resource_metadata", &mut self.resource_metadata),
            ("scope", &mut self.scope),
            ("error", &mut self.error),
        ];
        let place = places.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        if let Some((_, place @ None)) = place
            && !value.is_empty()
            && value.len() <= MAX_VALUE_BYTES
        {
            *place = Some(value);
        }
    }
}

/// State of the parser, across headers.
#[derive(Default)]
struct ChallengeParser {
    challenges: Vec<AuthChallenge>,
    /// Position of the parser.
    place: ParserPosition,
}

/// Position of the parser.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum ParserPosition {
    /// Outside a challenge: parameters are ignored.
    #[default]
    Nowhere,
    /// Directly after a scheme name.
    AfterScheme { known: bool },
    /// After a parameter or credentials of a challenge.
    Within { known: bool },
}

impl ChallengeParser {
    /// Parses one header. A word followed by `=` is a parameter. Any other word is a scheme, or credentials if it
    /// directly follows a scheme (RFC 9110, 11.2).
    fn parse_header(&mut self, text: &str) {
        self.place = ParserPosition::Nowhere;
        let mut rest = text;
        while self.challenges.len() <= MAX_CHALLENGES {
            let between = rest.trim_start_matches(|character: char| is_blank(character) || character == ',');
            let comma = rest[..rest.len() - between.len()].contains(',');
            let (word, after) = split_word(between);
            let value = after.trim_start_matches(is_blank).strip_prefix('=');
            rest = match (word, value) {
                ("", _) if between.is_empty() => return,
                // A stray quote or sign.
                ("", _) => split_value(between).1,
                (name, Some(value)) => self.parameter(name, value.trim_start_matches(is_blank)),
                (word, None) => self.bare_word(word, comma, after),
            };
        }
    }

    fn parameter<'a>(&mut self, name: &str, value: &'a str) -> &'a str {
        let (value, rest) = split_value(value);
        let known =
            matches!(self.place, ParserPosition::AfterScheme { known: true } | ParserPosition::Within { known: true });
        if let Some(challenge) = self.challenges.last_mut().filter(|_| known) {
            challenge.set_parameter(name, value);
        }
        self.place = ParserPosition::Within { known };
        rest
    }

    fn bare_word<'a>(&mut self, word: &str, comma: bool, rest: &'a str) -> &'a str {
        if let (ParserPosition::AfterScheme { known }, false) = (self.place, comma) {
            self.place = ParserPosition::Within { known };
            return rest;
        }
        let scheme = [("Bearer", TokenScheme::Bearer), ("DPoP", TokenScheme::Dpop)];
        let scheme = scheme.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
        self.challenges.extend(scheme.map(|(_, scheme)| AuthChallenge::new(scheme)));
        self.place = ParserPosition::AfterScheme { known: scheme.is_some() };
        rest
    }
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t')
}

/// Splits a text before the next blank, comma, equals sign or quote.
fn split_word(text: &str) -> (&str, &str) {
    let end = text.find(|character| is_blank(character) || matches!(character, ',' | '=' | '"'));
    text.split_at(end.unwrap_or(text.len()))
}

/// Splits off a value, quoted or not. An unterminated quote extends to the end.
fn split_value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(|character| is_blank(character) || character == ',').unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let mut value = String::new();
    let mut characters = quoted.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => break,
            '\\' => value.extend(characters.next()),
            _ => value.push(character),
        }
    }
    (value, characters.as_str())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wharf_net::HeaderValue;

    use super::*;

    fn read(values: &[&[u8]]) -> Vec<AuthChallenge> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::WWW_AUTHENTICATE, HeaderValue::from_bytes(value).unwrap());
        }
        AuthChallenge::from_headers(&headers)
    }

    /// Compares scheme, metadata URL, scope and error of each challenge. `-` means absent.
    fn check(values: &[&str], expected: &[&str]) {
        let bytes: Vec<&[u8]> = values.iter().map(|value| value.as_bytes()).collect();
        let dash = |text: &Option<String>| text.clone().unwrap_or("-".to_owned());
        let shown = |one: &AuthChallenge| {
            format!("{:?} {} {} {}", one.scheme, dash(&one.resource_metadata), dash(&one.scope), dash(&one.error))
        };
        assert_eq!(read(&bytes).iter().map(shown).collect::<Vec<_>>(), expected, "{values:?}");
    }

    #[test]
    fn all_challenge_spellings_are_parsed() {
        check(&[], &[]);
        check(&[""], &[]);
        check(&["Bearer"], &["Bearer - - -"]);
        check(&[r#"Bearer resource_metadata="https://a/b?c=d,e", scope="x y""#], &["Bearer https://a/b?c=d,e x y -"]);
        check(&["bEARER Resource_Metadata=https://a/b,SCOPE=x"], &["Bearer https://a/b x -"]);
        check(&[r#"Bearer  error = "invalid_token" , scope	=	x"#], &["Bearer - x invalid_token"]);
        check(&[r#"Bearer error="insufficient_scope" scope="a b""#], &["Bearer - a b insufficient_scope"]);
        check(&[r#"Bearer realm="say \"hi\", scope=no", scope="a\b""#], &["Bearer - ab -"]);
        check(
            &[r#"Basic realm="x", Bearer scope=y, DPoP algs="ES256 RS256", error=z"#],
            &["Bearer - y -", "Dpop - - z"],
        );
        check(&["Basic scope=no", "dpop scope=yes"], &["Dpop - yes -"]);
        check(&["Bearer, DPoP"], &["Bearer - - -", "Dpop - - -"]);
        check(&["Negotiate YIIa==, Bearer scope=y"], &["Bearer - y -"]);
        check(&["Negotiate YIIa, Bearer scope=y"], &["Bearer - y -"]);
        check(&["Bearer mF_9.B5f-4.1JqM, scope=y"], &["Bearer - y -"]);
        check(&["Bearer scope=x DPoP scope=y"], &["Bearer - x -", "Dpop - y -"]);
    }

    #[test]
    fn malformed_challenge_parts_are_skipped() {
        check(&["scope=x"], &[]);
        check(&["Bearer", "scope=x"], &["Bearer - - -"]);
        check(&["Unknown scope=x, error=y"], &[]);
        check(&["Bearer scope=, error=\"\", resource_metadata="], &["Bearer - - -"]);
        check(&["Bearer scope=first, scope=second"], &["Bearer - first -"]);
        check(&[r#"Bearer scope="never ends, error=x"#], &["Bearer - never ends, error=x -"]);
        check(&[r#",,= "stray" ="" Bearer ,, scope=x"#], &["Bearer - x -"]);
        check(&["Bearerscope=x"], &[]);
        check(&[r#"Bearer scope="x\"#], &["Bearer - x -"]);
    }

    #[test]
    fn t49_oversized_values_and_excess_challenges_are_dropped() {
        let long = "s".repeat(MAX_VALUE_BYTES);
        check(&[&format!("Bearer scope={long}, error=x")], &[&format!("Bearer - {long} x")]);
        check(&[&format!("Bearer scope={long}s, error=x")], &["Bearer - - x"]);
        let many = "Bearer scope=x, ".repeat(1_000);
        check(&[&many, &many], &["Bearer - x -"; MAX_CHALLENGES]);
    }

    proptest! {
        #[test]
        fn arbitrary_input_yields_only_bounded_values(
            bytes in "[ -~\t\u{80}-\u{ff}]{0,200}",
            more in r#"(Bearer|DPoP|[a-z]+|[ ,="\\]){0,40}"#,
        ) {
            for challenge in read(&[bytes.as_bytes(), more.as_bytes()]) {
                for value in [challenge.resource_metadata, challenge.scope, challenge.error].into_iter().flatten() {
                    prop_assert!(!value.is_empty() && value.len() <= MAX_VALUE_BYTES);
                }
            }
        }

        #[test]
        fn quoted_strings_round_trip(scope in "[ -~]{1,80}") {
            let quoted = scope.replace('\\', r"\\").replace('"', "\\\"");
            let found = read(&[format!("Basic x=y, Bearer a=b, scope=\"{quoted}\", error=c").as_bytes()]);
            prop_assert_eq!(found.len(), 1);
            prop_assert_eq!(found[0].scope.as_ref(), Some(&scope));
            prop_assert_eq!(found[0].error.as_deref(), Some("c"));
        }
    }
}
