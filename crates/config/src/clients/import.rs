//! Conversion of another client's file to entries.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::Path;

use serde_json::{Map, Value as Json};

use crate::tree::{ConfigMember, ConfigNode, ConfigValue, ParseFailure, TextPosition};
use crate::{FileFormat, parse_text};

use super::ExternalClient;
use super::client_schemas::client_schema;
use super::note::{ConversionNote, displayed_name};
use super::server_reader::ServerReader;

/// A server imported from a client's file.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedServer {
    /// Server name: the original name with invalid characters replaced.
    pub id: String,
    /// The converted entry. Empty if the server cannot be converted.
    pub entry: Map<String, Json>,
    /// Keys that lead to the server in the file.
    pub path: Vec<String>,
    /// Position in the file.
    pub place: TextPosition,
    /// Notes about differences.
    pub notes: Vec<ConversionNote>,
}

impl ImportedServer {
    /// Reports whether there is an entry to store. If not, the notes give the reason.
    pub fn has_entry(&self) -> bool {
        !self.entry.is_empty()
    }
}

/// Imports a client's file. The file extension determines the format. Without one, the client's own format is assumed.
///
/// `project` is the value of `${workspaceFolder}`, and selects the servers in a file that groups them by project.
///
/// # Errors
/// Returns [`ParseFailure`] if the file cannot be parsed.
pub fn import(
    client: ExternalClient,
    text: &str,
    file: &Path,
    project: &Path,
) -> Result<Vec<ImportedServer>, ParseFailure> {
    let tree = parse_text(text, FileFormat::from_extension(file).unwrap_or(client_schema(client).format))?;
    let mut members = Vec::new();
    for (root, path) in roots(client, &tree, project) {
        members.extend(members_of(root)?.iter().map(|member| (member, path.clone())));
    }
    let mut names = HashSet::new();
    let mut imported = Vec::new();
    for (member, mut path, hidden) in last_duplicates(members) {
        let mut server = import_server(client, member, project, &mut names);
        path.push(member.key.clone());
        server.path = path;
        if client == ExternalClient::Gemini && is_excluded(&tree, &member.key) {
            disable(&mut server);
        }
        server.notes.extend(
            hidden.map(|at| ConversionNote::hint(format!("overrides another server of the same name at {at}"))),
        );
        imported.push(server);
    }
    Ok(imported)
}

/// Returns the objects that hold servers, with the keys that lead to them.
fn roots<'a>(client: ExternalClient, tree: &'a ConfigNode, project: &Path) -> Vec<(&'a ConfigMember, Vec<String>)> {
    let owned = |path: &[&str]| path.iter().map(|key| (*key).to_owned()).collect();
    let find = |path: &[&str]| member_at(tree, path).map(|member| (member, owned(path)));
    let mut roots: Vec<_> = client_schema(client).roots.iter().filter_map(|path| find(path)).collect();
    match client {
        ExternalClient::ClaudeCode => {
            let path = project.display().to_string();
            roots.extend(find(&["projects", &path, "mcpServers"]));
        }
        // Version 2 nests servers one level deeper. A server named `servers` has a type.
        ExternalClient::Opencode => {
            let deeper = find(&["mcp", "servers"]).filter(|(member, _)| member.node.member("type").is_none());
            roots = deeper.map_or(roots, |root| vec![root]);
        }
        _ => {}
    }
    roots
}

fn member_at<'a>(node: &'a ConfigNode, path: &[&str]) -> Option<&'a ConfigMember> {
    let (first, rest) = path.split_first()?;
    let member = node.member(first)?;
    if rest.is_empty() { Some(member) } else { member_at(&member.node, rest) }
}

fn members_of(root: &ConfigMember) -> Result<&[ConfigMember], ParseFailure> {
    match &root.node.value {
        ConfigValue::Map(members) => Ok(members),
        ConfigValue::Null => Ok(&[]),
        other => {
            let text = format!("`{}` is {}, not an object", displayed_name(&root.key), other.type_name());
            Err(ParseFailure { at: root.node.at, text })
        }
    }
}

