//! `wharf enable` and `wharf disable`.

use std::path::PathBuf;

use serde::Serialize;
use wharf_config::edit::{ConfigChange, set_enabled};
use wharf_config::{Config, ConfiguredServer, FileFormat, Layer, load};
use wharf_spec::ServerName;

use super::remove::ensure_editable;
use wharf_terminal::config_scope::change_file;
use wharf_terminal::display_path::display_path;
use wharf_terminal::failure::{CommandEnding, CommandResult, Failure};
use wharf_terminal::session::{CommandSession, CommonArgs};
use wharf_terminal::style::{GOOD, NAME, QUIET, paint};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf disable github
  wharf enable github")]
pub struct SwitchArgs {
    /// Name of the server
    id: String,
    /// Write one JSON document instead of text
    #[arg(long, help_heading = "Output")]
    json: bool,
}

#[derive(Serialize)]
struct SwitchDocument<'a> {
    schema: u32,
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

impl SwitchArgs {
    pub fn common(&self) -> CommonArgs {
        CommonArgs { json: self.json, ..CommonArgs::default() }
    }
}

pub async fn enable(args: &SwitchArgs, session: &CommandSession) -> CommandResult {
    run(args, SwitchDirection::On, session)
}

pub async fn disable(args: &SwitchArgs, session: &CommandSession) -> CommandResult {
    run(args, SwitchDirection::Off, session)
}

fn run(args: &SwitchArgs, switch: SwitchDirection, session: &CommandSession) -> CommandResult {
    let server = session.configuration.find(&args.id)?;
    ensure_editable(server)?;
    let mut files = Vec::new();
    if set_enabled_in_file(session, server.layer, &server.place.file, &server.name, switch)
        .map_err(|failure| add_project_hint(failure, server, switch))?
    {
        files.push(server.place.file.to_path_buf());
    }
    let now = || load(&session.configuration.places, &session.surroundings);
    if switch == SwitchDirection::On && !is_enabled(&now(), &server.name) {
        files.extend(enable_in_higher_layers(session, server)?);
    }
    if switch == SwitchDirection::On && !is_enabled(&now(), &server.name) {
        let failure = Failure::usage("still disabled by `disabled` in its entry or `mcp.enabled` of its file");
        return Err(failure.about_server(server.name.as_str()).with_hint(format_args!("check {}", server.place)));
    }
    report_switched(session, server, switch, &files)?;
    Ok(CommandEnding::Fine)
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
) -> Result<(), Failure> {
    let (action, word, opposite) = match switch {
        SwitchDirection::On => ("enabled", "Enabled", "disable"),
        SwitchDirection::Off => ("disabled", "Disabled", "enable"),
    };
    let name = &server.name;
    let undo = format!("wharf {opposite} {name}");
    if session.console.manner.json {
        return session.console.print_json(&SwitchDocument {
            schema: 1,
            success: true,
            id: name.as_str(),
            action: if files.is_empty() { "unchanged" } else { action },
            enabled: switch == SwitchDirection::On,
            files: files.iter().map(|file| file.display().to_string()).collect(),
            undo,
        });
    }
    if files.is_empty() {
        session.console.say(format_args!("{} is already {action}", paint(NAME, name)));
        return Ok(());
    }
    let files: Vec<String> = files.iter().map(|file| display_path(file, &session.surroundings)).collect();
    session.console.say(format_args!("{} {} in {}", paint(GOOD, word), paint(NAME, name), files.join(" and ")));
    session.console.say(format_args!("  {} {undo}", paint(QUIET, "undo:")));
    Ok(())
}
