//! The way from a call in progress to its client: for questions, log messages and progress.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, timeout, timeout_at};
use wharf::tools::{Principal, ToolCaller};
use wharf::wire::{Era, JsonLimits, LogLevel, LogMessage, Progress, Revision};
use wharf::{CallTag, DeclaredClient, RawJson};
use wharf_serve::Outbox;

use crate::bridge::QuestionSheet;
use crate::client_class::{ClientClass, ServerTasks};
use crate::client_view::UnaskedClients;
use crate::progress::ProgressRelay;
use crate::questions::{
    ClientAnswer, ClientQuestion, PendingQuestions, QuestionKind, QuestionSubject, SessionQuestions, unanswered,
};
use crate::responses::notification;

/// Time that a question waits for others of the same call.
const QUESTION_DELAY: Duration = Duration::from_millis(50);

/// A client, as known from its handshake or from one request.
#[derive(Debug, Clone)]
pub(crate) struct ClientFacts {
    pub principal: Principal,
    pub era: Era,
    pub name: Option<String>,
    /// `clientInfo` as sent.
    pub info: Option<RawJson>,
    pub class: ClientClass,
    pub log_level: Option<LogLevel>,
    /// Principal that the client has authenticated as. `None` is the user who runs the gateway.
    pub account: Option<Arc<str>>,
    /// Further rules that apply to the client.
    pub rule_set: Option<Arc<str>>,
    /// Number of the connection. The calls of one connection may share an instance of a server.
    pub connection: u64,
    pub revision: Option<Revision>,
    /// Owner of the client's tasks.
    pub task_owner: String,
    /// Whether the client declares the tasks extension (2026-07-28).
    pub follows_tasks: bool,
}

impl ClientFacts {
    /// Returns the caller for the permission gate.
    pub fn caller(&self) -> ToolCaller {
        let name = self.name.clone().unwrap_or_else(|| "client".to_owned());
        let rule_set = self.rule_set.clone();
        ToolCaller { name: name.into(), rule_set, ..ToolCaller::agent() }.on_behalf_of(self.principal.clone())
    }

    /// Returns the client as declared to a stateless server.
    pub fn declared(&self, tasks: ServerTasks) -> Arc<DeclaredClient> {
        let mut client = DeclaredClient::default().capabilities(self.class.to_capabilities(tasks));
        client.info = self.info.clone().filter(RawJson::is_object);
        client.log_level = self.log_level;
        Arc::new(client)
    }
}

/// The way to the client of one call.
pub(crate) struct CallRoute {
    pub tag: CallTag,
    pub client: ClientFacts,
    /// Server of the call, and its tool, prompt or resource.
    pub server: String,
    pub target: String,
    /// Treatment of the call if it needs permission and the client cannot be asked.
    pub unasked: UnaskedClients,
    opened: Instant,
    way: QuestionWay,
    /// The stream of the request. A parked call has none until its client returns.
    stream: Mutex<Option<RequestStream>>,
    pending: PendingQuestions,
    question_timeout: Duration,
    /// Set when the call has ended: its questions end with it, even if the server does not withdraw them.
    ended: watch::Sender<bool>,
    /// Id of the task that the server has made of the call.
    server_task: watch::Sender<Option<String>>,
}

/// How the client is asked.
pub(crate) enum QuestionWay {
    /// By requests on the call's stream.
    Requests(Arc<SessionQuestions>),
    /// By `input_required` results.
    Results(Arc<SheetQuestions>),
}

/// The stream of a request.
pub(crate) struct RequestStream {
    pub out: Arc<dyn Outbox>,
    pub progress: Option<Arc<ProgressRelay>>,
}

/// Parts of a route.
pub(crate) struct RouteParts {
    pub client: ClientFacts,
    pub server: String,
    pub target: String,
    pub unasked: UnaskedClients,
    pub way: QuestionWay,
    pub stream: RequestStream,
}

impl CallRoute {
    fn stream(&self) -> MutexGuard<'_, Option<RequestStream>> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the call the stream of another request, or none while it is parked.
    pub fn set_stream(&self, stream: Option<RequestStream>) {
        *self.stream() = stream;
    }

    /// Notes that the server has made a task of the call.
    pub fn set_server_task(&self, id: &str) {
        self.server_task.send_replace(Some(id.to_owned()));
    }

    /// Waits until the server has made a task of the call.
    pub async fn wait_for_server_task(&self) {
        // The sender is in `self`.
        let _ = self.server_task.subscribe().wait_for(Option::is_some).await;
    }

