//! Input field for a form field: echo, validation while typing, and completions.

use std::sync::Arc;

use wharf_spec::UntrustedText;
use wharf_wire::{Choice, FieldKind, FormField, RawJson};

use super::{FieldInput, parse_input};
use crate::editor::{self, EchoMode};

/// Commands accepted in place of a value.
const COMMANDS: [&str; 4] = [":skip", ":empty", ":decline", ":cancel"];
/// Maximum number of options offered for completion.
const MAX_CHOICES: usize = 200;

/// Returns the input field for a form field with its current value.
pub fn input_field(field: &FormField, value: Option<&RawJson>) -> editor::InputField {
    let echo = if field.asks_for_secret() { EchoMode::Hidden } else { EchoMode::Shown };
    let (known, before) = (field.clone(), value.cloned());
    let check = move |text: &str| check(&known, before.as_ref(), text);
    editor::InputField { echo, check: Some(Arc::new(check)), choices: completion_choices(&field.kind) }
}

/// Rejects a text that further typing cannot make valid. Accepts prefixes of commands and options.
fn check(field: &FormField, value: Option<&RawJson>, text: &str) -> Result<(), String> {
    let begins = |word: &str| word.to_lowercase().starts_with(&text.trim().to_lowercase());
    if text.trim().is_empty() || COMMANDS.iter().any(|order| begins(order)) || allowed_values(&field.kind).any(begins) {
        return Ok(());
    }
    match parse_input(field, value, text) {
        FieldInput::Wrong(why) => Err(UntrustedText::new(why).truncate(200).to_string()),
        _ => Ok(()),
    }
}

/// Returns the values of a field that accepts only certain ones.
fn allowed_values(kind: &FieldKind) -> impl Iterator<Item = &str> {
    let options: &[Choice] = match kind {
        FieldKind::Choice { options } | FieldKind::Choices { options, .. } => options,
        _ => &[],
    };
    let words: &[&str] = if matches!(kind, FieldKind::Boolean) { &["yes", "no"] } else { &[] };
    options.iter().map(|option| option.value.as_str()).chain(words.iter().copied())
}

/// Returns the options without special characters. Others can be chosen by number.
fn completion_choices(kind: &FieldKind) -> Vec<String> {
    let is_plain = |word: &&str| UntrustedText::new(*word).to_string() == **word;
    allowed_values(kind).filter(is_plain).take(MAX_CHOICES).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_wire::{FormRequest, JsonLimits, View as _};

    fn field(name: &str, property: &str) -> FormField {
        let text = format!(r#"{{"message":"m","requestedSchema":{{"properties":{{"{name}":{property}}}}}}}"#);
        FormRequest::from_raw(RawJson::parse(text).unwrap(), &JsonLimits::default()).unwrap().fields.remove(0)
    }

    #[track_caller]
    fn check(property: &str, table: &[(&str, Result<(), &str>)]) {
        let check = input_field(&field("x", property), None).check.unwrap();
        for (text, expected) in table {
            assert_eq!(check(text), expected.map_err(str::to_owned), "{text}");
        }
    }

    #[test]
    fn value_is_validated_while_typing() {
        let too_large = Err("must be at most 20");
        check(r#"{"type":"integer","maximum":20}"#, &[("", Ok(())), ("2", Ok(())), ("21", too_large), (":sk", Ok(()))]);
        let not_there = Err("`x\\u{1b}` is not one of the options");
        check(r#"{"enum":["red","blue"]}"#, &[("b", Ok(())), ("Blu", Ok(())), ("2", Ok(())), ("x\u{1b}", not_there)]);
        check(r#"{"type":"boolean"}"#, &[("y", Ok(())), ("ye", Ok(())), ("maybe", Err("must be true or false"))]);
    }

    #[test]
    fn options_and_booleans_are_offered() {
        for (property, expected) in [
            (r#"{"enum":["red","bl\u001b[2Jue"]}"#, &["red"][..]),
            (r#"{"type":"boolean"}"#, &["yes", "no"]),
            (r#"{"type":"string"}"#, &[]),
        ] {
            assert_eq!(input_field(&field("x", property), None).choices, expected, "{property}");
        }
    }

    #[test]
    fn secret_fields_are_hidden() {
        let text = r#"{"type":"string"}"#;
        assert_eq!(input_field(&field("password", text), None).echo, EchoMode::Hidden);
        assert_eq!(input_field(&field("name", text), None).echo, EchoMode::Shown);
    }
}
