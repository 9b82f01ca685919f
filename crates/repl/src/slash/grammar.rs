//! Grammar of the slash commands, parsed by clap. Help, errors and completion are derived from it.

use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use super::{mcp, permissions, prompt, tools};
use wharf_terminal::failure::Failure;
use wharf_terminal::suggestions::suggestion;

/// A command line without its slash.
#[derive(Debug, Parser)]
#[command(
    name = "wharf",
    about = "REPL commands. Any other input goes to the agent",
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
    /// Show and control MCP servers
    Mcp(mcp::McpArgs),
    /// List available tools, or switch one off or on
    Tools(tools::ToolsCommandArgs),
    /// List available prompts
    Prompts(ServerFilterArgs),
    /// Expand a server's prompt and send it to the agent
    Prompt(prompt::PromptCommandArgs),
    /// List available resources (attach one with @server:uri in a message)
    Resources(ServerFilterArgs),
    /// Show the permission rules, or remove one
    Permissions(permissions::PermissionsArgs),
    /// Show the current model, or switch to another
    Model {
        /// The model to use from now on
        #[arg(value_name = "MODEL")]
        model: Option<String>,
    },
    /// Start a new conversation
    Clear,
    /// List recent conversations, or resume one
    Resume {
        /// Conversation id or a prefix of it, or `last`
        #[arg(value_name = "CONVERSATION")]
        conversation: Option<String>,
    },
    /// Show a tool result in full
    Show {
        /// Number of the result; the last one by default
        #[arg(value_name = "NUMBER")]
        number: Option<usize>,
    },
    /// Cancel the run, as Ctrl-C does
    Cancel,
    /// List commands, or show how to use one
    Help {
        /// The command
        #[arg(value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// Close all servers and exit
    #[command(visible_alias = "quit")]
    Exit,
}

/// Arguments of a list command.
#[derive(Debug, Args)]
pub struct ServerFilterArgs {
    /// Filter by server
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
pub fn parse_line(line: &str, width: Option<usize>) -> Result<ParsedLine, Failure> {
    let words = shlex::split(line)
        .ok_or_else(|| Failure::usage("unclosed quote").with_hint("escape a literal quote with a backslash"))?;
    match words.is_empty() {
        true => Ok(ParsedLine::Command(SlashCommand::Help { command: words })),
        false => parse_words(words, width),
    }
}

/// Parses the words of a line.
pub fn parse_words(words: Vec<String>, width: Option<usize>) -> Result<ParsedLine, Failure> {
    let first = words.first().cloned().unwrap_or_default();
    let read =
        grammar_with_width(width).try_get_matches_from(words).and_then(|matches| SlashLine::from_arg_matches(&matches));
    match read {
        Ok(SlashLine { command }) => Ok(ParsedLine::Command(command)),
        Err(error) => explain_error(&error, &first),
    }
}

fn grammar_with_width(width: Option<usize>) -> clap::Command {
    // Zero means unbounded.
    grammar().term_width(width.unwrap_or_default())
}

fn explain_error(error: &clap::Error, first: &str) -> Result<ParsedLine, Failure> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            Ok(ParsedLine::Help(add_slash(&error.render().to_string())))
        }
        ErrorKind::InvalidSubcommand => Err(unknown_command(first)),
        _ => Err(usage_failure(&error.render().to_string())),
    }
}

/// Returns the failure for an unknown command.
fn unknown_command(word: &str) -> Failure {
    let wanted = format!("/{word}");
    let names: Vec<String> = grammar().get_subcommands().map(|command| format!("/{}", command.get_name())).collect();
    Failure::usage(format_args!("unknown command `{wanted}`"))
        .with_hint(suggestion(&wanted, names.iter().map(String::as_str)))
}

/// Converts a clap error: its first paragraph is the message; tips and usage become hints.
fn usage_failure(text: &str) -> Failure {
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut paragraphs = text.split("\n\n").map(one_line);
    let wrong = paragraphs.next().unwrap_or_default();
    let failure = Failure::usage(wrong.strip_prefix("error: ").unwrap_or(&wrong));
    paragraphs.fold(failure, |failure, paragraph| match paragraph.split_once(": ") {
        Some(("tip", tip)) => failure.with_hint(tip),
        Some(("Usage", usage)) => failure.with_hint(format_args!("/{usage}")),
        _ => failure,
    })
}

/// Adds the slash to the usage line, which clap does not know.
fn add_slash(help: &str) -> String {
    help.replacen("Usage: ", "Usage: /", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grammar_is_consistent() {
        grammar().debug_assert();
    }

    #[track_caller]
    fn check(line: &str, expected: &str) {
        let outcome = match parse_line(line, None) {
            Ok(ParsedLine::Command(command)) => format!("{command:?}"),
            Ok(ParsedLine::Help(help)) => help,
            Err(failure) => format!("{}; {}", failure.error.message, failure.hints.join("; ")),
        };
        assert!(outcome.starts_with(expected), "{line}: {outcome}");
    }

    #[test]
    fn lines_are_parsed() {
        for (line, expected) in [
            ("mcp", "Mcp(McpArgs { words: [], command: None })"),
            ("mcp status", "Mcp(McpArgs { words: [], command: Some(Status) })"),
            ("mcp foo", "Mcp(McpArgs { words: [\"foo\"], command: None })"),
            ("mcp conect foo", "Mcp(McpArgs { words: [\"conect\", \"foo\"], command: None })"),
            ("mcp show status", "Mcp(McpArgs { words: [], command: Some(Show(McpServerArg { server: \"status\" })) })"),
            (
                "mcp list-tools",
                "Mcp(McpArgs { words: [], command: Some(ListTools(ServerFilterArgs { server: None })) })",
            ),
            (
                "tools --search 'read a file' git",
                "Tools(ToolsCommandArgs { command: None, server: None, search: [\"read a file\", \"git\"] })",
            ),
            (
                "prompt git review code=--x",
                "Prompt(PromptCommandArgs { server: \"git\", prompt: \"review\", arguments: [\"code=--x\"] })",
            ),
            ("quit", "Exit"),
            ("  ", "Help { command: [] }"),
            ("resume last", "Resume { conversation: Some(\"last\") }"),
        ] {
            check(line, expected);
        }
    }

    #[test]
    fn errors_have_hints() {
        for (line, expected) in [
            ("mcpp", "unknown command `/mcpp`; did you mean `/mcp`?"),
            ("tolls", "unknown command `/tolls`; did you mean `/tools`?"),
            ("frobnicate", "unknown command `/frobnicate`; known names: `/mcp`, "),
            ("model 'x", "unclosed quote"),
            ("mcp connect", "the following required arguments were not provided: <SERVER>; /mcp connect <SERVER>"),
            ("tools --serch x", "unexpected argument '--serch' found; a similar argument exists: '--search'; /tools"),
            ("clear now", "unexpected argument 'now' found; /clear"),
            ("mcp connect --help", "Connect a server\n\nUsage: /mcp connect <SERVER>\n"),
        ] {
            check(line, expected);
        }
    }
}
