//! `wharf import --replace`: the program uses its servers through `wharf serve` from now on.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Map, Value};
use wharf_config::clients::{AddedServer, ExternalClient, replace_servers};
use wharf_spec::UntrustedText;
use wharf_store::{Document, DocumentPrivacy};
use wharf_terminal::display_path::display_path;
use wharf_terminal::failure::Failure;
use wharf_terminal::gateway_socket::ViewRequest;
use wharf_terminal::session::CommandSession;
use wharf_terminal::style::{GOOD, QUIET, paint};

use super::plan::PlannedServer;
use super::undo::{self, ReplacedFileRecord};
use super::{ImportArgs, ImportOutcome, ImportResult, say};
use crate::command::serve::{GATEWAY_ID, own_entry};

/// Maximum bytes of a program's file.
pub const MAX_FILE_BYTES: u64 = 16 << 20;

/// A file of another program after `--replace`.
#[derive(Debug, Serialize)]
pub struct ReplacedFile {
    client: &'static str,
    file: PathBuf,
    /// Servers that the program uses through Wharf.
    removed: Vec<String>,
    /// Servers that stay in the file.
    kept: Vec<String>,
    /// The reason that the file is unchanged.
    pub error: Option<String>,
}

/// A file, and what replaces its servers.
struct FileReplacement<'a> {
    client: ExternalClient,
    file: &'a Path,
    servers: FileServers,
    entry: &'a Map<String, Value>,
}

/// The servers of one file.
#[derive(Default)]
struct FileServers {
    removed: Vec<(String, Vec<String>)>,
    kept: Vec<String>,
}

/// Replaces the servers that Wharf has in the files of the programs.
///
/// # Errors
///
/// Fails if the configuration cannot be read. An error of one file is part of its result.
pub fn replace(
    args: &ImportArgs,
    session: &CommandSession,
    planned: &[PlannedServer<'_>],
    results: &[ImportResult],
) -> Result<Vec<ReplacedFile>, Failure> {
    let entry = own_entry(&ViewRequest::default())?;
    let mut files: BTreeMap<&Path, (ExternalClient, FileServers)> = BTreeMap::new();
    for (one, result) in planned.iter().zip(results) {
        let found = one.found;
        // Others use a project's file too.
        if found.is_projects && args.file.is_none() {
            continue;
        }
        let (_, servers) = files.entry(&found.file).or_insert_with(|| (found.client, FileServers::default()));
        match is_in_wharf(session, one, result)? {
            true => servers.removed.push((found.server.id.clone(), found.server.path.clone())),
            false => servers.kept.push(found.server.id.clone()),
        }
    }
    let files = files.into_iter().filter(|(_, (_, servers))| !servers.removed.is_empty());
    let replacement = |(file, (client, servers))| FileReplacement { client, file, servers, entry: &entry };
    Ok(files.map(replacement).map(|replacement| replacement.perform(args, session)).collect())
}

/// Reports whether Wharf has a server of a program exactly as the program has it.
fn is_in_wharf(session: &CommandSession, one: &PlannedServer<'_>, result: &ImportResult) -> Result<bool, Failure> {
    Ok(match result.outcome {
        ImportOutcome::Stored | ImportOutcome::Storable => true,
        // A server that nobody has seen is not in use yet.
        ImportOutcome::StoredDisabled => one.is_disabled(),
        ImportOutcome::AlreadyThere => {
            let configured = session.configuration.config()?.server(&one.found.server.id);
            configured.is_some_and(|server| server.enabled && server.written == one.found.server.entry)
        }
        ImportOutcome::Declined | ImportOutcome::Unusable | ImportOutcome::Failed => false,
    })
}

impl FileReplacement<'_> {
    fn perform(self, args: &ImportArgs, session: &CommandSession) -> ReplacedFile {
        let Self { client, file, servers, entry } = self;
        let (removed, paths): (Vec<_>, Vec<_>) = servers.removed.into_iter().unzip();
        let edit = |text: &str| {
            let added = AddedServer { id: GATEWAY_ID, entry };
            replace_servers(client, text, file, &paths, added).map_err(|refusal| refusal.to_string())
        };
        let edited = match args.dry_run {
            true => read(file).and_then(|text| edit(&text)).map(drop),
            false => write(session, client.name(), file, edit),
        };
        ReplacedFile { client: client.name(), file: file.to_owned(), removed, kept: servers.kept, error: edited.err() }
    }
}

fn read(file: &Path) -> Result<String, String> {
    let text = wharf_config::read_file(file).map_err(|problem| problem.text)?;
    text.ok_or_else(|| "file not found".to_owned())
}

/// Writes the edited text, after the record for its undo.
fn write(
    session: &CommandSession,
    client: &'static str,
    file: &Path,
    edit: impl Fn(&str) -> Result<String, String>,
) -> Result<(), String> {
    let document = Document::new(file, DocumentPrivacy::Shared).with_limit(MAX_FILE_BYTES);
    let updated = document.update(|old| {
        let before = std::str::from_utf8(old.unwrap_or_default()).map_err(|_| "it is not UTF-8 text".to_owned())?;
        let after = edit(before)?;
        let record = ReplacedFileRecord::new(client, file, before, &after);
        undo::store(session, record).map_err(|failure| failure.error.message)?;
        Ok(Some(after.into_bytes()))
    });
    updated.map(drop).map_err(|error: wharf_store::DocumentUpdateError<String>| error.to_string())
}

/// Reports what happened to a file.
pub fn report(args: &ImportArgs, session: &CommandSession, replaced: &ReplacedFile) {
    let ReplacedFile { client, file, removed, kept, error } = replaced;
    let file = display_path(file, &session.environment);
    if let Some(error) = error {
        let reason = UntrustedText::new(error.as_str());
        return session
            .console
            .warn(format_args!("{file} is unchanged: {reason}. Its servers are in Wharf all the same"));
    }
    let removed: Vec<String> = removed.iter().map(|id| UntrustedText::new(id.as_str()).to_string()).collect();
    let removed = removed.join(", ");
    if args.dry_run {
        say(session, &format!("{file} would lose {removed} and get `wharf serve`. Nothing was changed (--dry-run)."));
    } else {
        say(session, &format!("{} {removed} by `wharf serve` in {file}", paint(GOOD, "Replaced")));
        say(session, &format!("  {} wharf import {client} --undo", paint(QUIET, "undo:")));
        say(session, &format!("  {} restart {client}", paint(QUIET, "next:")));
    }
    if !kept.is_empty() {
        let kept: Vec<String> = kept.iter().map(|id| UntrustedText::new(id.as_str()).to_string()).collect();
        say(session, &format!("  {} {}", paint(QUIET, "stays there:"), kept.join(", ")));
    }
}
