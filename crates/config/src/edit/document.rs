//! A file as a concrete syntax tree. The only module that uses the parser library for edits.

use std::collections::BTreeMap;
use std::slice;

use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};
use serde_json::Value;

use super::{ConfigChange, EditRefusal};
use crate::json::OPTIONS;
use crate::tree::TextPosition;

/// Highest supported `version` and `schema`.
const SUPPORTED_VERSION: u64 = 1;
/// The byte order mark.
const BYTE_ORDER_MARK: char = '\u{feff}';
/// Preferred order of members in a new entry. Others follow.
const KEY_ORDER: [&str; 11] =
    ["type", "transport", "command", "args", "cwd", "env", "url", "headers", "oauth", "tool", "pattern"];

/// A file as a syntax tree.
pub(super) struct JsonSyntaxTree {
    tree: CstRootNode,
    has_mark: bool,
}

impl JsonSyntaxTree {
    pub(super) fn parse(text: &str) -> Result<Self, EditRefusal> {
        let body = text.strip_prefix(BYTE_ORDER_MARK);
        let has_mark = body.is_some();
        let body = body.unwrap_or(text);
        let body = if body.trim().is_empty() { "" } else { body };
        let tree = CstRootNode::parse(body, &OPTIONS).map_err(|error| EditRefusal::Unreadable {
            at: position(error.line_display(), error.column_display()),
            text: lowercase_first(&error.kind().to_string()),
        })?;
        let sheet = Self { tree, has_mark };
        sheet.root()?.check_version()?;
        Ok(sheet)
    }

    pub(super) fn text(&self) -> String {
        let body = self.tree.to_string();
        if self.has_mark { format!("{BYTE_ORDER_MARK}{body}") } else { body }
    }

    /// Returns the root object. Creates one in an empty file.
    pub(super) fn root(&self) -> Result<ObjectEditor, EditRefusal> {
        match self.tree.value() {
            Some(node) => ObjectEditor::from_node(&node, "the file"),
            None => Ok(ObjectEditor(self.tree.object_value_or_set())),
        }
    }
}

/// An object without duplicate keys.
#[derive(Clone)]
pub(super) struct ObjectEditor(CstObject);

impl ObjectEditor {
    fn from_node(node: &CstNode, what: &str) -> Result<Self, EditRefusal> {
        let object = node.as_object().ok_or_else(|| wrong_type(node, what, "an object"))?;
        let holder = Self(object);
        check_unique(slice::from_ref(&holder))?;
        Ok(holder)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.member(key).is_some()
    }

    pub(super) fn value(&self, key: &str) -> Option<Value> {
        Some(to_json(&self.member(key)?.value()?))
    }

    /// Returns the object under this key. Creates it if it does not exist.
    pub(super) fn object(&self, key: &str) -> Result<Self, EditRefusal> {
        match self.member(key).and_then(|member| member.value()) {
            Some(node) => Self::from_node(&node, &format!("`{key}`")),
            None => Ok(Self(self.0.append(key, CstInputValue::Object(Vec::new())).object_value_or_set())),
        }
    }

    /// Sets the value under this key. In objects, unchanged members are not touched.
    pub(super) fn set(&self, key: &str, value: &Value) -> Result<ConfigChange, EditRefusal> {
        let Some(member) = self.member(key) else {
            self.0.append(key, to_cst_input(value));
            return Ok(ConfigChange::Added);
        };
        let Some(node) = member.value() else { return Ok(ConfigChange::NotThere) };
        let old = to_json(&node);
        match (&old, value) {
            _ if old == *value => return Ok(ConfigChange::Unchanged),
            (Value::Object(_), Value::Object(new)) => Self::from_node(&node, &format!("`{key}`"))?.merge(new)?,
            _ => member.set_value(to_cst_input(value)),
        }
        Ok(ConfigChange::Replaced(old))
    }

    fn merge(&self, new: &serde_json::Map<String, Value>) -> Result<(), EditRefusal> {
        for key in self.keys().filter(|key| !new.contains_key(key)).collect::<Vec<_>>() {
            self.remove(&key);
        }
        for (key, value) in in_key_order(new) {
            self.set(key, value)?;
        }
        Ok(())
    }

    pub(super) fn remove(&self, key: &str) -> ConfigChange {
        let Some(old) = self.value(key) else { return ConfigChange::NotThere };
        if let Some(member) = self.member(key) {
            member.remove();
        }
        ConfigChange::Removed(old)
    }

