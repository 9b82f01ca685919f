//! Prints a run as JSON documents, one event per line. docs/agent.md has the contract.

use std::sync::Arc;

use serde::Serialize;
use wharf::tools::Registry;
use wharf_agent::{ResultBlock, RunEnding, RunEvent};
use wharf_spec::ServerName;
use wharf_wire::RawJson;

use super::run_totals::{RunTotals, UsageTotals};
use wharf_terminal::chat::ending::ending_code;
use wharf_terminal::chat::tool_name::ToolDisplayName;
use wharf_terminal::clock::millis;
use wharf_terminal::console::Console;
use wharf_terminal::failure::{self, CommandResult, ErrorDocument, Failure, error_chain};
use wharf_terminal::managed_host::ManagedHost;

const SCHEMA: u32 = 1;

/// Writes the events of one run.
pub struct EventWriter {
    console: Arc<Console>,
    registry: Arc<Registry>,
    totals: RunTotals,
}

#[derive(Serialize)]
struct EventLine<'a> {
    schema: u32,
    #[serde(flatten)]
    event: RunEventDocument<'a>,
}

/// A run event as written. Texts are raw; JSON escapes them.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum RunEventDocument<'a> {
    Begun {
        model: &'a str,
        conversation: Option<&'a str>,
        servers: Vec<&'a str>,
    },
    Asking {
        request: u32,
    },
    Waiting {
        duration_ms: u64,
        because: String,
    },
    Text {
        text: &'a str,
    },
    Thinking {
        text: &'a str,
    },
    ToolBegun {
        id: &'a str,
        tool: &'a str,
        server: Option<&'a str>,
        name: Option<&'a str>,
        arguments: &'a RawJson,
    },
    ToolProgress {
        id: &'a str,
        done: f64,
        total: Option<f64>,
        message: Option<&'a str>,
    },
    ToolEnded {
        id: &'a str,
        is_error: bool,
        duration_ms: u64,
        content: Vec<ResultPart<'a>>,
    },
    Noted {
        from: &'a str,
        text: &'a str,
    },
    Usage {
        input: u64,
        output: u64,
        cached: u64,
    },
    Delegated {
        requests: u32,
        input: u64,
        output: u64,
        cached: u64,
    },
    Shortened {
        results: usize,
        answers: usize,
    },
    PicturesLeftOut {
        pictures: usize,
    },
    Repeated {
        tool: &'a str,
        times: u32,
    },
    Ended {
        ok: bool,
        ending: &'a str,
        text: &'a str,
        usage: UsageTotals,
        error: Option<ErrorDocument<'a>>,
        /// Tools that needed permission while nobody could be asked.
        #[serde(skip_serializing_if = "<[String]>::is_empty")]
        refused: &'a [String],
    },
}

/// A part of a result. For an image, only its type and size.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResultPart<'a> {
    Text { text: &'a str },
    Image { media_type: &'a str, bytes: usize },
}

impl EventWriter {
    /// Writes the first event.
    ///
    /// # Errors
    ///
    /// Fails if the output cannot be written.
    pub fn start(
        console: Arc<Console>,
        registry: Arc<Registry>,
        totals: RunTotals,
        managed_host: &ManagedHost<'_>,
    ) -> Result<Self, Failure> {
        let known = managed_host.loaded_config();
        let servers: Vec<&ServerName> = known.entries.iter().map(|entry| &entry.name).collect();
        let events = Self { console, registry, totals };
        events.write(RunEventDocument::Begun {
            model: &events.totals.model,
            conversation: events.totals.conversation.as_deref(),
            servers: servers.into_iter().map(ServerName::as_str).collect(),
        })?;
        Ok(events)
    }

    pub fn event(&mut self, event: &RunEvent) -> Result<(), Failure> {
        self.totals.record(event);
        let name = called_tool(event).map(|tool| ToolDisplayName::from_registry(&self.registry, tool));
        let (server, name) =
            name.as_ref().map(|name| (name.server.as_deref(), name.name.as_deref())).unwrap_or_default();
        let document = match event {
            RunEvent::RequestSent { request } => RunEventDocument::Asking { request: *request },
            RunEvent::Waiting { time, because } => {
                RunEventDocument::Waiting { duration_ms: millis(*time), because: error_chain(because) }
            }
            RunEvent::Text(text) => RunEventDocument::Text { text },
            RunEvent::Thinking(text) => RunEventDocument::Thinking { text },
            RunEvent::CallBegun { id, tool, arguments } => {
                RunEventDocument::ToolBegun { id, tool, server, name, arguments }
            }
            RunEvent::CallProgress { id, progress } => {
                let message = progress.message.as_deref();
                RunEventDocument::ToolProgress { id, done: progress.done, total: progress.total, message }
            }
            RunEvent::CallEnded { id, report } => RunEventDocument::ToolEnded {
                id,
                is_error: report.is_error,
                duration_ms: millis(report.duration),
                content: report.content.iter().map(result_part).collect(),
            },
            RunEvent::Noted { from, text } => RunEventDocument::Noted { from, text },
            RunEvent::Usage { input, output, cached } => {
                RunEventDocument::Usage { input: *input, output: *output, cached: *cached }
            }
            RunEvent::Delegated { requests, input, output, cached } => {
                RunEventDocument::Delegated { requests: *requests, input: *input, output: *output, cached: *cached }
            }
            RunEvent::Shortened { results, answers } => {
                RunEventDocument::Shortened { results: *results, answers: *answers }
            }
            RunEvent::ImagesRemoved { images } => RunEventDocument::PicturesLeftOut { pictures: *images },
            RunEvent::Repeated { tool, times } => RunEventDocument::Repeated { tool, times: *times },
            _ => return Ok(()),
        };
        self.write(document)
    }

    /// Writes the last event.
    ///
    /// # Errors
    ///
    /// Fails if the output cannot be written.
    pub fn finish(self, ending: &RunEnding, failure: Option<Failure>, refused: &[String]) -> CommandResult {
        let error = failure.as_ref().map(Failure::error_document);
        let (text, usage) = (self.totals.text.as_str(), self.totals.usage);
        let ok = failure.is_none();
        self.write(RunEventDocument::Ended { ok, ending: ending_code(ending), text, usage, error, refused })?;
        Ok(failure.map_or(failure::CommandEnding::Fine, |failure| failure::CommandEnding::Reported(failure.kind)))
    }

    fn write(&self, event: RunEventDocument<'_>) -> Result<(), Failure> {
        self.console.print_json(&EventLine { schema: SCHEMA, event })
    }
}

/// Returns the called tool.
fn called_tool(event: &RunEvent) -> Option<&str> {
    match event {
        RunEvent::CallBegun { tool, .. } => Some(tool),
        _ => None,
    }
}

fn result_part(block: &ResultBlock) -> ResultPart<'_> {
    match block {
        ResultBlock::Text(text) => ResultPart::Text { text },
        ResultBlock::Image { media_type, data } => ResultPart::Image { media_type, bytes: data.len() / 4 * 3 },
    }
}
