//! Approved tool definitions.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use wharf_spec::{InvalidServerName, ServerName, ServerOrigin, ToolId};

use crate::Fingerprint;

/// Schema version of a file with the user's own servers only, and of a file with servers of other origins.
const USER_SCHEMA: u32 = 1;
const SCHEMA_WITH_FILES: u32 = 2;
/// Maximum definitions per tool. The oldest are forgotten first and need a new approval.
const MAX_DEFINITIONS: usize = 8;
/// Maximum tools per server.
const MAX_PINNED_TOOLS: usize = 4096;
/// Maximum bytes of a stored definition. For a longer one, only the fingerprint is stored.
const MAX_DEFINITION_BYTES: usize = 128 << 10;

/// The approved definitions, by tool and by origin of its server. Serialized as a document with `schema: 1`, or
/// `schema: 2` if any of the servers is not the user's own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "PinDocument", try_from = "PinDocument")]
pub struct PinSet {
    origins: HashMap<ServerOrigin, ServerPins>,
}

type ServerPins = HashMap<ServerName, HashMap<Arc<str>, ToolPin>>;

#[derive(Debug, Clone, PartialEq, Eq)]
struct ToolPin {
    /// Text of the definition approved last.
    definition: Arc<str>,
    /// Fingerprints of all approved definitions, the most recent first.
    fingerprints: Vec<Fingerprint>,
}

/// Approval state of a tool definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PinState {
    /// No definition of the tool has been approved.
    New,
    /// This definition has been approved.
    Known,
    /// Only other definitions of the tool have been approved.
    Changed {
        /// The definition approved last, for comparison. Empty if it was too long to store.
        approved: Arc<str>,
    },
}

/// The error for a server with too many approved tools. No entry is evicted, because an evicted tool would be treated
/// as new.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` has reached the limit of {MAX_PINNED_TOOLS} approved tools")]
pub struct PinLimitReached(pub ServerName);

impl PinSet {
    /// Returns the approval state of a tool definition.
    pub fn state(&self, origin: &ServerOrigin, server: &ServerName, tool: &str, definition: &Fingerprint) -> PinState {
        let tools = self.origins.get(origin).and_then(|servers| servers.get(server));
        match tools.and_then(|tools| tools.get(tool)) {
            None => PinState::New,
            Some(pin) if pin.fingerprints.contains(definition) => PinState::Known,
            Some(pin) => PinState::Changed { approved: pin.definition.clone() },
        }
    }

    /// Like [`PinSet::state`], with a [`ToolId`].
    pub fn tool_state(&self, origin: &ServerOrigin, tool: &ToolId, definition: &Fingerprint) -> PinState {
        self.state(origin, &tool.server, &tool.tool, definition)
    }

    /// Records the approval of a definition. Earlier approvals of the tool remain valid.
    ///
    /// # Errors
    /// Returns [`PinLimitReached`] if the server already has the maximum number of approved tools.
    pub fn approve(
        &mut self,
        origin: ServerOrigin,
        tool: ToolId,
        fingerprint: Fingerprint,
        definition: &str,
    ) -> Result<(), PinLimitReached> {
        let tools = self.origins.entry(origin).or_default().entry(tool.server.clone()).or_default();
        if tools.len() >= MAX_PINNED_TOOLS && !tools.contains_key(&tool.tool) {
            return Err(PinLimitReached(tool.server));
        }
        let kept: Arc<str> = if definition.len() <= MAX_DEFINITION_BYTES { definition.into() } else { "".into() };
        let pin =
            tools.entry(tool.tool).or_insert_with(|| ToolPin { definition: kept.clone(), fingerprints: Vec::new() });
        pin.definition = kept;
        pin.fingerprints.retain(|known| *known != fingerprint);
        pin.fingerprints.insert(0, fingerprint);
        pin.fingerprints.truncate(MAX_DEFINITIONS);
        Ok(())
    }

    /// Adds the approvals of another set. If both sets have a tool, this set's approvals are treated as more recent.
    ///
    /// The same limits apply: tools beyond the maximum per server are ignored.
    pub fn merge(&mut self, other: &Self) {
        let servers = other.origins.iter().flat_map(|(origin, servers)| servers.iter().map(move |one| (origin, one)));
        for (origin, (server, theirs)) in servers {
            let ours = self.origins.entry(origin.clone()).or_default().entry(server.clone()).or_default();
            for (tool, pin) in theirs {
                if ours.len() < MAX_PINNED_TOOLS || ours.contains_key(tool) {
                    ours.entry(tool.clone()).or_insert_with(|| pin.clone()).merge_fingerprints(pin);
                }
            }
        }
    }

    /// Drops the texts of definitions to save memory. Approvals remain known, but differences can no longer be shown.
    pub fn drop_definitions(&mut self) {
        let servers = self.origins.values_mut().flat_map(HashMap::values_mut);
        servers.flat_map(HashMap::values_mut).for_each(|pin| pin.definition = "".into());
    }

