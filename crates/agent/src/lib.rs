//! A conversation that calls tools, and the models it is held with.
//!
//! A [`Conversation`] belongs to no provider. A [`Model`] writes it in the format its API speaks, and gives what the model
//! says, piece by piece, as [`ModelEvent`]s that are the same whatever the format. An [`Agent`] holds the conversation: it
//! asks the model, calls the tools the model wants through a registry, and goes on until the model is done. What it does
//! when is decided by a state machine without a clock or a wire; the rest only carries. It has never heard of MCP.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod agent;
mod conversation;
mod offer;
mod picture;
mod prompt;
mod provider;
mod quoted;
mod run;
mod saved;
pub mod search;
mod sub_agent;
mod whole;

pub use agent::{Agent, AgentLimits, Run};
pub use conversation::{BadLine, Block, Conversation, ResultBlock, Role, SCHEMA, Turn};
pub use prompt::{Instructions, Surrounding, system_prompt};
pub use provider::{
    Compiled, Definition, Effort, Format, Model, ModelError, ModelEvent, Offered, Provider, Request, Said, Stop,
    Stream, ToolChoice, Withheld, WithheldReason, compile,
};
pub use run::{CallReport, Ending, RunEvent};
pub use saved::{Resumed, SavedConversation, SavedError, SavedSummary};
pub use sub_agent::SubAgent;
