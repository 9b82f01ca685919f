//! Message handling of a closure server. Responds at once where possible, otherwise from a worker task.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;
use wharf_wire::{JsonLimits, RawJson, Revision, code, scan};

use super::batch::ResponseBatch;
use super::{
    ClosureServer, PromptHandler, ReadHandler, ToolCall, ToolHandler, ToolReply, encode_complete, raw_from_json,
    user_message,
};
use crate::engine::RequestRefusal;
use crate::transport::memory::{ClientSender, LocalMessage, Workers};

/// Maximum handlers running at once. Further calls wait, within their own timeouts.
const MAX_CONCURRENT_HANDLERS: usize = 64;

pub(super) struct ClosureDispatcher {
    server: ClosureServer,
    outbox: ClientSender,
    ferry: Arc<ResponseBatch>,
    workers: Workers,
    turns: Arc<Semaphore>,
    running: ActiveHandlers,
}

/// The calls in progress by their raw ids.
type ActiveHandlers = Arc<Mutex<HashMap<Vec<u8>, AbortHandle>>>;

type LocalCallResult = Result<RawJson, RequestRefusal>;

/// A decoded request.
struct LocalRequest<'a> {
    /// The whole message.
    text: &'a Bytes,
    method: &'a str,
    id: &'a [u8],
    params: Option<RawJson>,
    depth: usize,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WireLocalParams<'a> {
    name: Option<String>,
    uri: Option<String>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(rename = "_meta", borrow)]
    meta: Option<WireLocalMeta<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct WireLocalMeta<'a> {
    #[serde(borrow)]
    progress_token: Option<&'a RawValue>,
}

impl ClosureDispatcher {
    pub fn new(server: ClosureServer, outbox: ClientSender, ferry: Arc<ResponseBatch>, workers: Workers) -> Self {
        let turns = Arc::new(Semaphore::new(MAX_CONCURRENT_HANDLERS));
        Self { server, outbox, ferry, workers, turns, running: Arc::default() }
    }

    /// Handles a message. An immediate response waits in the batch until the batch is flushed.
    pub fn handle_message(&self, message: &LocalMessage) {
        let Ok(envelope) = scan(&message.text) else { return };
        let Some(method) = envelope.method(&message.text) else { return };
        let params = envelope.params.map(|params| params.to_shared_raw(&message.text));
        match envelope.id {
            Some(id) => {
                let id = id.slice(&message.text);
                let asked = LocalRequest { text: &message.text, method: &method, id, params, depth: message.depth };
                if let Some(answer) = self.answer(&asked) {
                    self.ferry.push(reply(id, answer));
                }
            }
            None if method == "notifications/cancelled" => self.cancel(params),
            None => {}
        }
    }

    /// Handles a message on another worker thread. Reports whether there is one; otherwise refuses the message.
    pub fn handle_on_worker(self: &Arc<Self>, message: LocalMessage) -> bool {
        let (serving, text, depth) = (Arc::clone(self), message.text.clone(), message.depth);
        let work = async move {
            serving.handle_message(&message);
            serving.ferry.flush();
        };
        let taken = self.workers.spawn(depth, work).is_some();
        if !taken && let Some(id) = scan(&text).ok().and_then(|envelope| envelope.id) {
            self.outbox.send(reply(id.slice(&text), Err(all_blocked_error())));
        }
        taken
    }