    /// Forgets a tool. Its next definition is treated as new.
    pub fn forget(&mut self, origin: &ServerOrigin, tool: &ToolId) {
        let servers = self.origins.get_mut(origin);
        if let Some(tools) = servers.and_then(|servers| servers.get_mut(&tool.server)) {
            tools.remove(&tool.tool);
        }
    }
}

impl ToolPin {
    fn merge_fingerprints(&mut self, other: &Self) {
        let more = other.fingerprints.iter().filter(|known| !self.fingerprints.contains(known));
        let more: Vec<Fingerprint> = more.copied().collect();
        self.fingerprints.extend(more);
        self.fingerprints.truncate(MAX_DEFINITIONS);
    }
}

/// The file format. Sorted, so that equal sets have the same text.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PinDocument {
    schema: u32,
    /// The user's own servers.
    servers: ServerPinEntries,
    /// Servers of other origins, by path of the defining file.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    files: BTreeMap<String, ServerPinEntries>,
}

type ServerPinEntries = BTreeMap<String, BTreeMap<String, PinEntry>>;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PinEntry {
    definition: String,
    fingerprints: Vec<Fingerprint>,
}

/// Error for an invalid pin document.
#[derive(Debug, thiserror::Error)]
enum InvalidPinDocument {
    #[error("unsupported schema {0}, expected {USER_SCHEMA} or {SCHEMA_WITH_FILES}")]
    Schema(u32),
    #[error(transparent)]
    Server(#[from] InvalidServerName),
}

impl From<PinSet> for PinDocument {
    fn from(pins: PinSet) -> Self {
        let mut document = Self { schema: USER_SCHEMA, servers: BTreeMap::new(), files: BTreeMap::new() };
        for (origin, servers) in pins.origins {
            match origin.file().map(Path::to_str) {
                None => document.servers = to_entries(servers),
                Some(Some(file)) => drop(document.files.insert(file.to_owned(), to_entries(servers))),
                // A path that is not UTF-8 cannot be stored: approvals of its tools end with the process.
                Some(None) => {}
            }
        }
        if !document.files.is_empty() {
            document.schema = SCHEMA_WITH_FILES;
        }
        document
    }
}

fn to_entries(servers: ServerPins) -> ServerPinEntries {
    let entry = |(tool, pin): (Arc<str>, ToolPin)| {
        (tool.to_string(), PinEntry { definition: pin.definition.to_string(), fingerprints: pin.fingerprints })
    };
    let tools = |tools: HashMap<Arc<str>, ToolPin>| tools.into_iter().map(entry).collect();
    servers.into_iter().map(|(server, list)| (server.to_string(), tools(list))).collect()
}

impl TryFrom<PinDocument> for PinSet {
    type Error = InvalidPinDocument;

