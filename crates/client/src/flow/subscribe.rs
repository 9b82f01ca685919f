//! Watching a server: `subscriptions/listen` since 2026-07-28, before that `resources/subscribe` and what comes unasked.
//!
//! There is no task behind a subscription: it lives in whoever awaits its events. News that comes meanwhile is kept.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use wharf_wire::{Interest, Raw, Task, code};

use crate::bulletin::{Inbox, News};
use crate::connection::Connection;
use crate::engine::{Call, Effect};
use crate::error::{CallError, TimeLimit};
use crate::options::CallOptions;
use crate::request::Outgoing;

/// Failures in a row after which an opening that fails as well is the last.
const MOST_FAILURES: u32 = 6;
/// How often the wait before the next opening is doubled.
const MOST_DOUBLINGS: u32 = 7;
/// A stream that ends sooner counts as a failure.
const SHORT_LIVED: Duration = Duration::from_secs(30);

/// What a server said of something it is watched for.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// The list of tools has changed.
    Tools,
    /// The list of prompts has changed.
    Prompts,
    /// The list of resources has changed.
    Resources,
    /// This resource has changed: one that was asked for, or one below it.
    Resource(String),
    /// A task has got on.
    Task(Box<Task>),
    /// The subscription was interrupted and is open again. Events may have been missed: whoever listens lists and reads
    /// again what it cares for.
    Resumed,
}

/// A server being watched. Dropping it ends the watch.
pub struct Subscription {
    connection: Connection,
    inbox: Arc<Inbox>,
    honoured: Interest,
    /// The request that is answered when the watch ends (2026-07-28).
    listen: Option<Call>,
    ready: VecDeque<Event>,
    /// Until when the server has to say what it will tell, while that is not known.
    unacknowledged: Option<Instant>,
    /// When to open it once more.
    open_at: Option<Instant>,
    opened: Instant,
    /// Openings in a row that failed or did not last.
    failures: u32,
    /// The server has to be told anew what is watched (before 2026-07-28).
    anew: bool,
}

impl Connection {
    /// Watches what is asked for, as far as the server offers it: see [`Subscription::honoured`].
    pub async fn subscribe(&self, interest: Interest) -> Result<Subscription, CallError> {
        let wanted = self.offered(&interest);
        if wanted.is_empty() {
            return Err(CallError::Unsupported("notice of any of these changes"));
        }
        let inbox = self.inner().manners.bulletin.open(wanted);
        let mut subscription = Subscription {
            connection: self.clone(),
            inbox,
            honoured: Interest::default(),
            listen: None,
            ready: VecDeque::new(),
            unacknowledged: None,
            open_at: None,
            opened: Instant::now(),
            failures: 0,
            anew: false,
        };
        subscription.open().await?;
        Ok(subscription)
    }

    /// The part of an interest that the server has declared.
    fn offered(&self, interest: &Interest) -> Interest {
        let offered = &self.facts().capabilities;
        let tasks = self.gate("tasks/get").is_ok();
        Interest {
            tools: interest.tools && offered.tools_list_changed,
            prompts: interest.prompts && offered.prompts_list_changed,
            resources: interest.resources && offered.resources_list_changed,
            uris: if offered.resources_subscribe { interest.uris.clone() } else { Vec::new() },
            tasks: if tasks { interest.tasks.clone() } else { Vec::new() },
        }
    }
}

impl Subscription {
    /// What the server agreed to tell. Whatever else was asked for has to be looked at from time to time.
    pub fn honoured(&self) -> &Interest {
        &self.honoured
    }

    /// The next event. An error is the end: the server is gone, or refuses to be watched.
    ///
    /// Dropped while it waits, nothing is lost.
    pub async fn next(&mut self) -> Result<Event, CallError> {
        loop {
            self.collect();
            if let Some(event) = self.ready.pop_front() {
                return Ok(event);
            }
            if self.anew {
                self.open_each_anew().await?;
                continue;
            }
            if self.connection.is_stateless() && (self.listen.is_none() || self.unacknowledged.is_some()) {
                self.reopen().await?;
                continue;
            }
            let inbox = Arc::clone(&self.inbox);
            tokio::select! {
                () = inbox.arrived.notified() => {}
                ended = ended(&mut self.listen, &self.connection) => self.note_end(ended)?,
            }
        }
    }

