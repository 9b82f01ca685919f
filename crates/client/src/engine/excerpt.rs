//! Truncation of texts from the server: error and progress messages.

use serde_json::value::RawValue;
use wharf_wire::{JsonDecodeError, JsonLimits, RpcError};

/// Maximum bytes of the message of an error or a progress report. The rest is cut.
pub(super) const MAX_SHOWN_TEXT_BYTES: usize = 16 << 10;

/// Decodes a large error without its data and without copying its whole message.
pub(super) fn decode_large_error(error: &[u8], bounds: &JsonLimits) -> Result<RpcError, JsonDecodeError> {
    #[derive(serde::Deserialize)]
    struct LargeErrorFields<'a> {
        code: i64,
        #[serde(borrow, default)]
        message: Option<&'a RawValue>,
    }
    bounds.check(error).map_err(JsonDecodeError::TooComplex)?;
    let LargeErrorFields { code, message } = serde_json::from_slice(error).map_err(JsonDecodeError::Shape)?;
    let message = message.map(|message| decode_prefix(message.get())).unwrap_or_default();
    Ok(RpcError { code, message, data: None })
}

/// Decodes the start of a JSON string, cut between two of its characters.
fn decode_prefix(json: &str) -> String {
    let most = json.floor_char_boundary(MAX_SHOWN_TEXT_BYTES);
    let ends = (1..=most).rev().filter(|end| json.is_char_boundary(*end));
    // An escape has at most twelve characters.
    ends.take(12).find_map(|end| serde_json::from_str(&format!("{}\"", &json[..end])).ok()).unwrap_or_default()
}

/// Truncates a text from the server.
pub(super) fn truncate_message(mut text: String) -> String {
    if text.len() > MAX_SHOWN_TEXT_BYTES {
        text.truncate(text.floor_char_boundary(MAX_SHOWN_TEXT_BYTES));
        text.push('…');
        text.shrink_to_fit();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_error_keeps_code_and_truncated_message() {
        for (character, expected) in [("x", "x"), ("\\ud83d\\ude00", "😀"), ("\\n", "\n"), ("ü", "ü")] {
            let text = format!(r#"{{"code":-7,"message":"{}","data":{{"a":1}}}}"#, character.repeat(100_000));
            let error = decode_large_error(text.as_bytes(), &JsonLimits::default()).unwrap();
            assert_eq!((error.code, error.data), (-7, None));
            let length = error.message.len();
            assert!(length > MAX_SHOWN_TEXT_BYTES / 4 && length <= MAX_SHOWN_TEXT_BYTES, "{expected}: {length}");
            assert_eq!(error.message, expected.repeat(length / expected.len()));
        }
        let short = decode_large_error(br#"{"code":1,"message":"a"}"#, &JsonLimits::default()).unwrap();
        assert_eq!(short.message, "a");
        assert!(decode_large_error(br#"{"message":"a"}"#, &JsonLimits::default()).is_err());
    }
}
