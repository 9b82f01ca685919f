//! Conversations on disk: a file each, a JSON line for each turn.
//!
//! The first line names the conversation; a line of servers says which there were from then on. A line that was not
//! written to its end, because the program or the machine went down, is left out and written over. Everything here
//! blocks.

mod folder;
mod reading;

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Serialize;
use wharf_spec::{Shown, Timestamp};

use crate::conversation::{Conversation, SCHEMA, Turn};
use reading::{Found, LARGEST};

/// A conversation that is being saved as it goes. Nobody else appends to its file meanwhile.
pub struct SavedConversation {
    path: PathBuf,
    began: SystemTime,
    /// Not there before something was said.
    file: Option<File>,
    /// The bytes of the file that are whole lines.
    whole: u64,
    /// The servers that were noted last, and whether that is in the file.
    servers: Vec<String>,
    are_servers_written: bool,
}

/// What a list of conversations shows.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SavedSummary {
    /// Its name: the stem of its file.
    pub id: String,
    /// When something was last said in it.
    pub at: SystemTime,
    /// How many turns it has.
    pub turns: usize,
    /// The beginning of what was first said: untrusted.
    pub first: String,
}

/// A conversation that is gone on with.
pub struct Resumed {
    /// To append to.
    pub saved: SavedConversation,
    /// What was said.
    pub conversation: Conversation,
    /// The servers it had when something was last said.
    pub servers: Vec<String>,
    /// Lines that could not be read and were left out: what is wrong with them.
    pub problems: Vec<String>,
}

/// Why a conversation cannot be saved or gone on with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SavedError {
    /// There is none of that name.
    #[error("there is no conversation `{}`", Shown::line(.0, 100))]
    Unknown(String),
    /// There is none at all.
    #[error("there is no conversation to go on with")]
    Nothing,
    /// Several names begin so.
    #[error("there are several conversations whose names begin with `{}`", Shown::line(.0, 100))]
    Ambiguous(String),
    /// Another program has it open.
    #[error("the conversation `{0}` is open in another program")]
    Busy(String),
    /// A later version of this program has written to it.
    #[error("the conversation `{id}` has lines of schema {schema}, and the latest known here is {SCHEMA}")]
    Newer {
        /// Which conversation.
        id: String,
        /// The number of the form it has.
        schema: u32,
    },
    /// The file cannot be read or written.
    #[error("{}: {error}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Said<'a> {
    Conversation { id: String, began: String },
    Servers(&'a [String]),
}

#[derive(Serialize)]
struct Line<'a> {
    schema: u32,
    #[serde(flatten)]
    said: &'a Said<'a>,
}

impl SavedConversation {
    /// A new conversation in this directory, which is made where there is none, readable to nobody else. The file comes
    /// with the first turn: a conversation in which nothing was said leaves nothing behind.
    pub fn begin(directory: &Path) -> Result<Self, SavedError> {
        folder::make_private(directory).map_err(at(directory))?;
        let began = SystemTime::now();
        let path = folder::path(directory, &folder::new_id(began));
        Ok(Self { path, began, file: None, whole: 0, servers: Vec::new(), are_servers_written: true })
    }

    /// Goes on with a conversation: the one of a name (or the unambiguous beginning of one), or the last one.
    ///
    /// What comes back is whole: a call that was not answered when the program ended is answered with that.
    pub fn resume(directory: &Path, id: Option<&str>) -> Result<Resumed, SavedError> {
        let id = folder::find(directory, id)?;
        let path = folder::path(directory, &id);
        let mut file = OpenOptions::new().read(true).append(true).open(&path).map_err(at(&path))?;
        lock(&file, &path, &id)?;
        let bytes = read_whole(&mut file).map_err(at(&path))?;
        let Found { conversation, servers, problems, whole } =
            reading::read(&bytes).map_err(|schema| SavedError::Newer { id, schema })?;
        let (began, noted) = (SystemTime::now(), servers.clone());
        let saved = Self { path, began, file: Some(file), whole, servers: noted, are_servers_written: true };
        Ok(Resumed { saved, conversation, servers, problems })
    }

    /// The conversations in a directory, the newest first, at most this many.
    pub fn list(directory: &Path, most: usize) -> Result<Vec<SavedSummary>, SavedError> {
        let newest = folder::newest_first(directory)?.into_iter().take(most);
        Ok(newest.filter_map(|(id, at)| reading::summary(&folder::path(directory, &id), id, at)).collect())
    }

    /// Its name.
    pub fn id(&self) -> &str {
        self.path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
    }

    /// Adds a turn. Blocks for as long as the disk does.
    pub fn append(&mut self, turn: &Turn) -> Result<(), SavedError> {
        let line = turn.to_line().map_err(|error| at(&self.path)(error.into()))?;
        self.ensure_file()?;
        self.write_servers()?;
        self.write_line(line)
    }

    /// Notes which servers there are now, where that is not what was noted last. Blocks for as long as the disk does.
    pub fn servers(&mut self, names: &[String]) -> Result<(), SavedError> {
        if self.servers != names {
            self.servers = names.to_vec();
            self.are_servers_written = false;
        }
        if self.file.is_some() { self.write_servers() } else { Ok(()) }
    }

    fn ensure_file(&mut self) -> Result<(), SavedError> {
        if self.file.is_some() {
            return Ok(());
        }
        let mut options = OpenOptions::new();
        let file = options.create_new(true).append(true).mode(0o600).open(&self.path).map_err(at(&self.path))?;
        lock(&file, &self.path, self.id())?;
        self.file = Some(file);
        let (id, began) = (self.id().to_owned(), Timestamp(self.began).to_string());
        self.write(&Said::Conversation { id, began })
    }

    fn write_servers(&mut self) -> Result<(), SavedError> {
        if !self.are_servers_written {
            self.write(&Said::Servers(&self.servers.clone()))?;
            self.are_servers_written = true;
        }
        Ok(())
    }

    fn write(&mut self, said: &Said<'_>) -> Result<(), SavedError> {
        let line = serde_json::to_string(&Line { schema: SCHEMA, said });
        self.write_line(line.map_err(|error| at(&self.path)(error.into()))?)
    }

    /// Writes a line over whatever was left of one that failed.
    fn write_line(&mut self, mut line: String) -> Result<(), SavedError> {
        line.push('\n');
        let Some(file) = &mut self.file else { return Ok(()) };
        let written = file.set_len(self.whole).and_then(|()| file.write_all(line.as_bytes()));
        written.map_err(at(&self.path))?;
        self.whole += line.len() as u64;
        Ok(())
    }
}

fn at(path: &Path) -> impl Fn(io::Error) -> SavedError {
    let path = path.to_owned();
    move |error| SavedError::File { path: path.clone(), error }
}

/// Reads a file to its end. One that is too large is not read in part, since it would be written over from there.
fn read_whole(file: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
}

/// Locks a file until it is closed.
fn lock(file: &File, path: &Path, id: &str) -> Result<(), SavedError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(SavedError::Busy(id.to_owned())),
        Err(TryLockError::Error(error)) => Err(at(path)(error)),
    }
}

#[cfg(test)]
mod tests;
