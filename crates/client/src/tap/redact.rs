//! Redaction of messages for display. JSON stays valid JSON.

use std::borrow::Cow;

use wharf_spec::{Redactor, is_secret_name};

/// Members that look like secrets but are not: the progress token and plain words.
const NOT_SECRET_NAMES: [&str; 3] = ["progressToken", "key", "keys"];

/// The protocol's own member names, which are never redacted.
const ENVELOPE_NAMES: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

/// Redacts secrets in a message. Input that is not JSON is searched as plain text.
pub(crate) fn redact_message<'a>(bytes: &'a [u8], redactor: &Redactor) -> Cow<'a, [u8]> {
    match bytes.trim_ascii_start().first() {
        Some(b'{' | b'[') => Cow::Owned(redact_value(bytes, redactor)),
        _ => redactor.redact_bytes(bytes),
    }
}

/// Redacts secrets in any JSON value.
pub(crate) fn redact_value(bytes: &[u8], redactor: &Redactor) -> Vec<u8> {
    let shown = Vec::with_capacity(bytes.len());
    let mut masking = JsonRedactor { redactor, shown, hides_next: false, hiding: Vec::new() };
    masking.process(bytes);
    masking.shown
}

struct JsonRedactor<'a> {
    redactor: &'a Redactor,
    shown: Vec<u8>,
    /// True if the next value belongs to a member with a secret name.
    hides_next: bool,
    /// For each open array and object: true if its items belong to such a member.
    hiding: Vec<bool>,
}

impl JsonRedactor<'_> {
    fn process(&mut self, mut rest: &[u8]) {
        while let Some(first) = rest.first() {
            let length = match first {
                b'"' => string_length(rest),
                b'{' | b'}' | b'[' | b']' | b',' | b':' => 1,
                _ if first.is_ascii_whitespace() => 1,
                _ => word_length(rest),
            };
            let (piece, behind) = rest.split_at(length);
            match first {
                b'"' => self.on_string(piece, behind.trim_ascii_start().starts_with(b":")),
                b'{' | b'}' | b'[' | b']' | b',' => self.on_punctuation(*first),
                b':' => self.shown.push(b':'),
                _ if first.is_ascii_whitespace() => self.shown.push(*first),
                _ => self.on_word(piece),
            }
            rest = behind;
        }
    }

    /// Handles punctuation. The items of an array inherit its redaction; the members of an object have their own names.
    fn on_punctuation(&mut self, mark: u8) {
        let hides = self.take_hidden();
        match mark {
            b'[' => self.hiding.push(hides),
            b'{' => self.hiding.push(false),
            b']' | b'}' => drop(self.hiding.pop()),
            _ => {}
        }
        self.shown.push(mark);
    }

    /// Reports whether the current value is redacted, and resets the flag for the next one.
    fn take_hidden(&mut self) -> bool {
        std::mem::take(&mut self.hides_next) || self.hiding.last().is_some_and(|hides| *hides)
    }

    fn on_string(&mut self, quoted: &[u8], is_name: bool) {
        if self.take_hidden() && !is_name {
            return self.shown.extend_from_slice(b"\"***\"");
        }
        let text = decode_string(quoted);
        if is_name {
            self.hides_next =
                text.as_deref().is_some_and(|name| !NOT_SECRET_NAMES.contains(&name) && is_secret_name(name));
        }
        match text {
            Some(name) if is_name && ENVELOPE_NAMES.contains(&&*name) => self.shown.extend_from_slice(quoted),
            Some(text) => match self.redactor.redact(&text) {
                Cow::Borrowed(_) => self.shown.extend_from_slice(quoted),
                Cow::Owned(changed) => self.shown.extend(serde_json::to_vec(&changed).unwrap_or_default()),
            },
            None => match self.redactor.redact_bytes(quoted) {
                Cow::Borrowed(_) => self.shown.extend_from_slice(quoted),
                Cow::Owned(_) => self.shown.extend_from_slice(b"\"***\""),
            },
        }
    }

    /// Handles numbers and literals. A redacted number becomes a string, so that the result is valid JSON.
    fn on_word(&mut self, piece: &[u8]) {
        let is_number = piece.first().is_some_and(|first| first.is_ascii_digit() || *first == b'-');
        let hides = self.take_hidden() && is_number;
        match self.redactor.redact_bytes(piece) {
            Cow::Borrowed(_) if !hides => self.shown.extend_from_slice(piece),
            _ => self.shown.extend_from_slice(b"\"***\""),
        }
    }
}

