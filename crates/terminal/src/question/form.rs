//! Elicitation forms: asked field by field and reviewed before sending.
//!
//! Enter accepts the value in brackets, or skips an optional field. A line that begins with a colon is a command; a
//! value that begins with a colon is typed with two. Nothing is sent before the review is confirmed.

mod entry;
mod render;

use wharf_spec::UntrustedText;
use wharf_wire::{ElicitationResponse, FieldKind, FormField, FormRequest, RawJson};

use super::{Dialog, DialogInput, DialogStep, NOT_UTF8_MESSAGE, choice_field, field_value, question_header};
use crate::editor;
use entry::input_field;
use render::{format_value, render_field, render_review};

const REQUIRED_MESSAGE: &str = "this field is required. Use :decline or :cancel to answer without it";
const COMMANDS_MESSAGE: &str =
    "commands are :skip, :empty, :decline and :cancel. Type :: for a value that begins with a colon";
const REVIEW_PROMPT: &str = "Send? [Y]es / [e]dit / [d]ecline / [c]ancel: ";
const CONSENT_PROMPT: &str = "Agree? [y]es / [d]ecline / [c]ancel: ";
const USAGE_MESSAGE: &str =
    "Enter accepts the value in [brackets]. Commands: :skip omits a field, :decline declines, :cancel cancels.";

/// Position in the form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FormPosition {
    /// At a field; the review follows the last one.
    Field(usize),
    /// At a field being corrected; the review follows directly.
    Correction(usize),
    Review,
}

/// Dialog for a form.
pub struct FormDialog {
    /// The server's name, escaped.
    server: String,
    form: FormRequest,
    /// Value to send for each field.
    values: Vec<Option<RawJson>>,
    place: FormPosition,
}

/// Meaning of a line typed for a field.
enum FieldInput {
    Decline,
    Cancel,
    Keep,
    Skip,
    Value(RawJson),
    /// Invalid input, and the reason.
    Wrong(String),
}

impl FormDialog {
    /// Creates the dialog. The server's name must be escaped.
    pub fn new(server: &str, form: &FormRequest) -> Self {
        let values = form.fields.iter().map(|field| field.default.clone()).collect();
        let place = if form.fields.is_empty() { FormPosition::Review } else { FormPosition::Field(0) };
        Self { server: server.to_owned(), form: form.clone(), values, place }
    }

    /// Returns the question at the current position, preceded by `words`.
    fn current_step(&self, words: &str) -> DialogStep<ElicitationResponse> {
        let (text, prompt) = match self.place {
            FormPosition::Field(at) | FormPosition::Correction(at) => {
                let (field, value) = (&self.form.fields[at], self.values[at].as_ref());
                let head = render_field(field, at + 1, self.form.fields.len());
                (head, prompt(field, value))
            }
            FormPosition::Review => {
                (render_review(&self.server, &self.form.fields, &self.values), self.review_prompt().to_owned())
            }
        };
        let gap = if words.is_empty() { "" } else { "\n" };
        DialogStep::Ask { say: format!("{words}{gap}{text}"), prompt }
    }

    /// Repeats the prompt after an error.
    fn retry_step(&self, wrong: &str) -> DialogStep<ElicitationResponse> {
        let prompt = match self.place {
            FormPosition::Field(at) | FormPosition::Correction(at) => {
                prompt(&self.form.fields[at], self.values[at].as_ref())
            }
            FormPosition::Review => self.review_prompt().to_owned(),
        };
        DialogStep::Ask { say: format!("  {}", UntrustedText::new(wrong)), prompt }
    }

    /// Reports whether the form has no fields. Such a form needs an explicit yes; an empty line does not confirm it.
    fn has_no_fields(&self) -> bool {
        self.form.fields.is_empty()
    }

    fn review_prompt(&self) -> &'static str {
        if self.has_no_fields() { CONSENT_PROMPT } else { REVIEW_PROMPT }
    }

    fn on_value(&mut self, at: usize, line: &str) -> DialogStep<ElicitationResponse> {
        match parse_input(&self.form.fields[at], self.values[at].as_ref(), line) {
            FieldInput::Decline => return DialogStep::Done(ElicitationResponse::Decline),
            FieldInput::Cancel => return DialogStep::Done(ElicitationResponse::Cancel),
            FieldInput::Wrong(why) => return self.retry_step(&why),
            FieldInput::Keep => {}
            FieldInput::Skip => self.values[at] = None,
            FieldInput::Value(value) => self.values[at] = Some(value),
        }
        self.place = match self.place {
            FormPosition::Field(at) if at + 1 < self.form.fields.len() => FormPosition::Field(at + 1),
            _ => FormPosition::Review,
        };
        self.current_step("")
    }

    fn on_review(&mut self, line: &str) -> DialogStep<ElicitationResponse> {
        let line = line.trim();
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match (word.to_lowercase().as_str(), rest.trim()) {
            ("", "") if !self.has_no_fields() => self.send(),
            ("y" | "yes", "") => self.send(),
            ("d" | "decline" | ":decline" | "n" | "no", "") => DialogStep::Done(ElicitationResponse::Decline),
            ("c" | "cancel" | ":cancel", "") => DialogStep::Done(ElicitationResponse::Cancel),
            ("e" | "edit", which) if !self.has_no_fields() => self.edit(which),
            _ if self.has_no_fields() => self.retry_step("answer y, d or c. Nothing has been sent yet"),
            _ => self.retry_step("answer y, e, d or c. `e 2` edits the second field"),
        }
    }

    /// Returns to a field by number or name, or to the first one.
    fn edit(&mut self, which: &str) -> DialogStep<ElicitationResponse> {
        let fields = &self.form.fields;
        let by_number = || which.parse::<usize>().ok()?.checked_sub(1).filter(|at| *at < fields.len());
        let by_name = || fields.iter().position(|field| field.name == which || field.display_name() == which);
        match by_number().or_else(by_name) {
            Some(at) => self.place = FormPosition::Correction(at),
            None if which.is_empty() => self.place = FormPosition::Field(0),
            None => return self.retry_step("unknown field. Use its number, for example `e 2`"),
        }
        self.current_step("")
    }

    fn send(&self) -> DialogStep<ElicitationResponse> {
        let members: Vec<String> = self.form.fields.iter().zip(&self.values).filter_map(json_member).collect();
        let completed =
            RawJson::parse(format!("{{{}}}", members.join(","))).map(|content| self.form.complete(&content));
        match completed {
            Ok(Ok(content)) => DialogStep::Done(ElicitationResponse::Accept(Some(content))),
            Ok(Err(problems)) => {
                let messages: Vec<String> = problems.iter().map(ToString::to_string).collect();
                self.retry_step(&messages.join("; "))
            }
            Err(error) => self.retry_step(&error.to_string()),
        }
    }
}

