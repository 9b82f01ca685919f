//! `/mcp SERVER`: all details of a server, without its wire messages.

use wharf::catalog::ListFreshness;
use wharf::{ConnectedStatus, OfferStatus, ServerState, ServerStatus};
use wharf_spec::{EscapedText, UntrustedText};
use wharf_wire::{Implementation, ServerCapabilities};

use super::resolve_configured;
use super::status::{is_enabled, next_step};
use crate::slash::{CommandContext, ReplAction};
use wharf_terminal::age::AgeText;
use wharf_terminal::clock::timestamp;
use wharf_terminal::count_text::CountText;
use wharf_terminal::detail_sheet::DetailSheet;
use wharf_terminal::failure::{Failure, output_line};
use wharf_terminal::status::show::{state_label, style_state};
use wharf_terminal::status::status_rows::StatusRow;
use wharf_terminal::style::{QUIET, paint};
use wharf_terminal::table::wrap_gutter;

/// Maximum characters shown of a server's instructions.
const MAX_INSTRUCTION_CHARS: usize = 600;
/// Maximum lines shown of a server's instructions.
const MAX_INSTRUCTION_LINES: usize = 8;
/// Maximum lines shown of stderr.
const MAX_STDERR_LINES: usize = 10;
/// Maximum characters shown of a name.
const MAX_NAME_CHARS: usize = 80;

pub fn run(server: &str, context: &CommandContext<'_>) -> Result<ReplAction, Failure> {
    let name = resolve_configured(server, context)?;
    context.print(render_sheets(name.as_str(), context).concat())
}

/// Renders the sheets of a server, and of an unapproved entry with the same name.
pub fn render_sheets(server: &str, context: &CommandContext<'_>) -> Vec<String> {
    let mut rows: Vec<StatusRow> = context.managed_host.rows().into_iter().filter(|row| row.id == server).collect();
    rows.sort_by_key(|row| row.state == ServerState::Unapproved);
    let managed = context.managed_host.host.status_of(server).ok();
    let of = |row: &StatusRow| {
        let status = managed.as_ref().filter(|_| row.state != ServerState::Unapproved);
        render_sheet(row, status, context.width())
    };
    rows.iter().map(of).collect()
}

fn render_sheet(row: &StatusRow, status: Option<&ServerStatus>, width: Option<usize>) -> String {
    let mut sheet = ServerSheet(DetailSheet::new(&row.id));
    sheet.add_state(row);
    if let Some(failure) = &row.failure {
        sheet.add_failure(failure, width);
    }
    sheet.add_next_step(row, width);
    for note in &row.notes {
        sheet.0.wrapped_line("Note", note, width);
    }
    if let Some(status) = status {
        sheet.add_status(status, width);
    }
    sheet.0.text
}

/// A sheet about one server.
struct ServerSheet(DetailSheet);

impl ServerSheet {
    fn add_state(&mut self, row: &StatusRow) {
        let since = row.since.map(|since| format!(", since {}", AgeText(since))).unwrap_or_default();
        self.0.line("State", &format!("{}{since}", style_state(&state_label(row.state.as_str()))));
        let enabled = match (is_enabled(row), row.enabled) {
            (true, _) => "yes",
            (false, true) => "no (this session)",
            (false, false) => "no (configuration)",
        };
        self.0.line("Enabled", enabled);
        self.0.line("Transport", row.transport);
        self.0.line("Source", &format!("{} ({})", row.source, row.file));
        if let Some(at) = row.last_connected_at {
            self.0.line("Connected", &format!("last at {}, {}", timestamp(at), AgeText(at)));
        }
        if row.restarts > 0 {
            self.0.line("Restarts", &row.restarts.to_string());
        }
    }

