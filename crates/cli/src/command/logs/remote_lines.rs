//! Fetches the last stderr lines of a server from a running `wharf`, for servers without a log file.

use serde_json::{Value, json};
use wharf::LogSource;

use super::tail::LogEntry;
use wharf_terminal::control::RunningWharf;
use wharf_terminal::session::CommandSession;

/// Returns the last stderr lines of the server. Empty if no running `wharf` has it.
pub async fn fetch_lines(session: &CommandSession, id: &str) -> Vec<LogEntry> {
    let Some(mut remote) = RunningWharf::find(session).await else { return Vec::new() };
    let Ok(known) = remote.call("mcp.get", json!({ "id": id })).await else { return Vec::new() };
    session.console.say(format_args!("asked the running wharf, process {}", remote.pid));
    let line = |text: &str| LogEntry {
        time: String::new(),
        server: id.to_owned(),
        source: LogSource::Server,
        text: text.to_owned(),
    };
    known["stderr"].as_array().into_iter().flatten().filter_map(Value::as_str).map(line).collect()
}
