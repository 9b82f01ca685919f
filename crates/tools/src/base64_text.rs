//! Binary data as Base64 text.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use wharf_json::{JsonLimits, RawJson};

/// Binary data as Base64 text. Cloning shares the memory.
///
/// Decoding is lazy: invalid Base64 is detected only by [`Base64Text::decode`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base64Text(RawJson);

/// Error: the text is not Base64.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not Base64: {0}")]
pub struct InvalidBase64(base64::DecodeError);

impl Base64Text {
    /// Encodes bytes.
    pub fn encode(bytes: &[u8]) -> Self {
        Self(RawJson::new_unchecked(format!("\"{}\"", BASE64_ENGINE.encode(bytes))))
    }

    /// Wraps a JSON string, sharing its memory where it has no escapes. Returns `None` if the value is not a string, or
    /// if it has escapes and decodes to characters outside the Base64 alphabets.
    pub fn from_json(string: RawJson) -> Option<Self> {
        let inside = string.as_str().strip_prefix('"')?.strip_suffix('"')?;
        if !inside.contains('\\') {
            return Some(Self(string));
        }
        // Some encoders write `/` as `\/`, and some insert line breaks.
        let mut text: String = string.decode(&JsonLimits::default()).ok()?;
        text.retain(|character| !character.is_ascii_whitespace());
        let known = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=-_".contains(&byte);
        text.bytes().all(known).then(|| Self(RawJson::new_unchecked(format!("\"{text}\""))))
    }

    /// Returns the Base64 text.
    pub fn text(&self) -> &str {
        self.0.as_str().trim_matches('"')
    }

    /// Returns the decoded size in bytes, computed from the text length.
    pub fn decoded_len(&self) -> usize {
        let letters = self.text().trim_end_matches('=').len();
        letters / 4 * 3 + (letters % 4 * 3) / 4
    }

    /// Decodes the bytes.
    ///
    /// # Errors
    ///
    /// Fails if the text is not Base64.
    pub fn decode(&self) -> Result<Vec<u8>, InvalidBase64> {
        BASE64_ENGINE.decode(self.text()).map_err(InvalidBase64)
    }
}

/// Encodes with padding; decodes with or without it.
const BASE64_ENGINE: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_round_trip() {
        for bytes in [&b""[..], b"a", b"ab", b"abc", b"\xff\xfe\xfd\xfc"] {
            let encoded = Base64Text::encode(bytes);
            assert_eq!((encoded.decode().unwrap().as_slice(), encoded.decoded_len()), (bytes, bytes.len()));
            let unpadded = format!("\"{}\"", encoded.text().trim_end_matches('='));
            let unpadded = Base64Text::from_json(RawJson::parse(unpadded).unwrap()).unwrap();
            assert_eq!((unpadded.decode().unwrap().as_slice(), unpadded.decoded_len()), (bytes, bytes.len()));
        }
    }

    #[test]
    fn json_strings_are_accepted_and_normalized() {
        for (json, text, decodes) in [
            (r#""//79/A==""#, Some("//79/A=="), true),
            (r#""\/\/79\/A==""#, Some("//79/A=="), true),
            (r#""//79\r\n/A==\n""#, Some("//79/A=="), true),
            (r#""not base64""#, Some("not base64"), false),
            (r#""a\"b""#, None, false),
            (r#""a\u0000""#, None, false),
            ("7", None, false),
            ("null", None, false),
        ] {
            let encoded = Base64Text::from_json(RawJson::parse(json).unwrap());
            assert_eq!(encoded.as_ref().map(Base64Text::text), text, "{json}");
            assert_eq!(encoded.is_some_and(|encoded| encoded.decode().is_ok()), decodes, "{json}");
        }
    }

    #[test]
    fn string_without_escapes_is_shared() {
        let string = RawJson::parse(r#""AAAA""#).unwrap();
        let inside = string.as_str()[1..].as_ptr();
        assert_eq!(Base64Text::from_json(string).unwrap().text().as_ptr(), inside);
    }
}
