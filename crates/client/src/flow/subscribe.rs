//! Subscriptions: `subscriptions/listen` since 2026-07-28, before that `resources/subscribe` and unsolicited
//! notifications.
//!
//! A subscription has no task of its own: it runs while its next event is awaited. Changes are recorded meanwhile.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::time::Instant;
use wharf_wire::{Interest, RawJson, Task, code};

use super::reopen_pace::ReopenPace;
use crate::connection::Connection;
use crate::engine::{CallEffect, PendingCall};
use crate::error::{CallError, TimeoutKind};
use crate::notifications::{NotificationSubscriber, PendingChanges};
use crate::options::RequestOptions;
use crate::request::OutgoingRequest;

/// Maximum consecutive failures to open the subscription.
const MAX_FAILURES: u32 = 6;

/// A change reported by the server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// The list of tools has changed.
    Tools,
    /// The list of prompts has changed.
    Prompts,
    /// The list of resources has changed.
    Resources,
    /// This resource has changed: a subscribed one, or one below it.
    Resource(String),
    /// The status of a task has changed.
    Task(Box<Task>),
    /// The subscription was interrupted and is open again. Events may have been missed: subscribers should list and
    /// read again.
    Resumed,
}

/// An active subscription. Dropping it unsubscribes.
pub struct Subscription {
    connection: Connection,
    inbox: Arc<NotificationSubscriber>,
    honoured: Interest,
    /// The pending listen request, which is answered when the subscription ends (2026-07-28).
    listen: Option<PendingCall>,
    ready: VecDeque<Event>,
    /// Deadline for the server's acknowledgement while it is missing.
    unacknowledged: Option<Instant>,
    /// Time to open the stream again.
    open_at: Option<Instant>,
    pace: ReopenPace,
    /// The resources must be subscribed again (before 2026-07-28).
    anew: bool,
}

impl Connection {
    /// Subscribes to changes, as far as the server supports them: see [`Subscription::confirmed_interest`].
    ///
    /// # Errors
    ///
    /// Returns a [`CallError`] if the server has not declared the capability, refuses the request, violates the
    /// protocol, does not respond in time, or is gone. [`CallError::is_retryable`] reports whether a retry is safe.
    /// Returns [`CallError::Unsupported`] if the server reports none of these changes.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the subscription. A handshake-era server may keep the resources that it has confirmed
    /// by then; the connection ignores their notifications.
    ///
    /// # Example
    ///
    /// See [`Connection`](Connection#example) for an example.
    pub async fn subscribe(&self, interest: Interest) -> Result<Subscription, CallError> {
        let wanted = self.supported_interest(&interest);
        if wanted.is_empty() {
            return Err(CallError::Unsupported("notifications for any of these changes"));
        }
        let inbox = self.inner().protocol.notifications.subscribe(wanted);
        let mut subscription = Subscription {
            connection: self.clone(),
            inbox,
            honoured: Interest::default(),
            listen: None,
            ready: VecDeque::new(),
            unacknowledged: None,
            open_at: None,
            pace: ReopenPace::default(),
            anew: false,
        };
        subscription.open().await?;
        Ok(subscription)
    }

