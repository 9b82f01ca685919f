//! `wharf enable` and `wharf disable`.

use std::path::PathBuf;

use serde::Serialize;
use serde_json::{Map, Value};
use wharf_config::edit::{ConfigChange, set_enabled};
use wharf_config::{Config, ConfiguredServer, FileFormat, Layer, load};
use wharf_spec::ServerName;

use super::remove::ensure_editable;
use wharf_terminal::config_scope::{ConfigScope, EntryWrite, change_file, remove_file_if_empty, write_entry};
use wharf_terminal::display_path::display_path;
use wharf_terminal::failure::{CommandEnding, CommandResult, Failure};
use wharf_terminal::session::{CommandSession, JsonArgs};
use wharf_terminal::style::{GOOD, NAME, QUIET, paint};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf disable github
  wharf disable github --scope project
  wharf enable github")]
pub struct SwitchArgs {
    /// Name of the server
    id: String,
    /// Configuration to change; default: the one that defines the server. `disable --scope project` disables any server
    /// for this project
    #[arg(long, short, value_enum)]
    scope: Option<ConfigScope>,
    #[command(flatten)]
    pub output: JsonArgs,
}

#[derive(Serialize)]
struct SwitchDocument<'a> {
    success: bool,
    id: &'a str,
    action: &'static str,
    enabled: bool,
    files: Vec<String>,
    undo: String,
}

/// Direction of the switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SwitchDirection {
    On,
    Off,
}

pub async fn enable(args: &SwitchArgs, session: &CommandSession) -> CommandResult {
    run(args, SwitchDirection::On, session)
}

pub async fn disable(args: &SwitchArgs, session: &CommandSession) -> CommandResult {
    run(args, SwitchDirection::Off, session)
}

fn run(args: &SwitchArgs, switch: SwitchDirection, session: &CommandSession) -> CommandResult {
    let server = session.configuration.find(&args.id)?;
    if let Some(scope) = args.scope {
        let file = switch_in_scope(session, server, scope, switch)?;
        let still = opposite_state(session, &server.name, switch);
        if let (None, Some(state)) = (&file, still) {
            return Err(other_scope_failure(&server.name, scope, switch, state));
        }
        report_switched(session, server, switch, file.as_slice(), Some(scope))?;
        if let Some(state) = still {
            let hint = all_scopes_hint(&server.name, switch);
            session.console.warn(format_args!("{} is still {state}; {hint}", server.name));
        }
        return Ok(CommandEnding::Fine);
    }
    ensure_editable(server)?;
    let mut files = Vec::new();
    if set_enabled_in_file(session, server.layer, &server.place.file, &server.name, switch)
        .map_err(|failure| add_project_hint(failure, server, switch))?
    {
        files.push(server.place.file.to_path_buf());
    }
    let now = || load(&session.configuration.places, &session.environment);
    if switch == SwitchDirection::On && !is_enabled(&now(), &server.name) {
        files.extend(enable_in_higher_layers(session, server)?);
    }
    if switch == SwitchDirection::On && !is_enabled(&now(), &server.name) {
        let failure = Failure::usage("still disabled by `disabled` in its entry or `mcp.enabled` of its file");
        return Err(failure.about_server(server.name.as_str()).with_hint(format_args!("check {}", server.place)));
    }
    report_switched(session, server, switch, &files, None)?;
    Ok(CommandEnding::Fine)
}

/// Returns the state of a server that another scope keeps as it was.
fn opposite_state(session: &CommandSession, name: &ServerName, switch: SwitchDirection) -> Option<&'static str> {
    let is_on = is_enabled(&load(&session.configuration.places, &session.environment), name);
    match (switch, is_on) {
        (SwitchDirection::On, false) => Some("disabled"),
        (SwitchDirection::Off, true) => Some("enabled"),
        _ => None,
    }
}

fn other_scope_failure(name: &ServerName, scope: ConfigScope, switch: SwitchDirection, state: &str) -> Failure {
    let scope = scope.layer().source();
    Failure::usage(format_args!("nothing to change in the {scope} configuration; the server is still {state}"))
        .about_server(name.as_str())
        .with_hint(all_scopes_hint(name, switch))
}

fn all_scopes_hint(name: &ServerName, switch: SwitchDirection) -> String {
    match switch {
        SwitchDirection::On => format!("`wharf enable {name}` enables it in every scope"),
        SwitchDirection::Off => format!("`wharf disable {name}` disables the entry in effect"),
    }
}

