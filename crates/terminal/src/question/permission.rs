//! Permission for a tool call: shows the whole call page by page and accepts five answers.

use std::fmt::Write as _;

use wharf::tools::ToolHints;
use wharf::{PermissionAnswer, PermissionAsk};
use wharf_spec::UntrustedText;

use super::json_indent::indent_json;
use super::pages::{ScreenSize, TextPager};
use super::{Dialog, DialogInput, DialogStep, NOT_UTF8_MESSAGE, choice_field};
use crate::editor::InputField;
use crate::style::{HEADING, NAME, QUIET, WARNING, paint};

/// Maximum characters shown of a name or a reason.
const MAX_SHOWN_CHARS: usize = 200;
const PROMPT: &str = "Allow the call? [y]es, once / [s]ession / [a]lways / [n]o / [r]eason: ";
const REASON_PROMPT: &str = "Reason (sent to the model): ";
const AGAIN: &str = "  Answer y, s, a, n or r. The tool has not been called yet.";

/// Dialog that asks for permission to call a tool.
pub struct PermissionDialog {
    /// The caller, the tool, and the effect of "always".
    head: String,
    /// Changes of the tool definition, and the arguments.
    call: TextPager,
    place: PermissionStage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PermissionStage {
    Verdict,
    Reason,
}

impl PermissionDialog {
    /// Creates the dialog. `rule_file` is the display path of the file that "always" writes to, if any.
    pub fn new(ask: &PermissionAsk, rule_file: Option<&str>, room: ScreenSize) -> Self {
        Self {
            head: permission_header(ask, rule_file),
            call: TextPager::new(&format_call(ask), room),
            place: PermissionStage::Verdict,
        }
    }

    fn on_decision(&mut self, line: &str) -> DialogStep<PermissionAnswer> {
        let (word, rest) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
        match (word.to_lowercase().as_str(), rest.trim()) {
            ("", _) if self.call.next_page() => DialogStep::ask(self.call.render_page(), PROMPT),
            ("y" | "yes" | "once", "") => DialogStep::Done(PermissionAnswer::Once),
            ("s" | "session", "") => DialogStep::Done(PermissionAnswer::Session),
            ("a" | "always", "") => DialogStep::Done(PermissionAnswer::Always),
            ("n" | "no", "") => DialogStep::Done(PermissionAnswer::No),
            ("r" | "reason", "") => self.ask_reason(),
            ("r" | "reason", why) => DialogStep::Done(PermissionAnswer::NoBecause(why.to_owned())),
            _ => DialogStep::ask(AGAIN, PROMPT),
        }
    }

    fn ask_reason(&mut self) -> DialogStep<PermissionAnswer> {
        self.place = PermissionStage::Reason;
        DialogStep::ask("", REASON_PROMPT)
    }
}

impl Dialog for PermissionDialog {
    type Answer = PermissionAnswer;

    fn begin(&self) -> DialogStep<PermissionAnswer> {
        DialogStep::ask(format!("{}\n{}", self.head, self.call.render_page()), PROMPT)
    }

    fn on_input(&mut self, input: DialogInput) -> DialogStep<PermissionAnswer> {
        let line = match input {
            DialogInput::End => return DialogStep::Done(PermissionAnswer::No),
            DialogInput::Garbled if self.place == PermissionStage::Reason => {
                return DialogStep::ask(NOT_UTF8_MESSAGE, REASON_PROMPT);
            }
            DialogInput::Garbled => return DialogStep::ask(NOT_UTF8_MESSAGE, PROMPT),
            DialogInput::Line(line) => line,
        };
        match self.place {
            PermissionStage::Verdict => self.on_decision(&line),
            PermissionStage::Reason if line.trim().is_empty() => DialogStep::Done(PermissionAnswer::No),
            PermissionStage::Reason => DialogStep::Done(PermissionAnswer::NoBecause(line.trim().to_owned())),
        }
    }

    fn field(&self) -> InputField {
        match self.place {
            PermissionStage::Verdict => choice_field(&["yes", "session", "always", "no", "reason"]),
            PermissionStage::Reason => choice_field(&[]),
        }
    }
}

fn permission_header(ask: &PermissionAsk, rule_file: Option<&str>) -> String {
    let tool = UntrustedText::new(&*ask.id.tool);
    let title = ask.tool.title.as_deref().filter(|title| **title != *ask.id.tool);
    let title =
        title.map(|title| format!(" ({})", UntrustedText::new(title).truncate(MAX_SHOWN_CHARS))).unwrap_or_default();
    let of = match (&ask.tool.source, &ask.tool.subject) {
        (Some(_), _) => format!(" of {}", paint(NAME, UntrustedText::new(ask.id.server.as_str()))),
        (None, Some(about)) => format!(" on {}", paint(NAME, UntrustedText::new(&*about.provider))),
        (None, None) => String::new(),
    };
    let caller = UntrustedText::new(&*ask.caller);
    let mut text = format!(
        "\n{} wants to call {}{title}{of}",
        caller.truncate(MAX_SHOWN_CHARS),
        paint(HEADING, tool.truncate(MAX_SHOWN_CHARS))
    );
    if !ask.reason.is_empty() {
        let reason = UntrustedText::new(ask.reason.as_str());
        let _ = write!(text, "\n  {} {}", paint(QUIET, "reason:"), reason.truncate(MAX_SHOWN_CHARS));
    }
    if let Some(claims) = format_hints(&ask.tool.hints) {
        let _ = write!(text, "\n  {} {claims}", paint(QUIET, "server-declared hints (unverified):"));
    }
    if ask.changed.is_some() {
        let _ = write!(text, "\n  {} the tool definition changed since it was approved", paint(WARNING, "changed:"));
    }
    let _ = write!(text, "\n  {} {}", paint(QUIET, "always:"), describe_always(ask, rule_file));
    text
}

/// Formats the tool hints declared by the server. They grant nothing.
fn format_hints(hints: &ToolHints) -> Option<String> {
    let claim = |hint: Option<bool>, yes: &'static str, no: &'static str| hint.map(|hint| if hint { yes } else { no });
    let claims: Vec<&str> = [
        claim(hints.read_only, "read-only", "writes"),
        claim(hints.destructive, "destructive", "non-destructive"),
        claim(hints.idempotent, "idempotent", "not idempotent"),
        claim(hints.open_world, "open-world", "closed-world"),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!claims.is_empty()).then(|| claims.join(" · "))
}

/// Describes the effect of "always".
fn describe_always(ask: &PermissionAsk, rule_file: Option<&str>) -> String {
    match (&ask.always, rule_file) {
        (Ok(rule), Some(file)) => {
            let rule = serde_json::to_string(rule).unwrap_or_default();
            format!("write {} to {file}", UntrustedText::new(rule))
        }
        (Ok(_), None) => "allow for this session only (no file to write a rule to)".to_owned(),
        (Err(why), _) => {
            format!("allow for this session only: {}", UntrustedText::new(why.to_string()).truncate(MAX_SHOWN_CHARS))
        }
    }
}

/// Formats the call, preceded by changes of the tool definition.
fn format_call(ask: &PermissionAsk) -> String {
    let arguments = indent_json(ask.arguments.as_str());
    match &ask.changed {
        Some(changed) => format!("changes to the tool definition:\n{}\n\narguments:\n{arguments}", changed.trim_end()),
        None => arguments,
    }
}

#[cfg(test)]
mod tests;
