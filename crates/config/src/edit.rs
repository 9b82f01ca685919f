//! Changes to a configuration file that leave everything else as somebody wrote it.
//!
//! Each change takes a text and gives the text that replaces it; [`ConfigFile`] carries one out on disk, where of
//! concurrent changes none is lost. Comments, order, keys nobody here knows, indentation, line ends and a byte order
//! mark stay. What cannot be read, or was written by a newer Wharf, is refused and not touched.

mod file;
mod refusal;
mod sheet;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};
use wharf_spec::ServerName;

pub use file::{ConfigFile, EditError};
pub use refusal::Refusal;

use sheet::{Holder, Sheet};

/// A text with a change in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Edited {
    /// The whole text. The same as before where nothing happened.
    pub text: String,
    /// What happened.
    pub change: Change,
}

/// What a change came to, and what stood there before, for whoever wants to undo it.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// It was not there and is now.
    Added,
    /// It was there and is another now.
    Replaced(Value),
    /// It is not there any more.
    Removed(Value),
    /// It was like that already.
    Unchanged,
    /// There is nothing to change.
    NotThere,
}

impl Change {
    /// Whether the text is another now.
    pub fn is_change(&self) -> bool {
        !matches!(self, Self::Unchanged | Self::NotThere)
    }
}

/// Writes a server's entry. Of one that is there, members that stay the same keep their comments and their places.
pub fn set_server(text: &str, name: &ServerName, entry: &Map<String, Value>) -> Result<Edited, Refusal> {
    edited(text, |sheet| sheet.servers_for(name.as_str())?.set(name.as_str(), &Value::Object(entry.clone())))
}

/// Removes a server's entry, with the comments inside it and on its line.
pub fn remove_server(text: &str, name: &ServerName) -> Result<Edited, Refusal> {
    edited(text, |sheet| match sheet.servers_with(name.as_str())? {
        Some(servers) => Ok(servers.remove(name.as_str())),
        None => Ok(Change::NotThere),
    })
}

/// Switches a server on or off. One that is there only to switch a lower layer's off is removed to switch it on.
pub fn set_enabled(text: &str, name: &ServerName, enabled: bool) -> Result<Edited, Refusal> {
    edited(text, |sheet| {
        let Some(servers) = sheet.servers_with(name.as_str())? else { return Ok(Change::NotThere) };
        let old = servers.value(name.as_str()).unwrap_or_default();
        // Absent means on.
        let says = |key: &str, flag: bool| old.get(key) == Some(&Value::Bool(flag));
        let is_on = !says("enabled", false) && !says("disabled", true);
        if is_on == enabled {
            return Ok(Change::Unchanged);
        }
        let is_switch = |key: &String| matches!(key.as_str(), "enabled" | "disabled");
        if enabled && old.as_object().is_some_and(|members| members.keys().all(is_switch)) {
            return Ok(servers.remove(name.as_str()));
        }
        let entry = servers.object(name.as_str())?;
        if enabled && says("disabled", true) {
            entry.remove("disabled");
        }
        if !enabled || says("enabled", false) {
            entry.set("enabled", &Value::Bool(enabled))?;
        }
        Ok(Change::Replaced(old))
    })
}

/// Adds a rule at the end of `permissions`, unless it stands there already.
pub fn add_rule(text: &str, rule: &Map<String, Value>) -> Result<Edited, Refusal> {
    edited(text, |sheet| sheet.root()?.push("permissions", &Value::Object(rule.clone())))
}

/// Removes a rule from `permissions`, to take back what [`add_rule`] did.
pub fn remove_rule(text: &str, rule: &Map<String, Value>) -> Result<Edited, Refusal> {
    edited(text, |sheet| sheet.root()?.pull("permissions", &Value::Object(rule.clone())))
}

/// Writes a value under a path of keys, and makes the objects on the way. The path is not empty.
pub fn set_setting(text: &str, path: &[&str], value: &Value) -> Result<Edited, Refusal> {
    edited(text, |sheet| {
        let Some((last, way)) = path.split_last() else { return Ok(Change::NotThere) };
        let holder = way.iter().try_fold(sheet.root()?, |holder, key| holder.object(key))?;
        holder.set(last, value)
    })
}

/// Removes the value under a path of keys.
pub fn remove_setting(text: &str, path: &[&str]) -> Result<Edited, Refusal> {
    edited(text, |sheet| {
        let Some((last, way)) = path.split_last() else { return Ok(Change::NotThere) };
        let mut holder = sheet.root()?;
        for key in way {
            if !holder.has(key) {
                return Ok(Change::NotThere);
            }
            holder = holder.object(key)?;
        }
        Ok(holder.remove(last))
    })
}

fn edited(text: &str, edit: impl FnOnce(&Sheet) -> Result<Change, Refusal>) -> Result<Edited, Refusal> {
    let sheet = Sheet::parse(text)?;
    let change = edit(&sheet)?;
    let text = if change.is_change() { sheet.text() } else { text.to_owned() };
    Ok(Edited { text, change })
}

impl Sheet {
    /// The object that a server of this name belongs in: the one that has it, the first there is, or else a new one in
    /// the shape of the file.
    fn servers_for(&self, name: &str) -> Result<Holder, Refusal> {
        let root = self.root()?;
        let holders = self.servers()?;
        if let Some(holder) = holders.iter().find(|servers| servers.has(name)).or(holders.first()) {
            return Ok(holder.clone());
        }
        match root.has("mcp") || root.has("version") {
            true => root.object("mcp")?.object("servers"),
            false => root.object("mcpServers"),
        }
    }

    /// The object that has a server of this name, if there is one.
    fn servers_with(&self, name: &str) -> Result<Option<Holder>, Refusal> {
        Ok(self.servers()?.into_iter().find(|servers| servers.has(name)))
    }

    /// The objects that hold servers. A file may have them in both shapes, and a name only once in all.
    fn servers(&self) -> Result<Vec<Holder>, Refusal> {
        let root = self.root()?;
        let mut holders = Vec::new();
        if root.has("mcpServers") {
            holders.push(root.object("mcpServers")?);
        }
        if root.has("mcp") && root.object("mcp")?.has("servers") {
            holders.push(root.object("mcp")?.object("servers")?);
        }
        sheet::check_unique(&holders)?;
        Ok(holders)
    }
}