impl Dialog for FormDialog {
    type Answer = ElicitationResponse;

    fn begin(&self) -> DialogStep<ElicitationResponse> {
        let head = question_header(&self.server, "asks you:", &self.form.message);
        let how = if self.has_no_fields() { "" } else { USAGE_MESSAGE };
        self.current_step(format!("{head}\n{how}").trim_end())
    }

    fn on_input(&mut self, input: DialogInput) -> DialogStep<ElicitationResponse> {
        let line = match input {
            DialogInput::End => return DialogStep::Done(ElicitationResponse::Cancel),
            DialogInput::Garbled => return self.retry_step(NOT_UTF8_MESSAGE.trim_start()),
            DialogInput::Line(line) => line,
        };
        match self.place {
            FormPosition::Field(at) | FormPosition::Correction(at) => self.on_value(at, &line),
            FormPosition::Review => self.on_review(&line),
        }
    }

    fn field(&self) -> editor::InputField {
        match self.place {
            FormPosition::Field(at) | FormPosition::Correction(at) => {
                input_field(&self.form.fields[at], self.values[at].as_ref())
            }
            FormPosition::Review if self.has_no_fields() => choice_field(&["yes", "decline", "cancel"]),
            FormPosition::Review => choice_field(&["yes", "edit", "decline", "cancel"]),
        }
    }
}

fn json_member((field, value): (&FormField, &Option<RawJson>)) -> Option<String> {
    let value = value.as_ref()?;
    Some(format!("{}:{}", serde_json::Value::from(field.name.as_str()), value.as_str()))
}

/// Formats the prompt with the value that Enter accepts in brackets.
fn prompt(field: &FormField, value: Option<&RawJson>) -> String {
    let name = UntrustedText::new(field.display_name());
    let name = name.truncate(80);
    match value {
        Some(value) => format!("{name} [{}]: ", format_value(field, value)),
        None if field.required => format!("{name}: "),
        None => format!("{name} [skip]: "),
    }
}

fn parse_input(field: &FormField, value: Option<&RawJson>, line: &str) -> FieldInput {
    let line = line.strip_suffix('\r').unwrap_or(line);
    let Some(order) = line.strip_prefix(':') else { return parse_value(field, value, line) };
    match (order.trim_end(), &field.kind) {
        ("decline", _) => FieldInput::Decline,
        ("cancel", _) => FieldInput::Cancel,
        ("skip", _) if field.required => FieldInput::Wrong(REQUIRED_MESSAGE.to_owned()),
        ("skip", _) if field.default.is_some() => {
            FieldInput::Wrong("this field cannot be skipped: its default value would be sent".to_owned())
        }
        ("skip", _) => FieldInput::Skip,
        ("empty", FieldKind::Text { .. }) => check_json(field, "\"\""),
        ("empty", FieldKind::Choices { .. }) => check_json(field, "[]"),
        (text, _) if text.starts_with(':') => parse_value(field, value, order),
        _ => FieldInput::Wrong(COMMANDS_MESSAGE.to_owned()),
    }
}

fn parse_value(field: &FormField, value: Option<&RawJson>, text: &str) -> FieldInput {
    if text.trim().is_empty() {
        return match value {
            Some(_) => FieldInput::Keep,
            None if field.required => FieldInput::Wrong(REQUIRED_MESSAGE.to_owned()),
            None => FieldInput::Skip,
        };
    }
    match field_value::parse_value(field, text) {
        Ok(value) => FieldInput::Value(value),
        Err(reason) => FieldInput::Wrong(reason.to_string()),
    }
}

fn check_json(field: &FormField, json: &'static str) -> FieldInput {
    match RawJson::parse(json) {
        Ok(value) => field
            .check(&value)
            .map_or_else(|reason| FieldInput::Wrong(reason.to_string()), |()| FieldInput::Value(value)),
        Err(error) => FieldInput::Wrong(error.to_string()),
    }
}

#[cfg(test)]
mod tests;
