//! `wharf import`: imports servers from the files of other programs, after showing them in one table.

mod choice;
mod found;
mod plan;
mod replace;
mod tokens;
mod undo;

use std::path::PathBuf;

use serde::Serialize;
use serde_json::Value;
use wharf_config::SecretStore;
use wharf_spec::{ServerName, UntrustedText};

use self::plan::PlannedServer;
use self::replace::ReplacedFile;
use crate::command::clients::note_line;
use crate::command::configuration::{relative_paths, secret};
use wharf_terminal::config_scope::{ConfigScope, write_server};
use wharf_terminal::display_path::display_path;
use wharf_terminal::failure::{CommandEnding, CommandResult, Failure, FailureKind};
use wharf_terminal::question;
use wharf_terminal::session::{CommandSession, CommonArgs};
use wharf_terminal::style::{GOOD, NAME, QUIET, paint};

pub use found::count_importable;

/// Import servers from other programs
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without a program, reads the files of all programs found on this machine. One table shows all servers, then you \
choose: all, none, or some by number. A server from a file of the current project, which others may write, is shown in \
full and confirmed on its own; --all, for scripts, stores such a server disabled. No server is started.

With --replace, the program then uses these servers through Wharf: its file gets the entry of `wharf serve`, and loses \
the servers that Wharf has. All others stay. A project's file is changed only if --file names it. --undo restores the \
file; the servers stay in Wharf.

Examples:
  wharf import
  wharf import --dry-run
  wharf import cursor
  wharf import codex git docs
  wharf import vs-code --file .vscode/mcp.json
  wharf import --all --store-secrets
  wharf import cursor --replace
  wharf import cursor --undo")]
pub struct ImportArgs {
    /// Program: claude-code, claude-desktop, cursor, vs-code, codex, gemini, opencode, goose, zed or windsurf
    client: Option<String>,
    /// Servers to offer; default: all
    servers: Vec<String>,
    /// File to read, if not at the program's usual path
    #[arg(long, value_name = "FILE", requires = "client")]
    file: Option<PathBuf>,
    /// Store everything without asking
    #[arg(long)]
    all: bool,
    /// Show what would be stored, and store nothing
    #[arg(long)]
    dry_run: bool,
    /// Move tokens found in clear text into the secret store, and write ${secret:NAME} in the entries
    #[arg(long)]
    store_secrets: bool,
    /// Replace servers that are already configured
    #[arg(long)]
    overwrite: bool,
    /// In the program's own file, replace the servers that are in Wharf then by the one entry `wharf serve`
    #[arg(long)]
    replace: bool,
    /// Give a program back the file that --replace has changed
    #[arg(long, requires = "client", conflicts_with_all = ["servers", "file", "all", "store_secrets", "overwrite", "replace"])]
    undo: bool,
    /// Configuration to write to
    #[arg(long, short, value_enum, default_value_t = ConfigScope::Global)]
    scope: ConfigScope,
    /// Write one JSON document instead of text
    #[arg(long, help_heading = "Output")]
    json: bool,
}

impl ImportArgs {
    pub fn common(&self) -> CommonArgs {
        CommonArgs { json: self.json, ..CommonArgs::default() }
    }
}

/// Result of importing one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ImportOutcome {
    /// The server was stored.
    Stored,
    /// The server was stored, but disabled.
    StoredDisabled,
    /// The server would be stored (`--dry-run`).
    Storable,
    /// The user declined, or could not be asked.
    Declined,
    /// A server of the same name exists.
    AlreadyThere,
    /// The entry cannot be converted.
    Unusable,
    /// The configuration could not be written.
    Failed,
}

/// Result of importing one server, with the reason if it is not stored and enabled.
struct ImportResult {
    outcome: ImportOutcome,
    reason: Option<String>,
    /// Names of the secrets that were stored for it.
    secrets: Vec<String>,
}

#[derive(Serialize)]
struct ImportDocument<'a> {
    items: Vec<ImportItem<'a>>,
    /// Files of other programs with `--replace`.
    #[serde(skip_serializing_if = "Option::is_none")]
    replaced: Option<&'a [ReplacedFile]>,
}

/// Everything that an import has done.
struct ImportReport {
    results: Vec<ImportResult>,
    replaced: Vec<ReplacedFile>,
}

#[derive(Serialize)]
struct ImportItem<'a> {
    id: &'a str,
    client: &'static str,
    file: String,
    line: u32,
    #[serde(rename = "fate")]
    outcome: ImportOutcome,
    reason: Option<&'a str>,
    notes: Vec<String>,
    /// Places of secrets in clear text in the other program's file.
    tokens: &'a [String],
    /// Names of the secrets that were stored.
    secrets: &'a [String],
}

