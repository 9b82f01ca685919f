//! Parsing of call arguments written by a model, which may be malformed.

use wharf_json::{JsonLimits, RawJson};

use crate::conversation::TurnBlock;

/// Maximum bytes stored of malformed arguments.
const MAX_MALFORMED_BYTES: usize = 2048;

/// Creates a call block with the arguments in this text. An empty text means no arguments.
pub(super) fn call_block(id: String, name: String, text: &str) -> TurnBlock {
    let (arguments, malformed) = match parse_object(text) {
        Some(arguments) => (arguments, None),
        None => (RawJson::empty_object(), Some(text[..text.floor_char_boundary(MAX_MALFORMED_BYTES)].to_owned())),
    };
    TurnBlock::ToolCall { id, name, arguments, malformed }
}

fn parse_object(text: &str) -> Option<RawJson> {
    let text = text.trim();
    if text.is_empty() {
        return Some(RawJson::empty_object());
    }
    JsonLimits::default().check(text.as_bytes()).ok()?;
    RawJson::parse(text.to_owned()).ok().filter(RawJson::is_object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_arguments_are_stored_separately() {
        let deep = format!("{}{}", r#"{"a":"#.repeat(100), "1");
        for (text, expected, is_malformed) in [
            ("", "{}", false),
            (" \n", "{}", false),
            ("{\"b\": 1,\n\"a\": 2}", r#"{"b": 1, "a": 2}"#, false),
            (r#"{"a":"#, "{}", true),
            ("[1]", "{}", true),
            ("\"text\"", "{}", true),
            (&deep, "{}", true),
        ] {
            let TurnBlock::ToolCall { arguments, malformed, .. } = call_block("1".into(), "t".into(), text) else {
                panic!()
            };
            assert_eq!((arguments.as_str(), malformed.is_some()), (expected, is_malformed), "{text}");
        }
        let TurnBlock::ToolCall { malformed, .. } = call_block("1".into(), "t".into(), &"ü".repeat(5000)) else {
            panic!()
        };
        assert_eq!(malformed.unwrap().len(), MAX_MALFORMED_BYTES);
    }
}