    fn try_from(document: PinDocument) -> Result<Self, InvalidPinDocument> {
        if !(USER_SCHEMA..=SCHEMA_WITH_FILES).contains(&document.schema) {
            return Err(InvalidPinDocument::Schema(document.schema));
        }
        let mut origins = HashMap::from([(ServerOrigin::User, from_entries(document.servers)?)]);
        for (file, entries) in document.files {
            origins.insert(ServerOrigin::File(Arc::from(Path::new(&file))), from_entries(entries)?);
        }
        origins.retain(|_, servers| !servers.is_empty());
        Ok(Self { origins })
    }
}

fn from_entries(entries: ServerPinEntries) -> Result<ServerPins, InvalidServerName> {
    let pin = |(tool, entry): (String, PinEntry)| {
        (tool.into(), ToolPin { definition: entry.definition.into(), fingerprints: entry.fingerprints })
    };
    let server = |(server, tools): (String, BTreeMap<String, PinEntry>)| {
        Ok((ServerName::new(&server)?, tools.into_iter().map(pin).collect()))
    };
    entries.into_iter().map(server).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: &ServerOrigin = ServerOrigin::USER;

    fn tool(name: &str) -> ToolId {
        ToolId::new(&ServerName::new("git").unwrap(), name)
    }

    fn print(byte: u8) -> Fingerprint {
        Fingerprint([byte; 32])
    }

    fn changed(text: &str) -> PinState {
        PinState::Changed { approved: text.into() }
    }

    #[test]
    fn approved_definitions_stay_known() {
        let mut pins = PinSet::default();
        assert_eq!(pins.tool_state(USER, &tool("a"), &print(1)), PinState::New);
        pins.approve(ServerOrigin::User, tool("a"), print(1), "one").unwrap();
        assert_eq!(pins.tool_state(USER, &tool("a"), &print(1)), PinState::Known);
        assert_eq!(pins.tool_state(USER, &tool("a"), &print(2)), changed("one"));
        assert_eq!(pins.tool_state(USER, &tool("A"), &print(2)), PinState::New);
        pins.approve(ServerOrigin::User, tool("a"), print(2), "two").unwrap();
        assert_eq!(pins.tool_state(USER, &tool("a"), &print(1)), PinState::Known);
        assert_eq!(pins.tool_state(USER, &tool("a"), &print(3)), changed("two"));
        pins.forget(USER, &tool("a"));
        assert_eq!(pins.tool_state(USER, &tool("a"), &print(3)), PinState::New);
    }

    #[test]
    fn pin_limits_never_make_a_pinned_tool_new() {
        let mut pins = PinSet::default();
        for byte in 0..=8 {
            pins.approve(ServerOrigin::User, tool("a"), print(byte), "x").unwrap();
        }
        assert_eq!(pins.tool_state(USER, &tool("a"), &print(1)), PinState::Known);
        assert_eq!(pins.tool_state(USER, &tool("a"), &print(0)), changed("x"));
        pins.approve(ServerOrigin::User, tool("a"), print(9), &"x".repeat(MAX_DEFINITION_BYTES + 1)).unwrap();
        assert_eq!(pins.tool_state(USER, &tool("a"), &print(0)), changed(""));
        for n in 1..MAX_PINNED_TOOLS {
            pins.approve(ServerOrigin::User, tool(&n.to_string()), print(1), "").unwrap();
        }
        assert_eq!(pins.approve(ServerOrigin::User, tool("b"), print(1), ""), Err(PinLimitReached(tool("b").server)));
        assert_eq!(pins.approve(ServerOrigin::User, tool("a"), print(1), ""), Ok(()));
        assert_eq!(pins.tool_state(USER, &tool("1"), &print(2)), changed(""));
    }

    #[test]
    fn merged_pins_know_both_approvals() {
        let (mut ours, mut theirs) = (PinSet::default(), PinSet::default());
        ours.approve(ServerOrigin::User, tool("a"), print(1), "ours").unwrap();
        theirs.approve(ServerOrigin::User, tool("a"), print(1), "theirs").unwrap();
        theirs.approve(ServerOrigin::User, tool("a"), print(2), "theirs").unwrap();
        theirs.approve(ServerOrigin::User, tool("b"), print(3), "b").unwrap();
        ours.merge(&theirs);
        for (name, byte, expected) in [
            ("a", 1, PinState::Known),
            ("a", 2, PinState::Known),
            ("a", 3, changed("ours")),
            ("b", 3, PinState::Known),
            ("c", 1, PinState::New),
        ] {
            assert_eq!(ours.tool_state(USER, &tool(name), &print(byte)), expected, "{name} {byte}");
        }
        (10..20).for_each(|byte| theirs.approve(ServerOrigin::User, tool("a"), print(byte), "").unwrap());
        ours.merge(&theirs);
        assert_eq!(ours.tool_state(USER, &tool("a"), &print(1)), PinState::Known);
        assert_eq!(ours.origins[USER][&tool("a").server]["a"].fingerprints.len(), MAX_DEFINITIONS);
        ours.drop_definitions();
        assert_eq!(ours.tool_state(USER, &tool("a"), &print(1)), PinState::Known);
        assert_eq!(ours.tool_state(USER, &tool("a"), &print(99)), changed(""));
    }

    #[test]
    fn pins_round_trip_as_json() {
        let mut pins = PinSet::default();
        pins.approve(ServerOrigin::User, tool("a"), print(0xab), "{}").unwrap();
        let text = serde_json::to_string(&pins).unwrap();
        let hex = "ab".repeat(32);
        let expected =
            format!(r#"{{"schema":1,"servers":{{"git":{{"a":{{"definition":"{{}}","fingerprints":["{hex}"]}}}}}}}}"#);
        assert_eq!(text, expected);
        assert_eq!(serde_json::from_str::<PinSet>(&text).unwrap(), pins);
        for bad in [
            text.replace("\"schema\":1", "\"schema\":3"),
            text.replace("git", "g t"),
            text.replace(&hex, "ab"),
            text.replace("definition", "definitions"),
            "{}".to_owned(),
        ] {
            assert!(serde_json::from_str::<PinSet>(&bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn pins_hold_for_their_origin_only() {
        let file = |path: &str| ServerOrigin::File(Arc::from(Path::new(path)));
        let mut pins = PinSet::default();
        pins.approve(ServerOrigin::User, tool("a"), print(1), "own").unwrap();
        pins.approve(file("/p/.mcp.json"), tool("a"), print(2), "project").unwrap();
        let text = serde_json::to_string(&pins).unwrap();
        assert!(text.starts_with(r#"{"schema":2,"servers":{"git":"#), "{text}");
        assert!(text.contains(r#""files":{"/p/.mcp.json":{"git":"#), "{text}");
        let read: PinSet = serde_json::from_str(&text).unwrap();
        assert_eq!(read, pins);
        let mut merged = PinSet::default();
        merged.merge(&read);
        for (origin, byte, expected) in [
            (ServerOrigin::User, 1, PinState::Known),
            (ServerOrigin::User, 2, changed("own")),
            (file("/p/.mcp.json"), 2, PinState::Known),
            (file("/p/.mcp.json"), 1, changed("project")),
            (file("/q/.mcp.json"), 1, PinState::New),
        ] {
            assert_eq!(merged.tool_state(&origin, &tool("a"), &print(byte)), expected, "{origin:?} {byte}");
        }
    }
}
