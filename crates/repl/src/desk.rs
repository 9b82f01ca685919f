//! The questions that wait for a person, one on the table at a time.
//!
//! Owns which of them is on the table, and what becomes of the answers. What is said to which line is the talks'
//! business, and where lines come from the editor's. Whatever takes more than one question, a file or a model is a task
//! of the desk's own, which puts its questions like everybody else: dropped, the desk refuses everything politely.

mod approvals;
mod login;
mod pace;
mod queue;
mod rules;
mod sampling;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use terminal_size::{Height, Width, terminal_size_of};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;
use wharf::{
    Ask, AskReply, Asker, Consent, ElicitationAsk, HostError, LoginAsk, PermissionAnswer, PermissionAsk, Raw,
    SamplingAsk,
};
use wharf_agent::Model;
use wharf_client::NotSampled;
use wharf_config::{Config, Configured};
use wharf_spec::Untrusted;
use wharf_wire::{ElicitAnswer, Elicitation, UrlRequest};

use approvals::is_same_entry;
use pace::{ChangeFate, ChangePace};
use queue::{Open, Question, Queue, Said};
use wharf_terminal::approval::Waiting;
use wharf_terminal::editor::Field;
use wharf_terminal::failure::{Failure, render};
use wharf_terminal::fleet::Fleet;
use wharf_terminal::question::{
    self, ApprovalTalk, FormTalk, Heard, Link, LinkTalk, LoginTalk, Opener, PermissionTalk, Room, VisitedTalk,
};
use wharf_terminal::session::Session;
use wharf_terminal::shown_path::shown_path;
use wharf_terminal::table::wrap;

pub use rules::rule_sink;

/// The most questions that have arrived and were not looked at yet, and the most that wait: who asks when there are more
/// is refused.
const MOST: usize = 100;

/// The desk: what servers and the agent ask goes through here.
pub struct Desk<'a> {
    session: &'a Session,
    queue: Queue,
    inbox: mpsc::Receiver<Arrival>,
    slot: Slot,
    lent: Option<Model>,
    works: JoinSet<Outcome>,
    /// The servers of the project that were asked about, and who waits for the answers.
    approving: Vec<(Configured, AbortHandle)>,
    /// The servers of the project that are about to be asked about, each with the latest round that named it.
    requested: Vec<(Configured, u64)>,
    /// How often the desk was told to ask about servers of the project.
    round: u64,
    changes: ChangePace,
}

/// What came of questions, for whoever has to do something about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeskNews {
    /// Another question is on the table, or none.
    Table,
    /// A server of the project was approved.
    Approved(String),
}

/// How questions get to the desk.
#[derive(Clone)]
struct Slot {
    inbox: mpsc::Sender<Arrival>,
    /// Whether a model is lent.
    samples: Arc<AtomicBool>,
}

/// What comes through the slot.
enum Arrival {
    Ask(Box<Ask>),
    /// A question of the desk's own.
    Question(Box<dyn Open>),
}

/// What came of a task of the desk's.
enum Outcome {
    /// There is nothing to tell.
    Over,
    /// In this round, these servers wait for approval.
    Waiting(u64, Result<Vec<Waiting>, Failure>),
    Decided(Box<approvals::Decided>),
    LoggedIn(String, Result<(), HostError>),
}

/// What happened to the desk.
enum Happened {
    Arrived(Arrival),
    Withdrawn(Said),
    Done(Outcome),
}

impl<'a> Desk<'a> {
    /// A desk, and the one by whom a host puts questions on it. Whether servers may use the model is asked once, when a
    /// host is made: a model that is to be declared is lent or promised before that.
    pub fn new(session: &'a Session) -> (Self, Arc<dyn Asker>) {
        let (sender, inbox) = mpsc::channel(MOST);
        let slot = Slot { inbox: sender, samples: Arc::default() };
        let asker = Arc::new(slot.clone());
        let (queue, works) = (Queue::default(), JoinSet::new());
        let (approving, requested, changes) = (Vec::new(), Vec::new(), ChangePace::default());
        (Self { session, queue, inbox, slot, lent: None, works, approving, requested, round: 0, changes }, asker)
    }

