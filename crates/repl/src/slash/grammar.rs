//! Grammar of the slash commands, parsed by clap. Help, errors and completion are derived from it.

use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use super::{mcp, prompt, tools};
use wharf_terminal::failure::Failure;
use wharf_terminal::nearest::suggestion;

/// A command line without its slash.
#[derive(Debug, Parser)]
#[command(
    name = "wharf",
    about = "Commands of the REPL; everything else goes to the agent",
    no_binary_name = true,
    disable_help_subcommand = true,
    subcommand_required = true
)]
struct SlashLine {
    #[command(subcommand)]
    command: SlashCommand,
}

/// The slash commands.
#[derive(Debug, Subcommand)]
pub enum SlashCommand {
    /// Show the MCP servers, and steer them
    Mcp(mcp::McpArgs),
    /// List the tools of servers
    Tools(tools::ToolsCommandArgs),
    /// List the prompts of servers
    Prompts(ServerFilterArgs),
    /// Expand a prompt of a server and say it to the agent
    Prompt(prompt::PromptCommandArgs),
    /// List the resources of servers; @server:uri in a message attaches one
    Resources(ServerFilterArgs),
    /// Show which rules decide about calls
    Permissions,
    /// Show which model is used, or use another
    Model {
        /// The model to use from now on
        #[arg(value_name = "MODEL")]
        model: Option<String>,
    },
    /// Begin a new conversation
    Clear,
    /// List the last conversations, or go on with one
    Resume {
        /// Its name, or the beginning of it; `last` is the last one
        #[arg(value_name = "CONVERSATION")]
        conversation: Option<String>,
    },
    /// Cancel the run, as Ctrl-C does
    Cancel,
    /// Show which commands there are, or how one is used
    Help {
        /// The command
        #[arg(value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// Leave, with everything closed
    #[command(visible_alias = "quit")]
    Exit,
}

/// Arguments of a list command.
#[derive(Debug, Args)]
pub struct ServerFilterArgs {
    /// Only those of this server
    #[arg(value_name = "SERVER")]
    pub server: Option<String>,
}

/// Result of parsing a line.
#[derive(Debug)]
pub enum ParsedLine {
    Command(SlashCommand),
    /// Rendered help.
    Help(String),
}

/// Returns the grammar for completion and help. Names do not include the slash.
pub fn grammar() -> clap::Command {
    SlashLine::command()
}

/// Parses a line without its slash. An empty line requests help.
///
/// # Errors
///
/// Returns a usage failure if the line is not a valid command.
pub fn read(line: &str, width: Option<usize>) -> Result<ParsedLine, Failure> {
    let words = shlex::split(line).ok_or_else(|| {
        Failure::usage("a quote is not closed").hint("write a quote that is meant as it is after a backslash")
    })?;
    match words.is_empty() {
        true => Ok(ParsedLine::Command(SlashCommand::Help { command: words })),
        false => read_words(words, width),
    }
}

/// Parses the words of a line.
pub fn read_words(words: Vec<String>, width: Option<usize>) -> Result<ParsedLine, Failure> {
    let first = words.first().cloned().unwrap_or_default();
    let read = fitted(width).try_get_matches_from(words).and_then(|matches| SlashLine::from_arg_matches(&matches));
    match read {
        Ok(SlashLine { command }) => Ok(ParsedLine::Command(command)),
        Err(error) => explained(&error, &first),
    }
}

fn fitted(width: Option<usize>) -> clap::Command {
    // Zero means unbounded.
    grammar().term_width(width.unwrap_or_default())
}

fn explained(error: &clap::Error, first: &str) -> Result<ParsedLine, Failure> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            Ok(ParsedLine::Help(slashed(&error.render().to_string())))
        }
        ErrorKind::InvalidSubcommand => Err(unknown(first)),
        _ => Err(misused(&error.render().to_string())),
    }
}

/// Returns the failure for an unknown command.
fn unknown(word: &str) -> Failure {
    let wanted = format!("/{word}");
    let names: Vec<String> = grammar().get_subcommands().map(|command| format!("/{}", command.get_name())).collect();
    Failure::usage(format_args!("there is no command `{wanted}`"))
        .hint(suggestion(&wanted, names.iter().map(String::as_str)))
}

/// Converts a clap error: its first paragraph is the message; tips and usage become hints.
fn misused(text: &str) -> Failure {
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut paragraphs = text.split("\n\n").map(one_line);
    let wrong = paragraphs.next().unwrap_or_default();
    let failure = Failure::usage(wrong.strip_prefix("error: ").unwrap_or(&wrong));
    paragraphs.fold(failure, |failure, paragraph| match paragraph.split_once(": ") {
        Some(("tip", tip)) => failure.hint(tip),
        Some(("Usage", usage)) => failure.hint(format_args!("/{usage}")),
        _ => failure,
    })
}

/// Adds the slash to the usage line, which clap does not know.
fn slashed(help: &str) -> String {
    help.replacen("Usage: ", "Usage: /", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grammar_is_consistent() {
        grammar().debug_assert();
    }

    #[track_caller]
    fn check(line: &str, expected: &str) {
        let told = match read(line, None) {
            Ok(ParsedLine::Command(command)) => format!("{command:?}"),
            Ok(ParsedLine::Help(help)) => help,
            Err(failure) => format!("{}; {}", failure.error.message, failure.hints.join("; ")),
        };
        assert!(told.starts_with(expected), "{line}: {told}");
    }

    #[test]
    fn lines_are_read() {
        for (line, expected) in [
            ("mcp", "Mcp(Args { words: [], command: None })"),
            ("mcp status", "Mcp(Args { words: [], command: Some(Status) })"),
            ("mcp foo", "Mcp(Args { words: [\"foo\"], command: None })"),
            ("mcp conect foo", "Mcp(Args { words: [\"conect\", \"foo\"], command: None })"),
            ("mcp show status", "Mcp(Args { words: [], command: Some(Show(One { server: \"status\" })) })"),
            ("mcp list-tools", "Mcp(Args { words: [], command: Some(ListTools(OfServer { server: None })) })"),
            (
                "tools --search 'read a file' git",
                "Tools(Args { server: Some(\"git\"), search: Some(\"read a file\") })",
            ),
            (
                "prompt git review code=--x",
                "Prompt(Args { server: \"git\", prompt: \"review\", arguments: [\"code=--x\"] })",
            ),
            ("quit", "Exit"),
            ("  ", "Help { command: [] }"),
            ("resume last", "Resume { conversation: Some(\"last\") }"),
        ] {
            check(line, expected);
        }
    }

    #[test]
    fn mistakes_say_what_to_do_next() {
        for (line, expected) in [
            ("mcpp", "there is no command `/mcpp`; did you mean `/mcp`?"),
            ("tolls", "there is no command `/tolls`; did you mean `/tools`?"),
            ("frobnicate", "there is no command `/frobnicate`; there are: `/mcp`, "),
            ("model 'x", "a quote is not closed"),
            ("mcp connect", "the following required arguments were not provided: <SERVER>; /mcp connect <SERVER>"),
            ("tools --serch x", "unexpected argument '--serch' found; a similar argument exists: '--search'; /tools"),
            ("clear now", "unexpected argument 'now' found; /clear"),
            ("mcp connect --help", "Connect a server\n\nUsage: /mcp connect <SERVER>\n"),
        ] {
            check(line, expected);
        }
    }
}
