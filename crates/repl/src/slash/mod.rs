//! The slash commands, one module each. This one only says which there are.

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

use wharf_agent::Block;

use self::grammar::{Command, Read};
use super::turns::Turn;
use wharf_terminal::chat::models::Models;
use wharf_terminal::failure::Failure;
use wharf_terminal::fleet::{Fleet, Reloaded};

pub use self::grammar::grammar;

/// What a command works with.
pub struct Post<'a> {
    pub fleet: &'a Fleet<'a>,
    /// What the conversation is like now.
    pub facts: ChatFacts,
}

/// What is known of the conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChatFacts {
    /// The model in use, as it is called.
    pub model: Option<String>,
    /// The name it is saved under.
    pub id: Option<String>,
    pub turns: usize,
    /// Tokens the last request took.
    pub tokens: u64,
    /// Tokens that fit into the model's context, where there is a model.
    pub context: Option<u64>,
}

/// What the REPL itself is to do after a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    Nothing,
    Leave,
    /// Begin a new conversation.
    Clear,
    /// Go on with another conversation: the one of this name, or the last one.
    Resume(Option<String>),
    /// Use this model.
    Model(String),
    /// Cancel the run, and the messages that wait.
    Cancel,
    /// Look at the configuration again.
    Reload,
    /// Take note of what has become of the servers that are configured.
    Reloaded(Reloaded),
    /// Take note that everything that is configured was tried.
    Started,
    /// Log in at this server.
    LogIn(String),
    /// Say this to the agent.
    Say(Vec<Block>),
}

/// What came of something that took its time.
pub type Done = Result<Wish, Failure>;

/// Performs a command, given without its slash. Everything it has to say goes to the console. It may take long: others
/// go on meanwhile.
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

/// What a command, given without its slash, is in the conversation; nothing where it does not have to wait for its turn.
pub fn turn(line: &str) -> Option<Turn> {
    match grammar::read(line, None) {
        Ok(Read::Command(Command::Prompt(_))) => Some(Turn::Message),
        Ok(Read::Command(Command::Clear | Command::Resume { conversation: Some(_) })) => Some(Turn::Change),
        _ => None,
    }
}

/// Whether there is a command of the name that a text begins with.
pub fn is_command(text: &str) -> bool {
    let name = text.strip_prefix('/').and_then(|line| line.split_whitespace().next());
    name.is_some_and(|name| grammar().find_subcommand(name).is_some())
}

impl Post<'_> {
    /// The models that are configured now.
    fn models(&self) -> Models {
        Models::of(self.fleet.session, &self.fleet.known().config)
    }

    /// The width that what is printed has to fit into.
    fn width(&self) -> Option<usize> {
        self.fleet.session.console.width()
    }

    /// Prints what was asked for, and has nothing else done.
    fn print(&self, text: impl std::fmt::Display) -> Result<Wish, Failure> {
        self.fleet.session.console.print(text).map(|()| Wish::Nothing)
    }

    /// Says something in place of what was asked for, and has nothing else done.
    fn say(&self, text: impl std::fmt::Display) -> Result<Wish, Failure> {
        self.fleet.session.console.say(text);
        Ok(Wish::Nothing)
    }
}