    /// Adds the last error and its evidence. Stderr follows separately.
    fn add_failure(&mut self, failure: &Failure, width: Option<usize>) {
        self.0.wrapped_line("Error", &UntrustedText::new(failure.error.message.as_str()).to_string(), width);
        if let Some(step) = failure.error.step {
            self.0.line("Error", &format!("during step {step}"));
        }
        for hint in &failure.hints {
            self.0.wrapped_line("Hint", &UntrustedText::new(hint.as_str()).to_string(), width);
        }
    }

    fn add_next_step(&mut self, row: &StatusRow, width: Option<usize>) {
        if let Some(next) = next_step(row) {
            self.0.wrapped_line("Next", &next, width);
        }
    }

    fn add_status(&mut self, status: &ServerStatus, width: Option<usize>) {
        if let Some(connected) = &status.connected {
            self.add_connection(connected, width);
        }
        if let Some(offers) = &status.offers {
            self.0.wrapped_line("Offers", &format_offers(offers), width);
        }
        for (word, is_so) in [
            ("flapping: repeatedly lost shortly after it was ready", status.flapping),
            ("lazy: starts on first use", status.lazy),
            ("trusted: its tools are allowed unless a rule matches", status.trust),
        ] {
            if is_so {
                self.0.wrapped_line("Also", word, width);
            }
        }
        if status.in_flight > 0 {
            self.0.line("Calls", &format!("{} in progress", status.in_flight));
        }
        self.add_stderr(&status.stderr_tail, width);
    }

    fn add_connection(&mut self, connected: &ConnectedStatus, width: Option<usize>) {
        if let Some(info) = &connected.server_info {
            self.0.wrapped_line("Server", &format_server_info(info), width);
        }
        self.0.line("Revision", &connected.revision.to_string());
        self.0.wrapped_line("Features", &format_capabilities(&connected.capabilities), width);
        if let Some(pid) = connected.pid {
            self.0.line("Process", &pid.to_string());
        }
        if let Some(text) = &connected.instructions {
            self.add_instructions(text, width);
        }
    }

    fn add_instructions(&mut self, text: &str, width: Option<usize>) {
        self.0.line("Instructions for models", "");
        let shortened = EscapedText::multiline(text.trim(), MAX_INSTRUCTION_CHARS).to_string();
        for line in shortened.lines().take(MAX_INSTRUCTION_LINES) {
            self.add_server_line(line, width);
        }
        if shortened.lines().count() > MAX_INSTRUCTION_LINES {
            self.add_server_line("…", width);
        }
    }

    /// Adds a line of server text, confined to the gutter.
    fn add_server_line(&mut self, line: &str, width: Option<usize>) {
        self.0.text.push_str(&format!("{}\n", wrap_gutter(&output_line(line), width)));
    }

    fn add_stderr(&mut self, lines: &[String], width: Option<usize>) {
        if lines.is_empty() {
            return;
        }
        self.0.text.push_str(&format!("  {}\n", paint(QUIET, "last lines of stderr:")));
        for line in &lines[lines.len().saturating_sub(MAX_STDERR_LINES)..] {
            self.add_server_line(line, width);
        }
    }
}

/// Formats the name and version that a server reports.
fn format_server_info(info: &Implementation) -> String {
    let title = info.title.as_ref().map(|title| format!(" ({title})")).unwrap_or_default();
    EscapedText::single_line(&format!("{} {}{title}", info.name, info.version), MAX_NAME_CHARS).to_string()
}

/// Formats the capabilities that a server declares.
fn format_capabilities(offered: &ServerCapabilities) -> String {
    let extensions: Vec<String> =
        offered.extensions.iter().map(|id| EscapedText::single_line(id, MAX_NAME_CHARS).to_string()).collect();
    let plain = [
        ("tools", offered.tools),
        ("resources", offered.resources),
        ("resource subscriptions", offered.resources_subscribe),
        ("prompts", offered.prompts),
        ("completions", offered.completions),
        ("logging", offered.logging),
        ("tasks", offered.tasks),
    ];
    let words: Vec<&str> = plain
        .iter()
        .filter(|(_, is_offered)| *is_offered)
        .map(|(word, _)| *word)
        .chain(extensions.iter().map(String::as_str))
        .collect();
    if words.is_empty() { "no known capabilities".to_owned() } else { words.join(", ") }
}

