//! Renders a run: the streamed response, each call with its arguments, its progress and its result.

mod status_line;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use wharf::tools::{CallProgress, Registry};
use wharf_agent::{CallReport, ModelError, ResultBlock, RunEnding, RunEvent};
use wharf_spec::{EscapedText, UntrustedText};

use super::markdown::MarkdownRenderer;
use super::recent_results::RecentResults;
use wharf_terminal::chat::context_notices::{context_shortened_notice, images_dropped_notice};
use wharf_terminal::chat::tool_name::ToolDisplayName;
use wharf_terminal::clock::DurationText;
use wharf_terminal::console::Console;
use wharf_terminal::failure::{Failure, error_chain};
use wharf_terminal::style::{BAD, GOOD, NAME, QUIET, WARNING, paint};
use wharf_terminal::table::truncate_columns;

/// Maximum lines shown of a result.
const MAX_RESULT_LINES: usize = 3;
/// Maximum characters shown of a line.
const MAX_LINE_CHARS: usize = 2_000;
/// Width without a terminal.
const DEFAULT_WIDTH: usize = 80;

/// Renders the runs of a conversation.
pub struct RunRenderer {
    console: Arc<Console>,
    registry: Arc<Registry>,
    /// Renders the response. `None` if stdout is a pipe, which gets the plain text.
    markdown: Option<MarkdownRenderer>,
    calls: Vec<CallInProgress>,
    results: RecentResults,
    /// Start of the open question, during which the clocks of calls stand still.
    question: Option<Instant>,
    /// Start of the wait for the model.
    model_wait_started: Option<Instant>,
    frame: usize,
    /// True if the last written text ended with a newline.
    ended: bool,
}

/// A call in progress.
struct CallInProgress {
    id: String,
    /// Server and tool, escaped.
    name: String,
    since: Instant,
    progress: Option<CallProgress>,
}

impl RunRenderer {
    pub fn new(console: Arc<Console>, registry: Arc<Registry>) -> Self {
        let (markdown, calls, results) = (None, Vec::new(), RecentResults::default());
        Self {
            console,
            registry,
            markdown,
            calls,
            results,
            question: None,
            model_wait_started: None,
            frame: 0,
            ended: true,
        }
    }

    /// Renders an event.
    pub fn on_event(&mut self, event: &RunEvent) -> Result<(), Failure> {
        match event {
            RunEvent::RequestSent { .. } => self.on_request(),
            RunEvent::Waiting { time, because } => self.on_retry_wait(*time, because),
            RunEvent::Text(text) => return self.on_text(text),
            RunEvent::CallBegun { id, tool, arguments } => {
                self.flush()?;
                self.on_call_begun(id, tool, arguments.as_str());
            }
            RunEvent::CallProgress { id, progress } => self.on_progress(id, progress),
            RunEvent::CallEnded { id, report } => self.on_call_ended(id, report),
            RunEvent::Noted { from, text } => self.on_note(from, text),
            RunEvent::Shortened { results, answers } => {
                self.print_notice(&context_shortened_notice(*results, *answers))
            }
            RunEvent::ImagesRemoved { images } => self.print_notice(&images_dropped_notice(*images)),
            RunEvent::Repeated { tool, times } => self.on_repeated(tool, *times),
            RunEvent::Ended(ending) => {
                self.flush()?;
                self.on_ended(ending);
            }
            _ => {}
        }
        self.tick();
        Ok(())
    }

    /// Stops the clocks of the calls in progress and hides the status line while a question is open.
    pub fn set_question_open(&mut self, is_open: bool) {
        match (self.question, is_open) {
            (None, true) => {
                self.question = Some(Instant::now());
                self.console.clear_status();
            }
            (Some(since), false) => {
                self.question = None;
                let waited = since.elapsed();
                self.calls.iter_mut().for_each(|call| call.since = (call.since + waited).min(Instant::now()));
            }
            _ => {}
        }
    }

    /// Prints a recent tool result in full.
    ///
    /// # Errors
    ///
    /// Returns a usage failure if no such result is stored.
    pub fn print_result(&self, number: Option<usize>) -> Result<(), Failure> {
        match (self.results.render(number), self.results.range()) {
            (Some(text), _) => self.console.print(text),
            (None, None) => Err(Failure::usage("no tool has been called yet")),
            (None, Some((oldest, newest))) => {
                Err(Failure::usage("no such result").with_hint(format_args!("stored results: {oldest} to {newest}")))
            }
        }
    }

    /// Redraws the status line, unless a question is open.
    pub fn tick(&mut self) {
        if self.question.is_some() {
            return;
        }
        self.frame += 1;
        let pending = self.markdown.as_ref().map(MarkdownRenderer::pending).unwrap_or_default();
        let text = match (self.calls.first(), self.model_wait_started) {
            (Some(call), _) => status_line::call_status(
                self.frame,
                call.since.elapsed(),
                &call.name,
                call.progress.as_ref(),
                self.calls.len() - 1,
            ),
            (None, Some(since)) => status_line::model_status(self.frame, since.elapsed(), pending),
            (None, None) => return self.console.clear_status(),
        };
        self.console.show_status(&text);
    }

    fn on_request(&mut self) {
        self.model_wait_started = Some(Instant::now());
        let width = self.console.stdout_width().filter(|_| self.console.shows_status());
        self.markdown = width.map(|width| MarkdownRenderer::new(width.saturating_sub(1).max(20)));
    }

    fn on_retry_wait(&self, time: Duration, because: &ModelError) {
        let why = UntrustedText::new(error_chain(because));
        self.console.say(paint(QUIET, format_args!("({why}. Retrying in {})", DurationText(time))));
    }

