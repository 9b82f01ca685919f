//! Encoding of text as a header value.

use std::borrow::Cow;

const PREFIX: &str = "=?base64?";
const SUFFIX: &str = "?=";
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encodes any text for a header: unchanged, or as `=?base64?…?=` (2026-07-28, Streamable HTTP, value encoding).
///
/// The output is visible ASCII, with spaces only inside. The empty text stays empty and is sent.
pub fn encode_header_value(text: &str) -> Cow<'_, str> {
    if is_plain(text) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("{PREFIX}{}{SUFFIX}", encode_base64(text.as_bytes())))
    }
}

/// Reports whether a byte is allowed in a header name (RFC 9110, 5.6.2).
pub(super) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn is_plain(text: &str) -> bool {
    // HTTP allows a tab, but the published conformance suite requires it to be encoded.
    let visible = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    visible && !text.starts_with(' ') && !text.ends_with(' ') && !looks_encoded(text)
}

/// Reports whether a receiver could mistake the text for an encoded value. Ignores case in the prefix.
fn looks_encoded(text: &str) -> bool {
    let marked = text.get(..PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(PREFIX));
    marked && text.ends_with(SUFFIX)
}

/// Encodes with the standard alphabet and padding (RFC 4648, section 4).
fn encode_base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = (0..3).fold(0, |bits, n| bits << 8 | u32::from(group.get(n).copied().unwrap_or_default()));
        for n in 0..4 {
            let letter = ALPHABET[(bits >> (18 - 6 * n)) as usize & 63];
            text.push(if n <= group.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn unsafe_text_is_encoded() {
        for (text, expected) in [
            ("", ""),
            ("us-west1", "us-west1"),
            ("inner  spaces stay", "inner  spaces stay"),
            ("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"),
            ("file:///a%20b", "file:///a%20b"),
            (" leading", "=?base64?IGxlYWRpbmc=?="),
            ("trailing ", "=?base64?dHJhaWxpbmcg?="),
            (" ", "=?base64?IA==?="),
            ("\t", "=?base64?CQ==?="),
            ("a\tb", "=?base64?YQli?="),
            ("a\r\nX: 1", "=?base64?YQ0KWDogMQ==?="),
            ("a\nb", "=?base64?YQpi?="),
            ("\0", "=?base64?AA==?="),
            ("\u{7f}", "=?base64?fw==?="),
            ("日本語", "=?base64?5pel5pys6Kqe?="),
            ("é", "=?base64?w6k=?="),
            ("=?base64?aGk=?=", "=?base64?PT9iYXNlNjQ/YUdrPT89?="),
            ("=?BASE64?aGk=?=", "=?base64?PT9CQVNFNjQ/YUdrPT89?="),
            ("=?base64??=", "=?base64?PT9iYXNlNjQ/Pz0=?="),
            ("=?base64?=", "=?base64?PT9iYXNlNjQ/PQ==?="),
            ("=?base64?aGk=", "=?base64?aGk="),
            ("a=?base64?aGk=?=", "a=?base64?aGk=?="),
            ("=?base32?aGk=?=", "=?base32?aGk=?="),
        ] {
            assert_eq!(encode_header_value(text), expected, "{text:?}");
        }
    }

    #[test]
    fn base64_matches_rfc_4648() {
        for (bytes, expected) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode_base64(bytes.as_bytes()), expected);
        }
        assert_eq!(encode_base64(&[0xff, 0xef, 0xbe, 0xfb]), "/+++".to_owned() + "+w==");
    }

    /// Decodes Base64 bit by bit, independently of the implementation.
    fn decode_base64(text: &str) -> Vec<u8> {
        let letters = text.trim_end_matches('=').bytes();
        let bits: Vec<bool> = letters
            .map(|letter| ALPHABET.iter().position(|&known| known == letter).expect("a letter of base64"))
            .flat_map(|value| (0..6).rev().map(move |bit| value >> bit & 1 == 1))
            .collect();
        bits.chunks_exact(8).map(|byte| byte.iter().fold(0, |value, &bit| value << 1 | u8::from(bit))).collect()
    }

    proptest! {
        #[test]
        fn any_text_round_trips_as_visible_ascii(
            text in prop_oneof![any::<String>(), "[ -~\t\r\n]{0,12}", "=\\?base64\\?[a-z=?]{0,6}"],
        ) {
            let header = encode_header_value(&text);
            prop_assert!(header.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{header:?}");
            prop_assert!(!header.starts_with(' ') && !header.ends_with(' '), "{header:?}");
            match header.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX)) {
                Some(inner) => prop_assert_eq!(decode_base64(inner), text.as_bytes()),
                None => prop_assert_eq!(&*header, text.as_str()),
            }
        }
    }
}
