//! Conversion of one server of a client's file to an entry.

use std::path::Path;

use serde_json::{Map, Number, Value as Json};

use crate::tree::{ConfigNode, ConfigValue};

use super::ExternalClient;
use super::client_schema::{ClientSchema, FieldConversion, FieldMapping};
use super::client_schemas::client_schema;
use super::note::{ConversionNote, displayed_name};
use super::variables::{VariablePiece, is_variable_name, write_pieces};

/// State of the conversion of one server.
pub(super) struct ServerReader<'a> {
    client: ExternalClient,
    shape: &'static ClientSchema,
    project: &'a Path,
    node: &'a ConfigNode,
    entry: Map<String, Json>,
    /// Notes so far.
    pub(super) notes: Vec<ConversionNote>,
}

/// The server cannot be converted.
struct UnsupportedServer;

impl<'a> ServerReader<'a> {
    pub(super) fn new(client: ExternalClient, project: &'a Path, node: &'a ConfigNode) -> Self {
        Self { client, shape: client_schema(client), project, node, entry: Map::new(), notes: Vec::new() }
    }

    /// Converts the server. Returns an empty entry and adds a note if that is not possible.
    pub(super) fn read_entry(&mut self) -> Map<String, Json> {
        let ConfigValue::Map(_) = &self.node.value else {
            self.notes
                .push(ConversionNote::lost(format!("skipped: it is {}, not an object", self.node.value.type_name())));
            return Map::new();
        };
        if self.read_all().is_err() {
            return Map::new();
        }
        self.note_unknown();
        self.remove_defaults();
        std::mem::take(&mut self.entry)
    }

    fn read_all(&mut self) -> Result<(), UnsupportedServer> {
        for field in self.shape.fields {
            let Some(node) = value_at(self.node, field.theirs) else { continue };
            let is_object_of_fields = matches!(node.value, ConfigValue::Map(_)) && self.has_members(field.theirs);
            if node.value != ConfigValue::Null && !is_object_of_fields {
                self.read_field(field, node)?;
            }
        }
        Ok(())
    }

    fn read_field(&mut self, field: &FieldMapping, node: &ConfigNode) -> Result<(), UnsupportedServer> {
        let read = match field.kind {
            FieldConversion::Transport { words, .. } => return self.read_transport(words, node),
            FieldConversion::Address(transport) => self.address(field, node, transport),
            FieldConversion::Text => self.text(field.theirs, node).map(|text| self.put(field, text)),
            FieldConversion::Texts => self.texts(field.theirs, node).map(|texts| self.put(field, Json::Array(texts))),
            FieldConversion::Pairs => self.pairs(field, node),
            FieldConversion::Words => words(node).map(|words| self.words(field, words)),
            FieldConversion::Flag => flag(node).map(|flag| self.put(field, Json::Bool(flag))),
            FieldConversion::Inverse => flag(node).map(|flag| self.put(field, Json::Bool(!flag))),
            FieldConversion::Port => port(node).map(|port| self.put(field, Json::from(port))),
            FieldConversion::Milliseconds => milliseconds(node, 1.0).map(|time| self.put(field, time)),
            FieldConversion::Seconds | FieldConversion::WholeSeconds => {
                milliseconds(node, 1000.0).map(|time| self.put(field, time))
            }
            FieldConversion::CommandLine => self.command_line(field, node),
            FieldConversion::Handed => self.read_inherited_variables(node),
            FieldConversion::HeaderVariables => self.header_variables(node),
            FieldConversion::Bearer => {
                node.text().map(|name| self.put_reference("headers", "Authorization", "Bearer ", name))
            }
            FieldConversion::HeadersCommand => headers_command(node).map(|words| self.put(field, Json::Array(words))),
            FieldConversion::Scopes => scopes(node).map(|scope| self.put(field, Json::String(scope))),
            FieldConversion::Ignored => Some(()),
            FieldConversion::Missing(means, fix) => self.note_unsupported(field, node, means, fix),
        };
        if read.is_none() {
            let text = format!("skipped `{}`: it is {}", field.theirs, describe_mismatch(field, node));
            self.notes.push(ConversionNote::lost(text));
        }
        Ok(())
    }

