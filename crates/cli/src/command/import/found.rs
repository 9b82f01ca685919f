//! Servers in the files of other programs.

use std::path::{Path, PathBuf};

use serde_json::Value;
use wharf_config::clients::{ExternalClient, ImportedServer, import};
use wharf_spec::UntrustedText;

use super::ImportArgs;
use crate::command::clients::unknown_client;
use wharf_terminal::config_context::home_directory;
use wharf_terminal::config_scope::ConfigScope;
use wharf_terminal::failure::Failure;
use wharf_terminal::session::CommandSession;

/// A server found in another program's file.
pub struct FoundServer {
    pub client: ExternalClient,
    pub file: PathBuf,
    pub server: ImportedServer,
    /// Set if the file is part of the project, which others may write.
    pub is_projects: bool,
}

/// Returns the servers to import, restricted to the named ones if any are named.
pub fn find_servers(args: &ImportArgs, session: &CommandSession) -> Result<Vec<FoundServer>, Failure> {
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
    let project = &session.configuration.places.project;
    let servers = import(client, &text, file, project)
        .map_err(|error| Failure::usage(format_args!("{}:{}: {}", file.display(), error.at, error.text)))?;
    let is_home = home_directory(&session.environment).is_some_and(|home| home.starts_with(project));
    let found = |mut server: ImportedServer| {
        if args.scope == ConfigScope::Global && file.starts_with(project) {
            make_paths_absolute(&mut server, project);
        }
        FoundServer { client, file: file.to_owned(), server, is_projects: file.starts_with(project) && !is_home }
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

fn files(args: &ImportArgs, session: &CommandSession, client: ExternalClient) -> Vec<PathBuf> {
    match &args.file {
        Some(file) => vec![session.environment.cwd.join(file)],
        None => client_files(session, client),
    }
}

/// Returns the files of a program, without those that wharf itself loads.
fn client_files(session: &CommandSession, client: ExternalClient) -> Vec<PathBuf> {
    let home = home_directory(&session.environment).unwrap_or_default();
    let places = &session.configuration.places;
    let own = [places.home.clone(), Some(places.shared_file())];
    let mut files = client.files(&home, &places.project, std::env::consts::OS);
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

/// Returns the programs whose files have servers, with the number of servers. Unreadable files are skipped.
pub fn count_importable(session: &CommandSession) -> Vec<(ExternalClient, usize)> {
    let project = &session.configuration.places.project;
    let count = |client: ExternalClient| {
        let files = client_files(session, client);
        let texts = files.iter().filter_map(|file| Some((file, read_text(file, false).ok()??)));
        let servers = texts.filter_map(|(file, text)| import(client, &text, file, project).ok());
        servers.flatten().filter(ImportedServer::has_entry).count()
    };
    ExternalClient::ALL.into_iter().map(|client| (client, count(client))).filter(|(_, count)| *count > 0).collect()
}
