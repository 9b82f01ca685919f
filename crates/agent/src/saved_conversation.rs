//! Saved conversations: one file each, with one JSON line per turn.
//!
//! The first line identifies the conversation. A `servers` line lists the servers in use from then on. A `result` line
//! holds the result of a call while other calls of the same response are pending; the turn with all results follows. A
//! line that was not written completely, because of a crash, is ignored and overwritten. All functions block.

mod directory;
mod file_reader;

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Serialize;
use serde_json::value::RawValue;
use wharf_spec::{EscapedText, Timestamp};

use crate::conversation::{Conversation, ConversationTurn, SCHEMA, TurnBlock, TurnRole};
use file_reader::{FileContents, MAX_FILE_BYTES};

/// A conversation that is saved while it proceeds. An exclusive lock prevents other processes from appending to its
/// file.
pub struct SavedConversation {
    path: PathBuf,
    began: SystemTime,
    /// `None` until the first turn is appended.
    file: Option<File>,
    /// Length in bytes of the complete lines in the file.
    complete_bytes: u64,
    /// The last recorded servers, and whether the file contains them.
    servers: Vec<String>,
    are_servers_written: bool,
}

/// Summary of a saved conversation, for a list.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConversationSummary {
    /// Id of the conversation: the stem of its file name.
    pub id: String,
    /// Time of the last change.
    pub at: SystemTime,
    /// Number of turns.
    pub turns: usize,
    /// Beginning of the first message: untrusted.
    pub first: String,
}

/// A resumed conversation.
pub struct Resumed {
    /// Handle for appending further turns.
    pub saved: SavedConversation,
    /// The turns so far.
    pub conversation: Conversation,
    /// The servers recorded last.
    pub servers: Vec<String>,
    /// Problems of unreadable lines, which are omitted from the conversation.
    pub problems: Vec<String>,
}

