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

use self::grammar::{ParsedLine, SlashCommand};
use super::turn_queue::TurnKind;
use wharf_terminal::chat::models::ModelCatalog;
use wharf_terminal::failure::Failure;
use wharf_terminal::managed_host::{ManagedHost, ReloadReport};

pub use self::grammar::grammar;

/// Context of a slash command.
pub struct CommandContext<'a> {
    pub fleet: &'a ManagedHost<'a>,
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
    Leave,
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
    /// Handle the end of startup: every configured server has been tried.
    Started,
    /// Log in to this server.
    LogIn(String),
    /// Send this to the agent.
    Say(Vec<TurnBlock>),
}

/// Result of a command or background task.
pub type ActionResult = Result<ReplAction, Failure>;

/// Runs a command given without its slash. All output goes to the console. May take long; the REPL continues meanwhile.
pub async fn run_line(line: &str, post: &CommandContext<'_>) -> Result<ReplAction, Failure> {
    match grammar::parse_line(line, post.width())? {
        ParsedLine::Help(text) => post.print(text),
        ParsedLine::Command(command) => {
            run_command(command, post).await.map_err(|failure| post.fleet.session.with_login_hint(failure))
        }
    }
}

async fn run_command(command: SlashCommand, post: &CommandContext<'_>) -> Result<ReplAction, Failure> {
    match command {
        SlashCommand::Mcp(args) => mcp::run(args, post).await,
        SlashCommand::Tools(args) => tools::run(&args, post),
        SlashCommand::Prompts(args) => lists::prompts(&args, post),
        SlashCommand::Prompt(args) => prompt::run(&args, post).await,
        SlashCommand::Resources(args) => lists::resources(&args, post),
        SlashCommand::Permissions => permissions::run(post),
        SlashCommand::Model { model } => model::run(model.as_deref(), post),
        SlashCommand::Clear => Ok(ReplAction::Clear),
        SlashCommand::Resume { conversation } => resume::run(conversation, post).await,
        SlashCommand::Cancel => Ok(ReplAction::Cancel),
        SlashCommand::Help { command } => help::run(&command, post),
        SlashCommand::Exit => Ok(ReplAction::Leave),
    }
}

/// Returns the kind of turn a command takes in the conversation, or `None` if it runs immediately.
pub fn turn_kind(line: &str) -> Option<TurnKind> {
    match grammar::parse_line(line, None) {
        Ok(ParsedLine::Command(SlashCommand::Prompt(_))) => Some(TurnKind::Message),
        Ok(ParsedLine::Command(SlashCommand::Clear | SlashCommand::Resume { conversation: Some(_) })) => {
            Some(TurnKind::Change)
        }
        _ => None,
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
        ModelCatalog::new(self.fleet.session, &self.fleet.loaded_config().config)
    }

    /// Returns the width for printed output.
    fn width(&self) -> Option<usize> {
        self.fleet.session.console.stdout_width()
    }

    /// Prints the requested output. No further action follows.
    fn print(&self, text: impl std::fmt::Display) -> Result<ReplAction, Failure> {
        self.fleet.session.console.print(text).map(|()| ReplAction::Nothing)
    }

    /// Prints a notice. No further action follows.
    fn say(&self, text: impl std::fmt::Display) -> Result<ReplAction, Failure> {
        self.fleet.session.console.say(text);
        Ok(ReplAction::Nothing)
    }
}
