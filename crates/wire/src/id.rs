//! Request ids, in every form a peer may send.

use std::borrow::Cow;

/// A parsed `id`.
#[derive(Debug, Clone, PartialEq)]
pub enum Id<'a> {
    /// An integer.
    Integer(i64),
    /// A string with escapes resolved.
    Text(Cow<'a, str>),
    /// A number with a fraction or an exponent, or too large for an integer. Legal JSON-RPC, but never sent by this
    /// client.
    Float(f64),
    /// `null`: an error about a message without a readable id.
    Null,
    /// A boolean, an array, an object or invalid JSON.
    Illegal,
}

impl<'a> Id<'a> {
    /// Parses the raw text of an id.
    pub fn parse(text: &'a [u8]) -> Self {
        match text.first() {
            Some(b'"') => serde_json::from_slice(text).map_or(Self::Illegal, |Text(text)| Self::Text(text)),
            Some(b'n') if text == b"null" => Self::Null,
            Some(b'-' | b'0'..=b'9') => Self::number(text),
            _ => Self::Illegal,
        }
    }

    fn number(text: &[u8]) -> Self {
        // Fast path for this client's own ids: digits only. A leading zero is invalid JSON, and 18 digits always fit.
        if text.len() <= 18 && (text[0] != b'0' || text.len() == 1) {
            let digits = text
                .iter()
                .try_fold(0, |number, digit| digit.is_ascii_digit().then(|| number * 10 + i64::from(digit - b'0')));
            if let Some(number) = digits {
                return Self::Integer(number);
            }
        }
        if let Ok(whole) = serde_json::from_slice::<i64>(text) {
            return Self::Integer(whole);
        }
        serde_json::from_slice::<f64>(text).map_or(Self::Illegal, Self::Float)
    }

    /// Returns the number this id was probably created from, also if the peer echoes it as `"7"` or `7.0`.
    pub fn lenient_number(&self) -> Option<u64> {
        match self {
            Self::Integer(number) => u64::try_from(*number).ok(),
            Self::Text(text) => {
                let number: u64 = text.parse().ok()?;
                (number.to_string() == *text).then_some(number)
            }
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "range and fraction are checked before"
            )]
            Self::Float(number) => {
                let exact = (0.0..9_007_199_254_740_992.0).contains(number) && number.fract() == 0.0;
                exact.then_some(*number as u64)
            }
            Self::Null | Self::Illegal => None,
        }
    }

    /// Reports whether a request may carry this id.
    pub fn is_legal(&self) -> bool {
        matches!(self, Self::Integer(_) | Self::Text(_) | Self::Float(_))
    }
}

#[derive(serde::Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_every_form_are_parsed() {
        for (text, expected, lenient) in [
            ("7", Id::Integer(7), Some(7)),
            ("0", Id::Integer(0), Some(0)),
            ("07", Id::Illegal, None),
            ("999999999999999999", Id::Integer(999_999_999_999_999_999), Some(999_999_999_999_999_999)),
            ("-7", Id::Integer(-7), None),
            ("\"7\"", Id::Text("7".into()), Some(7)),
            ("\"07\"", Id::Text("07".into()), None),
            ("\"\\u0037\"", Id::Text("7".into()), Some(7)),
            ("\"a\"", Id::Text("a".into()), None),
            ("7.0", Id::Float(7.0), Some(7)),
            ("7.5", Id::Float(7.5), None),
            ("18446744073709551616", Id::Float(18_446_744_073_709_551_616.0), None),
            ("null", Id::Null, None),
            ("true", Id::Illegal, None),
            ("nul", Id::Illegal, None),
            ("[7]", Id::Illegal, None),
            ("", Id::Illegal, None),
        ] {
            let id = Id::parse(text.as_bytes());
            assert_eq!(id, expected, "{text}");
            assert_eq!(id.lenient_number(), lenient, "{text}");
        }
    }
}
