//! The slash commands, one module each, and their dispatch.

mod grammar;
mod help;
mod lists;
mod mcp;
mod model;
mod permissions;
mod prompt;
mod resume;
#[cfg(test)]
pub mod stage;
#[cfg(test)]
mod tests;
mod tools;

use wharf_agent::TurnBlock;

use self::grammar::{Command, Read};
use super::turns::Turn;
use wharf_terminal::chat::models::Models;
use wharf_terminal::failure::Failure;
use wharf_terminal::fleet::{ManagedHost, Reloaded};

pub use self::grammar::grammar;

/// Context of a slash command.
pub struct Post<'a> {
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
pub enum Wish {
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
    Reloaded(Reloaded),
    /// Handle the end of startup: every configured server has been tried.
    Started,
    /// Log in to this server.
    LogIn(String),
    /// Send this to the agent.
    Say(Vec<TurnBlock>),
}

/// Result of a command or background task.
pub type Done = Result<Wish, Failure>;

/// Runs a command given without its slash. All output goes to the console. May take long; the REPL continues meanwhile.
pub async fn perform(line: &str, post: &Post<'_>) -> Result<Wish, Failure> {
    match grammar::read(line, post.width())? {
        Read::Help(text) => post.print(text),
        Read::Command(command) => obey(command, post).await.map_err(|failure| post.fleet.session.in_full(failure)),
    }
}

async fn obey(command: Command, post: &Post<'_>) -> Result<Wish, Failure> {
    match command {
        Command::Mcp(args) => mcp::run(args, post).await,
        Command::Tools(args) => tools::run(&args, post),
        Command::Prompts(args) => lists::prompts(&args, post),
        Command::Prompt(args) => prompt::run(&args, post).await,
        Command::Resources(args) => lists::resources(&args, post),
        Command::Permissions => permissions::run(post),
        Command::Model { model } => model::run(model.as_deref(), post),
        Command::Clear => Ok(Wish::Clear),
        Command::Resume { conversation } => resume::run(conversation, post).await,
        Command::Cancel => Ok(Wish::Cancel),
        Command::Help { command } => help::run(&command, post),
        Command::Exit => Ok(Wish::Leave),
    }
}

/// Returns the kind of turn a command takes in the conversation, or `None` if it runs immediately.
pub fn turn(line: &str) -> Option<Turn> {
    match grammar::read(line, None) {
        Ok(Read::Command(Command::Prompt(_))) => Some(Turn::Message),
        Ok(Read::Command(Command::Clear | Command::Resume { conversation: Some(_) })) => Some(Turn::Change),
        _ => None,
    }
}

/// Reports whether a text begins with the name of a command.
pub fn is_command(text: &str) -> bool {
    let name = text.strip_prefix('/').and_then(|line| line.split_whitespace().next());
    name.is_some_and(|name| grammar().find_subcommand(name).is_some())
}

impl Post<'_> {
    /// Returns the models of the current configuration.
    fn models(&self) -> Models {
        Models::of(self.fleet.session, &self.fleet.known().config)
    }

    /// Returns the width for printed output.
    fn width(&self) -> Option<usize> {
        self.fleet.session.console.width()
    }

    /// Prints the requested output. No further action follows.
    fn print(&self, text: impl std::fmt::Display) -> Result<Wish, Failure> {
        self.fleet.session.console.print(text).map(|()| Wish::Nothing)
    }

    /// Prints a notice. No further action follows.
    fn say(&self, text: impl std::fmt::Display) -> Result<Wish, Failure> {
        self.fleet.session.console.say(text);
        Ok(Wish::Nothing)
    }
}