    fn on_text(&mut self, text: &str) -> Result<(), Failure> {
        let shown = match &mut self.markdown {
            Some(markdown) => markdown.push(text),
            None => EscapedText::multiline(text, usize::MAX).to_string(),
        };
        self.write(&shown)
    }

    /// Writes the buffered rest of the response.
    fn flush(&mut self) -> Result<(), Failure> {
        self.model_wait_started = None;
        let rest = self.markdown.as_mut().map(MarkdownRenderer::finish).unwrap_or_default();
        self.write(&rest)?;
        if !self.ended {
            self.write("\n")?;
        }
        Ok(())
    }

    fn write(&mut self, text: &str) -> Result<(), Failure> {
        if text.is_empty() {
            return Ok(());
        }
        self.ended = text.ends_with('\n');
        self.console.print(text)
    }

    fn on_call_begun(&mut self, id: &str, tool: &str, arguments: &str) {
        let name = self.name(tool);
        let room = self.width().saturating_sub(name.chars().count() + 3);
        let arguments = truncate_columns(&EscapedText::single_line(arguments, 2_000).to_string(), room);
        self.console.say(format_args!("{} {} {}", paint(QUIET, "▸"), paint(NAME, &name), paint(QUIET, arguments)));
        self.calls.push(CallInProgress { id: id.to_owned(), name, since: Instant::now(), progress: None });
    }

    fn on_progress(&mut self, id: &str, progress: &CallProgress) {
        if let Some(call) = self.calls.iter_mut().find(|call| call.id == id) {
            call.progress = Some(progress.clone());
        }
    }

    fn on_call_ended(&mut self, id: &str, report: &CallReport) {
        let at = self.calls.iter().position(|call| call.id == id);
        let name = at.map(|at| self.calls.remove(at).name).unwrap_or_default();
        let (style, mark) = if report.is_error { (BAD, "✗") } else { (GOOD, "✓") };
        let time = DurationText(report.duration);
        let text = report.content.iter().map(result_text).collect::<Vec<_>>().join("\n");
        let excerpt = result_excerpt(&text, self.width().saturating_sub(6));
        let number = self.results.add(&name, text);
        let rest = match (excerpt.more_lines, excerpt.is_cut) {
            (0, false) => String::new(),
            (0, true) => format!("… cut (/show {number} shows all)"),
            (1, _) => format!("… 1 more line (/show {number} shows all)"),
            (more, _) => format!("… {more} more lines (/show {number} shows all)"),
        };
        let rest = if rest.is_empty() { rest } else { format!("\n    {}", paint(QUIET, rest)) };
        self.console.say(format_args!("  {} {name} {}{}{rest}", paint(style, mark), paint(QUIET, time), excerpt.text));
    }

    fn on_note(&self, from: &str, text: &str) {
        let text = truncate_columns(
            &EscapedText::single_line(text, 2_000).to_string(),
            self.width().saturating_sub(from.len() + 10),
        );
        self.console.say(paint(QUIET, format_args!("  note from {}: {text}", UntrustedText::new(from))));
    }

    fn print_notice(&self, text: &str) {
        self.console.say(paint(QUIET, format_args!("({text})")));
    }

    fn on_repeated(&self, tool: &str, times: u32) {
        let name = self.name(tool);
        self.console
            .warn(format_args!("{name} was called {times} times with the same result. Further calls are blocked"));
    }

    fn on_ended(&mut self, ending: &RunEnding) {
        self.calls.clear();
        self.console.clear_status();
        let word = match ending {
            RunEnding::Done => return,
            RunEnding::Cancelled => return self.console.say(paint(WARNING, "cancelled")),
            RunEnding::Refused => "the model refused to answer".to_owned(),
            RunEnding::TooLong => "the response exceeded the token limit. Say \"go on\" to continue".to_owned(),
            RunEnding::Looping => "stopped: the model kept repeating the same call".to_owned(),
            RunEnding::OutOfRequests => {
                "stopped: the run reached its request limit. Say \"go on\" to continue".to_owned()
            }
            RunEnding::Failed(error) => UntrustedText::new(error_chain(error)).to_string(),
            _ => "ended".to_owned(),
        };
        self.console.say(format_args!("{} {word}", paint(BAD, "error:")));
    }

    /// Returns the display name of a tool, escaped.
    fn name(&self, tool: &str) -> String {
        ToolDisplayName::from_registry(&self.registry, tool).to_string()
    }

    fn width(&self) -> usize {
        self.console.stderr_width().unwrap_or(DEFAULT_WIDTH)
    }
}

/// The first lines of a result.
struct ResultExcerpt {
    /// Escaped, each line after a newline.
    text: String,
    more_lines: usize,
    /// True if a shown line was cut.
    is_cut: bool,
}

fn result_excerpt(text: &str, width: usize) -> ResultExcerpt {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let (mut shown, mut is_cut) = (String::new(), false);
    for line in lines.iter().take(MAX_RESULT_LINES) {
        let escaped = EscapedText::single_line(line, MAX_LINE_CHARS).to_string();
        let line = truncate_columns(&escaped, width);
        is_cut |= line != escaped;
        shown.push_str(&format!("\n    {} {line}", paint(QUIET, "│")));
    }
    ResultExcerpt { text: shown, more_lines: lines.len().saturating_sub(MAX_RESULT_LINES), is_cut }
}

fn result_text(block: &ResultBlock) -> String {
    match block {
        ResultBlock::Text(text) => text.clone(),
        ResultBlock::Image { media_type, data } => format!("[{media_type}, {} kB]", data.len() * 3 / 4 / 1000),
    }
}
