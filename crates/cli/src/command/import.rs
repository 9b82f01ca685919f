//! `wharf import`: imports servers from the files of other programs, each shown in full first.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Map, Value};
use wharf_config::clients::{ExternalClient, ImportedServer, import};
use wharf_config::{ApprovalSubject, EntrySite, validate_entry};
use wharf_spec::{ServerName, UntrustedText};

use crate::command::clients::{note_line, unknown_client};
use crate::command::configuration::relative_paths;
use crate::masking::{self, SecretDisplay};
use wharf_terminal::config_context::{home_directory, server_problems_failure};
use wharf_terminal::config_scope::{ConfigScope, write_server};
use wharf_terminal::failure::{CommandEnding, CommandResult, Failure, FailureKind, gutter};
use wharf_terminal::question;
use wharf_terminal::session::{CommandSession, CommonArgs};
use wharf_terminal::style::{GOOD, HEADING, NAME, QUIET, WARNING, paint};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without a program, reads the files of all programs found on this machine. Each server is shown in full and \
stored only if you agree; --all, for scripts, stores every one disabled. No server is started.

Examples:
  wharf import
  wharf import cursor
  wharf import codex git docs
  wharf import vs-code --file .vscode/mcp.json
  wharf import --all")]
pub struct ImportArgs {
    /// Program: claude-code, claude-desktop, cursor, vs-code, codex, gemini, opencode, goose, zed or windsurf
    client: Option<String>,
    /// Servers to import; default: ask about each
    servers: Vec<String>,
    /// File to read, if not at the program's usual path
    #[arg(long, value_name = "FILE", requires = "client")]
    file: Option<PathBuf>,
    /// Store everything without asking, disabled
    #[arg(long)]
    all: bool,
    /// Replace servers that are already configured
    #[arg(long)]
    replace: bool,
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

/// A server found in another program's file.
struct FoundServer {
    client: ExternalClient,
    file: PathBuf,
    server: ImportedServer,
}

/// Result of importing one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum ImportOutcome {
    /// The server was stored.
    Stored,
    /// The server was stored, but disabled.
    StoredDisabled,
    /// The user declined, or could not be asked.
    Declined,
    /// A server of the same name exists.
    AlreadyThere,
    /// The entry cannot be converted.
    Unusable,
}

#[derive(Serialize)]
struct ImportDocument<'a> {
    schema: u32,
    items: Vec<ImportItem<'a>>,
}

#[derive(Serialize)]
struct ImportItem<'a> {
    id: &'a str,
    client: &'static str,
    file: String,
    line: u32,
    fate: ImportOutcome,
    notes: Vec<String>,
}

pub async fn run(args: &ImportArgs, session: &CommandSession) -> CommandResult {
    let found = find_servers(args, session)?;
    let mut fates = Vec::new();
    let mut stored = HashSet::new();
    for one in &found {
        let fate = import_one(args, session, one, &stored).await?;
        if matches!(fate, ImportOutcome::Stored | ImportOutcome::StoredDisabled) {
            stored.insert(one.server.id.clone());
        }
        fates.push(fate);
    }
    if session.console.manner.json {
        let items = found.iter().zip(&fates).map(|(one, fate)| one.item(*fate)).collect();
        session.console.print_json(&ImportDocument { schema: 1, items })?;
    } else if found.is_empty() {
        session.console.say("No servers of other programs found.");
    }
    let undecided = |fate: &ImportOutcome| *fate == ImportOutcome::Declined;
    let nobody = !question::has_terminal() || session.console.manner.json;
    Ok(if nobody && fates.iter().any(undecided) {
        CommandEnding::Told(FailureKind::Denied)
    } else {
        CommandEnding::Fine
    })
}

