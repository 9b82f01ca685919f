//! Other spellings of commands: `help` and `version` as words, and suggestions for names that other programs use.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue};

/// Options of `wharf` whose value is the next word.
const OPTIONS_WITH_VALUE: [&str; 3] = ["--color", "--config", "--mcp-config"];

/// Names that other programs use, and the commands that do the same here.
const SYNONYMS: [(&[&str], &[&str]); 18] = [
    (&["doctor", "diagnose", "debug", "check", "health"], &["why", "status", "validate"]),
    (&["search", "find"], &["tools --search"]),
    (&["gateway", "proxy", "daemon"], &["serve"]),
    (&["server", "start", "mock"], &["demo-server", "serve"]),
    (&["install", "new", "register", "create", "init"], &["add", "import"]),
    (&["uninstall", "delete", "del", "unregister"], &["remove"]),
    (&["exec", "execute", "invoke", "use"], &["call"]),
    (&["chat", "repl", "ask", "agent", "prompt-model"], &["run"]),
    (&["show", "info", "inspect", "describe", "cat"], &["get", "tools"]),
    (&["ps", "top", "health-check"], &["status"]),
    (&["connect", "ping"], &["test"]),
    (&["servers", "config", "configuration"], &["list", "get"]),
    (&["trust", "allow"], &["approve"]),
    (&["untrust", "forbid"], &["revoke"]),
    (&["secrets", "token"], &["secret"]),
    (&["keys", "apikey", "api-key"], &["key", "secret"]),
    (&["watch", "listen"], &["subscribe"]),
    (&["history", "usage", "metrics"], &["stats", "logs"]),
];

/// Removes a leading `mcp`, so that `wharf mcp list` works as it does in other programs. Turns `help COMMAND` into
/// `COMMAND --help` and `version` into `--version`.
pub fn normalize(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let at = first_word(&arguments);
    if arguments.get(at).is_some_and(|word| word == "mcp") {
        arguments.remove(at);
    }
    match arguments.get(at).and_then(|word| word.to_str()) {
        Some("help") => {
            arguments.remove(at);
            arguments.truncate(at + 1);
            arguments.push("--help".into());
        }
        Some("version") if arguments.len() == at + 1 => arguments[at] = "--version".into(),
        _ => {}
    }
    arguments
}

/// Returns the position of the first word that is not an option of `wharf`.
fn first_word(arguments: &[OsString]) -> usize {
    let mut at = 1;
    while let Some(word) = arguments.get(at).and_then(|word| word.to_str()).filter(|word| word.starts_with('-')) {
        at += if OPTIONS_WITH_VALUE.contains(&word) { 2 } else { 1 };
    }
    at
}

/// Replaces the suggestions for an unknown command by those of its synonyms.
pub fn suggest_synonyms(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand)
        && let Some((_, commands)) = SYNONYMS.iter().find(|(words, _)| words.contains(&word.as_str()))
    {
        let commands = commands.iter().map(|command| (*command).to_owned()).collect();
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(commands));
    }
    error
}

#[cfg(test)]
mod tests {
    use super::super::Cli;
    use super::*;

    #[test]
    fn words_are_normalized() {
        for (typed, expected) in [
            ("wharf mcp list", "wharf list"),
            ("wharf help", "wharf --help"),
            ("wharf help call", "wharf call --help"),
            ("wharf --color never help call more", "wharf --color never call --help"),
            ("wharf mcp help list", "wharf list --help"),
            ("wharf version", "wharf --version"),
            ("wharf call help", "wharf call help"),
        ] {
            let words = normalize(typed.split(' ').map(OsString::from).collect());
            assert_eq!(words.join(std::ffi::OsStr::new(" ")), expected, "{typed}");
        }
    }

    #[test]
    fn synonyms_name_commands_and_are_none() {
        let definition = Cli::definition();
        for (words, commands) in SYNONYMS {
            for word in words {
                assert!(definition.find_subcommand(word).is_none(), "`{word}` is a command");
            }
            for command in commands {
                let name = command.split(' ').next().unwrap();
                assert!(definition.find_subcommand(name).is_some(), "`{command}` is not a command");
            }
        }
    }
}