    /// Reports whether the server calls its task of the call so.
    pub fn has_server_task(&self, id: &str) -> bool {
        self.server_task.borrow().as_deref() == Some(id)
    }

    /// Asks the client and waits for its answer, or for that of another interface.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future withdraws the question.
    pub async fn ask(&self, question: ClientQuestion) -> ClientAnswer {
        let bounds = JsonLimits::default();
        let params: Value = question.params.as_ref().and_then(|params| params.decode(&bounds).ok()).unwrap_or_default();
        if !self.client.class.can_answer(question.method, &params) {
            return unanswered("the client cannot be asked this");
        }
        let until = Instant::now() + self.question_timeout;
        let is_listed = question.kind != QuestionKind::Roots;
        let mut registered = is_listed.then(|| self.pending.register(&question, self.subject(), until));
        let elsewhere = async {
            match &mut registered {
                Some(registered) => registered.answered().await,
                None => std::future::pending().await,
            }
        };
        let mut ended = self.ended.subscribe();
        tokio::select! {
            answer = self.ask_client(&question) => answer,
            answer = elsewhere => Ok(answer),
            _ = ended.wait_for(|ended| *ended) => unanswered("the call has ended"),
        }
    }

    /// Reports whether a question for permission can be answered: by the client, or elsewhere while the call waits.
    pub fn can_be_answered(&self) -> bool {
        self.client.class.forms || Instant::now() < self.opened + self.unasked.wait
    }

    /// Waits for the answer of another interface to a question that the client cannot be asked. The time is that of the
    /// call, so calls that wait for each other's questions do not wait longer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future withdraws the question.
    pub async fn wait_for_answer_elsewhere(&self, question: &ClientQuestion) -> Option<RawJson> {
        let until = self.opened + self.unasked.wait;
        let mut registered = self.pending.register(question, self.subject(), until);
        if !registered.is_listed() {
            return None;
        }
        let mut ended = self.ended.subscribe();
        tokio::select! {
            answer = timeout_at(until, registered.answered()) => answer.ok(),
            _ = ended.wait_for(|ended| *ended) => None,
        }
    }

    async fn ask_client(&self, question: &ClientQuestion) -> ClientAnswer {
        match &self.way {
            QuestionWay::Requests(questions) => {
                let out = self.stream().as_ref().map(|stream| Arc::clone(&stream.out));
                let Some(out) = out else { return unanswered("the client has no stream") };
                let asked = timeout(self.question_timeout, questions.ask(question, &*out)).await;
                asked.unwrap_or_else(|_| unanswered("the client did not answer in time"))
            }
            // The time that a call is parked is limited.
            QuestionWay::Results(sheet) => sheet.ask(question).await,
        }
    }

    fn subject(&self) -> QuestionSubject {
        let client = self.client.name.clone().unwrap_or_else(|| "client".to_owned());
        let principal = self.client.principal.client_id().unwrap_or("local").to_owned();
        QuestionSubject { client, principal, server: self.server.clone(), target: self.target.clone() }
    }

    /// Relays a log message that belongs to the call, if the client wants it.
    pub fn log(&self, message: &LogMessage) {
        if self.client.log_level.is_none_or(|level| message.level < level) {
            return;
        }
        let mut params = json!({"level": message.level.as_str()});
        if let Some(logger) = &message.logger {
            params["logger"] = logger.as_str().into();
        }
        params["data"] = serde_json::from_str(message.data.as_str()).unwrap_or_default();
        self.send_notification("notifications/message", &params);
    }

    /// Sends a notification on the call's stream.
    pub fn send_notification(&self, method: &str, params: &Value) {
        if let Some(stream) = &*self.stream() {
            stream.out.send(notification(method, params));
        }
    }

    /// Returns the stream of the client's session, if it has one.
    pub fn session_outbox(&self) -> Option<Arc<dyn Outbox>> {
        let stream = self.stream();
        let out = stream.as_ref().filter(|_| self.client.era == Era::Handshake)?;
        out.out.session_outbox()
    }

    pub fn report_progress(&self, progress: &Progress) {
        let relay = self.stream().as_ref().and_then(|stream| stream.progress.clone());
        if let Some(relay) = relay {
            relay.report(progress);
        }
    }

    /// Reports whether the client wants the progress of the call.
    pub fn wants_progress(&self) -> bool {
        self.stream().as_ref().is_some_and(|stream| stream.progress.is_some())
    }