/// Error of saving or resuming a conversation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SavedConversationError {
    /// No conversation has this id.
    #[error("unknown conversation `{}`", EscapedText::single_line(.0, 100))]
    Unknown(String),
    /// There are no saved conversations.
    #[error("no saved conversation to resume")]
    Nothing,
    /// Several ids begin with this prefix.
    #[error("several conversation ids begin with `{}`", EscapedText::single_line(.0, 100))]
    Ambiguous(String),
    /// Another process has the conversation open.
    #[error("conversation `{0}` is open in another process")]
    Busy(String),
    /// The file was written by a newer version of this program.
    #[error("conversation `{id}` has schema {schema}, but this version supports only up to {SCHEMA}")]
    Newer {
        /// Id of the conversation.
        id: String,
        /// Schema version of the file.
        schema: u32,
    },
    /// The file cannot be read or written.
    #[error("{}: {error}", .path.display())]
    File {
        /// Path of the file or directory.
        path: PathBuf,
        /// The I/O error.
        error: io::Error,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum SavedRecord<'a> {
    Conversation { id: String, began: String },
    Servers(&'a [String]),
    Result(&'a RawValue),
}

#[derive(Serialize)]
struct RecordLine<'a> {
    schema: u32,
    #[serde(flatten)]
    record: &'a SavedRecord<'a>,
}

impl SavedConversation {
    /// Starts a new conversation in a directory. Creates the directory if it does not exist, and restricts it to the
    /// current user. The file is created with the first turn, so a conversation without turns leaves no file.
    pub fn create(directory: &Path) -> Result<Self, SavedConversationError> {
        directory::ensure_private(directory).map_err(file_error(directory))?;
        let began = SystemTime::now();
        let path = directory::conversation_path(directory, &directory::new_id(began));
        Ok(Self { path, began, file: None, complete_bytes: 0, servers: Vec::new(), are_servers_written: true })
    }

    /// Resumes a conversation by its id or an unambiguous prefix, or the most recent one.
    ///
    /// The returned conversation is well-formed: a call without a result gets an error result.
    ///
    /// # Errors
    ///
    /// Fails if no conversation or several match, if another process has it open, if a newer version wrote it, or on an
    /// I/O error.
    pub fn resume(directory: &Path, id: Option<&str>) -> Result<Resumed, SavedConversationError> {
        let id = directory::find_id(directory, id)?;
        let path = directory::conversation_path(directory, &id);
        let mut file = OpenOptions::new().read(true).append(true).open(&path).map_err(file_error(&path))?;
        lock(&file, &path, &id)?;
        let bytes = read_bounded(&mut file).map_err(file_error(&path))?;
        let FileContents { conversation, servers, problems, complete_bytes } =
            file_reader::read_conversation(&bytes).map_err(|schema| SavedConversationError::Newer { id, schema })?;
        let (began, noted) = (SystemTime::now(), servers.clone());
        let saved = Self { path, began, file: Some(file), complete_bytes, servers: noted, are_servers_written: true };
        Ok(Resumed { saved, conversation, servers, problems })
    }

    /// Lists at most `most` conversations of a directory, newest first.
    pub fn list(directory: &Path, most: usize) -> Result<Vec<ConversationSummary>, SavedConversationError> {
        let newest = directory::newest_first(directory)?.into_iter().take(most);
        Ok(newest
            .filter_map(|(id, at)| file_reader::summarize(&directory::conversation_path(directory, &id), id, at))
            .collect())
    }

    /// Returns the id of the conversation.
    pub fn id(&self) -> &str {
        self.path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
    }

    /// Appends a turn. Blocks on disk I/O.
    pub fn append(&mut self, turn: &ConversationTurn) -> Result<(), SavedConversationError> {
        let line = turn.to_line().map_err(|error| file_error(&self.path)(error.into()))?;
        self.ensure_file()?;
        self.write_servers()?;
        self.write_line(line)
    }

    /// Records the result of a call before its turn is complete, so that a crash does not lose it. Blocks on disk I/O.
    pub fn append_result(&mut self, result: TurnBlock) -> Result<(), SavedConversationError> {
        let turn = ConversationTurn { role: TurnRole::User, blocks: vec![result] };
        let line = turn.to_line().and_then(RawValue::from_string);
        let line = line.map_err(|error| file_error(&self.path)(error.into()))?;
        self.ensure_file()?;
        self.write(&SavedRecord::Result(&line))
    }

    /// Records the current servers if they differ from the last record. Blocks on disk I/O.
    pub fn record_servers(&mut self, names: &[String]) -> Result<(), SavedConversationError> {
        if self.servers != names {
            self.servers = names.to_vec();
            self.are_servers_written = false;
        }
        if self.file.is_some() { self.write_servers() } else { Ok(()) }
    }

    fn ensure_file(&mut self) -> Result<(), SavedConversationError> {
        if self.file.is_some() {
            return Ok(());
        }
        let mut options = OpenOptions::new();
        let file =
            options.create_new(true).append(true).mode(0o600).open(&self.path).map_err(file_error(&self.path))?;
        lock(&file, &self.path, self.id())?;
        self.file = Some(file);
        let (id, began) = (self.id().to_owned(), Timestamp(self.began).to_string());
        self.write(&SavedRecord::Conversation { id, began })
    }

    fn write_servers(&mut self) -> Result<(), SavedConversationError> {
        if !self.are_servers_written {
            self.write(&SavedRecord::Servers(&self.servers.clone()))?;
            self.are_servers_written = true;
        }
        Ok(())
    }

    fn write(&mut self, record: &SavedRecord<'_>) -> Result<(), SavedConversationError> {
        let line = serde_json::to_string(&RecordLine { schema: SCHEMA, record });
        self.write_line(line.map_err(|error| file_error(&self.path)(error.into()))?)
    }

    /// Writes a line, overwriting the remains of a failed write.
    fn write_line(&mut self, mut line: String) -> Result<(), SavedConversationError> {
        line.push('\n');
        let Some(file) = &mut self.file else { return Ok(()) };
        let written = file.set_len(self.complete_bytes).and_then(|()| file.write_all(line.as_bytes()));
        written.map_err(file_error(&self.path))?;
        self.complete_bytes += line.len() as u64;
        Ok(())
    }
}

fn file_error(path: &Path) -> impl Fn(io::Error) -> SavedConversationError {
    let path = path.to_owned();
    move |error| SavedConversationError::File { path: path.clone(), error }
}

/// Reads a whole file. Fails if the file is too large: resuming from a partial read would overwrite the rest.
fn read_bounded(file: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
}

/// Locks a file until it is closed.
fn lock(file: &File, path: &Path, id: &str) -> Result<(), SavedConversationError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(SavedConversationError::Busy(id.to_owned())),
        Err(TryLockError::Error(error)) => Err(file_error(path)(error)),
    }
}

#[cfg(test)]
mod tests;
