//! Queue of questions for the user; one is open at a time.
//!
//! Decides which question is open and delivers the answers. Dialogs decide the text, and the editor supplies the lines.
//! Work that needs several questions, a file or a model runs in a task of the desk, which queues its questions like any
//! other caller. Dropping the desk refuses every pending question.

mod approval_rate_limit;
mod approvals;
mod login;
mod queue;
mod sampling;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;
use wharf::{
    Ask, AskReply, Asker, ConsentAnswer, ElicitationAsk, HostError, LoginAsk, PermissionAnswer, PermissionAsk, RawJson,
    SamplingAsk,
};
use wharf_agent::Model;
use wharf_client::SamplingError;
use wharf_config::{Config, ConfiguredServer};
use wharf_spec::{Fingerprint, ToolId, UntrustedText};
use wharf_wire::{Elicitation, ElicitationResponse, UrlRequest};

use approval_rate_limit::{ApprovalRateLimit, RateDecision};
use approvals::is_same_entry;
use queue::{DialogQuestion, PendingQuestion, QuestionQueue, QueueReply};
use wharf_terminal::approval::Waiting;
use wharf_terminal::display_path::display_path;
use wharf_terminal::editor::InputField;
use wharf_terminal::failure::{Failure, render_failure};
use wharf_terminal::managed_host::ManagedHost;
use wharf_terminal::question::{
    self, ApprovalDialog, BrowserLink, DialogInput, FormDialog, LinkDialog, LoginDialog, PageVisitDialog,
    PermissionDialog, ScreenSize, UrlOpener,
};
use wharf_terminal::rule_sink::rule_file;
use wharf_terminal::session::CommandSession;
use wharf_terminal::style::{GOOD, NAME, paint};
use wharf_terminal::table::wrap;

/// Maximum number of questions in the inbox, and of questions in the queue. Further ones are refused.
const MAX_QUESTIONS: usize = 100;

/// Receives all questions from servers and from the agent.
pub struct QuestionDesk<'a> {
    session: &'a CommandSession,
    queue: QuestionQueue,
    inbox: mpsc::Receiver<DeskMessage>,
    sender: QuestionSender,
    sampling_model: Option<Model>,
    tasks: JoinSet<DeskTaskResult>,
    /// Project servers with an open approval question, and the tasks that wait for the answers.
    approving: Vec<(ConfiguredServer, AbortHandle)>,
    /// Project servers with an approval question in preparation, each with the latest round that named it.
    requested: Vec<(ConfiguredServer, u64)>,
    /// Number of approval rounds so far.
    round: u64,
    changes: ApprovalRateLimit,
}

/// Event of the desk that its owner must handle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeskEvent {
    /// The open question changed.
    QuestionChanged,
    /// A project server was approved.
    Approved(String),
}

/// Sender of questions to the desk.
#[derive(Clone)]
struct QuestionSender {
    inbox: mpsc::Sender<DeskMessage>,
    /// True if servers may request sampling.
    samples: Arc<AtomicBool>,
}

/// A message to the desk.
enum DeskMessage {
    Ask(Box<Ask>),
    /// A question from a task of the desk.
    Question(Box<dyn PendingQuestion>),
}

/// Result of a task of the desk.
enum DeskTaskResult {
    /// Nothing to report.
    Over,
    /// Servers that need approval, found in this round.
    Waiting(u64, Result<Vec<Waiting>, Failure>),
    Decided(Box<approvals::ApprovalResult>),
    LoggedIn(String, Result<(), HostError>),
    Released(ToolId, Result<ConsentAnswer, HostError>),
}

/// An event of the desk's loop.
enum DeskInput {
    Arrived(DeskMessage),
    Withdrawn(QueueReply),
    Done(DeskTaskResult),
}

impl<'a> QuestionDesk<'a> {
    /// Creates a desk and the [`Asker`] for its host. A host reads [`Asker::supports_sampling`] once on creation, so
    /// sampling must be declared, or its model set, before.
    pub fn new(session: &'a CommandSession) -> (Self, Arc<dyn Asker>) {
        let (sender, inbox) = mpsc::channel(MAX_QUESTIONS);
        let sender = QuestionSender { inbox: sender, samples: Arc::default() };
        let asker = Arc::new(sender.clone());
        let (queue, tasks) = (QuestionQueue::default(), JoinSet::new());
        let (approving, requested, changes) = (Vec::new(), Vec::new(), ApprovalRateLimit::default());
        (
            Self {
                session,
                queue,
                inbox,
                sender,
                sampling_model: None,
                tasks,
                approving,
                requested,
                round: 0,
                changes,
            },
            asker,
        )
    }

