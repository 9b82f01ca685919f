//! The command line: one module per command.

pub mod approve;
pub mod auth;
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
mod export;
mod hold;
mod import;
pub mod logout;
mod logs;
mod man;
pub mod prompt;
mod prompts;
mod read;
mod reload;
mod resources;
mod run;
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
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};
use wharf_spec::Surroundings;

use configuration::{add, add_json, get, remove, schema, secret, switch, validate};

use wharf_terminal::configured::ConfigArgs;
use wharf_terminal::session;
use wharf_terminal::session::CliContext;

/// An MCP host: connects to MCP servers, lists and calls their tools. Without a command, starts an interactive session
/// with a model.
#[derive(Debug, Parser)]
#[command(name = "wharf", version, after_help = EXAMPLES, disable_help_subcommand = true)]
pub struct Cli {
    /// When to use colour; NO_COLOR applies too
    #[arg(long, global = true, value_enum, default_value_t = When::Auto, value_name = "WHEN", help_heading = "Output")]
    color: When,
    #[command(flatten)]
    config: ConfigArgs,
    /// Check the configuration, as `wharf validate` does
    #[arg(long, help_heading = "Configuration")]
    validate_config: bool,
    #[command(flatten)]
    repl: wharf_repl::Args,
    #[command(subcommand)]
    command: Option<Command>,
}

const EXAMPLES: &str = "\
Examples:
  wharf demo
  wharf tools --stdio \"npx -y @modelcontextprotocol/server-everything\"
  wharf call echo text=ahoy --stdio \"wharf demo-server\"

Exit codes: 0 fine, 1 other failure, 2 usage, 3 server unreachable or off-protocol, 4 login needed,
5 denied, 6 the tool or server answered with an error, 7 timed out, 130 interrupted.";

#[derive(Debug, Clone, Copy, ValueEnum)]
enum When {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Take a short tour on built-in demo servers
    #[cfg(feature = "demo")]
    Demo(demo::Args),
    /// Run the agent on one task
    Run(run::Args),
    /// List the tools of servers
    Tools(tools::Args),
    /// Call a tool
    Call(call::Args),
    /// List the resources of servers
    Resources(resources::Args),
    /// List the resource templates of servers
    Templates(templates::Args),
    /// Read a resource
    Read(read::Args),
    /// List the prompts of servers
    Prompts(prompts::Args),
    /// Expand a prompt
    Prompt(prompt::Args),
    /// List the configured servers
    #[command(visible_alias = "ls")]
    List(configuration::list::Args),
    /// Show one server's configuration
    Get(get::Args),
    /// Add a server
    Add(add::Args),
    /// Add a server from a JSON entry
    AddJson(add_json::Args),
    /// Remove a server
    #[command(visible_alias = "rm")]
    Remove(remove::Args),
    /// Enable a server
    Enable(switch::Args),
    /// Disable a server
    Disable(switch::Args),
    /// Check the configuration
    Validate(validate::Args),
    /// Import servers from other programs
    Import(import::Args),
    /// Export servers in the format of another program
    Export(export::Args),
    /// Print the JSON Schema of configuration files
    Schema(schema::Args),
    /// Store secrets that a configuration refers to
    Secret(secret::Args),
    /// Log in to a server, or list logins
    #[command(visible_alias = "login")]
    Auth(auth::Args),
    /// Log out: revoke and delete stored tokens
    Logout(logout::Args),
    /// Review and approve the project's servers
    Approve(approve::Args),
    /// Revoke an approval
    Revoke(approve::RevokeArgs),
    /// Watch a server and print its changes
    Subscribe(subscribe::Args),
    /// Make a running wharf reload its configuration
    Reload(reload::Args),
    /// Cancel the agent's run in a running wharf
    Cancel(cancel::Args),
    /// Show the stderr output of servers
    Logs(logs::Args),
    /// Show the status of the configured servers
    Status(status::Args),
    /// Test whether a configured server works
    Test(test::Args),
    /// Diagnose a configured server
    Why(why::Args),
    /// Show call counts and latencies of tools
    Stats(stats::Args),
    /// Run a harmless server for trying things out
    #[cfg(feature = "demo")]
    DemoServer(demo_server::Args),
    /// Print a shell's completion script
    Completions(completions::Args),
    /// Write the manual pages
    Man(man::Args),
    /// Print names for shell completion; used by the completion scripts
    #[command(hide = true)]
    CompleteNames(complete_names::Args),
    /// Keep servers open until a line on stdin or a signal; for tests
    #[command(hide = true)]
    Hold(hold::Args),
}

impl Cli {
    /// Parses the arguments. Prints the error or the help text and exits the process if the arguments are invalid or
    /// ask for help.
    pub fn read(arguments: Vec<OsString>) -> Self {
        let command = Self::command();
        let arguments = call::sorted(&command, without_prefix(arguments));
        let read = command.try_get_matches_from(arguments).and_then(|matches| Self::from_arg_matches(&matches));
        read.unwrap_or_else(|error| error.exit())
    }

