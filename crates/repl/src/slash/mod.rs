//! The slash commands, one module each, and their dispatch.

#[cfg(test)]
pub mod command_fixture;
mod grammar;
mod help;
mod lists;
mod mcp;
mod model;
mod permissions;
mod prompt;
mod resume;
#[cfg(test)]
mod tests;
mod tools;

use wharf_agent::TurnBlock;
use wharf_spec::{Fingerprint, ToolId};

use self::grammar::{ParsedLine, SlashCommand};
use super::input_queue::InputKind;
use wharf_terminal::chat::models::ModelCatalog;
use wharf_terminal::failure::Failure;
use wharf_terminal::managed_host::{ManagedHost, ReloadReport};

pub use self::grammar::grammar;

/// Context of a slash command.
pub struct CommandContext<'a> {
    pub managed_host: &'a ManagedHost<'a>,
    /// Current state of the conversation.
    pub facts: ChatSummary,
}

/// Facts about the conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChatSummary {
    /// Name of the current model.
    pub model: Option<String>,
    /// Id of the saved conversation.
    pub id: Option<String>,
    pub turns: usize,
    /// Tokens of the last request and its response.
    pub tokens: u64,
    /// Context size of the model in tokens.
    pub context: Option<u64>,
}

/// Action for the REPL to take after a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplAction {
    Nothing,
    Exit,
    /// Start a new conversation.
    Clear,
    /// Resume the conversation with this id, or the most recent one.
    Resume(Option<String>),
    /// Switch to this model.
    Model(String),
    /// Cancel the run and the queued messages.
    Cancel,
    /// Reload the configuration.
    Reload,
    /// Handle the result of a reload.
    Reloaded(ReloadReport),
    /// Handle the end of startup: the host has received every configured server.
    Started,
    /// Print the recent tool result with this number, or the last one.
    ShowResult(Option<usize>),
    /// Log in to this server.
    LogIn(String),
    /// Ask whether to release this definition of a tool.
    Release {
        tool: ToolId,
        seen: Fingerprint,
    },
    /// Send this to the agent.
    SendMessage(Vec<TurnBlock>),
}

/// Result of a command or background task.
pub type ActionResult = Result<ReplAction, Failure>;

/// Runs a command given without its slash. All output goes to the console. May take long; the REPL continues meanwhile.
pub async fn run_line(line: &str, context: &CommandContext<'_>) -> Result<ReplAction, Failure> {
    match grammar::parse_line(line, context.width())? {
        ParsedLine::Help(text) => context.print(text),
        ParsedLine::Command(command) => {
            run_command(command, context).await.map_err(|failure| context.managed_host.session.with_login_hint(failure))
        }
    }
}

async fn run_command(command: SlashCommand, context: &CommandContext<'_>) -> Result<ReplAction, Failure> {
    match command {
        SlashCommand::Mcp(args) => mcp::run(args, context).await,
        SlashCommand::Tools(args) => tools::run(&args, context).await,
        SlashCommand::Prompts(args) => lists::prompts(&args, context),
        SlashCommand::Prompt(args) => prompt::run(&args, context).await,
        SlashCommand::Resources(args) => lists::resources(&args, context),
        SlashCommand::Permissions(args) => permissions::run(args, context).await,
        SlashCommand::Model { model } => model::run(model.as_deref(), context),
        SlashCommand::Clear => Ok(ReplAction::Clear),
        SlashCommand::Resume { conversation } => resume::run(conversation, context).await,
        SlashCommand::Show { number } => Ok(ReplAction::ShowResult(number)),
        SlashCommand::Cancel => Ok(ReplAction::Cancel),
        SlashCommand::Help { command } => help::run(&command, context),
        SlashCommand::Exit => Ok(ReplAction::Exit),
    }
}

/// Returns the kind of input that a command queues, or `None` if it runs immediately.
pub fn input_kind(line: &str) -> Option<InputKind> {
    match grammar::parse_line(line, None) {
        Ok(ParsedLine::Command(SlashCommand::Prompt(_))) => Some(InputKind::Message),
        Ok(ParsedLine::Command(SlashCommand::Clear | SlashCommand::Resume { conversation: Some(_) })) => {
            Some(InputKind::Change)
        }
        _ => None,
    }
}

/// Reports whether a command shows or uses servers.
pub fn needs_servers(line: &str) -> bool {
    let Ok(ParsedLine::Command(command)) = grammar::parse_line(line, None) else { return false };
    match command {
        SlashCommand::Mcp(_)
        | SlashCommand::Tools(_)
        | SlashCommand::Prompts(_)
        | SlashCommand::Prompt(_)
        | SlashCommand::Resources(_) => true,
        SlashCommand::Permissions(_)
        | SlashCommand::Model { .. }
        | SlashCommand::Clear
        | SlashCommand::Resume { .. }
        | SlashCommand::Show { .. }
        | SlashCommand::Cancel
        | SlashCommand::Help { .. }
        | SlashCommand::Exit => false,
    }
}

/// Reports whether a text begins with the name of a command.
pub fn is_command(text: &str) -> bool {
    let name = text.strip_prefix('/').and_then(|line| line.split_whitespace().next());
    name.is_some_and(|name| grammar().find_subcommand(name).is_some())
}

impl CommandContext<'_> {
    /// Returns the models of the current configuration.
    fn models(&self) -> ModelCatalog {
        ModelCatalog::new(self.managed_host.session, &self.managed_host.loaded_config().config)
    }

    /// Returns the width for printed output.
    fn width(&self) -> Option<usize> {
        self.managed_host.session.console.stdout_width()
    }

    /// Prints the requested output. No further action follows.
    fn print(&self, text: impl std::fmt::Display) -> Result<ReplAction, Failure> {
        self.managed_host.session.console.print(text).map(|()| ReplAction::Nothing)
    }

    /// Prints a notice. No further action follows.
    fn say(&self, text: impl std::fmt::Display) -> Result<ReplAction, Failure> {
        self.managed_host.session.console.say(text);
        Ok(ReplAction::Nothing)
    }
}