    /// Returns an immediate response, or starts a handler that responds later.
    fn answer(&self, asked: &LocalRequest<'_>) -> Option<LocalCallResult> {
        let bounds = JsonLimits::default();
        let raw = asked.params.clone().unwrap_or_else(RawJson::empty_object);
        let params: WireLocalParams<'_> = match raw.decode(&bounds) {
            Ok(params) => params,
            Err(error) => return Some(Err(RequestRefusal::new(code::INVALID_PARAMS, error.to_string()))),
        };
        match asked.method {
            "server/discover" => Some(Ok(self.discover())),
            "tools/list" => Some(Ok(list("tools", &self.server.tools))),
            "resources/list" => Some(Ok(list("resources", &self.server.resources))),
            "resources/templates/list" => Some(Ok(list::<()>("resourceTemplates", &[]))),
            "prompts/list" => Some(Ok(list("prompts", &self.server.prompts))),
            "tools/call" => self.call(asked, &params),
            "resources/read" => self.read(asked, &params),
            "prompts/get" => self.expand(asked, &params),
            _ => Some(Err(RequestRefusal::new(code::METHOD_NOT_FOUND, "unknown method"))),
        }
    }

    fn discover(&self) -> RawJson {
        let ClosureServer { name, version, instructions, tools, resources, prompts } = &self.server;
        let mut capabilities = serde_json::Map::new();
        let offered =
            [("tools", tools.is_empty()), ("resources", resources.is_empty()), ("prompts", prompts.is_empty())];
        for (kind, _) in offered.iter().filter(|(_, empty)| !empty) {
            capabilities.insert((*kind).to_owned(), json!({}));
        }
        let mut result = json!({
            "supportedVersions": [Revision::LATEST_STATELESS.as_str()],
            "capabilities": capabilities,
            "_meta": { "io.modelcontextprotocol/serverInfo": { "name": name, "version": version } },
        });
        if let Some(text) = instructions {
            result["instructions"] = text.as_str().into();
        }
        encode_complete(result)
    }

    fn call(&self, asked: &LocalRequest<'_>, params: &WireLocalParams<'_>) -> Option<LocalCallResult> {
        let Some(handler) = find(&self.server.tools, "name", params.name.as_deref()) else {
            return Some(Err(RequestRefusal::new(code::INVALID_PARAMS, "unknown tool")));
        };
        let handler: ToolHandler = Arc::clone(handler);
        let shared = |value: &RawValue| raw_from_json(asked.text.slice_ref(value.get().as_bytes()));
        let call = ToolCall {
            arguments: params.arguments.map(shared).unwrap_or_else(RawJson::empty_object),
            progress: params.meta.as_ref().and_then(|meta| meta.progress_token).map(shared),
            outbox: self.outbox.clone(),
        };
        let work = self.workers.catch_panics(async move { handler(call).await });
        self.run_when_permitted(asked, async move {
            let answer = match work.await {
                Ok(Ok(answer)) => answer,
                Ok(Err(failure)) => ToolReply::failure(&failure),
                Err(panicked) => ToolReply::failure(&format!("tool failed: {panicked}")),
            };
            Ok(answer.into_raw())
        })
    }

    fn read(&self, asked: &LocalRequest<'_>, params: &WireLocalParams<'_>) -> Option<LocalCallResult> {
        let Some(handler) = find(&self.server.resources, "uri", params.uri.as_deref()) else {
            return Some(Err(RequestRefusal::new(code::INVALID_PARAMS, "unknown resource")));
        };
        let handler: ReadHandler = Arc::clone(handler);
        let uri = params.uri.clone().unwrap_or_default();
        let work = self.workers.catch_panics(async move { handler().await });
        self.run_when_permitted(asked, async move {
            let text = work.await.map_err(|panicked| panicked.to_string()).and_then(|outcome| outcome);
            let text = text.map_err(|error| RequestRefusal::new(code::INTERNAL, error))?;
            Ok(encode_complete(json!({ "contents": [{ "uri": uri, "text": text }] })))
        })
    }

    fn expand(&self, asked: &LocalRequest<'_>, params: &WireLocalParams<'_>) -> Option<LocalCallResult> {
        let Some(handler) = find(&self.server.prompts, "name", params.name.as_deref()) else {
            return Some(Err(RequestRefusal::new(code::INVALID_PARAMS, "unknown prompt")));
        };
        let handler: PromptHandler = Arc::clone(handler);
        let arguments = params.arguments.map(|arguments| serde_json::from_str::<BTreeMap<_, _>>(arguments.get()));
        let arguments = match arguments.transpose() {
            Ok(arguments) => arguments.unwrap_or_default(),
            Err(error) => return Some(Err(RequestRefusal::new(code::INVALID_PARAMS, error.to_string()))),
        };
        let work = self.workers.catch_panics(async move { handler(arguments).await });
        self.run_when_permitted(asked, async move {
            let text = work.await.map_err(|panicked| panicked.to_string()).and_then(|outcome| outcome);
            text.map(|text| encode_complete(user_message(&text)))
                .map_err(|error| RequestRefusal::new(code::INTERNAL, error))
        })
    }

    /// Runs `work` as soon as a permit is available: inline if it completes without waiting. Cancelled work that has
    /// not started never starts.
    ///
    /// A nested call needs no permit: its caller already holds one, and if such callers held all permits, none would be
    /// released.
    fn run_when_permitted(
        &self,
        asked: &LocalRequest<'_>,
        work: impl Future<Output = LocalCallResult> + Send + 'static,
    ) -> Option<LocalCallResult> {
        let turns = (asked.depth == 0).then(|| Arc::clone(&self.turns));
        let mut work = Box::pin(async move {
            let _turn = match turns {
                Some(turns) => turns.acquire_owned().await.ok(),
                None => None,
            };
            work.await
        });
        match self.workers.poll_once(asked.depth, work.as_mut()) {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => self.run_on_worker(asked, work),
        }
    }

    /// Continues pending work on the worker threads.
    fn run_on_worker(
        &self,
        asked: &LocalRequest<'_>,
        work: impl Future<Output = LocalCallResult> + Send + 'static,
    ) -> Option<LocalCallResult> {
        let (ferry, running) = (Arc::clone(&self.ferry), Arc::clone(&self.running));
        let id = asked.id.to_vec();
        // Held until the call is registered, so that it cannot finish before.
        let mut entries = lock(&self.running);
        let task = self.workers.spawn(asked.depth, async move {
            let answer = work.await;
            if lock(&running).remove(&id).is_some() {
                ferry.push(reply(&id, answer));
                ferry.flush();
            }
        });
        match task {
            Some(task) => {
                entries.insert(asked.id.to_vec(), task);
                None
            }
            None => Some(Err(all_blocked_error())),
        }
    }

    fn cancel(&self, params: Option<RawJson>) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct WireLocalCancelled<'a> {
            #[serde(borrow)]
            request_id: &'a RawValue,
        }
        let Some(params) = params else { return };
        let Ok(WireLocalCancelled { request_id }) = params.decode(&JsonLimits::default()) else { return };
        if let Some(task) = lock(&self.running).remove(request_id.get().as_bytes()) {
            task.abort();
        }
    }
}