    /// Runs the command.
    pub fn run(self, surroundings: Surroundings) -> ExitCode {
        let color = match self.color {
            When::Auto => ColorChoice::Auto,
            When::Always => ColorChoice::AlwaysAnsi,
            When::Never => ColorChoice::Never,
        };
        let edge = CliContext { surroundings, color, config: self.config };
        let command = match self.command {
            _ if self.validate_config => Command::Validate(validate::Args::default()),
            Some(_) if self.repl.is_any() => Self::command()
                .error(
                    ErrorKind::ArgumentConflict,
                    "what belongs to a conversation goes with `wharf` alone, or behind `run`",
                )
                .exit(),
            Some(command) => command,
            None => return session::run(edge, &self.repl.common(), async |on| wharf_repl::run(&self.repl, on).await),
        };
        match command {
            #[cfg(feature = "demo")]
            Command::Demo(args) => session::run(edge, &args.common(), async |on| demo::run(&args, on).await),
            Command::Run(args) => session::run(edge, &args.common, async |on| run::run(&args, on).await),
            Command::Tools(args) => session::run(edge, &args.common, async |on| tools::run(&args, on).await),
            Command::Call(args) => session::run(edge, &args.common, async |on| call::run(&args, on).await),
            Command::Resources(args) => session::run(edge, &args.common, async |on| resources::run(&args, on).await),
            Command::Templates(args) => session::run(edge, &args.common, async |on| templates::run(&args, on).await),
            Command::Read(args) => session::run(edge, &args.common, async |on| read::run(&args, on).await),
            Command::Prompts(args) => session::run(edge, &args.common, async |on| prompts::run(&args, on).await),
            Command::Prompt(args) => session::run(edge, &args.common, async |on| prompt::run(&args, on).await),
            Command::Subscribe(args) => session::run(edge, &args.common, async |on| subscribe::run(&args, on).await),
            Command::List(args) => {
                session::run(edge, &args.common(), async |on| configuration::list::run(&args, on).await)
            }
            Command::Get(args) => session::run(edge, &args.common(), async |on| get::run(&args, on).await),
            Command::Add(args) => session::run(edge, &args.common(), async |on| add::run(args, on).await),
            Command::AddJson(args) => session::run(edge, &args.common(), async |on| add_json::run(&args, on).await),
            Command::Remove(args) => session::run(edge, &args.common(), async |on| remove::run(&args, on).await),
            Command::Enable(args) => session::run(edge, &args.common(), async |on| switch::enable(&args, on).await),
            Command::Disable(args) => session::run(edge, &args.common(), async |on| switch::disable(&args, on).await),
            Command::Validate(args) => session::run(edge, &args.common(), async |on| validate::run(&args, on).await),
            Command::Import(args) => session::run(edge, &args.common, async |on| import::run(&args, on).await),
            Command::Export(args) => session::run(edge, &args.common, async |on| export::run(&args, on).await),
            Command::Schema(args) => session::run(edge, &args.common(), async |on| schema::run(on).await),
            Command::Secret(args) => session::run(edge, &args.common(), async |on| secret::run(&args, on).await),
            Command::Auth(args) => session::run(edge, args.common(), async |on| auth::run(&args, on).await),
            Command::Logout(args) => session::run(edge, &args.common, async |on| logout::run(&args, on).await),
            Command::Approve(args) => session::run(edge, &args.common, async |on| approve::run(&args, on).await),
            Command::Revoke(args) => session::run(edge, &args.common, async |on| approve::revoke(&args, on).await),
            Command::Reload(args) => session::run(edge, &args.common(), async |on| reload::run(on).await),
            Command::Cancel(args) => session::run(edge, &args.common(), async |on| cancel::run(on).await),
            Command::Logs(args) => session::run(edge, &args.common(), async |on| logs::run(&args, on).await),
            Command::Status(args) => session::run(edge, &args.common, async |on| status::run(&args, on).await),
            Command::Test(args) => session::run(edge, &args.common, async |on| test::run(&args, on).await),
            Command::Why(args) => session::run(edge, &args.common, async |on| why::run(&args, on).await),
            Command::Stats(args) => session::run(edge, &args.common, async |on| stats::run(&args, on).await),
            #[cfg(feature = "demo")]
            Command::DemoServer(args) => demo_server::run(args),
            Command::Completions(args) => completions::run(&args),
            Command::Man(args) => man::run(&args),
            Command::CompleteNames(args) => complete_names::run(&args, edge),
            Command::Hold(args) => session::run(edge, &args.common, async |on| hold::run(&args, on).await),
        }
    }
}

/// Removes a leading `mcp`, so that `wharf mcp list` works as it does in other programs.
fn without_prefix(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let with_value = ["--color", "--config", "--mcp-config"];
    let mut at = 1;
    while let Some(word) = arguments.get(at).and_then(|word| word.to_str()).filter(|word| word.starts_with('-')) {
        at += if with_value.contains(&word) { 2 } else { 1 };
    }
    if arguments.get(at).is_some_and(|word| word == "mcp") {
        arguments.remove(at);
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_shows_how_it_is_used() {
        for command in Cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("wharf "), "{} has no examples", command.get_name());
        }
    }
}