/// Switches the entry of one scope. In the project's scope, an entry that only disables the server is written or removed
/// if the project does not define it. Returns the changed file.
fn switch_in_scope(
    session: &CommandSession,
    effective: &ConfiguredServer,
    scope: ConfigScope,
    switch: SwitchDirection,
) -> Result<Option<PathBuf>, Failure> {
    let (name, places) = (&effective.name, &session.configuration.places);
    let config = session.configuration.config()?;
    let mut all = config.servers.iter().chain(&config.beside).filter(|server| server.name == *name);
    if let Some(server) = all.find(|server| scope.holds(server)) {
        ensure_editable(server)?;
        let is_changed = set_enabled_in_file(session, server.layer, &server.place.file, name, switch)?;
        return Ok(is_changed.then(|| server.place.file.to_path_buf()));
    }
    if scope.layer() != Layer::Project {
        let failure = Failure::usage(format_args!("no {} server named `{name}`", scope.layer().source()));
        return Err(failure
            .about_server(name.as_str())
            .with_hint(format_args!("it is defined in {}", effective.place)));
    }
    let file = places.project_file();
    let is_changed = match switch {
        SwitchDirection::Off => {
            let entry = Map::from_iter([("enabled".to_owned(), Value::Bool(false))]);
            let writing = EntryWrite { name, entry: &entry, replace: true, approve: false };
            write_entry(session, scope, &writing)?.change.is_change()
        }
        SwitchDirection::On => {
            let is_changed = set_enabled_in_file(session, Layer::Project, &file, name, switch)?;
            remove_file_if_empty(places)?;
            is_changed
        }
    };
    Ok(is_changed.then_some(file))
}

/// Adds a hint: if the file cannot be changed, the project's configuration can still disable the server.
fn add_project_hint(failure: Failure, server: &ConfiguredServer, switch: SwitchDirection) -> Failure {
    let failure = failure.about_server(server.name.as_str());
    match (switch, server.layer) {
        (SwitchDirection::Off, Layer::Home | Layer::User | Layer::ProjectShared) => failure
            .with_hint(format_args!("for this project only: wharf add-json {} '{{\"enabled\": false}}'", server.name)),
        _ => failure,
    }
}

fn set_enabled_in_file(
    session: &CommandSession,
    layer: Layer,
    file: &std::path::Path,
    name: &ServerName,
    switch: SwitchDirection,
) -> Result<bool, Failure> {
    let is_on = switch == SwitchDirection::On;
    let change = change_file(&session.configuration.places, layer, file, |text| set_enabled(text, name, is_on))?;
    Ok(matches!(change, ConfigChange::Replaced(_) | ConfigChange::Removed(_) | ConfigChange::Added))
}

/// Enables a server in the higher layers that disable it. Returns the changed files.
fn enable_in_higher_layers(session: &CommandSession, server: &ConfiguredServer) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for layered in &session.configuration.config()?.layers {
        let is_editable = layered.found
            && layered.layer > server.layer
            && layered.layer != Layer::Variable
            && FileFormat::from_path(&layered.file) == FileFormat::Json;
        if is_editable && set_enabled_in_file(session, layered.layer, &layered.file, &server.name, SwitchDirection::On)?
        {
            files.push(layered.file.clone());
        }
    }
    Ok(files)
}

fn is_enabled(config: &Config, name: &ServerName) -> bool {
    config.server(name.as_str()).is_some_and(|server| server.enabled)
}

fn report_switched(
    session: &CommandSession,
    server: &ConfiguredServer,
    switch: SwitchDirection,
    files: &[PathBuf],
    scope: Option<ConfigScope>,
) -> Result<(), Failure> {
    let (action, word, opposite) = match switch {
        SwitchDirection::On => ("enabled", "Enabled", "disable"),
        SwitchDirection::Off => ("disabled", "Disabled", "enable"),
    };
    let name = &server.name;
    let scope = scope.map(|scope| format!(" --scope {}", scope.layer().source())).unwrap_or_default();
    let undo = format!("wharf {opposite} {name}{scope}");
    if session.console.mode.json {
        return session.console.print_document(
            true,
            &SwitchDocument {
                success: true,
                id: name.as_str(),
                action: if files.is_empty() { "unchanged" } else { action },
                enabled: is_enabled(&load(&session.configuration.places, &session.environment), name),
                files: files.iter().map(|file| file.display().to_string()).collect(),
                undo,
            },
        );
    }
    if files.is_empty() {
        session.console.say(format_args!("{} is already {action}", paint(NAME, name)));
        return Ok(());
    }
    let files: Vec<String> = files.iter().map(|file| display_path(file, &session.environment)).collect();
    session.console.say(format_args!("{} {} in {}", paint(GOOD, word), paint(NAME, name), files.join(" and ")));
    session.console.say(format_args!("  {} {undo}", paint(QUIET, "undo:")));
    Ok(())
}