pub async fn run(args: &ImportArgs, session: &CommandSession) -> CommandResult {
    if args.undo {
        return undo::run(args, session);
    }
    let found = found::find_servers(args, session)?;
    let planned = plan::plan(args, session, &found)?;
    if planned.is_empty() {
        say(session, "No servers of other programs found.");
    } else {
        say(session, plan::render_table(&planned, session.console.stderr_width()).trim_end());
    }
    let chosen = choose(args, session, &planned).await;
    let token_mover = TokenMover::new(args, session, &planned, &chosen).await?;
    let mut results = Vec::new();
    for (at, one) in planned.iter().enumerate() {
        results.push(import_one(args, session, one, chosen.contains(&at), &token_mover).await?);
    }
    let replaced = if args.replace { replace::replace(args, session, &planned, &results)? } else { Vec::new() };
    let done = ImportReport { results, replaced };
    report(args, session, &planned, &done)?;
    let has = |outcome: ImportOutcome| done.results.iter().any(|result| result.outcome == outcome);
    Ok(if has(ImportOutcome::Failed) || done.replaced.iter().any(|file| file.error.is_some()) {
        CommandEnding::Reported(FailureKind::Other)
    } else if has(ImportOutcome::Declined) && !can_ask(session) {
        CommandEnding::Reported(FailureKind::Denied)
    } else {
        CommandEnding::Fine
    })
}

fn can_ask(session: &CommandSession) -> bool {
    question::has_terminal() && !session.console.mode.json
}