impl Drop for ClosureDispatcher {
    fn drop(&mut self) {
        lock(&self.running).drain().for_each(|(_, task)| task.abort());
    }
}

fn find<'a, T>(all: &'a [(Value, T)], key: &str, wanted: Option<&str>) -> Option<&'a T> {
    let wanted = wanted?;
    all.iter().find(|(definition, _)| definition[key] == wanted).map(|(_, handler)| handler)
}

/// Encodes a complete list. It does not change while the server lives.
fn list<T>(key: &str, all: &[(Value, T)]) -> RawJson {
    let items: Vec<&Value> = all.iter().map(|(definition, _)| definition).collect();
    encode_complete(json!({ key: items, "ttlMs": 3_600_000, "cacheScope": "public" }))
}

fn reply(id: &[u8], answer: LocalCallResult) -> Vec<u8> {
    let head: [&[u8]; 2] = [br#"{"jsonrpc":"2.0","id":"#, id];
    match answer {
        Ok(result) => [&head[..], &[br#","result":"#, result.as_bytes(), b"}"]].concat().concat(),
        Err(RequestRefusal { code, message }) => {
            let error = format!(r#","error":{{"code":{code},"message":{}}}}}"#, Value::from(message));
            [&head[..], &[error.as_bytes()]].concat().concat()
        }
    }
}

fn all_blocked_error() -> RequestRefusal {
    RequestRefusal::new(code::INTERNAL, "all worker threads are blocked by handlers")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
