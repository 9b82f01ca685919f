//! Permission for a tool call: shows the whole call page by page and accepts five answers.

use std::fmt::Write as _;

use wharf::tools::ToolHints;
use wharf::{PermissionAnswer, PermissionAsk};
use wharf_spec::Untrusted;

use super::indented::indented;
use super::pages::{Room, TextPager};
use super::{Heard, NOT_UTF8, Talk, Turn, one_of};
use crate::editor::Field;
use crate::style::{HEADING, NAME, QUIET, WARNING, paint};

/// Maximum characters shown of a name or a reason.
const SHOWN: usize = 200;
const PROMPT: &str = "Allow it? [y]es, once / [s]ession / [a]lways / [n]o / [r]eason: ";
const REASON: &str = "Why not? The model is told: ";
const AGAIN: &str = "  Answer y, s, a, n or r; nothing is called before you do.";

/// Dialog that asks for permission to call a tool.
pub struct PermissionDialog {
    /// The caller, the tool, and the effect of "always".
    head: String,
    /// Changes of the tool definition, and the arguments.
    call: TextPager,
    place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Verdict,
    Reason,
}

impl PermissionDialog {
    /// Creates the dialog. `rule_file` is the display path of the file that "always" writes to, if any.
    pub fn new(ask: &PermissionAsk, rule_file: Option<&str>, room: Room) -> Self {
        Self { head: head(ask, rule_file), call: TextPager::new(&call(ask), room), place: Place::Verdict }
    }

    fn hear_verdict(&mut self, line: &str) -> Turn<PermissionAnswer> {
        let (word, rest) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
        match (word.to_lowercase().as_str(), rest.trim()) {
            ("", _) if self.call.turn() => Turn::ask(self.call.shown(), PROMPT),
            ("y" | "yes" | "once", "") => Turn::Done(PermissionAnswer::Once),
            ("s" | "session", "") => Turn::Done(PermissionAnswer::Session),
            ("a" | "always", "") => Turn::Done(PermissionAnswer::Always),
            ("n" | "no", "") => Turn::Done(PermissionAnswer::No),
            ("r" | "reason", "") => self.ask_reason(),
            ("r" | "reason", why) => Turn::Done(PermissionAnswer::NoBecause(why.to_owned())),
            _ => Turn::ask(AGAIN, PROMPT),
        }
    }

    fn ask_reason(&mut self) -> Turn<PermissionAnswer> {
        self.place = Place::Reason;
        Turn::ask("", REASON)
    }
}

impl Talk for PermissionDialog {
    type Answer = PermissionAnswer;

    fn begin(&self) -> Turn<PermissionAnswer> {
        Turn::ask(format!("{}\n{}", self.head, self.call.shown()), PROMPT)
    }

    fn hear(&mut self, heard: Heard) -> Turn<PermissionAnswer> {
        let line = match heard {
            Heard::End => return Turn::Done(PermissionAnswer::No),
            Heard::Garbled if self.place == Place::Reason => return Turn::ask(NOT_UTF8, REASON),
            Heard::Garbled => return Turn::ask(NOT_UTF8, PROMPT),
            Heard::Line(line) => line,
        };
        match self.place {
            Place::Verdict => self.hear_verdict(&line),
            Place::Reason if line.trim().is_empty() => Turn::Done(PermissionAnswer::No),
            Place::Reason => Turn::Done(PermissionAnswer::NoBecause(line.trim().to_owned())),
        }
    }

    fn field(&self) -> Field {
        match self.place {
            Place::Verdict => one_of(&["yes", "session", "always", "no", "reason"]),
            Place::Reason => one_of(&[]),
        }
    }
}

fn head(ask: &PermissionAsk, rule_file: Option<&str>) -> String {
    let tool = Untrusted::new(&*ask.id.tool);
    let title = ask.tool.title.as_deref().filter(|title| **title != *ask.id.tool);
    let title = title.map(|title| format!(" ({})", Untrusted::new(title).shortened(SHOWN))).unwrap_or_default();
    let of = match (&ask.tool.origin, &ask.tool.about) {
        (Some(_), _) => format!(" of {}", paint(NAME, Untrusted::new(ask.id.server.as_str()))),
        (None, Some(about)) => format!(" on {}", paint(NAME, Untrusted::new(&*about.provider))),
        (None, None) => String::new(),
    };
    let caller = Untrusted::new(&*ask.caller);
    let mut text =
        format!("\n{} wants to call {}{title}{of}", caller.shortened(SHOWN), paint(HEADING, tool.shortened(SHOWN)));
    if !ask.reason.is_empty() {
        let reason = Untrusted::new(ask.reason.as_str());
        let _ = write!(text, "\n  {} {}", paint(QUIET, "asked because:"), reason.shortened(SHOWN));
    }
    if let Some(claims) = claims(&ask.tool.hints) {
        let _ = write!(text, "\n  {} {claims} {}", paint(QUIET, "its server claims:"), paint(QUIET, "(nobody checks)"));
    }
    if ask.changed.is_some() {
        let _ = write!(text, "\n  {} it is not what it was when it was approved", paint(WARNING, "changed:"));
    }
    let _ = write!(text, "\n  {} {}", paint(QUIET, "always would:"), always(ask, rule_file));
    text
}

/// Formats the tool hints declared by the server. They grant nothing.
fn claims(hints: &ToolHints) -> Option<String> {
    let claim = |hint: Option<bool>, yes: &'static str, no: &'static str| hint.map(|hint| if hint { yes } else { no });
    let claims: Vec<&str> = [
        claim(hints.read_only, "it only reads", "it changes something"),
        claim(hints.destructive, "it may destroy something", "it destroys nothing"),
        claim(hints.idempotent, "doing it twice does no more", "doing it twice does more"),
        claim(hints.open_world, "it reaches outside", "it stays inside"),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!claims.is_empty()).then(|| claims.join(", "))
}

/// Describes the effect of "always".
fn always(ask: &PermissionAsk, rule_file: Option<&str>) -> String {
    match (&ask.always, rule_file) {
        (Ok(rule), Some(file)) => {
            let rule = serde_json::to_string(rule).unwrap_or_default();
            format!("write {} to {file}", Untrusted::new(rule))
        }
        (Ok(_), None) => "hold for this session only, since there is no file to write a rule to".to_owned(),
        (Err(why), _) => format!("hold for this session only: {}", Untrusted::new(why.to_string()).shortened(SHOWN)),
    }
}

/// Formats the call, preceded by changes of the tool definition.
fn call(ask: &PermissionAsk) -> String {
    let arguments = indented(ask.arguments.get());
    match &ask.changed {
        Some(changed) => format!("what has changed about the tool:\n{}\n\narguments:\n{arguments}", changed.trim_end()),
        None => arguments,
    }
}

#[cfg(test)]
mod tests;