/// Returns the servers to import, restricted to the named ones if any are named.
fn find_servers(args: &ImportArgs, session: &CommandSession) -> Result<Vec<FoundServer>, Failure> {
    let clients = match &args.client {
        None => ExternalClient::ALL.to_vec(),
        Some(name) => vec![ExternalClient::from_name(name).ok_or_else(|| unknown_client(name))?],
    };
    let mut found = Vec::new();
    for client in clients {
        for file in files(args, session, client) {
            match read(args, session, client, &file) {
                Ok(servers) => found.extend(servers),
                Err(failure) if args.client.is_some() => return Err(failure),
                // Continue with the other programs if one file is invalid.
                Err(failure) => session.console.warn(UntrustedText::new(failure.error.message)),
            }
        }
    }
    for name in &args.servers {
        if !found.iter().any(|one| one.server.id == *name) {
            let names = found.iter().map(|one| one.server.id.as_str());
            let hint = wharf_terminal::suggestions::suggestion(name, names);
            return Err(Failure::usage(format_args!("no server named `{name}` to import")).with_hint(hint));
        }
    }
    found.retain(|one| args.servers.is_empty() || args.servers.contains(&one.server.id));
    Ok(found)
}

/// Reads the servers in one file of a program.
fn read(
    args: &ImportArgs,
    session: &CommandSession,
    client: ExternalClient,
    file: &Path,
) -> Result<Vec<FoundServer>, Failure> {
    let Some(text) = read_text(file, args.file.is_some())? else { return Ok(Vec::new()) };
    let servers = import(client, &text, file, &session.surroundings.cwd)
        .map_err(|error| Failure::usage(format_args!("{}:{}: {}", file.display(), error.at, error.text)))?;
    let found = |mut server: ImportedServer| {
        if args.scope == ConfigScope::Global && file.starts_with(&session.surroundings.cwd) {
            make_paths_absolute(&mut server, &session.surroundings.cwd);
        }
        FoundServer { client, file: file.to_owned(), server }
    };
    Ok(servers.into_iter().map(found).collect())
}

/// Makes relative paths of a project's server absolute, so that it works from any directory.
fn make_paths_absolute(server: &mut ImportedServer, project: &Path) {
    let absolute = |text: &str| project.join(text).display().to_string();
    for key in ["command", "envFile"] {
        let Some(Value::String(text)) = server.entry.get_mut(key) else { continue };
        let is_path = key == "envFile" || text.contains('/');
        if is_path && !text.starts_with(['/', '$', '~']) {
            *text = absolute(text);
        }
    }
    if server.entry.contains_key("command") {
        let cwd = server.entry.get("cwd").and_then(Value::as_str).unwrap_or_default();
        let cwd = if cwd.starts_with('$') { cwd.to_owned() } else { absolute(cwd) };
        server.entry.insert("cwd".to_owned(), cwd.into());
    }
}

/// Returns the files of a program, without those that wharf itself loads.
fn files(args: &ImportArgs, session: &CommandSession, client: ExternalClient) -> Vec<PathBuf> {
    if let Some(file) = &args.file {
        return vec![session.surroundings.cwd.join(file)];
    }
    let home = home_directory(&session.surroundings).unwrap_or_default();
    let places = &session.configuration.places;
    let own = [places.home.clone(), Some(places.shared_file())];
    let mut files = client.files(&home, &session.surroundings.cwd, std::env::consts::OS);
    // Without a home directory, paths below it would be relative.
    files.retain(|file| file.is_absolute() && !own.iter().flatten().any(|read| read == file));
    files
}

fn read_text(file: &Path, is_named: bool) -> Result<Option<String>, Failure> {
    let failed = |what: String| Failure::usage(format_args!("{}: {what}", file.display()));
    match wharf_config::read_file(file) {
        Ok(None) if is_named => Err(failed("file not found".to_owned())),
        Ok(text) => Ok(text),
        Err(problem) => Err(failed(problem.text)),
    }
}

