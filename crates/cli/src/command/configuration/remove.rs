//! `wharf remove`.

use serde::Serialize;
use serde_json::Value;
use wharf_config::edit::{ConfigChange, EditedText, remove_server, set_enabled};
use wharf_config::{ConfigPaths, ConfiguredServer, Layer, ServerApproval, load};

use super::undo::{add_json_command, shell_quote};
use wharf_terminal::config_scope::{ConfigScope, change_file, remove_file_if_empty};
use wharf_terminal::display_path::display_path;
use wharf_terminal::failure::{CommandEnding, CommandResult, Failure};
use wharf_terminal::session::{CommandSession, JsonArgs};
use wharf_terminal::style::{GOOD, NAME, QUIET, paint};

/// Remove a server
#[derive(Debug, clap::Args)]
#[command(
    visible_alias = "rm",
    after_help = "\
Without --scope, removes the project's entry if there is one, otherwise the entry in effect.

Examples:
  wharf remove github
  wharf remove github --scope global"
)]
pub struct RemoveArgs {
    /// Name of the server
    id: String,
    /// Configuration to remove it from
    #[arg(long, short, value_enum)]
    scope: Option<ConfigScope>,
    #[command(flatten)]
    pub output: JsonArgs,
}

#[derive(Serialize)]
struct RemoveDocument<'a> {
    success: bool,
    id: &'a str,
    action: &'static str,
    file: String,
    undo: Option<String>,
    /// Location of the entry now in effect.
    counts_now: Option<String>,
}

pub async fn run(args: &RemoveArgs, session: &CommandSession) -> CommandResult {
    if args.scope.is_none_or(|scope| scope.layer() == Layer::Project) && remove_disabling_entry(args, session)? {
        return Ok(CommandEnding::Fine);
    }
    let server = select_entry(args, session)?;
    let places = &session.configuration.places;
    let change = change_file(places, server.layer, &server.place.file, |text| remove_server(text, &server.name))?;
    let ConfigChange::Removed(old) = change else {
        let failure = Failure::usage(format_args!("it is no longer in {}", server.place.file.display()));
        return Err(failure
            .about_server(server.name.as_str())
            .with_hint("another program changed the file; check with `wharf list`"));
    };
    remove_emptied_file(places, server.layer)?;
    report_removed(args, session, server, &old)?;
    Ok(CommandEnding::Fine)
}

/// Removes an entry in the project's own file that only disables a server of a lower layer. Returns whether there was
/// one.
fn remove_disabling_entry(args: &RemoveArgs, session: &CommandSession) -> Result<bool, Failure> {
    let places = &session.configuration.places;
    let Ok(name) = wharf_spec::ServerName::new(&args.id) else { return Ok(false) };
    let path = places.project_file();
    if !path.is_file() {
        return Ok(false);
    }
    let change = change_file(places, Layer::Project, &path, |text| {
        // Enabling such an entry removes it. Discard any other edit.
        let edited = set_enabled(text, &name, true)?;
        let is_switch = matches!(edited.change, ConfigChange::Removed(_));
        Ok(if is_switch { edited } else { EditedText { text: text.to_owned(), change: ConfigChange::Unchanged } })
    });
    if !matches!(change, Ok(ConfigChange::Removed(_))) {
        return Ok(false);
    }
    remove_emptied_file(places, Layer::Project)?;
    let undo = format!("wharf add-json {} '{{\"enabled\": false}}'", shell_quote(&args.id));
    if session.console.mode.json {
        let file = path.display().to_string();
        let counts_now = load(places, &session.environment).server(&args.id).map(|server| server.place.to_string());
        let (id, undo) = (&args.id, Some(undo));
        session
            .console
            .print_document(true, &RemoveDocument { success: true, id, action: "removed", file, undo, counts_now })?;
        return Ok(true);
    }
    let file = display_path(&path, &session.environment);
    session.console.say(format_args!(
        "{} the entry that disabled {} in {file}",
        paint(GOOD, "Removed"),
        paint(NAME, &name)
    ));
    session.console.say(format_args!("  {} {undo}", paint(QUIET, "undo:")));
    Ok(true)
}

/// Removes the project's own file if nothing is left in it. Other files are not Wharf's alone.
fn remove_emptied_file(places: &ConfigPaths, layer: Layer) -> Result<(), Failure> {
    match layer {
        Layer::Project => remove_file_if_empty(places),
        _ => Ok(()),
    }
}

/// Selects the entry to remove among those with the id.
fn select_entry<'a>(args: &RemoveArgs, session: &'a CommandSession) -> Result<&'a ConfiguredServer, Failure> {
    let counts = session.configuration.find(&args.id)?;
    let config = session.configuration.config()?;
    let mut all = config.servers.iter().chain(&config.beside).filter(|server| server.name == counts.name);
    let found = match args.scope {
        Some(scope) => all.find(|server| scope.holds(server)),
        None => all.find(|server| ConfigScope::Project.holds(server)).or(Some(counts)),
    };
    let server = found.ok_or_else(|| {
        let failure = Failure::usage("it is not defined in that scope").about_server(counts.name.as_str());
        failure.with_hint(format_args!("it is defined in {}", counts.place))
    })?;
    ensure_editable(server)?;
    Ok(server)
}

/// Fails if a server is defined by the environment variable, which this program cannot edit.
///
/// # Errors
///
/// Fails with a usage error that names the variable.
pub fn ensure_editable(server: &ConfiguredServer) -> Result<(), Failure> {
    if server.layer != Layer::Variable {
        return Ok(());
    }
    let failure = Failure::usage("it is defined by the variable WHARF_MCP_SERVERS, not by a file");
    Err(failure.about_server(server.name.as_str()).with_hint("change the variable where it is set"))
}

fn report_removed(
    args: &RemoveArgs,
    session: &CommandSession,
    server: &ConfiguredServer,
    old: &Value,
) -> Result<(), Failure> {
    let now = load(&session.configuration.places, &session.environment);
    let counts_now = now.server(server.name.as_str()).map(|server| server.place.to_string());
    let undo = undo_command(server, old);
    if session.console.mode.json {
        let file = server.place.file.display().to_string();
        return session.console.print_document(
            true,
            &RemoveDocument { success: true, id: &args.id, action: "removed", file, undo, counts_now },
        );
    }
    let file = display_path(&server.place.file, &session.environment);
    session.console.say(format_args!("{} {} from {file}", paint(GOOD, "Removed"), paint(NAME, &server.name)));
    if let Some(undo) = undo {
        session.console.say(format_args!("  {} {undo}", paint(QUIET, "undo:")));
    }
    if let Some(other) = now.server(server.name.as_str()) {
        let place = format!("{}:{}", display_path(&other.place.file, &session.environment), other.place.at.line);
        let scope = other.layer.source();
        let name = shell_quote(server.name.as_str());
        session
            .console
            .warn(format_args!("`{name}` of {place} ({scope}) is in effect now; `wharf remove {name}` removes it too"));
    }
    Ok(())
}

/// Returns the command that restores the entry. `None` for files that no scope writes.
fn undo_command(server: &ConfiguredServer, old: &Value) -> Option<String> {
    // Running the undo command would approve the entry, and this one has not been reviewed.
    if matches!(server.approval, ServerApproval::Needed | ServerApproval::Changed) {
        return None;
    }
    let flags = match server.layer {
        Layer::Project => "",
        Layer::User => "--scope global",
        Layer::Home | Layer::ProjectShared | Layer::Flag | Layer::Variable => return None,
    };
    Some(add_json_command(&server.name, old.as_object()?, flags))
}