    /// Appends a value to the list under this key, unless the list contains it.
    pub(super) fn append_to_list(&self, key: &str, value: &Value) -> Result<ConfigChange, EditRefusal> {
        let Some(list) = self.list(key)? else {
            let list = self.0.append(key, CstInputValue::Array(Vec::new())).array_value_or_set();
            list.ensure_multiline();
            list.append(to_cst_input(value));
            return Ok(ConfigChange::Added);
        };
        if list.elements().iter().any(|element| to_json(element) == *value) {
            return Ok(ConfigChange::Unchanged);
        }
        list.append(to_cst_input(value));
        Ok(ConfigChange::Added)
    }

    /// Removes a value from the list under this key.
    pub(super) fn remove_from_list(&self, key: &str, value: &Value) -> Result<ConfigChange, EditRefusal> {
        let Some(list) = self.list(key)? else { return Ok(ConfigChange::NotThere) };
        let found = list.elements().into_iter().find(|element| to_json(element) == *value);
        Ok(match found {
            Some(element) => {
                element.remove();
                ConfigChange::Removed(value.clone())
            }
            None => ConfigChange::NotThere,
        })
    }

    fn list(&self, key: &str) -> Result<Option<CstArray>, EditRefusal> {
        let Some(node) = self.member(key).and_then(|member| member.value()) else { return Ok(None) };
        node.as_array().map(Some).ok_or_else(|| wrong_type(&node, &format!("`{key}`"), "a list"))
    }

    /// Rejects files written by a newer version of Wharf.
    fn check_version(&self) -> Result<(), EditRefusal> {
        for key in ["version", "schema"] {
            let found = self.value(key).and_then(|value| value.as_u64()).filter(|found| *found > SUPPORTED_VERSION);
            if let (Some(found), Some(member)) = (found, self.member(key)) {
                return Err(EditRefusal::Newer { at: position_of(&member.into()), key: key.to_owned(), found });
            }
        }
        Ok(())
    }

    fn member(&self, key: &str) -> Option<CstObjectProp> {
        self.0.properties().into_iter().find(|member| member.decoded_name().as_deref() == Some(key))
    }

    fn keys(&self) -> impl Iterator<Item = String> {
        self.0.properties().into_iter().filter_map(|member| member.decoded_name())
    }
}

/// Rejects duplicate keys within and across these objects.
pub(super) fn check_unique(holders: &[ObjectEditor]) -> Result<(), EditRefusal> {
    let mut seen: BTreeMap<String, CstObjectProp> = BTreeMap::new();
    for member in holders.iter().flat_map(|holder| holder.0.properties()) {
        let Some(key) = member.decoded_name() else { continue };
        if let Some(first) = seen.insert(key.clone(), member.clone()) {
            let (first, second) = (position_of(&first.into()), position_of(&member.into()));
            return Err(EditRefusal::Duplicate { key, first, second });
        }
    }
    Ok(())
}

fn wrong_type(node: &CstNode, what: &str, expected: &'static str) -> EditRefusal {
    EditRefusal::Unlike { at: position_of(node), what: what.to_owned(), expected }
}

/// Returns the position of a node. Slow, since it reads everything before the node: for errors only.
fn position_of(node: &CstNode) -> TextPosition {
    let mut before = Vec::new();
    let mut next = Some(node.clone());
    while let Some(node) = next {
        before.extend(node.previous_siblings().map(|sibling| sibling.to_string()));
        next = node.parent().map(CstNode::from);
    }
    let before: String = before.into_iter().rev().collect();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    position(line, column)
}

fn position(line: usize, column: usize) -> TextPosition {
    let bounded = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    TextPosition { line: bounded(line), column: bounded(column) }
}

fn to_json(node: &CstNode) -> Value {
    if let Some(object) = node.as_object() {
        let member = |member: CstObjectProp| Some((member.decoded_name()?, to_json(&member.value()?)));
        return object.properties().into_iter().filter_map(member).collect();
    }
    if let Some(list) = node.as_array() {
        return list.elements().iter().map(to_json).collect();
    }
    if let Some(text) = node.as_string_lit() {
        return text.decoded_value().unwrap_or_default().into();
    }
    // All other literals have plain JSON syntax.
    serde_json::from_str(&node.to_string()).unwrap_or_default()
}

fn to_cst_input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(values) => CstInputValue::Array(values.iter().map(to_cst_input).collect()),
        Value::Object(members) => CstInputValue::Object(
            in_key_order(members).map(|(key, value)| (key.clone(), to_cst_input(value))).collect(),
        ),
    }
}

fn in_key_order(members: &serde_json::Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    let rank = |key: &str| KEY_ORDER.iter().position(|known| *known == key).unwrap_or(KEY_ORDER.len());
    let mut members: Vec<_> = members.iter().collect();
    members.sort_by_key(|(key, _)| rank(key));
    members.into_iter()
}

fn lowercase_first(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_lowercase().chain(characters).collect())
}