    /// Sends the last progress notification.
    pub fn flush_progress(&self) {
        let relay = self.stream().as_ref().and_then(|stream| stream.progress.clone());
        if let Some(relay) = relay {
            relay.flush();
        }
    }
}

/// The questions of a call to a stateless client.
#[derive(Default)]
pub(crate) struct SheetQuestions {
    sheet: Mutex<QuestionSheet<oneshot::Sender<ClientAnswer>>>,
    /// Number of questions that were asked.
    added: watch::Sender<u64>,
}

impl SheetQuestions {
    fn sheet(&self) -> MutexGuard<'_, QuestionSheet<oneshot::Sender<ClientAnswer>>> {
        self.sheet.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask(&self, question: &ClientQuestion) -> ClientAnswer {
        let (reply, answer) = oneshot::channel();
        let added = self.sheet().add(question.clone(), reply);
        let Ok(number) = added else { return unanswered("too many questions are open") };
        let _withdrawal = WithdrawOnDrop { questions: self, number };
        self.added.send_modify(|added| *added += 1);
        answer.await.unwrap_or_else(|_| unanswered("the call has ended"))
    }

    /// Waits until a question is open, and a moment for those that are asked together with it.
    pub async fn wait_for_questions(&self) {
        loop {
            self.next_question().await;
            tokio::time::sleep(QUESTION_DELAY).await;
            if self.sheet().has_open() {
                return;
            }
        }
    }

    /// Waits until a question is open and returns the oldest one, with its number.
    ///
    /// # Cancel safety
    ///
    /// Cancel-safe: the question stays open.
    pub async fn next_question(&self) -> (u64, ClientQuestion) {
        let mut added = self.added.subscribe();
        loop {
            if let Some((number, question)) = self.sheet().first() {
                return (number, question.clone());
            }
            // The sender is in `self`.
            let _ = added.changed().await;
        }
    }

    pub fn has_open(&self) -> bool {
        self.sheet().has_open()
    }

    /// Takes the answer to one question.
    pub fn answer_one(&self, number: u64, answer: ClientAnswer) {
        let reply = self.sheet().take(number);
        if let Some(reply) = reply {
            let _ = reply.send(answer);
        }
    }

    /// Returns the open questions as `inputRequests`.
    pub fn to_requests(&self) -> RawJson {
        self.sheet().to_requests()
    }

    /// Takes the answers of a retry.
    pub fn answer(&self, responses: &RawJson) {
        let (answered, _) = self.sheet().answer(responses);
        for (reply, answer) in answered {
            let _ = reply.send(Ok(answer));
        }
    }
}

struct WithdrawOnDrop<'a> {
    questions: &'a SheetQuestions,
    number: u64,
}

impl Drop for WithdrawOnDrop<'_> {
    fn drop(&mut self) {
        self.questions.sheet().withdraw(self.number);
    }
}

/// The routes of all calls in progress, by tag.
pub(crate) struct RouteTable {
    tags: AtomicU64,
    routes: Mutex<HashMap<u64, Arc<CallRoute>>>,
    pending: PendingQuestions,
    question_timeout: Duration,
}

impl RouteTable {
    pub fn new(pending: PendingQuestions, question_timeout: Duration) -> Self {
        Self { tags: AtomicU64::new(0), routes: Mutex::default(), pending, question_timeout }
    }

    fn routes(&self) -> MutexGuard<'_, HashMap<u64, Arc<CallRoute>>> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates the route of a call.
    pub fn open(&self, parts: RouteParts) -> Arc<CallRoute> {
        let RouteParts { client, server, target, unasked, way, stream } = parts;
        let tag = CallTag(self.tags.fetch_add(1, Ordering::Relaxed) + 1);
        let (pending, question_timeout) = (self.pending.clone(), self.question_timeout);
        let stream = Mutex::new(Some(stream));
        let (ended, server_task) = (watch::Sender::new(false), watch::Sender::new(None));
        let opened = Instant::now();
        let route = Arc::new(CallRoute {
            tag,
            client,
            server,
            target,
            unasked,
            opened,
            way,
            stream,
            pending,
            question_timeout,
            ended,
            server_task,
        });
        self.routes().insert(tag.0, Arc::clone(&route));
        route
    }

    pub fn find(&self, tag: u64) -> Option<Arc<CallRoute>> {
        self.routes().get(&tag).cloned()
    }

    /// Removes the route of a call that has ended.
    pub fn close(&self, tag: CallTag) {
        let closed = self.routes().remove(&tag.0);
        if let Some(route) = closed {
            route.ended.send_replace(true);
        }
    }
}