    /// The model that servers may use, once the person agrees; none, and they are told so.
    pub fn lend(&mut self, model: Option<Model>) {
        self.slot.samples.store(model.is_some(), Ordering::Release);
        self.lent = model;
    }

    /// Says that a model will be lent, once it is found: until then, and where it is not, servers are told that there is none.
    pub fn promise(&mut self) {
        self.slot.samples.store(true, Ordering::Release);
    }

    /// Logs in: asks, opens the page and waits, in the desk's own time.
    pub fn log_in(&mut self, fleet: &Fleet<'_>, server: &str) {
        let visitor = login::visitor(fleet, server, self.slot.clone());
        let (host, server) = (fleet.host.clone(), server.to_owned());
        self.works.spawn(async move {
            let outcome = host.log_in(&server, visitor).await;
            Outcome::LoggedIn(server, outcome)
        });
    }

    /// Asks about servers that the project brings along, given everything that is configured, in place of what was asked
    /// about them before.
    pub fn ask_approvals(&mut self, servers: Vec<Configured>, config: Arc<Config>) {
        self.round += 1;
        let round = self.round;
        self.requested.retain(|(other, _)| !servers.iter().any(|server| is_same_entry(server, other)));
        self.requested.extend(servers.iter().cloned().map(|server| (server, round)));
        let find = approvals::finder(self.session, servers, config);
        self.works.spawn_blocking(move || Outcome::Waiting(round, find()));
    }

    /// Asks about servers of the project that have changed, unless that has happened too often of late: a project could
    /// go on until a person says yes to be left alone.
    pub fn ask_changed_approvals(&mut self, servers: Vec<Configured>, config: Arc<Config>) {
        match self.changes.decide(Instant::now()) {
            ChangeFate::Asked => self.ask_approvals(servers, config),
            ChangeFate::Paused => self.session.console.warn(
                "the project's servers keep changing: no more questions about them for now. \
                 Run `wharf approve` once they have settled",
            ),
            ChangeFate::StillPaused => {}
        }
    }

    /// Takes questions about servers of the project back, where that is wanted: an answer to one would be kept in place of
    /// what is known of the server by now.
    pub fn withdraw_approvals(&mut self, is_stale: impl Fn(&Configured) -> bool) {
        self.requested.retain(|(server, _)| !is_stale(server));
        self.approving.retain(|(server, asked)| {
            let is_stale = is_stale(server);
            if is_stale {
                asked.abort();
            }
            !is_stale && !asked.is_finished()
        });
    }

    /// Waits for something to happen to questions: one comes, one is withdrawn, a model has answered. Shows what has to be
    /// shown. Dropped while it waits, nothing is lost.
    pub async fn next(&mut self) -> DeskNews {
        loop {
            let news = match self.happening().await {
                Happened::Arrived(arrival) => self.take_in(arrival),
                Happened::Withdrawn(said) => self.tell(said),
                Happened::Done(outcome) => self.conclude(outcome),
            };
            if let Some(news) = news {
                return news;
            }
        }
    }

    async fn happening(&mut self) -> Happened {
        loop {
            tokio::select! {
                // The desk has a slot of its own, so that the inbox is never closed.
                Some(arrival) = self.inbox.recv() => return Happened::Arrived(arrival),
                said = self.queue.withdrawn() => return Happened::Withdrawn(said),
                Some(done) = self.works.join_next() => match done {
                    Ok(outcome) => return Happened::Done(outcome),
                    Err(error) if error.is_cancelled() => {}
                    Err(error) => tracing::warn!("a task of the desk's was lost: {error}"),
                },
            }
        }
    }

