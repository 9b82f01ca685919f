//! `wharf logs`: prints the stderr output of servers and their process starts and exits.

mod remote_lines;
mod tail;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use wharf::LogSource;
use wharf_spec::UntrustedText;

use wharf_terminal::failure::{CommandEnding, CommandResult, Failure};
use wharf_terminal::session::{CommandSession, CommonArgs};
use wharf_terminal::style::{NAME, QUIET, paint};
use wharf_terminal::suggestions::suggestion;

use tail::{LogEntry, LogTails, servers_with_logs};

/// Poll interval of `--follow`.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Show the stderr output of servers
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Every line starts with its time in UTC. `|` marks stderr output of the server, `:` its log messages and `-` \
its process events. Secrets of the server are masked. If there is no log of a server, a running `wharf` is asked for its last lines. With \
--json and --follow each line is a document of its own.

Examples:
  wharf logs
  wharf logs github -n 200
  wharf logs github --follow
  wharf logs github --json \\
      | jq '.items[] | select(.source == \"server\")'")]
pub struct LogsArgs {
    /// Server to show; default: all servers, merged by time
    #[arg(value_name = "SERVER")]
    id: Option<String>,
    /// Number of last lines to show
    #[arg(short = 'n', long = "lines", value_name = "N", default_value_t = 50)]
    lines: usize,
    /// Keep printing new lines
    #[arg(short, long)]
    follow: bool,
    /// Write one JSON document instead of text
    #[arg(long, help_heading = "Output")]
    json: bool,
}

impl LogsArgs {
    pub fn common(&self) -> CommonArgs {
        CommonArgs { json: self.json, ..CommonArgs::default() }
    }
}

/// JSON document of all lines.
#[derive(Serialize)]
struct LogsDocument<'a> {
    items: Vec<LogItem<'a>>,
}

/// JSON document of one line, for `--follow`.
#[derive(Serialize)]
struct LineDocument<'a> {
    schema: u32,
    #[serde(flatten)]
    item: LogItem<'a>,
}

#[derive(Serialize)]
struct LogItem<'a> {
    /// Missing for lines from a running `wharf`.
    time: Option<&'a str>,
    server: &'a str,
    /// `server` for its stderr output, `wharf` for events of its process.
    source: &'static str,
    text: &'a str,
}

pub async fn run(args: &LogsArgs, session: &CommandSession) -> CommandResult {
    let folder = log_directory(session)?;
    if let Some(id) = &args.id {
        check_known(id, &folder, session)?;
    }
    let mut tails = LogTails::new(folder.clone(), args.id.clone());
    let mut entries = tails.read_new();
    if let (true, Some(id)) = (entries.is_empty(), &args.id) {
        entries = remote_lines::fetch_lines(session, id).await;
    }
    let surplus = entries.len().saturating_sub(args.lines);
    entries.drain(..surplus);
    if entries.is_empty() && !args.json {
        session.console.say(format_args!("no logs yet; they will be in {}", folder.display()));
    }
    match (args.follow, args.json) {
        (true, _) => follow(args, session, entries, tails).await,
        (false, true) => {
            let items = entries.iter().map(item).collect();
            session.console.print_document(true, &LogsDocument { items }).map(|()| CommandEnding::Fine)
        }
        (false, false) => show(args, session, &entries).map(|()| CommandEnding::Fine),
    }
}

/// Prints existing and new lines until the command is interrupted.
async fn follow(
    args: &LogsArgs,
    session: &CommandSession,
    mut entries: Vec<LogEntry>,
    mut tails: LogTails,
) -> CommandResult {
    loop {
        show(args, session, &entries)?;
        tokio::time::sleep(POLL_INTERVAL).await;
        entries = tails.read_new();
    }
}

fn log_directory(session: &CommandSession) -> Result<PathBuf, Failure> {
    let state = session.configuration.state.as_deref().ok_or_else(|| {
        Failure::other("no directory for logs").with_hint("set HOME, or XDG_STATE_HOME to a directory")
    })?;
    Ok(state.join("logs"))
}

/// Fails unless the server has a log or is configured.
fn check_known(id: &str, folder: &Path, session: &CommandSession) -> Result<(), Failure> {
    let mut names = servers_with_logs(folder);
    if names.iter().any(|name| name == id) {
        return Ok(());
    }
    names.extend(session.configuration.config()?.servers.iter().map(|server| server.name.as_str().to_owned()));
    if names.iter().any(|name| name == id) {
        return Ok(());
    }
    let unknown = Failure::usage(format_args!("no log of a server `{id}`"));
    let hint = suggestion(id, names.iter().map(String::as_str));
    Err(unknown.with_hint(hint).with_hint(format_args!("logs are in {}", folder.display())))
}

fn show(args: &LogsArgs, session: &CommandSession, entries: &[LogEntry]) -> Result<(), Failure> {
    if args.json {
        let documents = entries.iter().map(|entry| LineDocument { schema: 1, item: item(entry) });
        return documents.into_iter().try_for_each(|line| session.console.print_json(&line));
    }
    let lines: String = entries.iter().map(|entry| format_line(entry, args.id.is_none()) + "\n").collect();
    if lines.is_empty() { Ok(()) } else { session.console.print(lines) }
}

fn item(entry: &LogEntry) -> LogItem<'_> {
    let source = match entry.source {
        LogSource::Server => "server",
        LogSource::Wharf => "wharf",
        LogSource::Message => "message",
    };
    LogItem { time: entry.known_time(), server: &entry.server, source, text: &entry.text }
}

/// Formats a line for the terminal. Escapes again, because the file is untrusted; text that is already escaped does not
/// change.
fn format_line(entry: &LogEntry, with_server: bool) -> String {
    let server = with_server.then(|| format!(" {}", paint(NAME, UntrustedText::new(entry.server.as_str()))));
    let mark = match entry.source {
        LogSource::Server => "|",
        LogSource::Wharf => "-",
        LogSource::Message => ":",
    };
    let time = paint(QUIET, UntrustedText::new(entry.known_time().unwrap_or("-")));
    format!("{time}{} {} {}", server.unwrap_or_default(), paint(QUIET, mark), UntrustedText::new(entry.text.as_str()))
}
