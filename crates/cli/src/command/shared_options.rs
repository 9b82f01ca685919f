//! Options of `wharf` that its commands have too, each only where it takes effect.
//!
//! Clap's global options would appear on every command, also on one that reads no configuration and prints no colour.

use clap::{ArgMatches, Command};

use super::When;

/// Ids of the options.
const COLOR: &str = "color";
const FILES: &str = "files";
const ONLY_CONFIG: &str = "only_config";
const STRICT_CONFIG: &str = "strict_config";

/// Returns the options of `wharf` that take effect in a command.
fn effective_options(command: &str) -> &'static [&'static str] {
    match command {
        // These write a fixed text, or are a server.
        "completions" | "demo-server" | "man" | "schema" => &[],
        // These read no configuration.
        "demo" | "stats" => &[COLOR],
        // `add` writes one file, and the configuration decides only whether the entry takes effect. `cancel` and
        // `reload` find a running process by the files that it was started with.
        "add" | "add-json" | "cancel" | "reload" => &[COLOR, FILES, ONLY_CONFIG],
        // The scripts for shells ask for plain names.
        "complete-names" => &[FILES, ONLY_CONFIG],
        _ => &[COLOR, FILES, ONLY_CONFIG, STRICT_CONFIG],
    }
}

/// Adds the options to the commands.
pub fn add_to_commands(mut wharf: Command) -> Command {
    let options: Vec<clap::Arg> = wharf.get_arguments().cloned().collect();
    let names: Vec<String> = wharf.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    for name in names {
        let effective = effective_options(&name);
        let of_command = options.iter().filter(|option| effective.contains(&option.get_id().as_str()));
        let of_command: Vec<clap::Arg> = of_command.cloned().collect();
        wharf = wharf.mut_subcommand(name, |command| add_below(command, &of_command));
    }
    wharf
}

/// Adds options to a command and its subcommands.
fn add_below(command: Command, options: &[clap::Arg]) -> Command {
    let command = command.args(options.iter().cloned());
    command.mut_subcommands(|inner| add_below(inner, options))
}

/// Returns the colour requested after the name of a command.
pub fn color(matches: &ArgMatches) -> Option<When> {
    let color = matches.try_get_one::<When>(COLOR).ok()?.copied();
    color.filter(|_| matches.value_source(COLOR) == Some(clap::parser::ValueSource::CommandLine))
}
