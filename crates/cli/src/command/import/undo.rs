//! `wharf import --undo`: restores the files that `--replace` has changed.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use wharf_config::clients::ExternalClient;
use wharf_gateway::key_digest;
use wharf_store::{Document, DocumentPrivacy, DocumentUpdateError};
use wharf_terminal::display_path::display_path;
use wharf_terminal::failure::{CommandEnding, CommandResult, Failure};
use wharf_terminal::session::CommandSession;
use wharf_terminal::style::{GOOD, paint};

use super::replace::MAX_FILE_BYTES;
use super::{ImportArgs, say};
use crate::command::clients::unknown_client;

/// File of the records in the state directory. Programs' files may have secrets, and so has it.
const RECORD_FILE: &str = "replaced-files.json";
/// Maximum bytes of the records.
const MAX_RECORD_BYTES: u64 = 64 << 20;

/// A file of a program before and after `--replace`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReplacedFileRecord {
    client: String,
    file: PathBuf,
    /// The text before.
    before: String,
    /// SHA-256 digest of the text after it.
    after: String,
}

impl ReplacedFileRecord {
    pub fn new(client: &str, file: &Path, before: &str, after: &str) -> Self {
        Self { client: client.to_owned(), file: file.to_owned(), before: before.to_owned(), after: key_digest(after) }
    }
}

fn records(session: &CommandSession) -> Result<Document, Failure> {
    let state = session.configuration.state.as_deref();
    let state = state.ok_or_else(|| {
        Failure::other("no state directory to keep the old file in").with_hint("set HOME or XDG_STATE_HOME")
    })?;
    Ok(Document::new(state.join(RECORD_FILE), DocumentPrivacy::Private).with_limit(MAX_RECORD_BYTES))
}

/// Changes the records.
fn update(session: &CommandSession, change: impl Fn(&mut Vec<ReplacedFileRecord>)) -> Result<(), Failure> {
    let updated = records(session)?.update(|old| {
        let mut records: Vec<ReplacedFileRecord> = old.map(serde_json::from_slice).transpose()?.unwrap_or_default();
        change(&mut records);
        serde_json::to_vec(&records).map(Some)
    });
    updated.map(drop).map_err(|error: DocumentUpdateError<serde_json::Error>| Failure::other(error))
}

/// Stores a record. If the file has been replaced before and not changed since, its first text is kept.
///
/// # Errors
///
/// Fails if the records cannot be written.
pub fn store(session: &CommandSession, record: ReplacedFileRecord) -> Result<(), Failure> {
    update(session, |records| {
        let mut record = record.clone();
        if let Some(at) = records.iter().position(|known| known.file == record.file) {
            let known = records.remove(at);
            if known.after == key_digest(&record.before) {
                record.before = known.before;
            }
        }
        records.push(record);
    })
}

/// Restores the files of a program.
///
/// # Errors
///
/// Fails if nothing was replaced, or a file has changed since.
pub fn run(args: &ImportArgs, session: &CommandSession) -> CommandResult {
    let name = args.client.as_deref().unwrap_or_default();
    let client = ExternalClient::from_name(name).ok_or_else(|| unknown_client(name))?.name();
    let loaded = records(session)?.load().map_err(Failure::other)?;
    let known: Vec<ReplacedFileRecord> = match loaded {
        Some(loaded) => serde_json::from_slice(&loaded.bytes).map_err(Failure::other)?,
        None => Vec::new(),
    };
    let known: Vec<_> = known.into_iter().filter(|record| record.client == client).collect();
    if known.is_empty() {
        return Err(Failure::usage(format_args!("no file of {client} was changed by `wharf import --replace`")));
    }
    for record in known {
        restore(args, session, &record)?;
    }
    Ok(CommandEnding::Fine)
}

fn restore(args: &ImportArgs, session: &CommandSession, record: &ReplacedFileRecord) -> Result<(), Failure> {
    let shown = display_path(&record.file, &session.environment);
    if args.dry_run {
        say(session, &format!("{shown} would be restored. Nothing was changed (--dry-run)."));
        return Ok(());
    }
    let document = Document::new(&record.file, DocumentPrivacy::Shared).with_limit(MAX_FILE_BYTES);
    let updated = document.update(|old| {
        let text = std::str::from_utf8(old.unwrap_or_default()).unwrap_or_default();
        match key_digest(text) == record.after {
            true => Ok(Some(record.before.clone().into_bytes())),
            false => Err("the file has changed since".to_owned()),
        }
    });
    updated.map_err(|error: DocumentUpdateError<String>| {
        let records = session.configuration.state.as_deref().unwrap_or(Path::new("")).join(RECORD_FILE);
        Failure::other(format_args!("{shown} is not restored: {error}"))
            .with_hint(format_args!("the old text is in {}", records.display()))
    })?;
    update(session, |records| records.retain(|known| known.file != record.file))?;
    say(session, &format!("{} {shown}", paint(GOOD, "Restored")));
    Ok(())
}