    fn read_transport(&mut self, words: &[(&str, &str)], node: &ConfigNode) -> Result<(), UnsupportedServer> {
        let word = node.text().unwrap_or(node.value.type_name());
        match words.iter().find(|(theirs, _)| *theirs == word) {
            Some((_, "")) => {}
            Some((_, ours)) => {
                self.entry.insert("type".to_owned(), Json::from(*ours));
            }
            None => {
                let text = format!("skipped: servers of type `{}` are not supported", displayed_name(word));
                self.notes.push(ConversionNote::lost(text).fix("supported types: stdio, http, sse"));
                return Err(UnsupportedServer);
            }
        }
        Ok(())
    }

    fn address(&mut self, field: &FieldMapping, node: &ConfigNode, transport: &str) -> Option<()> {
        let text = self.text(field.theirs, node)?;
        self.put(field, text);
        self.entry.entry("type").or_insert_with(|| Json::from(transport));
        Some(())
    }

    fn pairs(&mut self, field: &FieldMapping, node: &ConfigNode) -> Option<()> {
        let ConfigValue::Map(members) = &node.value else { return None };
        for member in members {
            let name = format!("{}.{}", field.theirs, member.key);
            match self.text(&name, &member.node) {
                Some(text) => self.put_pair(field.ours, &member.key, text),
                None => {
                    let text = format!(
                        "skipped `{}`: it is {}, not a string",
                        displayed_name(&name),
                        member.node.value.type_name()
                    );
                    self.notes.push(ConversionNote::lost(text));
                }
            }
        }
        Some(())
    }

    fn texts(&mut self, name: &str, node: &ConfigNode) -> Option<Vec<Json>> {
        let ConfigValue::List(nodes) = &node.value else { return None };
        nodes.iter().map(|node| self.text(name, node)).collect()
    }

    /// Sets a list of names. For goose, an empty list means all tools and is dropped.
    fn words(&mut self, field: &FieldMapping, words: Vec<Json>) {
        if self.client != ExternalClient::Goose || !words.is_empty() {
            self.put(field, Json::Array(words));
        }
    }

    /// Converts a value to a text in Wharf's syntax. Accepts numbers and booleans.
    fn text(&mut self, name: &str, node: &ConfigNode) -> Option<Json> {
        let text = match &node.value {
            ConfigValue::Text(text) | ConfigValue::Number(text) => text.clone(),
            ConfigValue::Bool(flag) => flag.to_string(),
            _ => return None,
        };
        let pieces = self.pieces(&text, name);
        let written = write_pieces(&pieces).unwrap_or_else(|| {
            let text =
                format!("`{}` has a `$` directly before a variable, which cannot be expressed", displayed_name(name));
            self.notes.push(ConversionNote::changed(text).fix("check it manually"));
            text_without_dollars(&pieces)
        });
        Some(Json::String(written))
    }

    fn pieces(&mut self, text: &str, name: &str) -> Vec<VariablePiece> {
        self.shape.syntax_of(name).read(text, name, self.project, &mut self.notes)
    }

    fn command_line(&mut self, field: &FieldMapping, node: &ConfigNode) -> Option<()> {
        let mut texts = self.texts(field.theirs, node)?.into_iter();
        self.entry.insert("command".to_owned(), texts.next()?);
        if texts.len() > 0 {
            self.entry.insert("args".to_owned(), texts.collect());
        }
        Some(())
    }

    fn read_inherited_variables(&mut self, node: &ConfigNode) -> Option<()> {
        let ConfigValue::List(nodes) = &node.value else { return None };
        for node in nodes {
            let name = node.text().or_else(|| node.member("name").and_then(|member| member.node.text()))?;
            self.put_reference("env", name, "", name);
            if self.client == ExternalClient::Goose {
                let text = format!("goose may have stored `{}` in its keyring", displayed_name(name));
                let fix = "set the variable, or store a secret and write `${secret:NAME}`";
                self.notes.push(ConversionNote::hint(text).fix(fix));
            }
        }
        Some(())
    }