/// Returns the indices of the servers to store.
async fn choose(args: &ImportArgs, session: &CommandSession, planned: &[PlannedServer<'_>]) -> Vec<usize> {
    let storable: Vec<usize> = (0..planned.len()).filter(|at| planned[*at].verdict.is_ok()).collect();
    if args.dry_run || storable.is_empty() {
        return Vec::new();
    }
    if args.all {
        return storable;
    }
    if !can_ask(session) {
        say(session, "Not stored: no terminal to prompt on. --all stores everything.");
        return Vec::new();
    }
    choice::choose(session, planned).await
}

/// Decides about tokens in clear text, once for all servers.
struct TokenMover {
    store: Option<SecretStore>,
}

impl TokenMover {
    async fn new(
        args: &ImportArgs,
        session: &CommandSession,
        planned: &[PlannedServer<'_>],
        chosen: &[usize],
    ) -> Result<Self, Failure> {
        let count: usize = chosen.iter().map(|at| planned[*at].tokens.len()).sum();
        let moves = match count {
            0 => false,
            _ if args.store_secrets => true,
            _ if args.all || !can_ask(session) => false,
            _ => {
                let text = format!(
                    "{count} tokens are in clear text. The secret store can hold them, and the entries then refer to them."
                );
                question::confirm(&session.console, &text, "Move them into the secret store? [y/N] ").await
            }
        };
        Ok(Self { store: if moves { Some(secret::open_store(session)?) } else { None } })
    }
}

/// Stores one server, if it was chosen.
async fn import_one(
    args: &ImportArgs,
    session: &CommandSession,
    one: &PlannedServer<'_>,
    is_chosen: bool,
    token_mover: &TokenMover,
) -> Result<ImportResult, Failure> {
    let result = |outcome, reason: Option<String>| ImportResult { outcome, reason, secrets: Vec::new() };
    let name = match &one.verdict {
        Ok(name) => name,
        Err(refusal) => return Ok(result(refusal.outcome, Some(refusal.reason.clone()))),
    };
    if args.dry_run {
        return Ok(result(ImportOutcome::Storable, None));
    }
    if !is_chosen {
        return Ok(result(ImportOutcome::Declined, None));
    }
    if one.found.is_projects && !args.all {
        let prompt = format!("Store {}? [y/N] ", paint(NAME, name));
        if !question::confirm(&session.console, &one.review_text(session), &prompt).await {
            return Ok(result(ImportOutcome::Declined, None));
        }
    }
    store(args, session, one, name, token_mover).await
}

async fn store(
    args: &ImportArgs,
    session: &CommandSession,
    one: &PlannedServer<'_>,
    name: &ServerName,
    token_mover: &TokenMover,
) -> Result<ImportResult, Failure> {
    let mut entry = one.found.server.entry.clone();
    relative_paths::adapt_relative_paths(session, args.scope, name.as_str(), &mut entry).await;
    let moved = match &token_mover.store {
        Some(store) => tokens::move_tokens(store, name.as_str(), &mut entry),
        None => tokens::MovedTokens { left: one.tokens.clone(), ..Default::default() },
    };
    if !moved.left.is_empty() {
        let hint = if token_mover.store.is_some() { "" } else { "; --store-secrets moves them into the secret store" };
        let places = moved.left.join(", ");
        session
            .console
            .warn(format_args!("{name} is stored with secrets in clear text: {}{hint}", UntrustedText::new(places)));
    }
    let reason = disabled_reason(args, one);
    if reason.is_some() {
        entry.insert("enabled".to_owned(), Value::Bool(false));
    }
    if let Err(failure) = write_server(session, args.scope, name, &entry) {
        // The secrets are stored all the same, and the other servers are independent of this one.
        let reason = failure.hints.iter().fold(failure.error.message.clone(), |text, hint| format!("{text}; {hint}"));
        return Ok(ImportResult { outcome: ImportOutcome::Failed, reason: Some(reason), secrets: moved.stored });
    }
    let outcome = if reason.is_some() { ImportOutcome::StoredDisabled } else { ImportOutcome::Stored };
    Ok(ImportResult { outcome, reason, secrets: moved.stored })
}

/// Returns the reason that a server is stored disabled.
fn disabled_reason(args: &ImportArgs, one: &PlannedServer<'_>) -> Option<String> {
    if one.is_disabled() {
        return Some(format!("it is disabled in {}", one.found.client.name()));
    }
    (args.all && one.found.is_projects)
        .then(|| "it comes from a file of this project, which others may write, and you have not seen it".to_owned())
}

fn report(
    args: &ImportArgs,
    session: &CommandSession,
    planned: &[PlannedServer<'_>],
    done: &ImportReport,
) -> Result<(), Failure> {
    let ImportReport { results, replaced } = done;
    if session.console.mode.json {
        let items = planned.iter().zip(results).map(|(one, result)| item(one, result)).collect();
        let is_bad = |outcome| matches!(outcome, ImportOutcome::Declined | ImportOutcome::Failed);
        let ok =
            !results.iter().any(|result| is_bad(result.outcome)) && replaced.iter().all(|file| file.error.is_none());
        return session
            .console
            .print_document(ok, &ImportDocument { items, replaced: args.replace.then_some(replaced) });
    }
    let of = |outcome: ImportOutcome| -> Vec<&str> {
        let all = planned.iter().zip(results).filter(|(_, result)| result.outcome == outcome);
        all.map(|(one, _)| one.found.server.id.as_str()).collect()
    };
    let storable = of(ImportOutcome::Storable).len();
    if args.dry_run {
        say(session, &format!("{storable} can be stored. Nothing was stored (--dry-run)."));
    }
    let file = session.configuration.places.layer_file(args.scope.layer()).unwrap_or_default();
    let file = display_path(&file, &session.environment);
    let enabled = of(ImportOutcome::Stored);
    if !enabled.is_empty() {
        let next = if let [one] = enabled[..] { format!("wharf test {one}") } else { "wharf list --probe".to_owned() };
        let undo = if let [one] = enabled[..] { one } else { "NAME" };
        say(session, &format!("{} {} in {file}", paint(GOOD, "Stored"), enabled.join(", ")));
        say(session, &format!("  {} wharf remove {undo} --scope {}", paint(QUIET, "undo:"), scope_word(args.scope)));
        say(session, &format!("  {} {next}", paint(QUIET, "next:")));
    }
    for (one, result) in planned.iter().zip(results) {
        let id = &one.found.server.id;
        if let (ImportOutcome::StoredDisabled, Some(reason)) = (result.outcome, &result.reason) {
            say(session, &format!("{} {id} in {file}, disabled: {reason}", paint(GOOD, "Stored")));
            say(session, &format!("  {} wharf get {id}, then wharf enable {id}", paint(QUIET, "next:")));
        }
        if let (ImportOutcome::Failed, Some(reason)) = (result.outcome, &result.reason) {
            session.console.warn(format_args!("{id} is not stored: {}", UntrustedText::new(reason.as_str())));
        }
        for name in &result.secrets {
            say(session, &format!("{} the secret {name} for {id}", paint(GOOD, "Stored")));
        }
    }
    replaced.iter().for_each(|file| replace::report(args, session, file));
    Ok(())
}

fn scope_word(scope: ConfigScope) -> &'static str {
    scope.layer().source()
}

fn item<'a>(one: &'a PlannedServer<'_>, result: &'a ImportResult) -> ImportItem<'a> {
    let found = one.found;
    ImportItem {
        id: &found.server.id,
        client: found.client.name(),
        file: found.file.display().to_string(),
        line: found.server.place.line,
        outcome: result.outcome,
        reason: result.reason.as_deref(),
        notes: found.server.notes.iter().map(note_line).collect(),
        tokens: &one.tokens,
        secrets: &result.secrets,
    }
}

fn say(session: &CommandSession, text: &str) {
    if !session.console.mode.json {
        session.console.say(text);
    }
}
