//! Calls in several rounds (2026-07-28 basic/patterns/mrtr): questions in a result, answers in a retry.
//!
//! Between rounds a conversation is parked under its `requestState`, which the client must return unchanged. Each state
//! is valid for one retry of the same call.

use std::collections::VecDeque;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::Mutex;

use serde_json::{Map, Value, json};

use super::client_link::{CallContext, CallStop, RequestLine, SteppedWait, check_needs};
use super::message::{RpcError, lock_unpoisoned};
use super::questions::ServerQuestion;
use super::revision::DemoRevision;

/// Maximum number of parked conversations. The oldest is dropped.
const MAX_PARKED: usize = 256;

#[derive(Default)]
pub struct ParkedCalls {
    parked: Mutex<VecDeque<ParkedCall>>,
}

struct ParkedCall {
    state: String,
    /// Keys of the questions of the last round.
    asked: Vec<String>,
    conversation: RoundState,
}

/// State of a call across its rounds.
pub struct RoundState {
    /// Name and arguments, or URI, which every round must repeat.
    call: Value,
    answers: Map<String, Value>,
    pauses: u32,
}

impl ParkedCalls {
    /// Resumes the conversation that `params` continue, or starts one.
    ///
    /// # Errors
    ///
    /// Fails with invalid params if the state is unknown or belongs to another call, or if an answer has no question.
    pub fn resume(&self, params: &Map<String, Value>) -> Result<RoundState, RpcError> {
        let call = json!([params.get("name"), params.get("arguments"), params.get("uri")]);
        let given = match params.get("inputResponses") {
            None => Map::new(),
            Some(Value::Object(given)) => given.clone(),
            Some(_) => return Err(RpcError::invalid_params("`inputResponses` must be an object")),
        };
        let parked = match params.get("requestState") {
            Some(state) => self.take(state)?,
            None if given.is_empty() => return Ok(RoundState { call, answers: Map::new(), pauses: 0 }),
            None => return Err(RpcError::invalid_params("`inputResponses` came without its `requestState`")),
        };
        let ParkedCall { asked, mut conversation, .. } = parked;
        if conversation.call != call {
            return Err(RpcError::invalid_params("`requestState` belongs to another call"));
        }
        if let Some(key) = given.keys().find(|key| !asked.contains(key)) {
            return Err(RpcError::invalid_params(format!("no question `{key}` is open")));
        }
        conversation.answers.extend(given);
        Ok(conversation)
    }

    fn take(&self, state: &Value) -> Result<ParkedCall, RpcError> {
        let mut parked = lock_unpoisoned(&self.parked);
        let place = parked.iter().position(|parked| *state == parked.state);
        place
            .and_then(|place| parked.remove(place))
            .ok_or_else(|| RpcError::invalid_params("`requestState` is unknown or was already used"))
    }

    /// Parks a conversation and returns the result for the client to continue with.
    pub fn park(&self, conversation: RoundState, questions: &[ServerQuestion]) -> Value {
        let state = random_state();
        let mut result = json!({"requestState": state});
        if !questions.is_empty() {
            let requests = questions.iter().map(|question| (question.key.clone(), question.to_request()));
            result["inputRequests"] = requests.collect::<Map<_, _>>().into();
        }
        let asked = questions.iter().map(|question| question.key.clone()).collect();
        let mut parked = lock_unpoisoned(&self.parked);
        if parked.len() >= MAX_PARKED {
            parked.pop_front();
        }
        parked.push_back(ParkedCall { state, asked, conversation });
        result
    }
}

/// Returns a random number for unique names.
pub fn nonce() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Returns a state that only survives if strings are not parsed, trimmed or normalised.
fn random_state() -> String {
    let nonce = nonce();
    // The accent is written in two ways, and the escapes are literal text.
    format!(" {{\"nonce\":\"{nonce:016x}\"}} \\u0041\\n\\\\ \u{e9}e\u{301} 港 ⚓\u{2028}\t%2B+/= ")
}

/// Answers questions from earlier rounds. Stops the call at the first question without an answer.
pub struct RoundReplay {
    pub line: RequestLine,
    pub conversation: RoundState,
    pauses_met: u32,
}

impl RoundReplay {
    pub fn new(line: RequestLine, conversation: RoundState) -> Self {
        Self { line, conversation, pauses_met: 0 }
    }
}

impl CallContext for RoundReplay {
    fn revision(&self) -> DemoRevision {
        self.line.revision
    }

    fn ask(&mut self, questions: Vec<ServerQuestion>) -> Result<Vec<Value>, CallStop> {
        check_needs(&questions, &self.line.capabilities)?;
        let answers = &self.conversation.answers;
        let known: Vec<_> = questions.iter().filter_map(|question| answers.get(&question.key).cloned()).collect();
        if known.len() == questions.len() {
            return Ok(known);
        }
        let is_open = |question: &ServerQuestion| !answers.contains_key(&question.key);
        Err(CallStop::Unanswered(questions.into_iter().filter(is_open).collect()))
    }

    fn pause(&mut self) -> Result<(), CallStop> {
        self.pauses_met += 1;
        if self.pauses_met <= self.conversation.pauses {
            return Ok(());
        }
        self.conversation.pauses += 1;
        Err(CallStop::Unanswered(Vec::new()))
    }

    fn wait(&mut self, wait: SteppedWait) -> Result<(), CallStop> {
        self.line.wait(wait)
    }

    fn notify(&self, notification: Value) {
        self.line.out.send(notification);
    }
}