    fn header_variables(&mut self, node: &ConfigNode) -> Option<()> {
        let ConfigValue::Map(members) = &node.value else { return None };
        for member in members {
            self.put_reference("headers", &member.key, "", member.node.text()?);
        }
        Some(())
    }

    /// Sets a pair to a reference to a variable.
    fn put_reference(&mut self, ours: &str, key: &str, before: &str, variable: &str) {
        if is_variable_name(variable) {
            self.put_pair(ours, key, Json::String(format!("{before}${{{variable}}}")));
        } else {
            let text = format!("skipped `{ours}.{}`: it refers to an invalid variable name", displayed_name(key));
            self.notes.push(ConversionNote::lost(text));
        }
    }

    fn note_unsupported(&mut self, field: &FieldMapping, node: &ConfigNode, means: &str, fix: &str) -> Option<()> {
        // Disabled or the default value: the missing support makes no difference.
        if node.value != ConfigValue::Bool(false) && node.text() != Some("dynamic_discovery") {
            let note = ConversionNote::lost(format!("`{}` is not supported: {means}", field.theirs));
            self.notes.push(if fix.is_empty() { note } else { note.fix(fix) });
        }
        Some(())
    }

    fn put(&mut self, field: &FieldMapping, value: Json) {
        let slot = match field.ours.split_once('.') {
            None => self.entry.entry(field.ours),
            Some((object, key)) => match self.entry.entry(object).or_insert_with(|| Json::Object(Map::new())) {
                Json::Object(members) => members.entry(key),
                _ => return,
            },
        };
        if let serde_json::map::Entry::Vacant(vacant) = slot {
            vacant.insert(value);
        } else {
            self.notes.push(ConversionNote::lost(format!(
                "skipped `{}`: the value is already set by another key",
                field.theirs
            )));
        }
    }

    fn put_pair(&mut self, ours: &str, key: &str, value: Json) {
        if let Json::Object(pairs) = self.entry.entry(ours).or_insert_with(|| Json::Object(Map::new())) {
            pairs.insert(key.to_owned(), value);
        }
    }

    fn note_unknown(&mut self) {
        for member in self.node.members() {
            if self.has_members(&member.key) && matches!(member.node.value, ConfigValue::Map(_)) {
                for inner in member.node.members() {
                    self.note_if_unknown(&format!("{}.{}", member.key, inner.key));
                }
            } else {
                self.note_if_unknown(&member.key);
            }
        }
    }

    fn note_if_unknown(&mut self, path: &str) {
        if !self.shape.fields.iter().any(|field| field.theirs == path) {
            self.notes.push(ConversionNote::lost(format!("skipped `{}`: unknown key", displayed_name(path))));
        }
    }

    fn has_members(&self, key: &str) -> bool {
        let is_member = |field: &FieldMapping| field.theirs.split_once('.').is_some_and(|(object, _)| object == key);
        self.shape.fields.iter().any(is_member)
    }

    /// Removes default values. Clears the entry if it has neither a command nor a URL.
    fn remove_defaults(&mut self) {
        let has = |entry: &Map<String, Json>, key: &str| entry.contains_key(key);
        if self.entry.get("enabled") == Some(&Json::Bool(true)) {
            self.entry.remove("enabled");
        }
        if self.entry.get("args") == Some(&Json::Array(Vec::new())) {
            self.entry.remove("args");
        }
        if has(&self.entry, "command") && self.entry.get("type") == Some(&Json::from("stdio")) {
            self.entry.remove("type");
        }
        if self.entry.get("trust") == Some(&Json::Bool(true)) {
            self.notes
                .push(ConversionNote::hint("`trust` allows all its tools without asking").fix("remove it to be asked"));
        }
        let switches_off = self.entry.len() == 1 && has(&self.entry, "enabled");
        if !has(&self.entry, "command") && !has(&self.entry, "url") && !switches_off {
            self.notes.push(ConversionNote::lost("skipped: it has neither a command nor a URL"));
            self.entry.clear();
        }
    }
}

