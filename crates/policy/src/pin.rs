//! Which definitions of tools have been approved.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use wharf_spec::{BadServerName, ServerName, ToolId};

use crate::Fingerprint;

/// The form of the file.
const SCHEMA: u32 = 1;
/// Definitions of one tool that are remembered; the oldest are forgotten first, and then asked for again.
const MOST_DEFINITIONS: usize = 8;
/// Tools of one server that are remembered.
const MOST_TOOLS: usize = 4096;
/// Bytes of a definition that are kept for comparing; a longer one is known by its fingerprint only.
const LONGEST: usize = 128 << 10;

/// The definitions that have been approved, by tool; a document with `schema: 1`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Document", try_from = "Document")]
pub struct Pins {
    servers: HashMap<ServerName, HashMap<Arc<str>, Pin>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Pin {
    /// The definition approved last, as text.
    definition: Arc<str>,
    /// Every definition that was approved, the last one first.
    fingerprints: Vec<Fingerprint>,
}

/// Whether a definition has been approved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PinState {
    /// No definition of the tool has.
    New,
    /// This one has.
    Known,
    /// Only others have.
    Changed {
        /// The definition approved last, to be compared; empty if it was too long to be kept.
        approved: Arc<str>,
    },
}

/// A server has more tools than are remembered. None is forgotten for another: it would pass for new.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` has more than {MOST_TOOLS} approved tools")]
pub struct PinsFull(pub ServerName);

impl Pins {
    /// Whether a definition of a tool has been approved.
    pub fn state(&self, server: &ServerName, tool: &str, definition: &Fingerprint) -> PinState {
        match self.servers.get(server).and_then(|tools| tools.get(tool)) {
            None => PinState::New,
            Some(pin) if pin.fingerprints.contains(definition) => PinState::Known,
            Some(pin) => PinState::Changed { approved: pin.definition.clone() },
        }
    }

    /// The same, for who has the pair.
    pub fn standing(&self, tool: &ToolId, definition: &Fingerprint) -> PinState {
        self.state(&tool.server, &tool.tool, definition)
    }

    /// Remembers that a definition has been approved. Those approved before stay so.
    pub fn approve(&mut self, tool: ToolId, fingerprint: Fingerprint, definition: &str) -> Result<(), PinsFull> {
        let tools = self.servers.entry(tool.server.clone()).or_default();
        if tools.len() >= MOST_TOOLS && !tools.contains_key(&tool.tool) {
            return Err(PinsFull(tool.server));
        }
        let kept: Arc<str> = if definition.len() <= LONGEST { definition.into() } else { "".into() };
        let pin = tools.entry(tool.tool).or_insert_with(|| Pin { definition: kept.clone(), fingerprints: Vec::new() });
        pin.definition = kept;
        pin.fingerprints.retain(|known| *known != fingerprint);
        pin.fingerprints.insert(0, fingerprint);
        pin.fingerprints.truncate(MOST_DEFINITIONS);
        Ok(())
    }

    /// Takes in what others have approved as well. Where both know a tool, what is here counts as the later.
    ///
    /// No more is remembered than otherwise: tools past the most of one server are not taken in.
    pub fn merge(&mut self, other: &Self) {
        for (server, theirs) in &other.servers {
            let ours = self.servers.entry(server.clone()).or_default();
            for (tool, pin) in theirs {
                if ours.len() < MOST_TOOLS || ours.contains_key(tool) {
                    ours.entry(tool.clone()).or_insert_with(|| pin.clone()).take_in(pin);
                }
            }
        }
    }

    /// Drops the texts of definitions, which are much. What was approved is still known, but not how it differs.
    pub fn drop_definitions(&mut self) {
        self.servers.values_mut().flat_map(HashMap::values_mut).for_each(|pin| pin.definition = "".into());
    }

    /// Forgets a tool: its next definition is new.
    pub fn forget(&mut self, tool: &ToolId) {
        if let Some(tools) = self.servers.get_mut(&tool.server) {
            tools.remove(&tool.tool);
        }
    }

    /// Forgets every tool of a server.
    pub fn forget_server(&mut self, server: &ServerName) {
        self.servers.remove(server);
    }
}

impl Pin {
    fn take_in(&mut self, other: &Self) {
        let more = other.fingerprints.iter().filter(|known| !self.fingerprints.contains(known));
        let more: Vec<Fingerprint> = more.copied().collect();
        self.fingerprints.extend(more);
        self.fingerprints.truncate(MOST_DEFINITIONS);
    }
}

/// The form of the file, sorted so that the same pins are the same text.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    schema: u32,
    servers: BTreeMap<String, BTreeMap<String, Entry>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    definition: String,
    fingerprints: Vec<Fingerprint>,
}

/// Why a document is none of pins.
#[derive(Debug, thiserror::Error)]
enum BadDocument {
    #[error("schema {0} is not {SCHEMA}")]
    Schema(u32),
    #[error(transparent)]
    Server(#[from] BadServerName),
}

impl From<Pins> for Document {
    fn from(pins: Pins) -> Self {
        let entry = |(tool, pin): (Arc<str>, Pin)| {
            (tool.to_string(), Entry { definition: pin.definition.to_string(), fingerprints: pin.fingerprints })
        };
        let tools = |tools: HashMap<Arc<str>, Pin>| tools.into_iter().map(entry).collect();
        let servers = pins.servers.into_iter().map(|(server, list)| (server.to_string(), tools(list))).collect();
        Self { schema: SCHEMA, servers }
    }
}

impl TryFrom<Document> for Pins {
    type Error = BadDocument;

