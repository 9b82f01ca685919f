//! Fetches the status of the servers from a running `wharf`.

use serde_json::{Value, json};
use wharf_config::Config;

use super::ending;
use wharf_terminal::control::{RunningWharf, rows};
use wharf_terminal::failure::{CommandEnding, CommandResult};
use wharf_terminal::session::CommandSession;
use wharf_terminal::status::show::status_table;
use wharf_terminal::status::status_rows::StatusRow;

/// A status response, both as received and as rows.
pub struct RemoteStatus {
    pid: u32,
    items: Vec<Value>,
    rows: Vec<StatusRow>,
}

/// Asks a running `wharf` for these servers, or for all. Returns `None` if none is running, or if it does not manage
/// all of them: `wharf run --server` uses only some.
pub async fn fetch_status(session: &CommandSession, config: &Config, ids: &[String]) -> Option<RemoteStatus> {
    let mut remote = RunningWharf::find(session).await?;
    let mut listed = remote.call("mcp.list", json!({})).await.ok()?;
    let is_wanted = |id: &str| ids.is_empty() || ids.iter().any(|wanted| wanted == id);
    let mut rows = rows::parse_rows(&listed)?;
    let mut items: Vec<Value> = std::mem::take(listed.get_mut("items")?.as_array_mut()?);
    rows.retain(|row| is_wanted(&row.id));
    items.retain(|item| item["id"].as_str().is_some_and(is_wanted));
    let mut wanted = config.servers.iter().map(|server| server.name.as_str()).filter(|name| is_wanted(name));
    let is_whole = wanted.all(|name| rows.iter().any(|row| row.id == name));
    is_whole.then_some(RemoteStatus { pid: remote.pid, items, rows })
}

impl RemoteStatus {
    pub fn show(&self, session: &CommandSession, ids: &[String]) -> CommandResult {
        let console = &session.console;
        console.say(format_args!("asked the running wharf, process {}", self.pid));
        if console.mode.json {
            let is_ok = ending(&self.rows, ids) == CommandEnding::Fine;
            console.print_document(is_ok, &json!({ "items": self.items }))?;
        } else {
            console.print(status_table(&self.rows, console.stdout_width()))?;
        }
        Ok(ending(&self.rows, ids))
    }
}
