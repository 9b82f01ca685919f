//! `wharf add`.

mod entry;
mod flags;
mod report;

use serde_json::{Map, Value};
use wharf_config::validate_entry;
use wharf_spec::ServerName;

pub use flags::AddFlags;
pub use report::{AddedEntry, report_added};

use crate::command::configuration::relative_paths;
use wharf_terminal::config_context::{problem_line as line_of, server_problems_failure};
use wharf_terminal::config_scope::{ConfigScope, EntryWrite, write_entry};
use wharf_terminal::failure::{CommandEnding, CommandResult, Failure};
use wharf_terminal::question;
use wharf_terminal::session::{CommandSession, CommonArgs};

/// Add a server
#[derive(Debug, Clone, clap::Args)]
#[command(
    override_usage = "wharf add [OPTIONS] <ID> <URL|COMMAND> [ARGS]...\n       \
                      wharf add [OPTIONS] <ID> -- <COMMAND>...",
    after_help = "\
A server you add yourself is approved. With --scope global it starts in a private directory of its own; --cwd \
'${project}' starts it in the project directory (one approval per project). Write secrets as ${VARIABLE} or \
${secret:NAME} (wharf secret set NAME). A value of - is prompted for without echo, or read as a line of stdin if \
that is a pipe.

Examples:
  wharf add docs https://mcp.example.org/mcp
  wharf add github -e 'GITHUB_TOKEN=${secret:github}' \\
      -- npx -y @modelcontextprotocol/server-github
  wharf add files --scope global \\
      npx -y @modelcontextprotocol/server-filesystem ~/notes
  wharf add api --transport sse -H 'Authorization: -' \\
      --url https://example.org/sse
  wharf add git --command uvx --arg mcp-server-git \\
      --exclude-tools git_reset,git_commit"
)]
pub struct AddArgs {
    /// Name of the server: 1 to 64 letters, digits, _ and -
    id: String,
    /// URL to connect to, or command to start
    #[arg(value_name = "URL|COMMAND")]
    target: Option<String>,
    /// Arguments of the command
    #[arg(value_name = "ARGS", allow_hyphen_values = true)]
    rest: Vec<String>,
    /// Command and its arguments, taken literally
    #[arg(last = true, value_name = "COMMAND", conflicts_with_all = ["url", "command"])]
    line: Vec<String>,
    #[command(flatten)]
    flags: AddFlags,
    #[command(flatten)]
    destination: EntryDestination,
}

/// Destination of an entry.
#[derive(Debug, Clone, clap::Args)]
pub struct EntryDestination {
    /// Configuration to write to
    #[arg(long, short, value_enum, default_value_t = ConfigScope::Project)]
    scope: ConfigScope,
    /// Replace an existing server with this id
    #[arg(long)]
    replace: bool,
    /// Write one JSON document instead of text
    #[arg(long, help_heading = "Output")]
    json: bool,
}

impl AddArgs {
    pub fn common(&self) -> CommonArgs {
        self.destination.common()
    }
}

impl AddArgs {
    /// Moves the words after `--` into the command. Fails if a word before it looks like one of wharf's own flags,
    /// which is hardly meant for the server.
    fn merge_trailing_command(mut self) -> Result<Self, Failure> {
        let own = <Self as clap::Args>::augment_args(clap::Command::new("add"));
        if let Some(word) = self.rest.iter().find(|word| is_flag_of_command(&own, word)) {
            let failure = Failure::usage(format_args!("`{word}` would be passed to the server as an argument"));
            return Err(failure.with_hint("put it before the command, or write -- before the command"));
        }
        let mut words = std::mem::take(&mut self.line);
        if self.target.is_none() && !words.is_empty() {
            self.target = Some(words.remove(0));
        }
        self.rest.append(&mut words);
        Ok(self)
    }
}

fn is_flag_of_command(command: &clap::Command, word: &str) -> bool {
    let name = word.split('=').next().unwrap_or(word);
    command.get_arguments().any(|argument| match name.strip_prefix("--") {
        Some(long) => argument.get_long_and_visible_aliases().is_some_and(|names| names.contains(&long)),
        None => {
            argument.get_short().is_some_and(|short| name.strip_prefix('-') == Some(short.encode_utf8(&mut [0; 4])))
        }
    })
}

impl EntryDestination {
    pub fn common(&self) -> CommonArgs {
        CommonArgs { json: self.json, ..CommonArgs::default() }
    }
}

pub async fn run(args: &AddArgs, session: &CommandSession) -> CommandResult {
    let name = parse_server_name(&args.id)?;
    let args = &args.clone().merge_trailing_command()?;
    let mut entry = entry::build_entry(args)?;
    let asked = entry::prompted_members(args, &entry);
    let wanted: Vec<String> = asked.iter().map(|(_, name)| name.clone()).collect();
    let secrets = question::read_secrets(&session.console, &wanted).await?;
    for (place, secret) in asked.iter().zip(&secrets) {
        entry::insert_secret(&mut entry, place, secret);
    }
    validate_and_write(session, &name, entry, &args.destination).await
}

/// Parses a server name.
///
/// # Errors
///
/// Fails if the id is not a valid name.
pub fn parse_server_name(id: &str) -> Result<ServerName, Failure> {
    ServerName::new(id).map_err(|error| {
        Failure::usage(error).with_hint("an id has 1 to 64 letters, digits, `_` and `-`, as in my-server")
    })
}

/// Validates an entry, writes it and reports the change.
///
/// # Errors
///
/// Fails if the entry is invalid or cannot be written.
pub async fn validate_and_write(
    session: &CommandSession,
    name: &ServerName,
    mut entry: Map<String, Value>,
    destination: &EntryDestination,
) -> CommandResult {
    relative_paths::adapt_relative_paths(session, destination.scope, name.as_str(), &mut entry).await;
    let entry = &entry;
    let draft = validate_entry(name, entry);
    // An entry that only disables a server of a lower layer describes no server itself.
    let is_switch = entry.keys().all(|key| key == "enabled") && entry.get("enabled") == Some(&Value::Bool(false));
    if let Err(problems) = draft.described.as_ref().map_err(Clone::clone)
        && !is_switch
    {
        return Err(server_problems_failure(name.as_str(), &without_places(problems)));
    }
    for warning in without_places(draft.warnings) {
        session.console.warn(line_of(&warning));
    }
    if destination.scope == ConfigScope::Local {
        session.console.warn("scope `local` is not supported: writing to the project's configuration");
    }
    let writing = EntryWrite { name, entry, replace: destination.replace, approve: !is_switch };
    let written = write_entry(session, destination.scope, &writing)?;
    report_added(session, &AddedEntry { name, entry, written: &written, scope: destination.scope })?;
    Ok(CommandEnding::Fine)
}

/// Removes the file locations from problems of an entry typed on the command line.
fn without_places(problems: Vec<wharf_config::ConfigProblem>) -> Vec<wharf_config::ConfigProblem> {
    problems.into_iter().map(|problem| wharf_config::ConfigProblem { place: None, ..problem }).collect()
}