    fn try_from(document: Document) -> Result<Self, BadDocument> {
        if document.schema != SCHEMA {
            return Err(BadDocument::Schema(document.schema));
        }
        let pin = |(tool, entry): (String, Entry)| {
            (tool.into(), Pin { definition: entry.definition.into(), fingerprints: entry.fingerprints })
        };
        let server = |(server, tools): (String, BTreeMap<String, Entry>)| {
            Ok((ServerName::new(&server)?, tools.into_iter().map(pin).collect()))
        };
        Ok(Self { servers: document.servers.into_iter().map(server).collect::<Result<_, BadServerName>>()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn what_was_approved_stays_known() {
        let mut pins = Pins::default();
        assert_eq!(pins.standing(&tool("a"), &print(1)), PinState::New);
        pins.approve(tool("a"), print(1), "one").unwrap();
        assert_eq!(pins.standing(&tool("a"), &print(1)), PinState::Known);
        assert_eq!(pins.standing(&tool("a"), &print(2)), changed("one"));
        assert_eq!(pins.standing(&tool("A"), &print(2)), PinState::New);
        pins.approve(tool("a"), print(2), "two").unwrap();
        assert_eq!(pins.standing(&tool("a"), &print(1)), PinState::Known);
        assert_eq!(pins.standing(&tool("a"), &print(3)), changed("two"));
        pins.forget(&tool("a"));
        assert_eq!(pins.standing(&tool("a"), &print(3)), PinState::New);
    }

    #[test]
    fn what_is_kept_is_bounded_and_nothing_passes_for_new() {
        let mut pins = Pins::default();
        for byte in 0..=8 {
            pins.approve(tool("a"), print(byte), "x").unwrap();
        }
        assert_eq!(pins.standing(&tool("a"), &print(1)), PinState::Known);
        assert_eq!(pins.standing(&tool("a"), &print(0)), changed("x"));
        pins.approve(tool("a"), print(9), &"x".repeat(LONGEST + 1)).unwrap();
        assert_eq!(pins.standing(&tool("a"), &print(0)), changed(""));
        for n in 1..MOST_TOOLS {
            pins.approve(tool(&n.to_string()), print(1), "").unwrap();
        }
        assert_eq!(pins.approve(tool("b"), print(1), ""), Err(PinsFull(tool("b").server)));
        assert_eq!(pins.approve(tool("a"), print(1), ""), Ok(()));
        assert_eq!(pins.standing(&tool("1"), &print(2)), changed(""));
    }

    #[test]
    fn what_two_have_approved_is_known_to_both() {
        let (mut ours, mut theirs) = (Pins::default(), Pins::default());
        ours.approve(tool("a"), print(1), "ours").unwrap();
        theirs.approve(tool("a"), print(1), "theirs").unwrap();
        theirs.approve(tool("a"), print(2), "theirs").unwrap();
        theirs.approve(tool("b"), print(3), "b").unwrap();
        ours.merge(&theirs);
        for (name, byte, expected) in [
            ("a", 1, PinState::Known),
            ("a", 2, PinState::Known),
            ("a", 3, changed("ours")),
            ("b", 3, PinState::Known),
            ("c", 1, PinState::New),
        ] {
            assert_eq!(ours.standing(&tool(name), &print(byte)), expected, "{name} {byte}");
        }
        (10..20).for_each(|byte| theirs.approve(tool("a"), print(byte), "").unwrap());
        ours.merge(&theirs);
        assert_eq!(ours.standing(&tool("a"), &print(1)), PinState::Known);
        assert_eq!(ours.servers[&tool("a").server]["a"].fingerprints.len(), MOST_DEFINITIONS);
        ours.drop_definitions();
        assert_eq!(ours.standing(&tool("a"), &print(1)), PinState::Known);
        assert_eq!(ours.standing(&tool("a"), &print(99)), changed(""));
    }

    #[test]
    fn pins_are_a_document() {
        let mut pins = Pins::default();
        pins.approve(tool("a"), print(0xab), "{}").unwrap();
        let text = serde_json::to_string(&pins).unwrap();
        let hex = "ab".repeat(32);
        let expected =
            format!(r#"{{"schema":1,"servers":{{"git":{{"a":{{"definition":"{{}}","fingerprints":["{hex}"]}}}}}}}}"#);
        assert_eq!(text, expected);
        assert_eq!(serde_json::from_str::<Pins>(&text).unwrap(), pins);
        for bad in [
            text.replace("\"schema\":1", "\"schema\":2"),
            text.replace("git", "g t"),
            text.replace(&hex, "ab"),
            text.replace("definition", "definitions"),
            "{}".to_owned(),
        ] {
            assert!(serde_json::from_str::<Pins>(&bad).is_err(), "{bad}");
        }
    }
}
