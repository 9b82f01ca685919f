//! What a running `wharf` knows of the servers.

use serde_json::{Value, json};
use wharf_config::Config;

use super::ending;
use wharf_terminal::control::{Remote, rows};
use wharf_terminal::failure::Outcome;
use wharf_terminal::session::Session;
use wharf_terminal::status::gathered::Row;
use wharf_terminal::status::show::table;

/// What it said: the same twice, as it came and as it is shown.
pub struct Said {
    pid: u32,
    items: Vec<Value>,
    rows: Vec<Row>,
}

/// Asks a running `wharf` about these servers, or all. Nothing where there is none, or where it does not hold all of them:
/// a run may have been given only some.
pub async fn ask(session: &Session, config: &Config, ids: &[String]) -> Option<Said> {
    let mut remote = Remote::find(session).await?;
    let mut listed = remote.call("mcp.list", json!({})).await.ok()?;
    let is_wanted = |id: &str| ids.is_empty() || ids.iter().any(|wanted| wanted == id);
    let mut rows = rows::rows(&listed)?;
    let mut items: Vec<Value> = std::mem::take(listed.get_mut("items")?.as_array_mut()?);
    rows.retain(|row| is_wanted(&row.id));
    items.retain(|item| item["id"].as_str().is_some_and(is_wanted));
    let mut wanted = config.servers.iter().map(|server| server.name.as_str()).filter(|name| is_wanted(name));
    let is_whole = wanted.all(|name| rows.iter().any(|row| row.id == name));
    is_whole.then_some(Said { pid: remote.pid, items, rows })
}

impl Said {
    pub fn show(&self, session: &Session, ids: &[String]) -> Outcome {
        let console = &session.console;
        console.say(format_args!("asked the running wharf, process {}", self.pid));
        if console.manner.json {
            console.document(&json!({ "schema": 1, "items": self.items }))?;
        } else {
            console.print(table(&self.rows, console.width()))?;
        }
        Ok(ending(&self.rows, ids))
    }
}