    async fn open(&mut self) -> Result<(), CallError> {
        if !self.connection.is_stateless() {
            return self.open_each().await;
        }
        self.send_listen()?;
        self.await_acknowledgement().await
    }

    /// Opens once more what the server ended. Dropped at any point, it is gone on with.
    async fn reopen(&mut self) -> Result<(), CallError> {
        if self.listen.is_none() {
            self.pause().await;
            self.open_at = None;
            self.send_listen()?;
        }
        match self.await_acknowledgement().await {
            Ok(()) => {
                self.connection.inner().manners.bulletin.distrust(self.inbox.interest());
                self.ready.push_back(Event::Resumed);
                Ok(())
            }
            Err(error) => self.note_failure(error),
        }
    }

    /// Waits until it is time to open once more; each failure doubles the wait. Dropped meanwhile, it goes on where it was.
    async fn pause(&mut self) {
        let wait = self.connection.limits().listen_again.saturating_mul(1 << self.failures.min(MOST_DOUBLINGS));
        let at = *self.open_at.get_or_insert_with(|| Instant::now() + wait);
        tokio::time::sleep_until(at).await;
    }

    /// Counts an opening that failed; an error means that it was the last.
    fn note_failure(&mut self, error: CallError) -> Result<(), CallError> {
        self.failures += 1;
        let hopeless = self.is_over(&error) || self.failures >= MOST_FAILURES;
        if hopeless { Err(error) } else { Ok(()) }
    }

    /// Sends `subscriptions/listen`; its answer is the end of it.
    fn send_listen(&mut self) -> Result<(), CallError> {
        let wanted = Raw::of(self.inbox.interest()).map_err(|error| CallError::Invalid(error.to_string()))?;
        let members: [&[u8]; 2] = [b"\"notifications\":", wanted.as_bytes()];
        let outgoing = Outgoing::new("subscriptions/listen", &members, Effect::Reads);
        let inbox = Arc::clone(&self.inbox);
        let call = self.connection.send_endless(outgoing, |id| {
            let mut news = inbox.news();
            news.listen = Some(id);
            news.acknowledged = None;
        })?;
        self.listen = Some(call);
        self.unacknowledged = Some(Instant::now() + self.connection.limits().call);
        Ok(())
    }

    /// Waits until the server has said what it will tell.
    async fn await_acknowledgement(&mut self) -> Result<(), CallError> {
        let limit = self.connection.limits().call;
        let until = self.unacknowledged.unwrap_or_else(Instant::now);
        let outcome = match tokio::time::timeout_at(until, self.acknowledged()).await {
            Ok(outcome) => outcome,
            Err(_) => Err(CallError::TimedOut { after: limit, limit: TimeLimit::Idle, hint: None }),
        };
        self.unacknowledged = None;
        match outcome {
            Ok(honoured) => {
                self.honoured = honoured;
                self.opened = Instant::now();
                Ok(())
            }
            Err(error) => {
                self.listen = None;
                Err(error)
            }
        }
    }

    async fn acknowledged(&mut self) -> Result<Interest, CallError> {
        let inbox = Arc::clone(&self.inbox);
        loop {
            if let Some(interest) = &inbox.news().acknowledged {
                // A server cannot give what nobody asked for.
                let wanted = self.inbox.interest();
                return Ok(wanted.without(&wanted.without(interest)));
            }
            tokio::select! {
                // First: a stream that ends right after its acknowledgement was open.
                biased;
                () = inbox.arrived.notified() => {}
                ended = ended(&mut self.listen, &self.connection) => return Err(ended.err().unwrap_or(CallError::Ended)),
            }
        }
    }

