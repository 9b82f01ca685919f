//! The command line: one module per command.

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
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};
use wharf_spec::Environment;

use configuration::{add, add_json, enable_disable, get, remove, schema, secret, validate};

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
    command: Option<TopLevelCommand>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum When {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
enum TopLevelCommand {
    /// Take a short tour on built-in demo servers
    #[cfg(feature = "demo")]
    Demo(demo::DemoArgs),
    /// Run the agent on one task
    Run(run::RunArgs),
    /// Serve all configured servers to other MCP clients
    Serve(serve::ServeArgs),
    /// List the tools of servers
    Tools(tools::ToolsArgs),
    /// Call a tool
    Call(call::CallArgs),
    /// List the resources of servers
    Resources(resources::ResourcesArgs),
    /// List the resource templates of servers
    Templates(templates::TemplatesArgs),
    /// Read a resource
    Read(read::ReadArgs),
    /// List the prompts of servers
    Prompts(prompts::PromptsArgs),
    /// Expand a prompt
    Prompt(prompt::PromptArgs),
    /// List the configured servers
    #[command(visible_alias = "ls")]
    List(configuration::list::ConfigListArgs),
    /// Show one server's configuration
    Get(get::GetArgs),
    /// Add a server
    Add(add::AddArgs),
    /// Add a server from a JSON entry
    AddJson(add_json::AddJsonArgs),
    /// Remove a server
    #[command(visible_alias = "rm")]
    Remove(remove::RemoveArgs),
    /// Enable a server
    Enable(enable_disable::SwitchArgs),
    /// Disable a server
    Disable(enable_disable::SwitchArgs),
    /// Check the configuration
    Validate(validate::ValidateArgs),
    /// Import servers from other programs
    Import(import::ImportArgs),
    /// Export servers in the format of another program
    Export(export::ExportArgs),
    /// Print the JSON Schema of configuration files
    Schema(schema::SchemaArgs),
    /// Store secrets that a configuration refers to
    Secret(secret::SecretArgs),
    /// Log in to a server, or list logins
    #[command(visible_alias = "login")]
    Auth(auth::AuthArgs),
    /// Log out: revoke and delete stored tokens
    Logout(logout::LogoutArgs),
    /// Review and approve the project's servers
    Approve(approve::ApproveArgs),
    /// Review a withheld tool and release it
    Release(release::ReleaseArgs),
    /// Revoke an approval
    Revoke(approve::RevokeArgs),
    /// Manage the keys of clients of `wharf serve`
    Key(key::KeyArgs),
    /// Watch a server and print its changes
    Subscribe(subscribe::SubscribeArgs),
    /// Make a running wharf reload its configuration
    Reload(reload::ReloadArgs),
    /// Cancel the agent's run in a running wharf
    Cancel(cancel::CancelArgs),
    /// Show the stderr output of servers
    Logs(logs::LogsArgs),
    /// Show the status of the configured servers
    Status(status::StatusArgs),
    /// Test whether a configured server works
    Test(test::TestArgs),
    /// Diagnose a configured server
    Why(why::WhyArgs),
    /// Show call counts and latencies of tools
    Stats(stats::StatsArgs),
    /// Run a harmless server for trying things out
    #[cfg(feature = "demo")]
    DemoServer(demo_server::DemoServerArgs),
    /// Print a shell's completion script
    Completions(completions::CompletionsArgs),
    /// Write the manual pages
    Man(man::ManArgs),
    /// Print names for shell completion; used by the completion scripts
    #[command(hide = true)]
    CompleteNames(complete_names::CompleteNamesArgs),
    /// Keep servers open until a line on stdin or a signal; for tests
    #[command(hide = true)]
    Hold(hold::HoldArgs),
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
            None if self.validate_config => TopLevelCommand::Validate(validate::ValidateArgs::default()),
            Some(_) if self.repl.has_any() => Self::definition()
                .error(
                    ErrorKind::ArgumentConflict,
                    "conversation options apply to `wharf` without a command, or to `wharf run`",
                )
                .exit(),
            Some(command) => command,
            None => {
                return session::run(context, &self.repl.common(), async |on| wharf_repl::run(&self.repl, on).await);
            }
        };
        match command {
            #[cfg(feature = "demo")]
            TopLevelCommand::Demo(args) => session::run(context, &args.common(), async |on| demo::run(&args, on).await),
            TopLevelCommand::Run(args) => session::run(context, &args.common, async |on| run::run(&args, on).await),
            TopLevelCommand::Serve(args) => {
                session::run(context, &args.common(), async |on| serve::run(&args, on).await)
            }
            TopLevelCommand::Tools(args) => session::run(context, &args.common, async |on| tools::run(&args, on).await),
            TopLevelCommand::Call(args) => session::run(context, &args.common, async |on| call::run(&args, on).await),
            TopLevelCommand::Resources(args) => {
                session::run(context, &args.common, async |on| resources::run(&args, on).await)
            }
            TopLevelCommand::Templates(args) => {
                session::run(context, &args.common, async |on| templates::run(&args, on).await)
            }
            TopLevelCommand::Read(args) => session::run(context, &args.common, async |on| read::run(&args, on).await),
            TopLevelCommand::Prompts(args) => {
                session::run(context, &args.common, async |on| prompts::run(&args, on).await)
            }
            TopLevelCommand::Prompt(args) => {
                session::run(context, &args.common, async |on| prompt::run(&args, on).await)
            }
            TopLevelCommand::Subscribe(args) => {
                session::run(context, &args.common, async |on| subscribe::run(&args, on).await)
            }
            TopLevelCommand::List(args) => {
                session::run(context, &args.common(), async |on| configuration::list::run(&args, on).await)
            }
            TopLevelCommand::Get(args) => {
                session::run(context, &args.output.common(), async |on| get::run(&args, on).await)
            }
            TopLevelCommand::Add(args) => session::run(context, &args.common(), async |on| add::run(args, on).await),
            TopLevelCommand::AddJson(args) => {
                session::run(context, &args.common(), async |on| add_json::run(&args, on).await)
            }
            TopLevelCommand::Remove(args) => {
                session::run(context, &args.output.common(), async |on| remove::run(&args, on).await)
            }
            TopLevelCommand::Enable(args) => {
                session::run(context, &args.output.common(), async |on| enable_disable::enable(&args, on).await)
            }
            TopLevelCommand::Disable(args) => {
                session::run(context, &args.output.common(), async |on| enable_disable::disable(&args, on).await)
            }
            TopLevelCommand::Validate(args) => {
                session::run(context, &args.output.common(), async |on| validate::run(&args, on).await)
            }
            TopLevelCommand::Import(args) => {
                session::run(context, &args.common(), async |on| import::run(&args, on).await)
            }
            TopLevelCommand::Export(args) => {
                session::run(context, &args.output.common(), async |on| export::run(&args, on).await)
            }
            TopLevelCommand::Schema(_) => {
                session::run(context, &CommonArgs::default(), async |on| schema::run(on).await)
            }
            TopLevelCommand::Secret(args) => {
                session::run(context, &args.common(), async |on| secret::run(&args, on).await)
            }
            TopLevelCommand::Key(args) => session::run(context, &args.common(), async |on| key::run(&args, on).await),
            TopLevelCommand::Auth(args) => session::run(context, &args.common(), async |on| auth::run(&args, on).await),
            TopLevelCommand::Logout(args) => {
                session::run(context, &args.common(), async |on| logout::run(&args, on).await)
            }
            TopLevelCommand::Approve(args) => {
                session::run(context, &args.common(), async |on| approve::run(&args, on).await)
            }
            TopLevelCommand::Release(args) => {
                session::run(context, &args.common, async |on| release::run(&args, on).await)
            }
            TopLevelCommand::Revoke(args) => {
                session::run(context, &args.output.common(), async |on| approve::revoke(&args, on).await)
            }
            TopLevelCommand::Reload(args) => {
                session::run(context, &args.output.common(), async |on| reload::run(on).await)
            }
            TopLevelCommand::Cancel(args) => {
                session::run(context, &args.output.common(), async |on| cancel::run(on).await)
            }
            TopLevelCommand::Logs(args) => session::run(context, &args.common(), async |on| logs::run(&args, on).await),
            TopLevelCommand::Status(args) => {
                session::run(context, &args.common, async |on| status::run(&args, on).await)
            }
            TopLevelCommand::Test(args) => session::run(context, &args.common, async |on| test::run(&args, on).await),
            TopLevelCommand::Why(args) => session::run(context, &args.common, async |on| why::run(&args, on).await),
            TopLevelCommand::Stats(args) => {
                session::run(context, &args.output.common(), async |on| stats::run(&args, on).await)
            }
            #[cfg(feature = "demo")]
            TopLevelCommand::DemoServer(args) => demo_server::run(args),
            TopLevelCommand::Completions(args) => completions::run(&args),
            TopLevelCommand::Man(args) => man::run(&args),
            TopLevelCommand::CompleteNames(args) => complete_names::run(&args, context),
            TopLevelCommand::Hold(args) => session::run(context, &args.common, async |on| hold::run(&args, on).await),
        }
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