    /// What is being asked; nothing where the line is free.
    pub fn field(&self) -> Option<Field> {
        self.queue.field()
    }

    /// How many questions wait, the one on the table included.
    #[cfg(test)]
    fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Takes what was typed as an answer.
    pub fn hear(&mut self, heard: Heard) -> DeskNews {
        let said = self.queue.hear(heard);
        self.tell(said);
        DeskNews::Table
    }

    fn take_in(&mut self, arrival: Arrival) -> Option<DeskNews> {
        match arrival {
            Arrival::Question(question) => self.put(question),
            Arrival::Ask(ask) => self.take_in_ask(*ask),
        }
    }

    fn take_in_ask(&mut self, ask: Ask) -> Option<DeskNews> {
        match ask {
            Ask::Permission(ask, reply) => self.ask_permission(&ask, reply),
            Ask::Elicitation(ask, reply) => self.elicit(&ask, reply),
            Ask::Page(ask, reply) => {
                let name = ask.server.as_str();
                self.put(Box::new(Question::new(name, VisitedTalk::new(name), reply)))
            }
            Ask::Sampling(ask, reply) => self.sample(ask, reply),
            Ask::Login(ask, reply) => self.ask_login(&ask, reply),
            Ask::Approval(ask, reply) => {
                let talk = ApprovalTalk::new(ask.server.as_str(), format!("\n  {}", ask.what.join("\n  ")));
                self.put(Box::new(Question::new(ask.server.as_str(), talk, reply)))
            }
            // A question of a kind that is unknown here is refused by dropping it.
            _ => None,
        }
    }

    fn ask_permission(&mut self, ask: &PermissionAsk, reply: AskReply<PermissionAnswer>) -> Option<DeskNews> {
        let file = rules::file(self.session).map(|file| shown_path(&file, &self.session.surroundings));
        let talk = PermissionTalk::new(ask, file.as_deref(), room());
        self.put(Box::new(Question::new(ask.id.server.as_str(), talk, reply)))
    }

    fn elicit(&mut self, ask: &ElicitationAsk, reply: AskReply<ElicitAnswer>) -> Option<DeskNews> {
        let server = ask.server.as_str();
        match &ask.question {
            Elicitation::Form(form) => {
                let talk = FormTalk::new(&Untrusted::new(server).to_string(), form);
                self.put(Box::new(Question::new(server, talk, reply)))
            }
            Elicitation::Url(request) => self.ask_link(server, request, reply),
        }
    }

    fn ask_link(&mut self, server: &str, request: &UrlRequest, reply: AskReply<ElicitAnswer>) -> Option<DeskNews> {
        let link = match Link::read(&request.url) {
            Ok(link) => link,
            Err(reason) => {
                question::warn_of_link(&self.session.console, server, &request.url, &reason);
                reply.answer(ElicitAnswer::Decline);
                return None;
            }
        };
        let talk = LinkTalk::new(&Untrusted::new(server).to_string(), &request.message, &link);
        let (console, opener) = (self.session.console.clone(), Opener::of(&self.session.surroundings));
        let open = move |answer: &ElicitAnswer| {
            if let ElicitAnswer::Accept(_) = answer {
                question::open(&console, &opener, &link);
            }
        };
        self.put(Box::new(Question::new(server, talk, reply).then(open)))
    }

    fn ask_login(&mut self, ask: &LoginAsk, reply: AskReply<Consent>) -> Option<DeskNews> {
        match LoginTalk::new(ask) {
            Ok(talk) => self.put(Box::new(Question::new(ask.server.as_str(), talk, reply))),
            Err(error) => {
                let server = Untrusted::new(ask.server.as_str());
                self.session.console.warn(format_args!("{server} wants a login, which is refused: {error}"));
                None
            }
        }
    }

