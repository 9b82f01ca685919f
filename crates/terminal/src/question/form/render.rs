//! Rendering of a form: each field with its constraints, and the review before sending.

use std::fmt::Write as _;

use wharf_spec::UntrustedText;
use wharf_wire::{Choice, FieldKind, FormField, JsonNumber, RawJson};

use crate::failure::output_line;
use crate::question::field_value::can_choose_by_number;
use crate::style::{HEADING, QUIET, paint};

/// Maximum characters shown of a name, an option or a value.
const MAX_NAME_CHARS: usize = 80;
const MAX_VALUE_CHARS: usize = 1_000;
/// Maximum lines shown of a description.
const MAX_DESCRIPTION_LINES: usize = 10;

/// Renders a field with its number, without the prompt.
pub fn render_field(field: &FormField, number: usize, of: usize) -> String {
    let mut text = format!("\n{number} of {of}: {}", paint(HEADING, label(field)));
    for line in field.description.as_deref().unwrap_or_default().lines().take(MAX_DESCRIPTION_LINES) {
        let _ = write!(text, "\n{}", output_line(line));
    }
    let need = if field.required { "required" } else { "optional" };
    let _ = write!(text, "\n  {}", paint(QUIET, format_args!("{}, {need}", describe_kind(&field.kind))));
    if let FieldKind::Choice { options } | FieldKind::Choices { options, .. } = &field.kind {
        let numbered = can_choose_by_number(options);
        for (at, option) in options.iter().enumerate() {
            let mark = if numbered { format!("{}.", at + 1) } else { "-".to_owned() };
            let _ = write!(text, "\n    {mark} {}", format_choice(option));
        }
    }
    text
}

/// Returns the title, followed by the name if it differs.
fn label(field: &FormField) -> String {
    let title = UntrustedText::new(field.display_name()).truncate(MAX_NAME_CHARS).to_string();
    if field.display_name() == field.name {
        return title;
    }
    format!("{title} ({})", UntrustedText::new(field.name.as_str()).truncate(MAX_NAME_CHARS))
}

fn describe_kind(kind: &FieldKind) -> String {
    match kind {
        FieldKind::Text { min_length, max_length, format } => {
            let what = match format {
                Some(format) => UntrustedText::new(format.to_string()).truncate(MAX_NAME_CHARS).to_string(),
                None => "text".to_owned(),
            };
            format!("{what}{}", bounds(*min_length, *max_length, " characters"))
        }
        FieldKind::Number { minimum, maximum } => format!("a number{}", range(minimum.as_ref(), maximum.as_ref())),
        FieldKind::Integer { minimum, maximum } => {
            format!("a whole number{}", range(minimum.as_ref(), maximum.as_ref()))
        }
        FieldKind::Boolean => "yes or no".to_owned(),
        FieldKind::Choice { options } if can_choose_by_number(options) => "choose one, by number or value".to_owned(),
        FieldKind::Choice { .. } => "choose one, by value".to_owned(),
        FieldKind::Choices { options, min, max } => {
            let by = if can_choose_by_number(options) { "numbers or values" } else { "values" };
            format!("choose any, by {by} separated by commas{}", bounds(*min, *max, " of them"))
        }
    }
}

fn range(minimum: Option<&JsonNumber>, maximum: Option<&JsonNumber>) -> String {
    bounds(minimum, maximum, "")
}

fn bounds<T: std::fmt::Display>(least: Option<T>, most: Option<T>, unit: &str) -> String {
    match (least, most) {
        (Some(least), Some(most)) => format!(", from {least} to {most}{unit}"),
        (Some(least), None) => format!(", at least {least}{unit}"),
        (None, Some(most)) => format!(", at most {most}{unit}"),
        (None, None) => String::new(),
    }
}

fn format_choice(option: &Choice) -> String {
    let value = UntrustedText::new(option.value.as_str()).truncate(MAX_NAME_CHARS).to_string();
    match option.title.as_deref().filter(|title| *title != option.value) {
        Some(title) => format!("{value} ({})", UntrustedText::new(title).truncate(MAX_NAME_CHARS)),
        None => value,
    }
}

/// Formats a value on one line. Secrets are masked.
pub fn format_value(field: &FormField, value: &RawJson) -> String {
    if field.asks_for_secret() {
        return "***".to_owned();
    }
    let text = match &field.kind {
        FieldKind::Boolean if value.as_str().trim() == "true" => "yes".to_owned(),
        FieldKind::Boolean => "no".to_owned(),
        FieldKind::Text { .. } | FieldKind::Choice { .. } => {
            value.decode_unbounded().unwrap_or_else(|_| value.as_str().to_owned())
        }
        FieldKind::Choices { .. } => {
            let values: Vec<String> = value.decode_unbounded().unwrap_or_default();
            values.join(", ")
        }
        FieldKind::Number { .. } | FieldKind::Integer { .. } => value.as_str().to_owned(),
    };
    match text.as_str() {
        "" => "empty".to_owned(),
        text => UntrustedText::new(text).truncate(MAX_VALUE_CHARS).to_string(),
    }
}

/// Lists all values to be sent.
pub fn render_review(server: &str, fields: &[FormField], values: &[Option<RawJson>]) -> String {
    let mut text = match fields {
        [] => format!("\n{server} asks only for a confirmation."),
        _ => format!("\nTo be sent to {server}:"),
    };
    for (at, (field, value)) in fields.iter().zip(values).enumerate() {
        let value = match value {
            Some(value) => format_value(field, value),
            None => paint(QUIET, "skipped").to_string(),
        };
        let _ = write!(text, "\n  {}. {}: {value}", at + 1, label(field));
    }
    text
}
