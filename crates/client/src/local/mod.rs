//! A server built from closures, for tools an embedder has in its own program.
//!
//! It speaks 2026-07-28 and declares only capabilities with at least one handler.

mod batch;
mod call;
mod dispatcher;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use wharf_wire::{RawJson, Span};

use crate::services::BoxedFuture;
use crate::transport::memory::{LocalServer, ServerEnd, Workers};

use batch::{ResponseBatch, run_host_side, run_worker_side};
pub use call::{ToolCall, ToolReply};
use dispatcher::ClosureDispatcher;

type ToolHandler = Arc<dyn Fn(ToolCall) -> BoxedFuture<Result<ToolReply, String>> + Send + Sync>;
type ReadHandler = Arc<dyn Fn() -> BoxedFuture<Result<String, String>> + Send + Sync>;
type PromptHandler = Arc<dyn Fn(BTreeMap<String, String>) -> BoxedFuture<Result<String, String>> + Send + Sync>;

/// A server built from closures. Handlers run on its own threads, so that a handler that blocks or panics does not
/// affect the rest of the program.
#[derive(Default)]
pub struct ClosureServer {
    name: String,
    version: String,
    instructions: Option<String>,
    tools: Vec<(Value, ToolHandler)>,
    resources: Vec<(Value, ReadHandler)>,
    prompts: Vec<(Value, PromptHandler)>,
}

impl ClosureServer {
    /// Creates a server without tools, resources or prompts.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into(), ..Self::default() }
    }

    /// Sets the instructions for the model.
    #[must_use]
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.instructions = Some(text.into());
        self
    }

    /// Adds a tool. `schema` is the JSON schema of its arguments. The tool reports an error from the handler as its own
    /// failure.
    #[must_use]
    pub fn tool<F>(
        mut self,
        name: &str,
        description: &str,
        schema: Value,
        handler: impl Fn(ToolCall) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<ToolReply, String>> + Send + 'static,
    {
        let definition = json!({ "name": name, "description": description, "inputSchema": schema });
        self.tools.push((definition, Arc::new(move |call| Box::pin(handler(call)))));
        self
    }

    /// Adds a text resource.
    #[must_use]
    pub fn resource<F>(
        mut self,
        uri: &str,
        name: &str,
        mime_type: &str,
        handler: impl Fn() -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<String, String>> + Send + 'static,
    {
        let definition = json!({ "uri": uri, "name": name, "mimeType": mime_type });
        self.resources.push((definition, Arc::new(move || Box::pin(handler()))));
        self
    }

    /// Adds a prompt. The handler returns the text of one user message.
    #[must_use]
    pub fn prompt<F>(
        mut self,
        name: &str,
        description: &str,
        arguments: &[&str],
        handler: impl Fn(BTreeMap<String, String>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<String, String>> + Send + 'static,
    {
        let arguments: Vec<Value> = arguments.iter().map(|name| json!({ "name": name, "required": true })).collect();
        let definition = json!({ "name": name, "description": description, "arguments": arguments });
        self.prompts.push((definition, Arc::new(move |arguments| Box::pin(handler(arguments)))));
        self
    }
}

impl LocalServer for ClosureServer {
    /// Handles messages on the worker threads: a call goes from the caller's thread to the handler's thread and back,
    /// without a third thread.
    fn serve(self: Box<Self>, end: ServerEnd, workers: Workers) -> BoxedFuture<()> {
        let ferry = Arc::new(ResponseBatch::default());
        let serving = Arc::new(ClosureDispatcher::new(*self, end.sender(), Arc::clone(&ferry), workers.clone()));
        let (taker, its_ferry, its_end) = (Arc::downgrade(&serving), Arc::clone(&ferry), end.clone());
        workers.set_resident(move || Box::pin(run_worker_side(taker.clone(), Arc::clone(&its_ferry), its_end.clone())));
        Box::pin(run_host_side(serving, ferry, end, workers))
    }
}

/// Returns a prompt result with one user message of this text.
fn user_message(text: &str) -> Value {
    json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": text } }] })
}

/// Marks a result as complete (`resultType`) and encodes it.
fn encode_complete(mut result: Value) -> RawJson {
    if let Some(object) = result.as_object_mut() {
        object.insert("resultType".to_owned(), "complete".into());
    }
    RawJson::from_value(&result).unwrap_or_else(|_| RawJson::empty_object())
}

/// Wraps text that is known to be single-line JSON.
fn raw_from_json(text: impl Into<Bytes>) -> RawJson {
    let text: Bytes = text.into();
    Span { start: 0, end: text.len() }.to_shared_raw(&text)
}

/// Encodes a text as a JSON string. Most texts need no escaping; scanning for that first is faster than escaping byte
/// by byte.
fn json_string(text: &str) -> String {
    let escapes = text.bytes().fold(false, |found, byte| found | (byte < b' ') | (byte == b'"') | (byte == b'\\'));
    if escapes { Value::from(text).to_string() } else { ["\"", text, "\""].concat() }
}
