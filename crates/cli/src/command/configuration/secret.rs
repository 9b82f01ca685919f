//! `wharf secret`.

use clap::Subcommand;
use serde_json::json;
use wharf_config::{SecretError, SecretOrigin, SecretStore, is_secret_name};
use wharf_spec::Secret;

use wharf_terminal::display_path::display_path;
use wharf_terminal::failure::{CommandEnding, CommandResult, Failure, FailureKind};
use wharf_terminal::question;
use wharf_terminal::session::{CommandSession, CommonArgs};
use wharf_terminal::style::{GOOD, NAME, QUIET, paint};
use wharf_terminal::suggestions::suggestion;

/// Store secrets that a configuration refers to
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A secret is stored in the system keyring if there is one, otherwise in a file that only you can read. A \
configuration refers to it as ${secret:NAME}.

Examples:
  wharf secret set github
  gh auth token | wharf secret set github
  wharf secret list
  wharf secret remove github")]
pub struct SecretArgs {
    #[command(subcommand)]
    action: SecretAction,
    /// Write one JSON document instead of text
    #[arg(long, global = true, help_heading = "Output")]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum SecretAction {
    /// Store a secret, prompted for without echo or read from stdin
    #[command(after_help = "Examples:\n  wharf secret set github")]
    Set {
        /// Name of the secret: letters, digits, _, . and -
        name: String,
    },
    /// List the names of the stored secrets
    #[command(visible_alias = "ls", after_help = "Examples:\n  wharf secret list")]
    List,
    /// Delete a secret
    #[command(visible_alias = "rm", after_help = "Examples:\n  wharf secret remove github")]
    Remove {
        /// Name of the secret
        name: String,
    },
}

impl SecretArgs {
    pub fn common(&self) -> CommonArgs {
        CommonArgs { json: self.json, ..CommonArgs::default() }
    }
}

pub async fn run(args: &SecretArgs, session: &CommandSession) -> CommandResult {
    match &args.action {
        SecretAction::Set { name } => set(session, name).await?,
        SecretAction::List => list(session)?,
        SecretAction::Remove { name } => remove(session, name)?,
    }
    Ok(CommandEnding::Fine)
}

/// Opens the secret store: next to the user's configuration file, or backed by the configured `secretCommand`.
///
/// # Errors
///
/// Fails if there is no directory to store secrets in, or if the configuration cannot be read.
pub fn open_store(session: &CommandSession) -> Result<SecretStore, Failure> {
    let configuration = &session.configuration;
    let user = &configuration.places.user;
    if user.as_os_str().is_empty() {
        return Err(Failure::usage("no directory to store secrets in").with_hint("set HOME or XDG_CONFIG_HOME"));
    }
    let store = SecretStore::new(user.with_file_name("secrets.json"), session.environment.clone());
    Ok(match &configuration.config()?.settings.secret_command {
        Some(command) => store.with_command(command.clone()),
        None => store,
    })
}

async fn set(session: &CommandSession, name: &str) -> Result<(), Failure> {
    if !is_secret_name(name) {
        return Err(secret_failure(&SecretError::BadName { name: name.to_owned() }));
    }
    let store = open_store(session)?;
    let mut secrets = question::read_secrets(&session.console, &[name.to_owned()]).await?;
    let place =
        store.set(name, &Secret::new(secrets.pop().unwrap_or_default())).map_err(|error| secret_failure(&error))?;
    let reference = format!("${{secret:{name}}}");
    if session.console.mode.json {
        let place = place_key(&place);
        let document = json!({ "success": true, "name": name, "place": place, "reference": reference });
        return session.console.print_document(true, &document);
    }
    let place = place_label(session, &place);
    session.console.say(format_args!("{} {} in {place}", paint(GOOD, "Stored"), paint(NAME, name)));
    session.console.say(format_args!("  {} write {reference} where it is needed", paint(QUIET, "next:")));
    session.console.say(format_args!("  {} wharf secret remove {name}", paint(QUIET, "undo:")));
    Ok(())
}

fn list(session: &CommandSession) -> Result<(), Failure> {
    let names = open_store(session)?.names().map_err(|error| secret_failure(&error))?;
    if session.console.mode.json {
        let items: Vec<_> = names.iter().map(|name| json!({ "name": name })).collect();
        return session.console.print_document(true, &json!({ "items": items }));
    }
    if names.is_empty() {
        session.console.say("No secrets stored. Store one with: wharf secret set NAME");
    }
    names.iter().try_for_each(|name| session.console.print(format_args!("{name}\n")))
}

fn remove(session: &CommandSession, name: &str) -> Result<(), Failure> {
    let store = open_store(session)?;
    if !store.remove(name).map_err(|error| secret_failure(&error))? {
        let names = store.names().unwrap_or_default();
        let hint = suggestion(name, names.iter().map(String::as_str));
        return Err(Failure::usage(format_args!("no secret named `{name}`")).with_hint(hint));
    }
    if session.console.mode.json {
        return session.console.print_document(true, &json!({ "success": true, "name": name, "action": "removed" }));
    }
    session.console.say(format_args!("{} {}", paint(GOOD, "Deleted:"), paint(NAME, name)));
    Ok(())
}

fn place_key(place: &SecretOrigin) -> String {
    match place {
        SecretOrigin::Command => "command".to_owned(),
        SecretOrigin::Keyring => "keyring".to_owned(),
        SecretOrigin::File(path) => path.display().to_string(),
    }
}

fn place_label(session: &CommandSession, place: &SecretOrigin) -> String {
    match place {
        SecretOrigin::Command => "the store behind secretCommand".to_owned(),
        SecretOrigin::Keyring => "the system keyring".to_owned(),
        SecretOrigin::File(path) => format!("{}, which only you can read", display_path(path, &session.environment)),
    }
}

fn secret_failure(error: &SecretError) -> Failure {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    let kind = match error {
        SecretError::BadName { .. } | SecretError::Unknown { .. } | SecretError::Elsewhere { .. } => FailureKind::Usage,
        _ => FailureKind::Other,
    };
    Failure::new(kind, format_args!("{error}{cause}")).with_hint(error.fix())
}