    /// Sets the model that servers may use after consent. With `None`, sampling requests fail.
    pub fn set_sampling_model(&mut self, model: Option<Model>) {
        self.sender.samples.store(model.is_some(), Ordering::Release);
        self.sampling_model = model;
    }

    /// Declares sampling before the model is selected. Sampling requests fail until a model is set.
    pub fn declare_sampling(&mut self) {
        self.sender.samples.store(true, Ordering::Release);
    }

    /// Starts a login in the background: asks for consent, opens the page and waits.
    pub fn log_in(&mut self, managed_host: &ManagedHost<'_>, server: &str) {
        let visitor = login::consent_visitor(managed_host, server, self.sender.clone());
        let (host, server) = (managed_host.host.clone(), server.to_owned());
        self.tasks.spawn(async move {
            let outcome = host.log_in(&server, visitor).await;
            DeskTaskResult::LoggedIn(server, outcome)
        });
    }

    /// Asks whether to release a definition that the user has been shown, and releases it.
    pub fn release(&mut self, managed_host: &ManagedHost<'_>, tool: ToolId, seen: Fingerprint) {
        let (host, sender) = (managed_host.host.clone(), self.sender.clone());
        let dialog = ApprovalDialog::with_prompt(format!("Release {}, exactly as shown? [y/N] ", paint(NAME, &tool)));
        self.tasks.spawn(async move {
            let outcome = match sender.ask_user(tool.server.as_str(), dialog).await {
                Some(ConsentAnswer::Given) => host.release(&tool, seen).await.map(|()| ConsentAnswer::Given),
                Some(ConsentAnswer::Refused) | None => Ok(ConsentAnswer::Refused),
            };
            DeskTaskResult::Released(tool, outcome)
        });
    }

    /// Asks for approval of project servers. Replaces earlier questions about the same servers.
    pub fn ask_approvals(&mut self, servers: Vec<ConfiguredServer>, config: Arc<Config>) {
        self.round += 1;
        let round = self.round;
        self.requested.retain(|(other, _)| !servers.iter().any(|server| is_same_entry(server, other)));
        self.requested.extend(servers.iter().cloned().map(|server| (server, round)));
        let find = approvals::approval_finder(self.session, servers, config);
        self.tasks.spawn(async move {
            let found = wharf_threads::run_blocking(find).await;
            DeskTaskResult::Waiting(round, found.unwrap_or_else(|error| Err(Failure::other(error))))
        });
    }

    /// Asks for approval of changed project servers, subject to a rate limit: a project could otherwise repeat the
    /// question until the user gives in.
    pub fn ask_changed_approvals(&mut self, servers: Vec<ConfiguredServer>, config: Arc<Config>) {
        match self.changes.decide(Instant::now()) {
            RateDecision::Asked => self.ask_approvals(servers, config),
            RateDecision::Paused => self.session.console.warn(
                "the project's server definitions keep changing: approval questions are paused. \
                 Run `wharf approve` when they are stable",
            ),
            RateDecision::StillPaused => {}
        }
    }

    /// Withdraws stale approval questions. An answer to one would overwrite newer information about the server.
    pub fn withdraw_approvals(&mut self, is_stale: impl Fn(&ConfiguredServer) -> bool) {
        self.requested.retain(|(server, _)| !is_stale(server));
        self.approving.retain(|(server, asked)| {
            let is_stale = is_stale(server);
            if is_stale {
                asked.abort();
            }
            !is_stale && !asked.is_finished()
        });
    }

    /// Waits for an event that the owner must handle, and prints messages meanwhile. Cancel-safe.
    pub async fn next(&mut self) -> DeskEvent {
        loop {
            let event = match self.next_input().await {
                DeskInput::Arrived(message) => self.on_message(message),
                DeskInput::Withdrawn(reply) => self.print_reply(reply),
                DeskInput::Done(outcome) => self.on_task_result(outcome),
            };
            if let Some(event) = event {
                return event;
            }
        }
    }

    async fn next_input(&mut self) -> DeskInput {
        loop {
            tokio::select! {
                // The desk holds a sender, so the inbox never closes.
                Some(message) = self.inbox.recv() => return DeskInput::Arrived(message),
                reply = self.queue.wait_for_withdrawal() => return DeskInput::Withdrawn(reply),
                Some(done) = self.tasks.join_next() => match done {
                    Ok(outcome) => return DeskInput::Done(outcome),
                    Err(error) if error.is_cancelled() => {}
                    Err(error) => tracing::warn!("a question task panicked: {error}"),
                },
            }
        }
    }

