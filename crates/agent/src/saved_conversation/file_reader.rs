//! Reading of saved conversations.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::time::SystemTime;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::ConversationSummary;
use crate::conversation::{Conversation, ConversationTurn, SavedLineError, TurnBlock, TurnRole};
use crate::repair;

/// Maximum bytes of a saved conversation.
pub(super) const MAX_FILE_BYTES: u64 = 256 << 20;
/// Maximum characters of the first message in a summary.
const MAX_FIRST_MESSAGE_CHARS: usize = 200;
/// Prefixes of the lines of turns, for each schema version.
const TURN_PREFIXES: [&[u8]; 2] = [br#"{"schema":1,"turn":"#, br#"{"schema":2,"turn":"#];
const UNANSWERED_RESULT: &str = "the program ended before this call returned; it may or may not have executed";

/// Contents of a saved file.
pub(super) struct FileContents {
    pub conversation: Conversation,
    pub servers: Vec<String>,
    pub problems: Vec<String>,
    /// Length in bytes of the complete lines.
    pub complete_bytes: u64,
}

/// A line other than a turn.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
struct OtherLine<'a> {
    #[serde(default)]
    conversation: Option<IgnoredAny>,
    #[serde(default)]
    servers: Option<Vec<String>>,
    /// The line of a turn with the result of one call.
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
}

/// Reads a conversation. Returns the schema version as an error if it is newer than the supported one.
pub(super) fn read_conversation(bytes: &[u8]) -> Result<FileContents, u32> {
    let complete_bytes = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    let mut found = FileContents {
        conversation: Conversation::default(),
        servers: Vec::new(),
        problems: Vec::new(),
        complete_bytes: u64::try_from(complete_bytes).unwrap_or(u64::MAX),
    };
    for (number, line) in bytes[..complete_bytes].split(|byte| *byte == b'\n').enumerate() {
        if !line.is_empty() {
            found.add_line(number + 1, line)?;
        }
    }
    repair::repair(&mut found.conversation, UNANSWERED_RESULT);
    Ok(found)
}

impl FileContents {
    fn add_line(&mut self, number: usize, line: &[u8]) -> Result<(), u32> {
        let error = match ConversationTurn::from_line(line) {
            Ok(turn) => {
                self.conversation.turns.push(turn);
                return Ok(());
            }
            Err(SavedLineError::Newer(schema)) => return Err(schema),
            Err(error) => error,
        };
        let other = decode_other_line(&error, line);
        let result = other.as_ref().and_then(|other| other.result);
        if let Some(Ok(turn)) = result.map(|turn| ConversationTurn::from_line(turn.get().as_bytes())) {
            // The complete turn may follow. Of two results of a call the first one counts.
            self.conversation.turns.push(turn);
            return Ok(());
        }
        match other {
            Some(OtherLine { servers: Some(servers), .. }) => self.servers = servers,
            Some(OtherLine { conversation: Some(_), .. }) => {}
            _ => self.problems.push(format!("line {number}: {error}")),
        }
        Ok(())
    }
}

/// Decodes a line other than a turn. A line that exceeds the structural limits is not decoded.
fn decode_other_line<'a>(error: &SavedLineError, line: &'a [u8]) -> Option<OtherLine<'a>> {
    matches!(error, SavedLineError::Shape(_)).then(|| serde_json::from_slice(line).ok())?
}

/// Returns the summary of a file, or `None` if it cannot be read.
pub(super) fn summarize(path: &Path, id: String, at: SystemTime) -> Option<ConversationSummary> {
    let file = File::open(path).ok()?;
    let (mut turns, mut first) = (0, None);
    for line in BufReader::new(file.take(MAX_FILE_BYTES)).split(b'\n') {
        let line = line.ok()?;
        // Most lines are only counted, not decoded.
        if TURN_PREFIXES.iter().any(|begin| line.starts_with(begin)) {
            turns += 1;
            first = first.or_else(|| ConversationTurn::from_line(&line).ok().as_ref().and_then(first_message));
        }
    }
    Some(ConversationSummary { id, at, turns, first: first.unwrap_or_default() })
}

fn first_message(turn: &ConversationTurn) -> Option<String> {
    let blocks = if turn.role == TurnRole::User { &turn.blocks[..] } else { &[] };
    blocks.iter().find_map(|block| match block {
        TurnBlock::Text(text) | TurnBlock::Relayed(text) => Some(text.chars().take(MAX_FIRST_MESSAGE_CHARS).collect()),
        _ => None,
    })
}