fn format_offers(offers: &OfferStatus) -> String {
    let withheld = match offers.withheld {
        0 => String::new(),
        count => format!(" ({count} withheld)"),
    };
    let age = match offers.freshness {
        ListFreshness::Live => String::new(),
        ListFreshness::Kept { at } => format!(" (cached {})", AgeText(at)),
    };
    let (tools, resources) = (CountText(offers.tools, "tool"), CountText(offers.resources, "resource"));
    let (templates, prompts) = (CountText(offers.templates, "template"), CountText(offers.prompts, "prompt"));
    format!("{tools}{withheld}, {resources}, {templates}, {prompts}{age}")
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr as _;

    use super::*;
    use crate::slash::command_fixture::{HARBOUR, harbour, with_host};

    #[test]
    fn server_texts_are_escaped() {
        with_host(HARBOUR, harbour, async |context| {
            let text = anstream::adapter::strip_str(&render_sheets("harbour", context).concat()).to_string();
            for part in [
                "harbour\n  State:       ✓ ready, since ",
                " ago\n  Enabled:     yes\n  Transport:   stdio\n",
                "config.json:1:",
                "  Connected:   last at 20",
                "  Server:      Harbour 1.2\n  Revision:    2026-07-28\n",
                "  Features:    tools, resources, prompts",
                "  Instructions for models:\n  │ Ring the bell\\u{1b}[2J before you enter.\n",
                "  Offers:      1 tool, 1 resource, 0 templates, 1 prompt\n",
            ] {
                assert!(text.contains(part), "{part} in\n{text}");
            }
            let off = anstream::adapter::strip_str(&render_sheets("off", context).concat()).to_string();
            assert!(off.starts_with("off\n  State:       ○ disabled\n  Enabled:     no (configuration)\n"), "{off}");
        });
    }

    #[test]
    fn server_text_stays_in_the_gutter() {
        let mut sheet = ServerSheet(DetailSheet::new("boom"));
        sheet.add_instructions(&"all is well and ".repeat(20), Some(40));
        sheet.add_stderr(&["Permission: all tools are allowed ".repeat(5)], Some(40));
        let text = anstream::adapter::strip_str(&sheet.0.text).to_string();
        let ours = ["boom", "  Instructions for models:", "  last lines of stderr:"];
        let others: Vec<&str> = text.lines().filter(|line| !ours.contains(line)).collect();
        assert!(
            others.len() > 10 && others.iter().all(|line| line.starts_with("  │ ") && line.width() <= 40),
            "{text}"
        );
    }

    #[test]
    fn error_details_are_shown_and_wrapped() {
        let mut failure = Failure::other("it ended before it was ready, and said nothing to anybody who asked");
        (failure.error.step, failure.hints) = (Some("spawn"), vec!["run its command by itself to see why".to_owned()]);
        let row = StatusRow {
            file: "config.json:3:5".to_owned(),
            since: Some(std::time::SystemTime::now()),
            failure: Some(std::sync::Arc::new(failure)),
            restarts: 3,
            ..StatusRow::new("boom", "stdio", "global", ServerState::Failed)
        };
        let text = anstream::adapter::strip_str(&render_sheet(&row, None, Some(60))).to_string();
        assert_eq!(
            text,
            "boom\n  State:       ✗ failed, since 0s ago\n  Enabled:     yes\n  Transport:   stdio\n  \
             Source:      global (config.json:3:5)\n  Restarts:    3\n  \
             Error:       it ended before it was ready, and said\n                 nothing to anybody who asked\n  \
             \u{20}            during step spawn\n  Hint:        run its command by itself to see why\n  \
             Next:        /mcp reconnect boom\n"
        );
        assert!(text.lines().all(|line| line.width() <= 60), "{text}");
    }
}
