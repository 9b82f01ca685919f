//! The commands, one module each. This one only says which there are.

mod call;
mod completions;
mod demo;
mod demo_server;
mod hold;
mod list;
mod prompt;
mod prompts;
mod read;
mod resources;
mod subscribe;
mod templates;
mod tools;

use std::process::ExitCode;

use anstream::ColorChoice;
use clap::{Parser, Subcommand, ValueEnum};
use wharf_spec::Surroundings;

use crate::session;

/// Where MCP servers dock: start servers, see what they offer, use it.
#[derive(Debug, Parser)]
#[command(name = "wharf", version, after_help = EXAMPLES, disable_help_subcommand = true)]
pub struct Cli {
    /// When to use colour; NO_COLOR is heeded too
    #[arg(long, global = true, value_enum, default_value_t = When::Auto, value_name = "WHEN", help_heading = "Output")]
    color: When,
    #[command(subcommand)]
    command: Command,
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
    /// A short tour, on servers that come along
    Demo(demo::Args),
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
    /// Watch a server and show what changes
    Subscribe(subscribe::Args),
    /// A harmless server to try things on
    DemoServer(demo_server::Args),
    /// Write the completions of a shell
    Completions(completions::Args),
    /// Keep servers open until told otherwise; for proofs
    #[command(hide = true)]
    Hold(hold::Args),
}

/// What is read at the edge of the program and passed down.
pub struct Edge {
    pub surroundings: Surroundings,
    pub color: ColorChoice,
}

impl Cli {
    /// Runs the command.
    pub fn run(self, surroundings: Surroundings) -> ExitCode {
        let color = match self.color {
            When::Auto => ColorChoice::Auto,
            When::Always => ColorChoice::AlwaysAnsi,
            When::Never => ColorChoice::Never,
        };
        let edge = Edge { surroundings, color };
        match self.command {
            Command::Demo(args) => session::run(edge, &args.common(), async |on| demo::run(&args, on).await),
            Command::Tools(args) => session::run(edge, &args.common, async |on| tools::run(&args, on).await),
            Command::Call(args) => session::run(edge, &args.common, async |on| call::run(&args, on).await),
            Command::Resources(args) => session::run(edge, &args.common, async |on| resources::run(&args, on).await),
            Command::Templates(args) => session::run(edge, &args.common, async |on| templates::run(&args, on).await),
            Command::Read(args) => session::run(edge, &args.common, async |on| read::run(&args, on).await),
            Command::Prompts(args) => session::run(edge, &args.common, async |on| prompts::run(&args, on).await),
            Command::Prompt(args) => session::run(edge, &args.common, async |on| prompt::run(&args, on).await),
            Command::Subscribe(args) => session::run(edge, &args.common, async |on| subscribe::run(&args, on).await),
            Command::DemoServer(args) => demo_server::run(args),
            Command::Completions(args) => completions::run(&args),
            Command::Hold(args) => session::run(edge, &args.common, async |on| hold::run(&args, on).await),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

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