/// Decodes a JSON string. Returns `None` if it is malformed.
fn decode_string(quoted: &[u8]) -> Option<Cow<'_, str>> {
    let inside = quoted.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).filter(|_| quoted.len() > 1)?;
    if inside.contains(&b'\\') {
        return serde_json::from_slice::<String>(quoted).ok().map(Cow::Owned);
    }
    std::str::from_utf8(inside).ok().map(Cow::Borrowed)
}

/// Returns the length of the string at the start, including its quotes, or of the whole text if it is unterminated.
fn string_length(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(step) = memchr::memchr2(b'"', b'\\', text.get(at..).unwrap_or_default()) {
        match text[at + step] {
            b'"' => return at + step + 1,
            _ => at += step + 2,
        }
    }
    text.len()
}

fn word_length(text: &[u8]) -> usize {
    let ends = |byte: &u8| matches!(byte, b'"' | b'{' | b'}' | b'[' | b']' | b',' | b':') || byte.is_ascii_whitespace();
    text.iter().position(ends).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let mut redactor = Redactor::default();
        ["hush\"hush", "123456", "été-caché"].into_iter().for_each(|secret| redactor.add(secret));
        let shown = redact_message(text.as_bytes(), &redactor);
        assert_eq!(String::from_utf8_lossy(&shown), expected);
        if serde_json::from_str::<serde_json::Value>(text).is_ok() {
            serde_json::from_slice::<serde_json::Value>(&shown).unwrap();
        }
    }

    #[test]
    fn known_secrets_are_redacted_in_keys_and_values() {
        check(r#"{"a":"x hush\"hush y","b":["hush\u0022hush"]}"#, r#"{"a":"x *** y","b":["***"]}"#);
        check(r#"{"id":123456,"n":-1123456.5}"#, r#"{"id":"***","n":"***"}"#);
        check(r#"{"123456": { "été-caché" : null } }"#, r#"{"***": { "***" : null } }"#);
        check(r#"{"t":"{\"k\":\"\\u00e9t\\u00e9-cach\\u00e9\"}"}"#, r#"{"t":"{\"k\":\"***\"}"}"#);
        check("no JSON, 123456", "no JSON, ***");
    }

    #[test]
    fn values_of_secret_keys_are_redacted() {
        check(
            r#"{"access_token":"a","password" : "b","Authorization":"Bearer c","n":{"client\u005fsecret":"d"}}"#,
            r#"{"access_token":"***","password" : "***","Authorization":"***","n":{"client\u005fsecret":"***"}}"#,
        );
        for same in [
            r#"{"progressToken":"7","key":"v","maxTokens":5,"author":"me","properties":{"password":{"type":"string"}}}"#,
            r#"{"required":["password","b"],"secret":null,"x":"y","password":[],"auth":true,"n":[1,"z"]}"#,
            r#" [ 1.5e3 , true, {"a\\":"b\"c","d":[]} ] "#,
        ] {
            check(same, same);
        }
    }

    #[test]
    fn numbers_and_arrays_under_secret_keys_are_redacted() {
        check(
            r#"{"password":12345678,"pin":-1,"Authorization":["Bearer x"],"api_keys":[ "y", [-2, null], {"z":3}, 4],"n":[5]}"#,
            r#"{"password":"***","pin":-1,"Authorization":["***"],"api_keys":[ "***", ["***", null], {"z":3}, "***"],"n":[5]}"#,
        );
    }

    #[test]
    fn protocol_member_names_are_not_redacted() {
        let mut redactor = Redactor::default();
        ["method", "params", "result", "jsonrpc"].into_iter().for_each(|word| redactor.add(word));
        let shown = redact_message(br#"{"jsonrpc":"2.0","method":"method","params":{"params2":1}}"#, &redactor);
        let expected = r#"{"jsonrpc":"2.0","method":"***","params":{"***2":1}}"#;
        assert_eq!(String::from_utf8_lossy(&shown), expected);
    }

    #[test]
    fn malformed_messages_are_redacted() {
        check(r#"{"a":"123456"#, r#"{"a":"***""#);
        check(r#"{"a":"\ud800 123456"}"#, r#"{"a":"***"}"#);
        check(r#"{"a":"b\"#, r#"{"a":"b\"#);
    }
}