    /// Returns the input field of the open question, if any.
    pub fn field(&self) -> Option<InputField> {
        self.queue.field()
    }

    /// Records that the user has cancelled the run, or that a new run starts. Explains withdrawn questions.
    pub fn set_run_cancelled(&mut self, is_cancelled: bool) {
        self.queue.set_run_cancelled(is_cancelled);
    }

    /// Returns the number of queued questions, including the open one.
    #[cfg(test)]
    fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Passes input to the open question.
    pub fn on_input(&mut self, input: DialogInput) -> DeskEvent {
        let reply = self.queue.on_input(input);
        self.print_reply(reply);
        DeskEvent::QuestionChanged
    }

    fn on_message(&mut self, message: DeskMessage) -> Option<DeskEvent> {
        match message {
            DeskMessage::Question(question) => self.enqueue(question),
            DeskMessage::Ask(ask) => self.on_ask(*ask),
        }
    }

    fn on_ask(&mut self, ask: Ask) -> Option<DeskEvent> {
        match ask {
            Ask::Permission(ask, reply) => self.ask_permission(&ask, reply),
            Ask::Elicitation(ask, reply) => self.elicit(&ask, reply),
            Ask::Page(ask, reply) => {
                let name = ask.server.as_str();
                self.enqueue(Box::new(DialogQuestion::new(name, PageVisitDialog::new(name), reply)))
            }
            Ask::Sampling(ask, reply) => self.start_sampling(ask, reply),
            Ask::Login(ask, reply) => self.ask_login(&ask, reply),
            Ask::Approval(ask, reply) => {
                let dialog = ApprovalDialog::new(ask.server.as_str(), format!("\n  {}", ask.what.join("\n  ")));
                self.enqueue(Box::new(DialogQuestion::about(ask.server.as_str(), dialog, reply)))
            }
            // Dropping an unknown kind of question refuses it.
            _ => None,
        }
    }

    fn ask_permission(&mut self, ask: &PermissionAsk, reply: AskReply<PermissionAnswer>) -> Option<DeskEvent> {
        let file = rule_file(self.session).map(|file| display_path(&file, &self.session.environment));
        let dialog = PermissionDialog::new(ask, file.as_deref(), ScreenSize::from_stderr());
        self.enqueue(Box::new(DialogQuestion::about(ask.id.server.as_str(), dialog, reply)))
    }

    fn elicit(&mut self, ask: &ElicitationAsk, reply: AskReply<ElicitationResponse>) -> Option<DeskEvent> {
        let server = ask.server.as_str();
        match &ask.question {
            Elicitation::Form(form) => {
                let dialog = FormDialog::new(&UntrustedText::new(server).to_string(), form);
                self.enqueue(Box::new(DialogQuestion::new(server, dialog, reply)))
            }
            Elicitation::Url(request) => self.ask_link(server, request, reply),
        }
    }

    fn ask_link(
        &mut self,
        server: &str,
        request: &UrlRequest,
        reply: AskReply<ElicitationResponse>,
    ) -> Option<DeskEvent> {
        let link = match BrowserLink::parse(&request.url) {
            Ok(link) => link,
            Err(reason) => {
                question::warn_refused_link(&self.session.console, server, &request.url, &reason);
                reply.answer(ElicitationResponse::Decline);
                return None;
            }
        };
        let dialog = LinkDialog::new(&UntrustedText::new(server).to_string(), &request.message, &link);
        let (console, opener) = (self.session.console.clone(), UrlOpener::from_environment(&self.session.environment));
        let open = move |answer: &ElicitationResponse| {
            if let ElicitationResponse::Accept(_) = answer {
                question::open_link(&console, &opener, &link);
            }
        };
        self.enqueue(Box::new(DialogQuestion::new(server, dialog, reply).with_callback(open)))
    }

    fn ask_login(&mut self, ask: &LoginAsk, reply: AskReply<ConsentAnswer>) -> Option<DeskEvent> {
        match LoginDialog::new(ask) {
            Ok(dialog) => self.enqueue(Box::new(DialogQuestion::about(ask.server.as_str(), dialog, reply))),
            Err(error) => {
                let server = UntrustedText::new(ask.server.as_str());
                self.session.console.warn(format_args!("login to {server} refused: {error}"));
                None
            }
        }
    }

