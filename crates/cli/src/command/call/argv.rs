//! Separates the options of `wharf call …` from the arguments of the tool.
//!
//! This happens before parsing: an option that wharf knows belongs to wharf at any position, and any other word with
//! leading dashes after the tool's name belongs to the tool. The arguments are reordered accordingly, with `--` in
//! between, so that clap needs no special case.

use std::ffi::{OsStr, OsString};

use clap::{Arg, Command};

/// Moves wharf's own options before the other words of a call. Leaves other commands unchanged.
pub fn separate_options(wharf: &Command, arguments: Vec<OsString>) -> Vec<OsString> {
    let Some(at) = position_of_call(wharf, &arguments) else { return arguments };
    let Some(call) = wharf.find_subcommand("call") else { return arguments };
    let (before, after) = arguments.split_at(at + 1);
    let (own, words) = split(&[wharf, call], after);
    let mut all = before.to_vec();
    all.extend(own);
    if !words.is_empty() {
        all.push("--".into());
        all.extend(words);
    }
    all
}

/// Returns the position of `call` if it is the command, possibly after global options and `mcp`.
fn position_of_call(wharf: &Command, arguments: &[OsString]) -> Option<usize> {
    let mut at = 1;
    loop {
        let word = arguments.get(at)?;
        match match_option(&[wharf], word) {
            Some(found) => at += 1 + usize::from(found.wants_next),
            None if word == "call" => return Some(at),
            None if word == "mcp" => at += 1,
            None => return None,
        }
    }
}

/// Splits the arguments into wharf's own options with their values, and the other words in order.
fn split(commands: &[&Command], arguments: &[OsString]) -> (Vec<OsString>, Vec<OsString>) {
    let (mut own, mut words) = (Vec::new(), Vec::new());
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        if word == "--" {
            words.extend(rest.cloned());
            break;
        }
        match match_option(commands, word) {
            // After the tool's name, `--help` asks for the tool's help.
            Some(found) if found.is_help && !words.is_empty() => words.push(word.clone()),
            Some(found) => {
                own.push(word.clone());
                if found.wants_next {
                    own.extend(rest.next().cloned());
                }
            }
            // An unknown option before the tool's name: leave it to clap, which rejects it.
            None if words.is_empty() && looks_like_option(word) => own.push(word.clone()),
            None => words.push(word.clone()),
        }
    }
    (own, words)
}

/// A known option.
struct MatchedOption {
    /// Its value is the next word.
    wants_next: bool,
    is_help: bool,
}

/// Looks up a word among the options of these commands. Help is handled here because clap has not added it yet.
fn match_option(commands: &[&Command], word: &OsStr) -> Option<MatchedOption> {
    let word = word.to_str()?;
    if matches!(word, "--help" | "-h") {
        return Some(MatchedOption { wants_next: false, is_help: true });
    }
    let arguments = || commands.iter().flat_map(|command| command.get_arguments());
    let (arg, has_value) = match word.strip_prefix("--") {
        Some(long) => {
            let name = long.split('=').next().unwrap_or(long);
            (arguments().find(|arg| has_long(arg, name))?, long.contains('='))
        }
        None => {
            let mut letters = word.strip_prefix('-')?.chars();
            let letter = letters.next()?;
            (arguments().find(|arg| arg.get_short() == Some(letter))?, letters.next().is_some())
        }
    };
    let takes_value = arg.get_action().takes_values();
    Some(MatchedOption { wants_next: takes_value && !has_value, is_help: false })
}

fn has_long(arg: &Arg, name: &str) -> bool {
    arg.get_long() == Some(name) || arg.get_all_aliases().is_some_and(|all| all.contains(&name))
}

fn looks_like_option(word: &OsStr) -> bool {
    word.to_str().is_some_and(|word| word.len() > 1 && word.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: &str) {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let sorted = separate_options(&crate::command::Cli::definition(), words);
        let sorted: Vec<&str> = sorted.iter().filter_map(|word| word.to_str()).collect();
        assert_eq!(sorted.join(" "), expected, "{line}");
    }

    #[test]
    fn wharf_options_are_recognised_anywhere() {
        check("wharf call git log --json a=1", "wharf call --json -- git log a=1");
        check("wharf call git log --max 3 --timeout 5 x", "wharf call --timeout 5 -- git log --max 3 x");
        check("wharf call --stdio x echo --all --env A=1", "wharf call --stdio x --env A=1 -- echo --all");
        check("wharf --color never mcp call a b --color=auto", "wharf --color never mcp call --color=auto -- a b");
        check("wharf call a b --params - --config f -5", "wharf call --params - --config f -- a b -5");
    }

    #[test]
    fn arguments_after_double_dash_belong_to_the_tool() {
        check("wharf call a b --json -- --json --stdio x", "wharf call --json -- a b --json --stdio x");
    }

    #[test]
    fn help_after_the_tool_name_belongs_to_the_tool() {
        check("wharf call --help", "wharf call --help");
        check("wharf call git log --help", "wharf call -- git log --help");
        check("wharf call echo -h --stdio x", "wharf call --stdio x -- echo -h");
    }

    #[test]
    fn other_commands_are_unchanged() {
        check("wharf tools call --x", "wharf tools call --x");
        check("wharf call --bogus a", "wharf call --bogus -- a");
    }
}
