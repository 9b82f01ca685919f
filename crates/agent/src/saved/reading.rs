//! Reading what was saved.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::time::SystemTime;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::SavedSummary;
use crate::conversation::{BadLine, Block, Conversation, Role, Turn};
use crate::whole;

/// Bytes that are read of a conversation.
pub(super) const LARGEST: u64 = 256 << 20;
/// Characters of what was first said.
const FIRST: usize = 200;
/// How the line of a turn begins, in each schema.
const TURNS: [&[u8]; 2] = [br#"{"schema":1,"turn":"#, br#"{"schema":2,"turn":"#];
const UNANSWERED: &str = "the program ended before this was answered";

/// What a file holds.
pub(super) struct Found {
    pub conversation: Conversation,
    pub servers: Vec<String>,
    pub problems: Vec<String>,
    /// The bytes that are whole lines.
    pub whole: u64,
}

/// What a line may be besides a turn.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
struct Beside {
    #[serde(default)]
    conversation: Option<IgnoredAny>,
    #[serde(default)]
    servers: Option<Vec<String>>,
}

/// Reads a conversation, or says which later schema it has.
pub(super) fn read(bytes: &[u8]) -> Result<Found, u32> {
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    let mut found = Found {
        conversation: Conversation::default(),
        servers: Vec::new(),
        problems: Vec::new(),
        whole: u64::try_from(whole).unwrap_or(u64::MAX),
    };
    for (number, line) in bytes[..whole].split(|byte| *byte == b'\n').enumerate() {
        if !line.is_empty() {
            found.take(number + 1, line)?;
        }
    }
    whole::mend(&mut found.conversation, UNANSWERED);
    Ok(found)
}

impl Found {
    fn take(&mut self, number: usize, line: &[u8]) -> Result<(), u32> {
        let error = match Turn::from_line(line) {
            Ok(turn) => {
                self.conversation.turns.push(turn);
                return Ok(());
            }
            Err(BadLine::Newer(schema)) => return Err(schema),
            Err(error) => error,
        };
        match beside(&error, line) {
            Some(Beside { servers: Some(servers), .. }) => self.servers = servers,
            Some(Beside { conversation: Some(_), .. }) => {}
            _ => self.problems.push(format!("line {number}: {error}")),
        }
        Ok(())
    }
}

/// A line that is no turn and need not be one. What is too much to be read as a turn is not read as anything else.
fn beside(error: &BadLine, line: &[u8]) -> Option<Beside> {
    matches!(error, BadLine::Shape(_)).then(|| serde_json::from_slice(line).ok())?
}

/// What a list shows of a file; nothing where it cannot be read.
pub(super) fn summary(path: &Path, id: String, at: SystemTime) -> Option<SavedSummary> {
    let file = File::open(path).ok()?;
    let (mut turns, mut first) = (0, None);
    for line in BufReader::new(file.take(LARGEST)).split(b'\n') {
        let line = line.ok()?;
        // Most of a long file is only counted.
        if TURNS.iter().any(|begin| line.starts_with(begin)) {
            turns += 1;
            first = first.or_else(|| Turn::from_line(&line).ok().as_ref().and_then(first_words));
        }
    }
    Some(SavedSummary { id, at, turns, first: first.unwrap_or_default() })
}

fn first_words(turn: &Turn) -> Option<String> {
    let blocks = if turn.role == Role::User { &turn.blocks[..] } else { &[] };
    blocks.iter().find_map(|block| match block {
        Block::Text(text) | Block::Relayed(text) => Some(text.chars().take(FIRST).collect()),
        _ => None,
    })
}