    /// Returns the part of an interest that the server has declared.
    fn supported_interest(&self, interest: &Interest) -> Interest {
        let offered = &self.facts().capabilities;
        let tasks = self.check_capability("tasks/get").is_ok();
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
    /// Returns the changes the server agreed to report. The caller has to poll for all others.
    pub fn confirmed_interest(&self) -> &Interest {
        &self.honoured
    }

    /// Waits for the next event. Cancel-safe.
    ///
    /// # Errors
    ///
    /// An error is final: the server is gone or refuses the subscription.
    pub async fn next(&mut self) -> Result<Event, CallError> {
        loop {
            self.collect_changes();
            if let Some(event) = self.ready.pop_front() {
                return Ok(event);
            }
            if self.anew {
                self.resubscribe_each().await?;
                continue;
            }
            if self.connection.is_stateless() && (self.listen.is_none() || self.unacknowledged.is_some()) {
                self.reopen().await?;
                continue;
            }
            let inbox = Arc::clone(&self.inbox);
            tokio::select! {
                () = inbox.arrived.notified() => {}
                ended = wait_for_end(&mut self.listen, &self.connection) => self.on_stream_end(ended)?,
            }
        }
    }

    async fn open(&mut self) -> Result<(), CallError> {
        if !self.connection.is_stateless() {
            return self.subscribe_each().await;
        }
        self.send_listen()?;
        self.await_acknowledgement().await
    }

    /// Opens the stream again after the server ended it. Cancel-safe: the next call continues.
    async fn reopen(&mut self) -> Result<(), CallError> {
        if self.listen.is_none() {
            self.wait_before_reopen().await;
            self.open_at = None;
            self.send_listen()?;
        }
        match self.await_acknowledgement().await {
            Ok(()) => {
                self.connection.inner().protocol.notifications.invalidate_interest(self.inbox.interest());
                self.ready.push_back(Event::Resumed);
                Ok(())
            }
            Err(error) => self.count_failure(error),
        }
    }

    /// Waits before the stream is opened again. Cancel-safe: `open_at` holds the deadline.
    async fn wait_before_reopen(&mut self) {
        let delay = self.connection.limits().listen_again;
        let at = *self.open_at.get_or_insert_with(|| self.pace.next_opening(Instant::now(), delay));
        tokio::time::sleep_until(at).await;
    }

    /// Counts a failed opening. Returns the error if it was the last attempt.
    fn count_failure(&mut self, error: CallError) -> Result<(), CallError> {
        let failures = self.pace.record_failure();
        let hopeless = self.is_final_error(&error) || failures >= MAX_FAILURES;
        if hopeless { Err(error) } else { Ok(()) }
    }

    /// Sends `subscriptions/listen`. The server answers it when the subscription ends.
    fn send_listen(&mut self) -> Result<(), CallError> {
        let wanted =
            RawJson::from_value(self.inbox.interest()).map_err(|error| CallError::Invalid(error.to_string()))?;
        let members: [&[u8]; 2] = [b"\"notifications\":", wanted.as_bytes()];
        let outgoing = OutgoingRequest::new("subscriptions/listen", &members, CallEffect::Reads);
        let inbox = Arc::clone(&self.inbox);
        let call = self.connection.send_without_timeout(outgoing, None, |id| {
            let mut news = inbox.pending();
            news.listen = Some(id);
            news.acknowledged = None;
        })?;
        self.listen = Some(call);
        self.unacknowledged = Some(Instant::now() + self.connection.limits().call_timeout);
        Ok(())
    }

    /// Waits for the server's acknowledgement.
    async fn await_acknowledgement(&mut self) -> Result<(), CallError> {
        let limit = self.connection.limits().call_timeout;
        let until = self.unacknowledged.unwrap_or_else(Instant::now);
        let outcome = match tokio::time::timeout_at(until, self.wait_for_acknowledgement()).await {
            Ok(outcome) => outcome,
            Err(_) => Err(CallError::TimedOut { after: limit, limit: TimeoutKind::Idle, hint: None }),
        };
        self.unacknowledged = None;
        match outcome {
            Ok(honoured) => {
                self.honoured = honoured;
                self.pace.record_success(Instant::now());
                Ok(())
            }
            Err(error) => {
                self.listen = None;
                Err(error)
            }
        }
    }

    async fn wait_for_acknowledgement(&mut self) -> Result<Interest, CallError> {
        let inbox = Arc::clone(&self.inbox);
        loop {
            if let Some(interest) = &inbox.pending().acknowledged {
                // Ignore changes that were not requested.
                let wanted = self.inbox.interest();
                return Ok(wanted.without(&wanted.without(interest)));
            }
            tokio::select! {
                // First: a stream that ends right after its acknowledgement was open.
                biased;
                () = inbox.arrived.notified() => {}
                ended = wait_for_end(&mut self.listen, &self.connection) => return Err(ended.err().unwrap_or(CallError::Ended)),
            }
        }
    }

    /// Subscribes to each resource. List changes are reported without a subscription.
    async fn subscribe_each(&mut self) -> Result<(), CallError> {
        let mut honoured = self.inbox.interest().clone();
        let uris = std::mem::take(&mut honoured.uris);
        let mut refused = None;
        for uri in uris {
            let params = RawJson::from_value(&serde_json::json!({ "uri": uri }));
            let params = params.map_err(|error| CallError::Invalid(error.to_string()))?;
            match self.connection.request("resources/subscribe", Some(&params), RequestOptions::default()).await {
                Ok(_) => honoured.uris.push(uri),
                Err(error @ CallError::ErrorResponse(_)) => refused = Some(error),
                Err(error) => return Err(error),
            }
        }
        self.honoured = honoured;
        match refused {
            Some(error) if self.honoured.is_empty() => Err(error),
            _ => Ok(()),
        }
    }

    /// Handles the end of the stream: answered, cancelled, refused or disconnected.
    fn on_stream_end(&mut self, ended: Result<(), CallError>) -> Result<(), CallError> {
        self.listen = None;
        // Changes received before the end are still valid.
        self.collect_changes();
        match ended {
            Err(error) if self.is_final_error(&error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Reports whether the subscription cannot be opened again: the server is gone for good or refuses it.
    fn is_final_error(&self, error: &CallError) -> bool {
        self.connection.inner().server.engine.is_closed() || is_refusal(error)
    }

    /// Subscribes again after the server has lost its state. Cancel-safe: the next call continues.
    async fn resubscribe_each(&mut self) -> Result<(), CallError> {
        self.wait_before_reopen().await;
        let opened = self.subscribe_each().await;
        self.open_at = None;
        match opened {
            Ok(()) => {
                self.anew = false;
                self.pace.record_success(Instant::now());
                self.ready.push_back(Event::Resumed);
                Ok(())
            }
            Err(error) => self.count_failure(error),
        }
    }

    fn collect_changes(&mut self) {
        let PendingChanges { tools, prompts, resources, uris, tasks, anew, missed, .. } = {
            // Under one lock: a concurrent notification must find the id of its stream.
            let mut news = self.inbox.pending();
            let (listen, acknowledged) = (news.listen, news.acknowledged.clone());
            std::mem::replace(&mut *news, PendingChanges { listen, acknowledged, ..PendingChanges::default() })
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
        let notifications = &self.connection.inner().protocol.notifications;
        notifications.unsubscribe(&self.inbox);
        if self.connection.is_stateless() {
            return;
        }
        for uri in self.honoured.uris.iter().filter(|uri| !notifications.has_other_subscriber(uri, &self.inbox)) {
            let uri = serde_json::Value::from(uri.as_str()).to_string();
            let members: [&[u8]; 2] = [b"\"uri\":", uri.as_bytes()];
            let outgoing = OutgoingRequest::new("resources/unsubscribe", &members, CallEffect::Reads);
            if let Ok(call) = self.connection.send(outgoing, &RequestOptions::default()) {
                call.detach();
            }
        }
    }
}

/// Reports whether a retry would be refused again. The Python SDK 2.3 ends a stream with an error that has no portable
/// meaning.
fn is_refusal(error: &CallError) -> bool {
    let known = [code::METHOD_NOT_FOUND, code::INVALID_PARAMS, code::INVALID_REQUEST, code::MISSING_CAPABILITY];
    match error {
        CallError::ErrorResponse(error) => known.contains(&error.code),
        CallError::Status { status, .. } => !matches!(status, 408 | 429 | 500..),
        CallError::Unauthorized { .. } => true,
        _ => false,
    }
}

/// Waits for the end of the stream; in the handshake era, for the end of the server.
async fn wait_for_end(listen: &mut Option<PendingCall>, connection: &Connection) -> Result<(), CallError> {
    match listen {
        Some(call) => call.await.map(drop),
        None => Err(connection.inner().server.engine.wait_until_gone().await),
    }
}
