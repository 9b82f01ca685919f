//! A conversation that calls tools, and the models it is held with.
//!
//! A [`Conversation`] belongs to no provider. A [`Model`] writes it in the format its API speaks, and gives what the model
//! says, piece by piece, as [`ModelEvent`]s that are the same whatever the format.

#![warn(missing_docs)]

mod conversation;
mod provider;

pub use conversation::{BadLine, Block, Conversation, ResultBlock, Role, SCHEMA, Turn};
pub use provider::{
    Compiled, Definition, Effort, Format, Model, ModelError, ModelEvent, Offered, Provider, Request, Said, Stop,
    Stream, ToolChoice, Withheld, WithheldReason, compile,
};