    /// Subscribes to each resource; lists tell of their changes unasked.
    async fn open_each(&mut self) -> Result<(), CallError> {
        let mut honoured = self.inbox.interest().clone();
        let uris = std::mem::take(&mut honoured.uris);
        let mut refused = None;
        for uri in uris {
            let params = Raw::of(&serde_json::json!({ "uri": uri }));
            let params = params.map_err(|error| CallError::Invalid(error.to_string()))?;
            match self.connection.request("resources/subscribe", Some(&params), CallOptions::default()).await {
                Ok(_) => honoured.uris.push(uri),
                Err(error @ CallError::Refused(_)) => refused = Some(error),
                Err(error) => return Err(error),
            }
        }
        self.honoured = honoured;
        match refused {
            Some(error) if self.honoured.is_empty() => Err(error),
            _ => Ok(()),
        }
    }

    /// The stream has ended, in whichever of the four ways: answered, cancelled, refused, or with the server itself.
    fn note_end(&mut self, ended: Result<(), CallError>) -> Result<(), CallError> {
        self.listen = None;
        // A server that ends it now and then is not failing; one that does so at once is not to be hurried.
        self.failures = if self.opened.elapsed() > SHORT_LIVED { 0 } else { self.failures + 1 };
        // What came before the end still counts.
        self.collect();
        match ended {
            Err(error) if self.is_over(&error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Whether there is nothing more to hope for: the server is gone for good, or does not want to be watched.
    fn is_over(&self, error: &CallError) -> bool {
        self.connection.inner().open.engine.is_lost() || is_refusal(error)
    }

    /// Subscribes once more with a server that has begun anew. Dropped at any point, it is gone on with.
    async fn open_each_anew(&mut self) -> Result<(), CallError> {
        self.pause().await;
        let opened = self.open_each().await;
        self.open_at = None;
        match opened {
            Ok(()) => {
                (self.anew, self.failures) = (false, 0);
                self.ready.push_back(Event::Resumed);
                Ok(())
            }
            Err(error) => self.note_failure(error),
        }
    }

    fn collect(&mut self) {
        let News { tools, prompts, resources, uris, tasks, anew, missed, .. } = {
            // Under one lock: news that comes meanwhile must find whose stream it is.
            let mut news = self.inbox.news();
            let (listen, acknowledged) = (news.listen, news.acknowledged.clone());
            std::mem::replace(&mut *news, News { listen, acknowledged, ..News::default() })
        };
        self.anew |= anew && !self.connection.is_stateless();
        self.ready.extend(missed.then_some(Event::Resumed));
        let lists = [(tools, Event::Tools), (prompts, Event::Prompts), (resources, Event::Resources)];
        self.ready.extend(lists.into_iter().filter(|(changed, _)| *changed).map(|(_, event)| event));
        self.ready.extend(uris.into_iter().map(Event::Resource));
        self.ready.extend(tasks.into_values().map(|task| Event::Task(Box::new(task))));
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let bulletin = &self.connection.inner().manners.bulletin;
        bulletin.close(&self.inbox);
        if self.connection.is_stateless() {
            return;
        }
        for uri in self.honoured.uris.iter().filter(|uri| !bulletin.is_wanted(uri, &self.inbox)) {
            let uri = serde_json::Value::from(uri.as_str()).to_string();
            let members: [&[u8]; 2] = [b"\"uri\":", uri.as_bytes()];
            let outgoing = Outgoing::new("resources/unsubscribe", &members, Effect::Reads);
            if let Ok(call) = self.connection.send(outgoing, "", &CallOptions::default()) {
                call.detach();
            }
        }
    }
}

/// Whether asking again would be refused again. The Python SDK 2.3 ends a stream with an error of no portable meaning.
fn is_refusal(error: &CallError) -> bool {
    let known = [code::METHOD_NOT_FOUND, code::INVALID_PARAMS, code::INVALID_REQUEST, code::MISSING_CAPABILITY];
    match error {
        CallError::Refused(error) => known.contains(&error.code),
        CallError::Status { status, .. } => !matches!(status, 408 | 429 | 500..),
        CallError::Unauthorized { .. } => true,
        _ => false,
    }
}

/// Resolves when the watch ends; in the handshake era when the server does.
async fn ended(listen: &mut Option<Call>, connection: &Connection) -> Result<(), CallError> {
    match listen {
        Some(call) => call.await.map(drop),
        None => Err(connection.inner().open.engine.gone().await),
    }
}
