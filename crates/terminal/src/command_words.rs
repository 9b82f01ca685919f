//! Arguments of a command line by spelling and position.

use clap::{Arg, Command};

/// Returns the option with this spelling if its value is the next word.
pub fn option<'a>(root: &'a Command, command: &'a Command, word: &str) -> Option<&'a Arg> {
    let is = |argument: &&Arg| match word.strip_prefix("--") {
        Some(long) => argument.get_long_and_visible_aliases().is_some_and(|names| names.contains(&long)),
        None => argument.get_short().is_some_and(|short| word[1..] == short.to_string()),
    };
    let known = command.get_arguments().chain(root.get_arguments()).find(is);
    known.filter(|argument| argument.get_action().takes_values())
}

/// Returns the argument at a position. The last one may be repeated.
pub fn positional(command: &Command, position: usize) -> Option<&Arg> {
    let several = |argument: &&Arg| argument.get_num_args().is_some_and(|range| range.max_values() > 1);
    let repeated = |argument: &&Arg| several(argument) || matches!(argument.get_action(), clap::ArgAction::Append);
    command.get_positionals().nth(position).or_else(|| command.get_positionals().last().filter(repeated))
}
