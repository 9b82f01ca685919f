//! Who answers a server in these tests: a person, a model, and somebody who keeps the log. Each remembers what came.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::sync::watch;
use wharf_client::{BoxedFuture, Elicitor, LogSink, RequestSource, RootsSource, Sampler, SamplingError};
use wharf_wire::{Elicitation, ElicitationResponse, LogLevel, LogMessage, RawJson, Root, SamplingRequest, UrlRequest};

use crate::peer::raw;

type Answering = dyn Fn(&Elicitation) -> ElicitationResponse + Send + Sync;
type Saying = dyn Fn(&SamplingRequest) -> Result<Value, SamplingError> + Send + Sync;

/// Answers forms, and pages too if it is told to.
#[derive(Clone)]
pub struct Person {
    answer: Arc<Answering>,
    pages: bool,
    asked: Arc<Mutex<Vec<Elicitation>>>,
}

impl Person {
    pub fn new(answer: impl Fn(&Elicitation) -> ElicitationResponse + Send + Sync + 'static) -> Self {
        Self { answer: Arc::new(answer), pages: false, asked: Arc::default() }
    }

    /// Fills every form in with this.
    pub fn accepts(content: Value) -> Self {
        Self::new(move |_| ElicitationResponse::Accept(Some(raw(&content))))
    }

    /// Can be shown pages as well.
    pub fn with_pages(mut self) -> Self {
        self.pages = true;
        self
    }

    /// What was asked since somebody looked.
    pub fn asked(&self) -> Vec<Elicitation> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

impl Elicitor for Person {
    fn supports_pages(&self) -> bool {
        self.pages
    }

    fn elicit(&self, _: RequestSource<'_>, question: Elicitation) -> BoxedFuture<ElicitationResponse> {
        let answer = (self.answer)(&question);
        self.asked.lock().unwrap().push(question);
        Box::pin(std::future::ready(answer))
    }
}

/// A person who says at once that a page is done with, so that nobody waits for the server's word.
#[derive(Clone)]
pub struct Hasty(pub Person);

impl Elicitor for Hasty {
    fn supports_pages(&self) -> bool {
        true
    }

    fn elicit(&self, source: RequestSource<'_>, question: Elicitation) -> BoxedFuture<ElicitationResponse> {
        self.0.elicit(source, question)
    }

    fn wait_for_page(&self, _: RequestSource<'_>, _page: &UrlRequest) -> BoxedFuture<()> {
        Box::pin(std::future::ready(()))
    }
}

/// A person who never makes up their mind. The channel tells of each question that is put and of each that is taken away.
pub struct Undecided(pub watch::Sender<usize>);

impl Elicitor for Undecided {
    fn elicit(&self, _: RequestSource<'_>, _question: Elicitation) -> BoxedFuture<ElicitationResponse> {
        let thinking = Thinking(self.0.clone());
        self.0.send_modify(|open| *open += 1);
        Box::pin(async move {
            let _thinking = thinking;
            std::future::pending().await
        })
    }
}

/// A question that is open for as long as this lives.
struct Thinking(watch::Sender<usize>);

impl Drop for Thinking {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}

/// Says what it was told to say.
#[derive(Clone)]
pub struct Model {
    say: Arc<Saying>,
    tools: bool,
    asked: Arc<Mutex<Vec<SamplingRequest>>>,
}

impl Model {
    pub fn new(say: impl Fn(&SamplingRequest) -> Result<Value, SamplingError> + Send + Sync + 'static) -> Self {
        Self { say: Arc::new(say), tools: false, asked: Arc::default() }
    }

    /// Says `noon` to everything.
    pub fn noon() -> Self {
        Self::new(|_| Ok(message(&json!({"type": "text", "text": "noon"}), "endTurn")))
    }

    /// Uses the tools it is offered.
    pub fn with_tools(mut self) -> Self {
        self.tools = true;
        self
    }

    /// What was asked since somebody looked.
    pub fn asked(&self) -> Vec<SamplingRequest> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

/// What a model says, as the protocol has it.
pub fn message(content: &Value, stop_reason: &str) -> Value {
    json!({"role": "assistant", "model": "m1", "stopReason": stop_reason, "content": content})
}

impl Sampler for Model {
    fn supports_tools(&self) -> bool {
        self.tools
    }

    fn sample(&self, _: RequestSource<'_>, request: SamplingRequest) -> BoxedFuture<Result<RawJson, SamplingError>> {
        let said = (self.say)(&request).map(|said| raw(&said));
        self.asked.lock().unwrap().push(request);
        Box::pin(std::future::ready(said))
    }
}

/// Directories that can be exchanged.
#[derive(Clone)]
pub struct Hold(Arc<Mutex<Vec<Root>>>);

impl Hold {
    pub fn new(uri: &str) -> Self {
        let hold = Self(Arc::default());
        hold.exchange(uri);
        hold
    }

    pub fn exchange(&self, uri: &str) {
        *self.0.lock().unwrap() = vec![Root { uri: uri.to_owned(), name: Some("hold".to_owned()) }];
    }
}

impl RootsSource for Hold {
    fn roots(&self, _: RequestSource<'_>) -> BoxedFuture<Vec<Root>> {
        Box::pin(std::future::ready(self.0.lock().unwrap().clone()))
    }
}

/// Writes everything down.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<LogMessage>>>);

impl Log {
    /// Level, logger and data of what was logged since somebody looked.
    pub fn entries(&self) -> Vec<(LogLevel, Option<String>, Value)> {
        let entries = std::mem::take(&mut *self.0.lock().unwrap());
        entries.into_iter().map(|entry| (entry.level, entry.logger, value(&entry.data))).collect()
    }
}

impl LogSink for Log {
    fn log(&self, _: RequestSource<'_>, message: LogMessage) {
        self.0.lock().unwrap().push(message);
    }
}

pub fn value(raw: &RawJson) -> Value {
    serde_json::from_str(raw.as_str()).unwrap()
}