/// Shows one server, asks about it, and stores it.
async fn import_one(
    args: &ImportArgs,
    session: &CommandSession,
    one: &FoundServer,
    stored: &HashSet<String>,
) -> Result<ImportOutcome, Failure> {
    let FoundServer { server, .. } = one;
    let (Ok(name), false) = (ServerName::new(&server.id), server.entry.is_empty()) else {
        say(session, &one.review_text(&["cannot be converted".to_owned()]));
        return Ok(ImportOutcome::Unusable);
    };
    let described = match validate_entry(&name, &server.entry).described {
        Ok(described) => described,
        Err(problems) => {
            say(session, &one.review_text(&[server_problems_failure(name.as_str(), &problems).error.message]));
            return Ok(ImportOutcome::Unusable);
        }
    };
    let mut shown = validate_entry(&name, &masking::mask_entry(&server.entry, SecretDisplay::Masked))
        .described
        .unwrap_or(described);
    let places = &session.configuration.places;
    let file = places.layer_file(args.scope.layer()).unwrap_or_default();
    shown.site = EntrySite::new(places, args.scope.layer(), &file, &name);
    let lines = ApprovalSubject::inspect(&shown, &session.surroundings).lines();
    if stored.contains(&server.id) {
        say(session, &one.review_text(&[format!("skipped: `{name}` of another program was just stored")]));
        return Ok(ImportOutcome::AlreadyThere);
    }
    if session.configuration.config()?.server(name.as_str()).is_some() && !args.replace {
        let already = format!("`{name}` is already configured; use --replace to replace it");
        say(session, &one.review_text(&[already]));
        return Ok(ImportOutcome::AlreadyThere);
    }
    let fate = if args.all {
        say(session, &one.review_text(&lines));
        ImportOutcome::StoredDisabled
    } else {
        confirm_import(session, one, &lines).await
    };
    if fate != ImportOutcome::Declined {
        let mut entry = server.entry.clone();
        relative_paths::adapt_relative_paths(session, args.scope, name.as_str(), &mut entry).await;
        store(args, session, &name, entry, fate)?;
    }
    Ok(fate)
}

async fn confirm_import(session: &CommandSession, one: &FoundServer, lines: &[String]) -> ImportOutcome {
    if session.console.manner.json || !question::has_terminal() {
        say(session, &one.review_text(lines));
        say(session, "  Not stored: no terminal to prompt on. --all stores everything, disabled.");
        return ImportOutcome::Declined;
    }
    let prompt = format!("Store {}? [y/N] ", paint(NAME, &one.server.id));
    match question::confirm(&session.console, &one.review_text(lines), &prompt).await {
        true => ImportOutcome::Stored,
        false => ImportOutcome::Declined,
    }
}

fn store(
    args: &ImportArgs,
    session: &CommandSession,
    name: &ServerName,
    mut entry: Map<String, Value>,
    fate: ImportOutcome,
) -> Result<(), Failure> {
    if fate == ImportOutcome::StoredDisabled {
        entry.insert("enabled".to_owned(), false.into());
    }
    let written = write_server(session, args.scope, name, &entry)?;
    let next =
        if fate == ImportOutcome::Stored { format!("wharf test {name}") } else { format!("wharf enable {name}") };
    say(
        session,
        &format!("{} {name} in {}. Next: {next}. Undo: wharf remove {name}", paint(GOOD, "Stored"), written.display()),
    );
    Ok(())
}

fn say(session: &CommandSession, text: &str) {
    if !session.console.manner.json {
        session.console.say(text);
    }
}

impl FoundServer {
    /// Returns the location, the entry and the conversion notes.
    fn review_text(&self, lines: &[String]) -> String {
        let Self { client, file, server } = self;
        let id = UntrustedText::new(server.id.as_str()).to_string();
        let place = format!("{} · {}:{}", client.name(), file.display(), server.place.line);
        let mut text = format!("\n{}  {}", paint(HEADING, id), paint(QUIET, UntrustedText::new(place)));
        for line in lines {
            let _ = write!(text, "\n{}", gutter(line));
        }
        for note in &server.notes {
            let _ = write!(text, "\n  {} {}", paint(WARNING, "note:"), note_line(note));
        }
        text
    }

    fn item(&self, fate: ImportOutcome) -> ImportItem<'_> {
        ImportItem {
            id: &self.server.id,
            client: self.client.name(),
            file: self.file.display().to_string(),
            line: self.server.place.line,
            fate,
            notes: self.server.notes.iter().map(note_line).collect(),
        }
    }
}
