//! An entry of the list of commands.

use std::fmt;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};

use super::command_groups;
use wharf_terminal::failure::CommandResult;
use wharf_terminal::session::{self, CliContext, CommandSession, CommonArgs};

/// A command: its definition, and the function that runs it. The doc comment of its arguments is its summary.
pub struct CommandEntry {
    definition: Command,
    parse: Box<ParseFn>,
}

type ParseFn = dyn Fn(&ArgMatches) -> Result<SelectedCommand, clap::Error>;

impl CommandEntry {
    /// Defines a command that runs in a session with these common options.
    pub fn in_session<A, F>(name: &'static str, run: F, common: fn(&A) -> CommonArgs) -> Self
    where
        A: Args + 'static,
        F: AsyncFn(&A, &CommandSession) -> CommandResult + Copy + 'static,
    {
        Self::new(name, move |args: A, context| {
            session::run(context, &common(&args), async |session| run(&args, session).await)
        })
    }

    /// Defines a command that needs no session.
    pub fn new<A, F>(name: &'static str, run: F) -> Self
    where
        A: Args + 'static,
        F: Fn(A, CliContext) -> ExitCode + Copy + 'static,
    {
        let parse = move |matches: &ArgMatches| {
            let args = A::from_arg_matches(matches)?;
            Ok(SelectedCommand(Box::new(move |context| run(args, context))))
        };
        Self { definition: A::augment_args(Command::new(name)), parse: Box::new(parse) }
    }

    /// Sets the summary, for commands that share their arguments.
    pub fn about(mut self, summary: &'static str) -> Self {
        self.definition = self.definition.about(summary);
        self
    }

    pub fn name(&self) -> &str {
        self.definition.get_name()
    }

    /// Returns every command, in the order of the help.
    pub fn all() -> impl Iterator<Item = Self> {
        command_groups().into_iter().flat_map(|(_, commands)| commands)
    }
}

/// The command that the arguments select.
pub struct SelectedCommand(Box<dyn FnOnce(CliContext) -> ExitCode>);

impl SelectedCommand {
    /// Runs the command.
    pub fn run(self, context: CliContext) -> ExitCode {
        (self.0)(context)
    }
}

impl fmt::Debug for SelectedCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SelectedCommand")
    }
}

impl Subcommand for SelectedCommand {
    fn augment_subcommands(wharf: Command) -> Command {
        wharf.subcommands(CommandEntry::all().map(|entry| entry.definition))
    }

    fn augment_subcommands_for_update(wharf: Command) -> Command {
        Self::augment_subcommands(wharf)
    }

    fn has_subcommand(name: &str) -> bool {
        CommandEntry::all().any(|entry| entry.name() == name)
    }
}

impl FromArgMatches for SelectedCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let selected = matches.subcommand().and_then(|(name, matches)| {
            let entry = CommandEntry::all().find(|entry| entry.name() == name)?;
            Some((entry.parse)(matches))
        });
        selected.unwrap_or_else(|| Err(clap::Error::new(ErrorKind::MissingSubcommand)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
