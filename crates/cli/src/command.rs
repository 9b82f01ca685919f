//! The command line: one module per command.

mod answer;
pub mod approve;
pub mod auth;
mod cached_catalog;
mod call;
mod cancel;
mod clients;
pub mod complete_names;
mod completions;
mod configuration;
#[cfg(feature = "demo")]
mod demo;
#[cfg(feature = "demo")]
mod demo_server;
mod entry;
mod export;
mod help;
mod hold;
mod import;
mod key;
pub mod logout;
mod logs;
mod man;
pub mod prompt;
mod prompts;
mod questions;
mod read;
mod release;
mod reload;
mod resources;
mod run;
mod serve;
mod shared_options;
mod spellings;
pub mod stats;
pub mod status;
mod subscribe;
mod templates;
mod test;
mod tools;
mod why;

use std::ffi::OsString;
use std::process::ExitCode;

use anstream::ColorChoice;
use clap::error::ErrorKind;
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, Parser, ValueEnum};
use wharf_spec::Environment;

use configuration::{add, add_json, enable_disable, get, list, remove, schema, secret, validate};
use entry::{CommandEntry, SelectedCommand};

use wharf_terminal::config_context::ConfigArgs;
use wharf_terminal::session;
use wharf_terminal::session::{CliContext, CommonArgs};

/// An MCP host: connects to MCP servers, lists and calls their tools. Without a command, starts an interactive session
/// with a model.
#[derive(Debug, Parser)]
#[command(
    name = "wharf",
    version,
    after_help = help::SEE_MORE,
    after_long_help = help::EXAMPLES,
    disable_help_subcommand = true
)]
pub struct Cli {
    /// When to use colour; NO_COLOR applies too
    #[arg(long, value_enum, default_value_t = When::Auto, value_name = "WHEN", help_heading = "Output")]
    color: When,
    #[command(flatten)]
    config: ConfigArgs,
    /// Check the configuration, as `wharf validate` does
    #[arg(
        long,
        help_heading = "Configuration",
        conflicts_with_all = ["model", "resume", "dangerously_skip_permissions"]
    )]
    validate_config: bool,
    #[command(flatten)]
    repl: wharf_repl::ReplArgs,
    #[command(subcommand)]
    command: Option<SelectedCommand>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum When {
    Auto,
    Always,
    Never,
}

