//! Format-preserving edits of a configuration file.
//!
//! Each edit takes a text and returns the text that replaces it. [`ConfigFile`] applies an edit to a file without
//! losing concurrent changes. Comments, order, unknown keys, indentation, line endings and a byte order mark are
//! preserved. A text that cannot be parsed, or that was written by a newer version of Wharf, is rejected and left
//! unchanged.

mod document;
mod file;
mod refusal;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};
use wharf_spec::ServerName;

pub use file::{ConfigFile, EditError};
pub use refusal::EditRefusal;

use document::{JsonSyntaxTree, ObjectEditor};

/// An edited text.
#[derive(Debug, Clone, PartialEq)]
pub struct EditedText {
    /// The whole text. Identical to the original if nothing changed.
    pub text: String,
    /// Outcome of the edit.
    pub change: ConfigChange,
}

/// Outcome of an edit, with the previous value for an undo.
#[derive(Debug, Clone, PartialEq)]
pub enum ConfigChange {
    /// The value is new.
    Added,
    /// The value was replaced.
    Replaced(Value),
    /// The value was removed.
    Removed(Value),
    /// The value was already set.
    Unchanged,
    /// The value to change does not exist.
    NotThere,
}

impl ConfigChange {
    /// Reports whether the text changed.
    pub fn is_change(&self) -> bool {
        !matches!(self, Self::Unchanged | Self::NotThere)
    }
}

/// Sets a server's entry. In an existing entry, unchanged members retain their comments and order.
pub fn set_server(text: &str, name: &ServerName, entry: &Map<String, Value>) -> Result<EditedText, EditRefusal> {
    apply_edit(text, |sheet| sheet.server_object_for(name.as_str())?.set(name.as_str(), &Value::Object(entry.clone())))
}

/// Removes a server's entry, including the comments inside it and on its line.
pub fn remove_server(text: &str, name: &ServerName) -> Result<EditedText, EditRefusal> {
    apply_edit(text, |sheet| match sheet.find_server_object(name.as_str())? {
        Some(servers) => Ok(servers.remove(name.as_str())),
        None => Ok(ConfigChange::NotThere),
    })
}

/// Enables or disables a server. To enable it, an entry that only disables a server of a lower layer is removed.
pub fn set_enabled(text: &str, name: &ServerName, enabled: bool) -> Result<EditedText, EditRefusal> {
    apply_edit(text, |sheet| {
        let Some(servers) = sheet.find_server_object(name.as_str())? else { return Ok(ConfigChange::NotThere) };
        let old = servers.value(name.as_str()).unwrap_or_default();
        // Without the key the server is enabled.
        let says = |key: &str, flag: bool| old.get(key) == Some(&Value::Bool(flag));
        let is_on = !says("enabled", false) && !says("disabled", true);
        if is_on == enabled {
            return Ok(ConfigChange::Unchanged);
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
        Ok(ConfigChange::Replaced(old))
    })
}

/// Appends a rule to `permissions`, unless it is already there.
pub fn add_rule(text: &str, rule: &Map<String, Value>) -> Result<EditedText, EditRefusal> {
    apply_edit(text, |sheet| sheet.root()?.append_to_list("permissions", &Value::Object(rule.clone())))
}

/// Removes a rule from `permissions`. Reverts [`add_rule`].
pub fn remove_rule(text: &str, rule: &Map<String, Value>) -> Result<EditedText, EditRefusal> {
    apply_edit(text, |sheet| sheet.root()?.remove_from_list("permissions", &Value::Object(rule.clone())))
}

/// Sets the value at a path of keys. Creates missing objects on the path. An empty path has no effect.
pub fn set_setting(text: &str, path: &[&str], value: &Value) -> Result<EditedText, EditRefusal> {
    apply_edit(text, |sheet| {
        let Some((last, way)) = path.split_last() else { return Ok(ConfigChange::NotThere) };
        let holder = way.iter().try_fold(sheet.root()?, |holder, key| holder.object(key))?;
        holder.set(last, value)
    })
}

/// Removes the value at a path of keys.
pub fn remove_setting(text: &str, path: &[&str]) -> Result<EditedText, EditRefusal> {
    apply_edit(text, |sheet| {
        let Some((last, way)) = path.split_last() else { return Ok(ConfigChange::NotThere) };
        let mut holder = sheet.root()?;
        for key in way {
            if !holder.has(key) {
                return Ok(ConfigChange::NotThere);
            }
            holder = holder.object(key)?;
        }
        Ok(holder.remove(last))
    })
}

fn apply_edit(
    text: &str,
    edit: impl FnOnce(&JsonSyntaxTree) -> Result<ConfigChange, EditRefusal>,
) -> Result<EditedText, EditRefusal> {
    let sheet = JsonSyntaxTree::parse(text)?;
    let change = edit(&sheet)?;
    let text = if change.is_change() { sheet.text() } else { text.to_owned() };
    Ok(EditedText { text, change })
}

impl JsonSyntaxTree {
    /// Returns the object that a server of this name belongs in: the one that has it, else the first existing one, else
    /// a new one that suits the file.
    fn server_object_for(&self, name: &str) -> Result<ObjectEditor, EditRefusal> {
        let root = self.root()?;
        let holders = self.server_objects()?;
        if let Some(holder) = holders.iter().find(|servers| servers.has(name)).or(holders.first()) {
            return Ok(holder.clone());
        }
        match root.has("mcp") || root.has("version") {
            true => root.object("mcp")?.object("servers"),
            false => root.object("mcpServers"),
        }
    }

    /// Returns the object that has a server of this name, if there is one.
    fn find_server_object(&self, name: &str) -> Result<Option<ObjectEditor>, EditRefusal> {
        Ok(self.server_objects()?.into_iter().find(|servers| servers.has(name)))
    }

    /// Returns the objects that hold servers. A file may use both shapes, but each name only once.
    fn server_objects(&self) -> Result<Vec<ObjectEditor>, EditRefusal> {
        let root = self.root()?;
        let mut holders = Vec::new();
        if root.has("mcpServers") {
            holders.push(root.object("mcpServers")?);
        }
        if root.has("mcp") && root.object("mcp")?.has("servers") {
            holders.push(root.object("mcp")?.object("servers")?);
        }
        document::check_unique(&holders)?;
        Ok(holders)
    }
}
