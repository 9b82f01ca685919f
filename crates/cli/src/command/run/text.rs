//! Prints a run for people: the answer on stdout, one line per call on stderr.

use std::sync::Arc;
use std::time::Duration;

use wharf::tools::Registry;
use wharf_agent::{CallReport, ModelError, ResultBlock, RunEvent};
use wharf_spec::UntrustedText;

use super::allowed_tools::refused_message;
use super::run_totals::{RunTotals, UsageTotals};
use wharf_terminal::chat::context_notices::{context_shortened_notice, images_dropped_notice};
use wharf_terminal::chat::tool_name::ToolDisplayName;
use wharf_terminal::clock::DurationText;
use wharf_terminal::console::Console;
use wharf_terminal::count_text::CountText;
use wharf_terminal::failure::{Failure, error_chain};
use wharf_terminal::style::{BAD, GOOD, NAME, QUIET, paint};

/// Maximum characters of arguments, results and notes on a line.
const MAX_LINE_TEXT: usize = 200;

/// Prints one run.
pub struct TextWriter {
    console: Arc<Console>,
    registry: Arc<Registry>,
    totals: RunTotals,
    /// Pending calls: id, and the escaped tool name with arguments.
    calls: Vec<(String, String)>,
    /// True if the last output did not end with a line break.
    open: bool,
}

impl TextWriter {
    pub fn new(console: Arc<Console>, registry: Arc<Registry>, totals: RunTotals) -> Self {
        Self { console, registry, totals, calls: Vec::new(), open: false }
    }

    pub fn event(&mut self, event: &RunEvent) -> Result<(), Failure> {
        self.totals.record(event);
        match event {
            RunEvent::Waiting { time, because } => self.on_retry(*time, because),
            RunEvent::Text(text) => return self.text(text),
            RunEvent::CallBegun { id, tool, arguments } => self.on_call_started(id, tool, arguments.as_str()),
            RunEvent::CallEnded { id, report } => return self.on_call_ended(id, report),
            RunEvent::Noted { from, text } => self.say(format_args!("note from {}: {}", shorten(from), shorten(text))),
            RunEvent::Shortened { results, answers } => self.say(context_shortened_notice(*results, *answers)),
            RunEvent::ImagesRemoved { images } => self.say(images_dropped_notice(*images)),
            RunEvent::Repeated { tool, times } => {
                let name = ToolDisplayName::from_registry(&self.registry, tool);
                self.console.warn(format_args!("{name} was called {times} times with the same result"));
            }
            _ => {}
        }
        Ok(())
    }

    /// Prints the totals, and a warning about refused tools unless a failure names them.
    ///
    /// # Errors
    ///
    /// Fails if the output cannot be written.
    pub fn finish(mut self, is_done: bool, refused: &[String]) -> Result<(), Failure> {
        self.end_line()?;
        if is_done && !refused.is_empty() {
            self.console.warn(refused_message(refused));
        }
        let UsageTotals { requests, input, output, cached } = self.totals.usage;
        let cached = if cached > 0 { format!(" ({cached} cached)") } else { String::new() };
        let requests = CountText(requests, "request");
        let id = self.totals.conversation.as_deref().map(|id| format!(" · --resume={id}")).unwrap_or_default();
        let model = shorten(&self.totals.model);
        self.say(format_args!("{model} · {requests}, {input} input tokens{cached}, {output} output tokens{id}"));
        Ok(())
    }

    fn on_retry(&self, time: Duration, because: &ModelError) {
        self.say(format_args!("{}; retrying in {}", UntrustedText::new(error_chain(because)), DurationText(time)));
    }

    fn text(&mut self, text: &str) -> Result<(), Failure> {
        if text.is_empty() {
            return Ok(());
        }
        self.open = !text.ends_with('\n');
        self.console.print(UntrustedText::new(text).multiline())
    }

    fn end_line(&mut self) -> Result<(), Failure> {
        if std::mem::take(&mut self.open) { self.console.print("\n") } else { Ok(()) }
    }

    fn on_call_started(&mut self, id: &str, tool: &str, arguments: &str) {
        let name = paint(NAME, ToolDisplayName::from_registry(&self.registry, tool)).to_string();
        self.calls.push((id.to_owned(), format!("{name} {}", shorten(arguments))));
    }

    /// Prints a line such as `▸ git.status {} → ok 12 ms`.
    fn on_call_ended(&mut self, id: &str, report: &CallReport) -> Result<(), Failure> {
        self.end_line()?;
        let at = self.calls.iter().position(|(other, _)| other == id);
        let call = at.map(|at| self.calls.remove(at).1).unwrap_or_default();
        let outcome = match report.is_error {
            false => paint(GOOD, "ok").to_string(),
            true => paint(BAD, "error").to_string(),
        };
        let why = if report.is_error { format!(": {}", error_text(&report.content)) } else { String::new() };
        self.console.say(format_args!(
            "{} {call} → {outcome} {}{why}",
            paint(QUIET, "▸"),
            DurationText(report.duration)
        ));
        Ok(())
    }

    fn say(&self, text: impl std::fmt::Display) {
        self.console.say(paint(QUIET, text));
    }
}

/// Returns the error text of a tool. Allows four times the usual length, because a denial ends with the rule that would
/// allow the call.
fn error_text(content: &[ResultBlock]) -> String {
    let texts = content.iter().filter_map(|block| match block {
        ResultBlock::Text(text) => Some(text.trim()),
        ResultBlock::Image { .. } => None,
    });
    UntrustedText::new(texts.collect::<Vec<_>>().join(" ")).truncate(4 * MAX_LINE_TEXT).to_string()
}

fn shorten(text: &str) -> String {
    UntrustedText::new(text).truncate(MAX_LINE_TEXT).to_string()
}
