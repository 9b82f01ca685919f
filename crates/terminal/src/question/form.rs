//! Elicitation forms: asked field by field and reviewed before sending.
//!
//! Enter accepts the value in brackets, or skips an optional field. A line that begins with a colon is a command; a
//! value that begins with a colon is typed with two. Nothing is sent before the review is confirmed.

mod entry;
mod show;

use wharf_spec::Untrusted;
use wharf_wire::{ElicitationResponse, Field, FieldKind, FormRequest, RawJson};

use super::{Heard, NOT_UTF8, Talk, Turn, one_of, opening, typed};
use crate::editor;
use entry::entry;
use show::{question, review, shown_value};

const NEEDED: &str = "it is needed; :decline or :cancel answers without it";
const ORDERS: &str = "the orders are :skip, :empty, :decline and :cancel; a text with a colon begins with two";
const REVIEW: &str = "Send? [Y]es / [e]dit / [d]ecline / [c]ancel: ";
const CONSENT: &str = "Agree? [y]es / [d]ecline / [c]ancel: ";
const HOW_TO: &str =
    "Enter takes what stands in [brackets]; :skip leaves a field out, :decline says no, :cancel stops.";

/// Position in the form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
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
    place: Place,
}

/// Meaning of a line typed for a field.
enum Said {
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
        let place = if form.fields.is_empty() { Place::Review } else { Place::Field(0) };
        Self { server: server.to_owned(), form: form.clone(), values, place }
    }

    /// Returns the question at the current position, preceded by `words`.
    fn turn(&self, words: &str) -> Turn<ElicitationResponse> {
        let (text, prompt) = match self.place {
            Place::Field(at) | Place::Correction(at) => {
                let (field, value) = (&self.form.fields[at], self.values[at].as_ref());
                let head = question(field, at + 1, self.form.fields.len());
                (head, prompt(field, value))
            }
            Place::Review => (review(&self.server, &self.form.fields, &self.values), self.review_prompt().to_owned()),
        };
        let gap = if words.is_empty() { "" } else { "\n" };
        Turn::Ask { say: format!("{words}{gap}{text}"), prompt }
    }

    /// Repeats the prompt after an error.
    fn again(&self, wrong: &str) -> Turn<ElicitationResponse> {
        let prompt = match self.place {
            Place::Field(at) | Place::Correction(at) => prompt(&self.form.fields[at], self.values[at].as_ref()),
            Place::Review => self.review_prompt().to_owned(),
        };
        Turn::Ask { say: format!("  {}", Untrusted::new(wrong)), prompt }
    }

    /// Reports whether the form has no fields. Such a form needs an explicit yes; an empty line does not confirm it.
    fn is_bare(&self) -> bool {
        self.form.fields.is_empty()
    }

    fn review_prompt(&self) -> &'static str {
        if self.is_bare() { CONSENT } else { REVIEW }
    }

    fn hear_value(&mut self, at: usize, line: &str) -> Turn<ElicitationResponse> {
        match said(&self.form.fields[at], self.values[at].as_ref(), line) {
            Said::Decline => return Turn::Done(ElicitationResponse::Decline),
            Said::Cancel => return Turn::Done(ElicitationResponse::Cancel),
            Said::Wrong(why) => return self.again(&why),
            Said::Keep => {}
            Said::Skip => self.values[at] = None,
            Said::Value(value) => self.values[at] = Some(value),
        }
        self.place = match self.place {
            Place::Field(at) if at + 1 < self.form.fields.len() => Place::Field(at + 1),
            _ => Place::Review,
        };
        self.turn("")
    }

    fn hear_verdict(&mut self, line: &str) -> Turn<ElicitationResponse> {
        let line = line.trim();
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match (word.to_lowercase().as_str(), rest.trim()) {
            ("", "") if !self.is_bare() => self.send(),
            ("y" | "yes", "") => self.send(),
            ("d" | "decline" | ":decline" | "n" | "no", "") => Turn::Done(ElicitationResponse::Decline),
            ("c" | "cancel" | ":cancel", "") => Turn::Done(ElicitationResponse::Cancel),
            ("e" | "edit", which) if !self.is_bare() => self.edit(which),
            _ if self.is_bare() => self.again("answer y, d or c; nothing is sent before you do"),
            _ => self.again("answer y, e, d or c; `e 2` edits only the second field"),
        }
    }

    /// Returns to a field by number or name, or to the first one.
    fn edit(&mut self, which: &str) -> Turn<ElicitationResponse> {
        let fields = &self.form.fields;
        let by_number = || which.parse::<usize>().ok()?.checked_sub(1).filter(|at| *at < fields.len());
        let by_name = || fields.iter().position(|field| field.name == which || field.display_name() == which);
        match by_number().or_else(by_name) {
            Some(at) => self.place = Place::Correction(at),
            None if which.is_empty() => self.place = Place::Field(0),
            None => return self.again("there is no such field; give its number, as in `e 2`"),
        }
        self.turn("")
    }

    fn send(&self) -> Turn<ElicitationResponse> {
        let members: Vec<String> = self.form.fields.iter().zip(&self.values).filter_map(member).collect();
        let completed =
            RawJson::parse(format!("{{{}}}", members.join(","))).map(|content| self.form.complete(&content));
        match completed {
            Ok(Ok(content)) => Turn::Done(ElicitationResponse::Accept(Some(content))),
            Ok(Err(problems)) => {
                let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
                self.again(&told.join("; "))
            }
            Err(error) => self.again(&error.to_string()),
        }
    }
}