/// Returns the commands by task, in the order of the help. To add a command, add its line to its group.
fn command_groups() -> [(&'static str, Vec<CommandEntry>); 7] {
    [
        ("Use", use_commands()),
        ("Configure", configuration_commands()),
        ("Log in and approve", login_commands()),
        ("Diagnose", diagnosis_commands()),
        ("Talk", agent_commands()),
        ("Learn and install", installation_commands()),
        ("Hidden", hidden_commands()),
    ]
}

fn use_commands() -> Vec<CommandEntry> {
    Vec::from([
        CommandEntry::in_session("tools", tools::run, |args| args.common.clone()),
        CommandEntry::in_session("call", call::run, |args| args.common.clone()),
        CommandEntry::in_session("resources", resources::run, |args| args.common.clone()),
        CommandEntry::in_session("templates", templates::run, |args| args.common.clone()),
        CommandEntry::in_session("read", read::run, |args| args.common.clone()),
        CommandEntry::in_session("prompts", prompts::run, |args| args.common.clone()),
        CommandEntry::in_session("prompt", prompt::run, |args| args.common.clone()),
        CommandEntry::in_session("subscribe", subscribe::run, |args| args.common.clone()),
        CommandEntry::in_session("serve", serve::run, serve::ServeArgs::common),
    ])
}

fn configuration_commands() -> Vec<CommandEntry> {
    Vec::from([
        CommandEntry::in_session("list", list::run, list::ConfigListArgs::common),
        CommandEntry::in_session("get", get::run, |args| args.output.common()),
        CommandEntry::in_session("add", add::run, add::AddArgs::common),
        CommandEntry::in_session("add-json", add_json::run, add_json::AddJsonArgs::common),
        CommandEntry::in_session("remove", remove::run, |args| args.output.common()),
        CommandEntry::in_session("enable", enable_disable::enable, |args| args.output.common())
            .about("Enable a server"),
        CommandEntry::in_session("disable", enable_disable::disable, |args| args.output.common())
            .about("Disable a server"),
        CommandEntry::in_session("validate", validate::run, |args| args.output.common()),
        CommandEntry::in_session("import", import::run, import::ImportArgs::common),
        CommandEntry::in_session("export", export::run, |args| args.output.common()),
        CommandEntry::in_session("schema", schema::run, |_| CommonArgs::default()),
        CommandEntry::in_session("secret", secret::run, secret::SecretArgs::common),
        CommandEntry::in_session("reload", reload::run, |args| args.output.common()),
    ])
}

fn login_commands() -> Vec<CommandEntry> {
    Vec::from([
        CommandEntry::in_session("auth", auth::run, auth::AuthArgs::common),
        CommandEntry::in_session("logout", logout::run, logout::LogoutArgs::common),
        CommandEntry::in_session("approve", approve::run, approve::ApproveArgs::common),
        CommandEntry::in_session("revoke", approve::revoke, |args| args.output.common()),
        CommandEntry::in_session("release", release::run, |args| args.common.clone()),
        CommandEntry::in_session("key", key::run, key::KeyArgs::common),
        CommandEntry::in_session("questions", questions::run, |args| args.output.common()),
        CommandEntry::in_session("answer", answer::run, |args| args.output.common()),
    ])
}

fn diagnosis_commands() -> Vec<CommandEntry> {
    Vec::from([
        CommandEntry::in_session("status", status::run, |args| args.common.clone()),
        CommandEntry::in_session("test", test::run, |args| args.common.clone()),
        CommandEntry::in_session("why", why::run, |args| args.common.clone()),
        CommandEntry::in_session("logs", logs::run, logs::LogsArgs::common),
        CommandEntry::in_session("stats", stats::run, |args| args.output.common()),
    ])
}

fn agent_commands() -> Vec<CommandEntry> {
    Vec::from([
        CommandEntry::in_session("run", run::run, |args| args.common.clone()),
        CommandEntry::in_session("cancel", cancel::run, |args| args.output.common()),
    ])
}

fn installation_commands() -> Vec<CommandEntry> {
    Vec::from([
        #[cfg(feature = "demo")]
        CommandEntry::in_session("demo", demo::run, demo::DemoArgs::common),
        #[cfg(feature = "demo")]
        CommandEntry::new("demo-server", demo_server::run),
        CommandEntry::new("completions", completions::run),
        CommandEntry::new("man", man::run),
    ])
}

fn hidden_commands() -> Vec<CommandEntry> {
    Vec::from([
        CommandEntry::new("complete-names", complete_names::run),
        CommandEntry::in_session("hold", hold::run, |args| args.common.clone()),
    ])
}

impl Cli {
    /// Parses the arguments. Prints the error or the help text and exits the process if the arguments are invalid or
    /// ask for help.
    pub fn parse(arguments: Vec<OsString>) -> Self {
        let command = Self::definition();
        let arguments = call::separate_options(&command, spellings::normalize(arguments));
        let read = match command.try_get_matches_from(&arguments) {
            Err(error) if error.kind() == ErrorKind::DisplayHelp => {
                help::with_groups(&Self::definition()).try_get_matches_from(&arguments)
            }
            read => read,
        };
        let read = read.and_then(|matches| Self::from_matches(&matches));
        read.unwrap_or_else(|error| spellings::suggest_synonyms(error).exit())
    }

    /// Returns the definition of the command line. Every command has those options of `wharf` that take effect there.
    pub fn definition() -> clap::Command {
        shared_options::add_to_commands(Self::command())
    }

    /// Reads the arguments. The options of `wharf` may stand before and after the name of a command.
    fn from_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut cli = Self::from_arg_matches(matches)?;
        let mut level = matches.subcommand();
        while let Some((_, matches)) = level {
            cli.config.add_matches(matches);
            cli.color = shared_options::color(matches).unwrap_or(cli.color);
            level = matches.subcommand();
        }
        Ok(cli)
    }

    /// Runs the command.
    pub fn run(self, environment: Environment) -> ExitCode {
        let color = match self.color {
            When::Auto => ColorChoice::Auto,
            When::Always => ColorChoice::AlwaysAnsi,
            When::Never => ColorChoice::Never,
        };
        let context = CliContext { environment, color, config: self.config };
        let command = match self.command {
            Some(_) if self.validate_config => Self::definition()
                .error(ErrorKind::ArgumentConflict, "--validate-config applies to `wharf` without a command")
                .exit(),
            Some(_) if self.repl.has_any() => Self::definition()
                .error(
                    ErrorKind::ArgumentConflict,
                    "conversation options apply to `wharf` without a command, or to `wharf run`",
                )
                .exit(),
            Some(command) => command,
            None if self.validate_config => {
                let all = validate::ValidateArgs::default();
                return session::run(context, &CommonArgs::default(), async |on| validate::run(&all, on).await);
            }
            None => {
                return session::run(context, &self.repl.common(), async |on| wharf_repl::run(&self.repl, on).await);
            }
        };
        command.run(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_definition_is_consistent() {
        Cli::definition().debug_assert();
    }

    #[test]
    fn every_command_has_examples() {
        for command in Cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("wharf "), "{} has no examples", command.get_name());
        }
    }
}
