//! `wharf key`: keys of clients of `wharf serve --http`.

use clap::Subcommand;
use serde_json::json;
use wharf_gateway::KeyTable;
use wharf_spec::{ServerName, UntrustedText};
use wharf_store::{Document, DocumentPrivacy, DocumentUpdateError};

use super::serve;
use wharf_terminal::failure::{CommandEnding, CommandResult, Failure};
use wharf_terminal::session::{CommandSession, CommonArgs};
use wharf_terminal::style::{GOOD, NAME, QUIET, paint};
use wharf_terminal::suggestions::suggestion;

/// File of the keys in the state directory.
const KEY_FILE: &str = "serve-keys.json";
/// Maximum size of that file.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Manage the keys of clients of `wharf serve`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A client of `wharf serve --http` presents its key as `Authorization: Bearer KEY`. Only a digest of the key is stored. \
A revoked key stops working within a second.

Examples:
  wharf key add ci --profile readonly
  wharf key list
  wharf key revoke ci")]
pub struct KeyArgs {
    #[command(subcommand)]
    action: KeyAction,
    /// Write one JSON document instead of text
    #[arg(long, global = true, help_heading = "Output")]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum KeyAction {
    /// Make a key and print it once
    #[command(after_help = "Examples:\n  wharf key add ci --profile readonly")]
    Add {
        /// Name of the key: letters, digits, _ and -
        name: String,
        /// Profile of `profiles` in your configuration: what its clients may use
        #[arg(long, value_name = "NAME")]
        profile: Option<String>,
    },
    /// List the keys
    #[command(visible_alias = "ls", after_help = "Examples:\n  wharf key list")]
    List,
    /// Revoke a key
    #[command(visible_alias = "rm", after_help = "Examples:\n  wharf key revoke ci")]
    Revoke {
        /// Name of the key
        name: String,
    },
}

impl KeyArgs {
    pub fn common(&self) -> CommonArgs {
        CommonArgs { json: self.json, ..CommonArgs::default() }
    }
}

pub async fn run(args: &KeyArgs, session: &CommandSession) -> CommandResult {
    // A profile must exist, and a broken configuration would hide that one does not.
    session.configuration.config()?;
    let file = key_file(session)?;
    match &args.action {
        KeyAction::Add { name, profile } => add(session, &file, name, profile.as_deref())?,
        KeyAction::List => list(session, &file)?,
        KeyAction::Revoke { name } => revoke(session, &file, name)?,
    }
    Ok(CommandEnding::Fine)
}

/// Returns the file of the keys.
///
/// # Errors
///
/// Fails without a state directory.
pub fn key_file(session: &CommandSession) -> Result<Document, Failure> {
    let state = session.configuration.state.as_deref();
    let state = state
        .ok_or_else(|| Failure::other("no state directory to keep keys in").with_hint("set HOME or XDG_STATE_HOME"))?;
    Ok(Document::new(state.join(KEY_FILE), DocumentPrivacy::Private).with_limit(MAX_FILE_BYTES))
}

/// Reads the keys. Blocks.
///
/// # Errors
///
/// Fails if the file cannot be read.
pub fn read_keys(file: &Document) -> Result<KeyTable, Failure> {
    let loaded = file.load().map_err(Failure::other)?;
    parse_keys(loaded.as_ref().map(|loaded| &loaded.bytes[..])).map_err(Failure::other)
}

fn parse_keys(content: Option<&[u8]>) -> serde_json::Result<KeyTable> {
    content.map_or_else(|| Ok(KeyTable::default()), serde_json::from_slice)
}

/// Changes the file of keys.
fn edit(file: &Document, change: impl Fn(&mut KeyTable) -> Result<(), Failure>) -> Result<(), Failure> {
    let edited = file.update(|old| {
        let mut table = parse_keys(old).map_err(Failure::other)?;
        change(&mut table)?;
        serde_json::to_vec_pretty(&table).map(Some).map_err(Failure::other)
    });
    match edited {
        Ok(_) => Ok(()),
        Err(DocumentUpdateError::Edit(failure)) => Err(failure),
        Err(DocumentUpdateError::Save(error)) => Err(Failure::other(error)),
    }
}

fn add(session: &CommandSession, file: &Document, name: &str, profile: Option<&str>) -> Result<(), Failure> {
    if ServerName::new(name).is_err() {
        return Err(Failure::usage("a key's name has 1 to 64 characters of A-Z, a-z, 0-9, _ and -"));
    }
    if let Some(profile) = profile {
        serve::find_profile(&session.configuration.config()?.settings, profile)?;
    }
    let secret = format!("wharf_{}", serve::random_hex().map_err(Failure::other)?);
    edit(file, |table| table.add(name, &secret, profile.map(str::to_owned)).map_err(Failure::usage))?;
    if session.console.mode.json {
        return session.console.print_document(true, &json!({"name": name, "key": secret, "profile": profile}));
    }
    session.console.print(format_args!("{secret}\n"))?;
    session.console.say(format_args!("{} the key {}; it is shown only now", paint(GOOD, "Added"), paint(NAME, name)));
    session.console.say(format_args!("  {} wharf key revoke {name}", paint(QUIET, "undo:")));
    Ok(())
}

fn list(session: &CommandSession, file: &Document) -> Result<(), Failure> {
    let table = read_keys(file)?;
    if session.console.mode.json {
        let item = |key: &wharf_gateway::ClientKey| json!({"name": key.name, "profile": key.profile});
        let items: Vec<_> = table.keys().iter().map(item).collect();
        return session.console.print_document(true, &json!({ "items": items }));
    }
    if table.keys().is_empty() {
        session.console.say("No keys. `wharf key add NAME` makes one.");
    }
    for key in table.keys() {
        let profile = key.profile.as_ref().map(|profile| format!("  profile: {profile}")).unwrap_or_default();
        session.console.print(format_args!("{}{profile}\n", key.name))?;
    }
    Ok(())
}

fn revoke(session: &CommandSession, file: &Document, name: &str) -> Result<(), Failure> {
    let not_there = || Failure::usage(format_args!("no key named `{}`", UntrustedText::new(name)));
    let revoked = edit(file, |table| table.revoke(name).map(drop).ok_or_else(not_there));
    revoked.map_err(|failure| match read_keys(file) {
        Ok(table) if !table.keys().is_empty() => {
            failure.with_hint(suggestion(name, table.keys().iter().map(|key| key.name.as_str())))
        }
        _ => failure,
    })?;
    if session.console.mode.json {
        return session.console.print_document(true, &json!({"revoked": name}));
    }
    session.console.say(format_args!("{} the key {}", paint(GOOD, "Revoked"), paint(NAME, name)));
    Ok(())
}