impl Talk for FormDialog {
    type Answer = ElicitationResponse;

    fn begin(&self) -> Turn<ElicitationResponse> {
        let head = opening(&self.server, "asks you:", &self.form.message);
        let how = if self.is_bare() { "" } else { HOW_TO };
        self.turn(format!("{head}\n{how}").trim_end())
    }

    fn hear(&mut self, heard: Heard) -> Turn<ElicitationResponse> {
        let line = match heard {
            Heard::End => return Turn::Done(ElicitationResponse::Cancel),
            Heard::Garbled => return self.again(NOT_UTF8.trim_start()),
            Heard::Line(line) => line,
        };
        match self.place {
            Place::Field(at) | Place::Correction(at) => self.hear_value(at, &line),
            Place::Review => self.hear_verdict(&line),
        }
    }

    fn field(&self) -> editor::Field {
        match self.place {
            Place::Field(at) | Place::Correction(at) => entry(&self.form.fields[at], self.values[at].as_ref()),
            Place::Review if self.is_bare() => one_of(&["yes", "decline", "cancel"]),
            Place::Review => one_of(&["yes", "edit", "decline", "cancel"]),
        }
    }
}

fn member((field, value): (&Field, &Option<RawJson>)) -> Option<String> {
    let value = value.as_ref()?;
    Some(format!("{}:{}", serde_json::Value::from(field.name.as_str()), value.get()))
}

/// Formats the prompt with the value that Enter accepts in brackets.
fn prompt(field: &Field, value: Option<&RawJson>) -> String {
    let name = Untrusted::new(field.display_name());
    let name = name.shortened(80);
    match value {
        Some(value) => format!("{name} [{}]: ", shown_value(field, value)),
        None if field.required => format!("{name}: "),
        None => format!("{name} [leave out]: "),
    }
}

fn said(field: &Field, value: Option<&RawJson>, line: &str) -> Said {
    let line = line.strip_suffix('\r').unwrap_or(line);
    let Some(order) = line.strip_prefix(':') else { return said_value(field, value, line) };
    match (order.trim_end(), &field.kind) {
        ("decline", _) => Said::Decline,
        ("cancel", _) => Said::Cancel,
        ("skip", _) if field.required => Said::Wrong(NEEDED.to_owned()),
        ("skip", _) if field.default.is_some() => {
            Said::Wrong("left out, it would be sent with the value the server gave it".to_owned())
        }
        ("skip", _) => Said::Skip,
        ("empty", FieldKind::Text { .. }) => checked(field, "\"\""),
        ("empty", FieldKind::Choices { .. }) => checked(field, "[]"),
        (text, _) if text.starts_with(':') => said_value(field, value, order),
        _ => Said::Wrong(ORDERS.to_owned()),
    }
}

fn said_value(field: &Field, value: Option<&RawJson>, text: &str) -> Said {
    if text.trim().is_empty() {
        return match value {
            Some(_) => Said::Keep,
            None if field.required => Said::Wrong(NEEDED.to_owned()),
            None => Said::Skip,
        };
    }
    match typed::read(field, text) {
        Ok(value) => Said::Value(value),
        Err(reason) => Said::Wrong(reason.to_string()),
    }
}

fn checked(field: &Field, json: &'static str) -> Said {
    match RawJson::parse(json) {
        Ok(value) => field.check(&value).map_or_else(|reason| Said::Wrong(reason.to_string()), |()| Said::Value(value)),
        Err(error) => Said::Wrong(error.to_string()),
    }
}

#[cfg(test)]
mod tests;