/// A member, the keys that lead to its object, and the position of the member that it hides.
type LastMember<'a> = (&'a ConfigMember, Vec<String>, Option<TextPosition>);

/// Returns the last member of each key and the position of the one before, if any. Clients use the last duplicate.
fn last_duplicates(members: Vec<(&ConfigMember, Vec<String>)>) -> Vec<LastMember<'_>> {
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut last: Vec<LastMember<'_>> = Vec::new();
    for (member, path) in members {
        match places.get(member.key.as_str()) {
            Some(&place) => {
                let hidden = last[place].0.at;
                last[place] = (member, path, Some(hidden));
            }
            None => {
                places.insert(&member.key, last.len());
                last.push((member, path, None));
            }
        }
    }
    last
}

fn import_server(
    client: ExternalClient,
    member: &ConfigMember,
    project: &Path,
    names: &mut HashSet<String>,
) -> ImportedServer {
    let id = valid_name(&member.key, names);
    let mut notes = Vec::new();
    if id != member.key {
        let text = format!("renamed `{}` to `{id}`", displayed_name(&member.key));
        notes.push(
            ConversionNote::changed(text)
                .fix("server names consist of letters, digits, `_` and `-` and must be unique"),
        );
    }
    let node = if client == ExternalClient::Goose { flatten_config(&member.node) } else { Cow::Borrowed(&member.node) };
    let mut fields = ServerReader::new(client, project, &node);
    let entry = fields.read_entry();
    notes.append(&mut fields.notes);
    ImportedServer { id, entry, path: Vec::new(), place: member.at, notes }
}

/// Returns a valid server name that resembles this one and is not taken.
fn valid_name(name: &str, taken: &mut HashSet<String>) -> String {
    let fit = |character: char| match character {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => character,
        _ => '-',
    };
    let fitted: String = name.chars().map(fit).take(64).collect();
    let fitted = if fitted.is_empty() { "server".to_owned() } else { fitted };
    let numbered = |number: usize| format!("{}-{number}", &fitted[..fitted.len().min(56)]);
    let mut candidates = std::iter::once(fitted.clone()).chain((2..).map(numbered));
    let free = candidates.find(|candidate| taken.insert(candidate.clone()));
    free.unwrap_or(fitted)
}

/// Merges the `config` object of older goose versions into the server.
fn flatten_config(node: &ConfigNode) -> Cow<'_, ConfigNode> {
    let Some(config) = node.member("config").filter(|config| matches!(config.node.value, ConfigValue::Map(_))) else {
        return Cow::Borrowed(node);
    };
    let beside = node.members().iter().filter(|member| member.key != "config");
    let members = beside.chain(config.node.members()).cloned().collect();
    Cow::Owned(ConfigNode { at: node.at, value: ConfigValue::Map(members) })
}

/// Reports whether Gemini's server lists disable this server.
fn is_excluded(tree: &ConfigNode, name: &str) -> bool {
    let list = |key: &str| member_at(tree, &["mcp", key]).map(|member| names(&member.node));
    let is_allowed = list("allowed").is_none_or(|allowed| allowed.contains(&name));
    !is_allowed || list("excluded").is_some_and(|excluded| excluded.contains(&name))
}

fn disable(server: &mut ImportedServer) {
    if server.has_entry() {
        server.entry.insert("enabled".to_owned(), Json::Bool(false));
        server.notes.push(ConversionNote::hint("disabled, because the `mcp` lists exclude it"));
    }
}

fn names(node: &ConfigNode) -> Vec<&str> {
    match &node.value {
        ConfigValue::List(nodes) => nodes.iter().filter_map(ConfigNode::text).collect(),
        _ => Vec::new(),
    }
}