    fn sample(&mut self, ask: SamplingAsk, reply: AskReply<Result<Raw, NotSampled>>) -> Option<DeskNews> {
        let Some(model) = self.lent.clone().filter(|_| self.works.len() < MOST) else {
            let why = if self.lent.is_some() { "too much is asked at once" } else { "no model is set" };
            reply.answer(Err(NotSampled::Failed(why.to_owned())));
            return None;
        };
        let (slot, console) = (self.slot.clone(), self.session.console.clone());
        self.works.spawn(async move {
            sampling::sample(&slot, &console, &model, &ask, reply).await;
            Outcome::Over
        });
        None
    }

    /// Puts a question behind those that wait. What nobody waits for any more never gets there.
    fn put(&mut self, question: Box<dyn Open>) -> Option<DeskNews> {
        if !question.is_wanted() {
            return None;
        }
        if self.queue.len() >= MOST {
            self.session.console.warn("too many questions wait, so another one is refused");
            return None;
        }
        let said = self.queue.put(question);
        self.tell(said)
    }

    fn tell(&mut self, said: Said) -> Option<DeskNews> {
        if !said.text.is_empty() {
            let console = &self.session.console;
            console.say(wrap(&said.text, console.talk_width()));
        }
        said.is_table_changed.then_some(DeskNews::Table)
    }

    fn conclude(&mut self, outcome: Outcome) -> Option<DeskNews> {
        match outcome {
            Outcome::Over => None,
            Outcome::Waiting(round, waiting) => self.put_approvals(round, waiting),
            Outcome::Decided(decided) => approvals::told(&self.session.console, *decided).map(DeskNews::Approved),
            Outcome::LoggedIn(server, outcome) => {
                self.session.console.say(login::told(&server, outcome));
                None
            }
        }
    }

    /// Puts the questions of a round, but for servers that a later round has named or that have changed since.
    fn put_approvals(&mut self, round: u64, waiting: Result<Vec<Waiting>, Failure>) -> Option<DeskNews> {
        let waiting = waiting.unwrap_or_else(|failure| {
            self.session.console.say(render(&failure));
            Vec::new()
        });
        let mut news = None;
        let (current, rest) = std::mem::take(&mut self.requested).into_iter().partition(|(_, named)| *named == round);
        let current: Vec<(Configured, u64)> = current;
        self.requested = rest;
        for one in waiting {
            let server = one.server.clone();
            if !current.iter().any(|(named, _)| is_same_entry(named, &server)) {
                continue;
            }
            self.withdraw_approvals(|asked| is_same_entry(asked, &server));
            let (question, deciding) = approvals::asked(self.session, one);
            let asked = self.works.spawn(async move { Outcome::Decided(Box::new(deciding.await)) });
            self.approving.push((server, asked));
            news = self.put(question).or(news);
        }
        news
    }
}

impl Slot {
    /// Puts a question of the desk's own and waits. Nothing comes back where the desk is gone. Dropped while it waits,
    /// the question is withdrawn.
    async fn put<T>(&self, server: &str, talk: T) -> Option<T::Answer>
    where
        T: question::Talk + Send + 'static,
        T::Answer: Send,
    {
        let (reply, answer) = AskReply::pair();
        let question = Arrival::Question(Box::new(Question::new(server, talk, reply)));
        self.inbox.send(question).await.ok()?;
        answer.await.ok()
    }
}

impl Asker for Slot {
    fn ask(&self, ask: Ask) {
        // Where there is no room it is dropped, which refuses it.
        let _ = self.inbox.try_send(Arrival::Ask(Box::new(ask)));
    }

    fn shows_pages(&self) -> bool {
        true
    }

    fn samples(&self) -> bool {
        self.samples.load(Ordering::Acquire)
    }
}

/// The size of the screen, now.
fn room() -> Room {
    let size = terminal_size_of(io::stderr());
    Room::of(size.map(|(Width(columns), Height(rows))| (usize::from(columns), usize::from(rows))))
}

#[cfg(test)]
mod tests;