/// Returns the value at a path of at most two keys. The last of duplicate keys wins.
fn value_at<'a>(node: &'a ConfigNode, path: &str) -> Option<&'a ConfigNode> {
    let last = |node: &'a ConfigNode, key: &str| node.members().iter().rev().find(|member| member.key == key);
    match path.split_once('.') {
        None => last(node, path).map(|member| &member.node),
        Some((object, key)) => last(&last(node, object)?.node, key).map(|member| &member.node),
    }
}

fn describe_mismatch(field: &FieldMapping, node: &ConfigNode) -> String {
    let expected = match field.kind {
        FieldConversion::Flag | FieldConversion::Inverse => "a boolean",
        FieldConversion::Milliseconds | FieldConversion::Seconds | FieldConversion::WholeSeconds => "a time",
        FieldConversion::Port => "a port",
        FieldConversion::Pairs | FieldConversion::HeaderVariables => "an object",
        FieldConversion::HeadersCommand => "a command",
        FieldConversion::Texts
        | FieldConversion::Words
        | FieldConversion::CommandLine
        | FieldConversion::Handed
        | FieldConversion::Scopes => "a list of strings",
        _ => "a string",
    };
    format!("{}, not {expected}", node.value.type_name())
}

fn flag(node: &ConfigNode) -> Option<bool> {
    match node.value {
        ConfigValue::Bool(flag) => Some(flag),
        _ => None,
    }
}

fn port(node: &ConfigNode) -> Option<u16> {
    let ConfigValue::Number(text) = &node.value else { return None };
    text.parse().ok().filter(|port| *port > 0)
}

fn words(node: &ConfigNode) -> Option<Vec<Json>> {
    let ConfigValue::List(nodes) = &node.value else { return None };
    nodes.iter().map(|node| node.text().map(Json::from)).collect()
}

/// Characters that have a meaning in a shell command line.
const SHELL_CHARACTERS: &[char] =
    &['|', '&', ';', '<', '>', '(', ')', '$', '`', '"', '\'', '*', '?', '[', '~', '\\', '#', '{', '\n'];

/// Converts a command that prints headers to a program and its arguments. A command line with shell syntax is passed to
/// `sh`. Nothing in it is expanded.
fn headers_command(node: &ConfigNode) -> Option<Vec<Json>> {
    let literal = |text: &str| Some(Json::String(write_pieces(&[VariablePiece::Text(text.to_owned())])?));
    match &node.value {
        ConfigValue::Text(line) if line.trim().is_empty() => None,
        ConfigValue::Text(line) if line.contains(SHELL_CHARACTERS) => {
            ["sh", "-c", line].into_iter().map(literal).collect()
        }
        ConfigValue::Text(line) => line.split_whitespace().map(literal).collect(),
        ConfigValue::Map(_) => {
            let arguments = match value_at(node, "args").map(|args| &args.value) {
                Some(ConfigValue::List(nodes)) => nodes.iter().map(ConfigNode::text).collect::<Option<Vec<_>>>()?,
                _ => Vec::new(),
            };
            [value_at(node, "command")?.text()?].into_iter().chain(arguments).map(literal).collect()
        }
        _ => None,
    }
}

/// Joins a list of scopes. Accepts a single text as well.
fn scopes(node: &ConfigNode) -> Option<String> {
    let ConfigValue::List(nodes) = &node.value else { return node.text().map(str::to_owned) };
    let words: Option<Vec<_>> = nodes.iter().map(ConfigNode::text).collect();
    words.map(|words| words.join(" "))
}

fn milliseconds(node: &ConfigNode, factor: f64) -> Option<Json> {
    let ConfigValue::Number(text) = &node.value else { return None };
    let time = (text.parse::<f64>().ok()? * factor).round();
    // Above this, a float cannot represent every integer.
    let is_time = (0.0..=9e15).contains(&time);
    is_time.then(|| Json::Number(Number::from(time as u64)))
}

/// Writes a text without the `$` that directly precedes a reference.
fn text_without_dollars(pieces: &[VariablePiece]) -> String {
    let mut text = String::new();
    for piece in pieces {
        if !matches!(piece, VariablePiece::Text(_)) {
            text.truncate(text.trim_end_matches('$').len());
        }
        text.push_str(&write_pieces(std::slice::from_ref(piece)).unwrap_or_default());
    }
    text
}
