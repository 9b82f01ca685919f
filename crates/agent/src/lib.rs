//! An agent loop that calls tools, and clients for model APIs.
//!
//! A [`Conversation`] is independent of any provider. A [`Model`] encodes it in the format of its API and streams the
//! response as [`ModelEvent`]s, which are the same for every format. An [`Agent`] runs the loop: it sends the
//! conversation to the model, executes the requested tool calls through a registry, and repeats until the model is
//! done. A pure state machine without clock or I/O makes the decisions; a driver executes them. The crate is
//! independent of MCP.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod agent;
mod conversation;
mod image;
mod provider;
mod quotation;
mod repair;
mod run;
mod saved_conversation;
mod sub_agent;
mod system_prompt;
mod tool_offer;

pub use agent::{Agent, AgentLimits, AgentRun};
pub use conversation::{Conversation, ConversationTurn, ResultBlock, SCHEMA, SavedLineError, TurnBlock, TurnRole};
pub use provider::{
    ApiErrorMessage, ApiFormat, CompletionRequest, EncodedTool, EncodedTools, Model, ModelError, ModelEvent,
    ModelProvider, ModelStream, ModelToolDefinition, ReasoningEffort, StopReason, ToolChoice, UnencodableReason,
    UnencodableTool, encode_tools,
};
pub use run::{CallReport, RunEnding, RunEvent};
pub use saved_conversation::{ConversationSummary, Resumed, SavedConversation, SavedConversationError};
pub use sub_agent::SubAgent;
pub use system_prompt::{AgentEnvironment, ServerInstructions, system_prompt};
