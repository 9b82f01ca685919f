//! A host that offers everything and writes down what it is asked.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::sync::mpsc;
use wharf_client::{
    BoxedFuture, ClientServices, ConnectOptions, Connection, Direction, Elicitor, GuardProgram, LogSink,
    RequestOptions, RequestSource, RootsSource, Sampler, SamplingError, Tap, TappedMessage, connect,
};
use wharf_spec::{Environment, StdioSpec};
use wharf_wire::{
    Elicitation, ElicitationResponse, LogLevel, LogMessage, RawJson, Revision, Root, SamplingRequest, ToolResult,
    UrlRequest,
};

use crate::support::WHARF;

pub const ALL: [Revision; 5] = Revision::ALL;
/// The revisions that have elicitation.
pub const ASKING: &[Revision] = &[Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28];
/// The revisions that have pages, tasks, and tools in sampling.
pub const LATEST: &[Revision] = &[Revision::V2025_11_25, Revision::V2026_07_28];

/// One connection and everything it was asked and told.
pub struct Harbour {
    pub connection: Connection,
    pub asked: Arc<Mutex<Vec<(String, Value)>>>,
    pub logged: mpsc::UnboundedReceiver<(LogLevel, Value)>,
    sent: Arc<Mutex<Vec<Value>>>,
}

/// What the person says, one answer after the other; when they run out, yes to everything with the defaults.
type Script = Arc<Mutex<VecDeque<ElicitationResponse>>>;

pub async fn open(revision: Revision) -> Harbour {
    open_with(revision, []).await
}

pub async fn open_with(revision: Revision, answers: impl IntoIterator<Item = ElicitationResponse>) -> Harbour {
    let asked = Arc::default();
    let (log, logged) = mpsc::unbounded_channel();
    let person = Person { asked: Arc::clone(&asked), script: Arc::new(Mutex::new(answers.into_iter().collect())) };
    let services = ClientServices::default()
        .elicitation(person)
        .sampling(Model { asked: Arc::clone(&asked) })
        .roots(Quays)
        .logs(LogLevel::Info, Logbook(log))
        .tasks()
        .skills();
    let sent = Arc::default();
    let connection = dial(revision, services, Some(Arc::new(Wiretap(Arc::clone(&sent))))).await;
    Harbour { connection, asked, logged, sent }
}

/// A client that offers nothing at all.
pub async fn open_silent(revision: Revision) -> Connection {
    dial(revision, ClientServices::default(), None).await
}

pub async fn dial(revision: Revision, services: ClientServices, tap: Option<Arc<dyn Tap>>) -> Connection {
    let spec = StdioSpec {
        program: WHARF.into(),
        args: ["demo-server", "--stdio", "--revision", revision.as_str()].map(Into::into).to_vec(),
        ..StdioSpec::default()
    };
    let mut options = ConnectOptions::default();
    options.name = "demo".to_owned();
    options.surroundings = Environment { env: Vec::new(), cwd: Path::new("/").to_owned() };
    options.guard = GuardProgram::At(WHARF.into());
    options.limits = options.limits.one_shot();
    options.limits.listen_again /= 20;
    (options.services, options.tap) = (services, tap);
    let connection = connect(&spec, options).await.unwrap();
    assert_eq!(connection.facts().revision, revision);
    connection
}

impl Harbour {
    pub async fn call(&self, tool: &str, arguments: Value) -> ToolResult {
        self.connection
            .call_tool(tool, &RawJson::from_value(&arguments).unwrap(), RequestOptions::default())
            .await
            .unwrap()
    }

    /// How often a method was sent.
    pub fn sent(&self, method: &str) -> usize {
        self.sent.lock().unwrap().iter().filter(|message| message["method"] == method).count()
    }

    /// The params of every message with this method.
    pub fn sent_params(&self, method: &str) -> Vec<Value> {
        let sent = self.sent.lock().unwrap();
        sent.iter().filter(|message| message["method"] == method).map(|message| message["params"].clone()).collect()
    }

    /// The methods and the server's name of everything that was asked.
    pub fn questions(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|(kind, _)| kind.clone()).collect()
    }
}

pub fn text(result: &ToolResult) -> String {
    let result: Value = serde_json::from_str(result.raw.as_str()).unwrap();
    result["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

struct Person {
    asked: Arc<Mutex<Vec<(String, Value)>>>,
    script: Script,
}

impl Elicitor for Person {
    fn supports_pages(&self) -> bool {
        true
    }

    fn elicit(&self, source: RequestSource<'_>, question: Elicitation) -> BoxedFuture<ElicitationResponse> {
        let (kind, raw) = match &question {
            Elicitation::Form(form) => ("form", &form.raw),
            Elicitation::Url(page) => ("page", &page.raw),
        };
        let raw = serde_json::from_str(raw.as_str()).unwrap();
        self.asked.lock().unwrap().push((format!("{} {kind}", source.server), raw));
        let next = self.script.lock().unwrap().pop_front();
        Box::pin(std::future::ready(next.unwrap_or(ElicitationResponse::Accept(None))))
    }

    fn wait_for_page(&self, _: RequestSource<'_>, _page: &UrlRequest) -> BoxedFuture<()> {
        // Only the server's own word counts here.
        Box::pin(std::future::pending())
    }
}

struct Model {
    asked: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Sampler for Model {
    fn supports_tools(&self) -> bool {
        true
    }

    fn sample(
        &self,
        source: RequestSource<'_>,
        request: SamplingRequest,
    ) -> BoxedFuture<Result<RawJson, SamplingError>> {
        let raw: Value = serde_json::from_str(request.raw.as_str()).unwrap();
        let refused = raw.to_string().contains("refuse");
        self.asked.lock().unwrap().push((format!("{} model", source.server), raw));
        let content = json!({ "type": "text", "text": "at noon" });
        let message =
            json!({ "role": "assistant", "content": content, "model": "tide-table", "stopReason": "endTurn" });
        let answer = if refused { Err(SamplingError::Declined) } else { Ok(RawJson::from_value(&message).unwrap()) };
        Box::pin(std::future::ready(answer))
    }
}

struct Quays;

impl RootsSource for Quays {
    fn roots(&self, source: RequestSource<'_>) -> BoxedFuture<Vec<Root>> {
        let server = source.server;
        Box::pin(std::future::ready(vec![Root {
            uri: format!("file:///quays/{server}"),
            name: Some("quays".to_owned()),
        }]))
    }
}

struct Logbook(mpsc::UnboundedSender<(LogLevel, Value)>);

impl LogSink for Logbook {
    fn log(&self, _: RequestSource<'_>, message: LogMessage) {
        let _ = self.0.send((message.level, serde_json::from_str(message.data.as_str()).unwrap()));
    }
}

struct Wiretap(Arc<Mutex<Vec<Value>>>);

impl Tap for Wiretap {
    fn message(&self, passing: &TappedMessage<'_>) {
        if passing.direction == Direction::Sent {
            self.0.lock().unwrap().push(serde_json::from_slice(passing.bytes).unwrap());
        }
    }
}