    fn start_sampling(
        &mut self,
        ask: SamplingAsk,
        reply: AskReply<Result<RawJson, SamplingError>>,
    ) -> Option<DeskEvent> {
        let Some(model) = self.sampling_model.clone().filter(|_| self.tasks.len() < MAX_QUESTIONS) else {
            let why = if self.sampling_model.is_some() {
                "too many sampling requests at once"
            } else {
                "no model is selected"
            };
            reply.answer(Err(SamplingError::Failed(why.to_owned())));
            return None;
        };
        let (sender, console) = (self.sender.clone(), self.session.console.clone());
        self.tasks.spawn(async move {
            sampling::sample(&sender, &console, &model, &ask, reply).await;
            DeskTaskResult::Over
        });
        None
    }

    /// Appends a question to the queue. A question that has been withdrawn is dropped.
    fn enqueue(&mut self, question: Box<dyn PendingQuestion>) -> Option<DeskEvent> {
        if !question.has_receiver() {
            return None;
        }
        if self.queue.len() >= MAX_QUESTIONS {
            self.session.console.warn("too many pending questions, a new one was refused");
            return None;
        }
        let reply = self.queue.push(question);
        self.print_reply(reply)
    }

    fn print_reply(&mut self, reply: QueueReply) -> Option<DeskEvent> {
        if !reply.text.is_empty() {
            let console = &self.session.console;
            console.say(wrap(&reply.text, console.stderr_width()));
        }
        reply.is_question_changed.then_some(DeskEvent::QuestionChanged)
    }

    fn on_task_result(&mut self, outcome: DeskTaskResult) -> Option<DeskEvent> {
        match outcome {
            DeskTaskResult::Over => None,
            DeskTaskResult::Waiting(round, waiting) => self.put_approvals(round, waiting),
            DeskTaskResult::Decided(decided) => {
                approvals::print_result(&self.session.console, *decided).map(DeskEvent::Approved)
            }
            DeskTaskResult::LoggedIn(server, outcome) => {
                self.session.console.say(login::format_login_result(&server, outcome));
                None
            }
            DeskTaskResult::Released(tool, outcome) => {
                self.session.console.say(format_release_result(&tool, outcome));
                None
            }
        }
    }

    /// Queues the questions of a round, except for servers named by a later round or changed since.
    fn put_approvals(&mut self, round: u64, waiting: Result<Vec<Waiting>, Failure>) -> Option<DeskEvent> {
        let waiting = waiting.unwrap_or_else(|failure| {
            self.session.console.say(render_failure(&failure));
            Vec::new()
        });
        let mut event = None;
        let (current, rest) = std::mem::take(&mut self.requested).into_iter().partition(|(_, named)| *named == round);
        let current: Vec<(ConfiguredServer, u64)> = current;
        self.requested = rest;
        for one in waiting {
            let server = one.server.clone();
            if !current.iter().any(|(named, _)| is_same_entry(named, &server)) {
                continue;
            }
            self.withdraw_approvals(|asked| is_same_entry(asked, &server));
            let (question, deciding) = approvals::approval_question(self.session, one);
            let asked = self.tasks.spawn(async move { DeskTaskResult::Decided(Box::new(deciding.await)) });
            self.approving.push((server, asked));
            event = self.enqueue(question).or(event);
        }
        event
    }
}

impl QuestionSender {
    /// Queues a question of a desk task and waits for the answer. Returns `None` if the desk is gone. Dropping the
    /// future withdraws the question.
    async fn ask_user<T>(&self, server: &str, dialog: T) -> Option<T::Answer>
    where
        T: question::Dialog + Send + 'static,
        T::Answer: Send,
    {
        let (reply, answer) = AskReply::pair();
        let question = DeskMessage::Question(Box::new(DialogQuestion::new(server, dialog, reply)));
        self.inbox.send(question).await.ok()?;
        answer.await.ok()
    }
}

impl Asker for QuestionSender {
    fn ask(&self, ask: Ask) {
        // If the inbox is full, the question is dropped, which refuses it.
        let _ = self.inbox.try_send(DeskMessage::Ask(Box::new(ask)));
    }

    fn shows_pages(&self) -> bool {
        true
    }

    fn supports_sampling(&self) -> bool {
        self.samples.load(Ordering::Acquire)
    }
}

/// Formats the result of asking for a release.
fn format_release_result(tool: &ToolId, outcome: Result<ConsentAnswer, HostError>) -> String {
    match outcome {
        Ok(ConsentAnswer::Given) => format!("{} {tool}.", paint(GOOD, "Released")),
        Ok(ConsentAnswer::Refused) => format!("{tool} stays withheld."),
        Err(error) => {
            let failure = Failure::other(error).about_server(tool.server.as_str());
            let tool = format!("{} {}", tool.server, UntrustedText::new(&*tool.tool));
            render_failure(&failure.with_hint(format_args!("/mcp release {tool} shows the definition again")))
        }
    }
}

#[cfg(test)]
mod tests;
