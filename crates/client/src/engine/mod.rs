//! Ids, waiters and deadlines: the part of a connection that knows neither pipes nor methods.
//!
//! A call is a slot in a table and a few bytes passed to the link. There is no task, channel or timer per call. The
//! driver delivers messages ([`Engine::deliver`]) and expires deadlines ([`Engine::expire`]).
//!
//! Responses are correlated before they are validated: a response with a recognizable id always ends its call, if only
//! with an error that describes the problem.

mod call;
mod excerpt;
mod inbound;
mod link;
#[cfg(test)]
mod model_tests;
mod pending_replies;
mod pool;
mod table;
mod unreadable;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::Instant;
use wharf_spec::UntrustedText;
use wharf_wire::{JsonLimitExceeded, Progress, RawJson, Revision};

use crate::budget::ServerBudget;
use crate::counters::{CounterKind, CounterSet};
use crate::error::{CallError, DisconnectCause, DisconnectReport, TimeoutKind};
use crate::limits::Limits;
use crate::options::{CallTag, ProgressSink};
use crate::tap::{Direction, WireObserver};

pub(crate) use call::PendingCall;
pub(crate) use inbound::{MessageRelation, ResponseChannel};
pub(crate) use link::{CallEffect, Delivery, Link, OutgoingMessage, RequestFacts, SubmitError, Ticket};
use pending_replies::OpenRequests;
pub(crate) use pending_replies::{PendingReply, RequestRefusal};
use pool::BufferPool;
use table::{ExpiredCall, InFlightTable, WaitingCall};
pub(crate) use unreadable::UnreadableLines;

/// Maximum characters of an unexpected line in an error.
const EXCERPT: usize = 120;

/// Maximum timeout of a call. Longer ones, such as `Duration::MAX`, have no point in time to end at.
const MAX_TIMEOUT: Duration = Duration::from_secs(365 * 86_400);

/// A raw result from the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawResult {
    /// The `result`, byte for byte.
    pub result: RawJson,
    /// Kind of the result.
    pub kind: ResultKind,
}

/// The kind of a result. Before the stateless era every result is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResultKind {
    /// The final result.
    Complete,
    /// The server requires input first.
    InputRequired,
    /// The server continues in the background and can be polled.
    Task,
}

/// The origin of a request from the server.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RequestOrigin<'a> {
    /// The call on whose stream it arrived, or that it is an input request of.
    pub call: Option<CallTag>,
    /// Its id or key, as JSON.
    pub id: Option<&'a str>,
}

impl From<Option<CallTag>> for RequestOrigin<'_> {
    fn from(call: Option<CallTag>) -> Self {
        Self { call, id: None }
    }
}

/// The protocol knowledge the engine needs, without knowing any method by name.
pub(crate) trait Protocol: Send + Sync {
    /// Handles a request from the server.
    fn request(&self, method: &str, params: Option<RawJson>, origin: RequestOrigin<'_>) -> RequestDisposition;
    /// Handles a notification from the server and returns its effect on calls.
    fn notification(&self, method: &str, params: Option<RawJson>, call: Option<CallTag>) -> NotificationEffect;
    /// Returns the message that cancels a call.
    fn cancellation(&self, id: u64, reason: &str) -> String;
    /// Maps a `resultType` to its kind, or `None` if it is unknown.
    fn result_kind(&self, result_type: Option<&str>) -> Option<ResultKind>;
    /// Reports whether JSON-RPC batches are allowed.
    fn accepts_batches(&self) -> bool;
    /// Returns the negotiated revision.
    fn revision(&self) -> Option<Revision>;
    /// Handles a server that has restarted and lost its state.
    fn on_server_restarted(&self, engine: &Arc<Engine>);
    /// Handles messages from the server that may have been lost.
    fn on_messages_missed(&self);
}

/// The effect of a notification on calls in flight.
pub(crate) enum NotificationEffect {
    /// No effect.
    None,
    /// Progress of a call.
    Progress(Progress),
    /// The server ended one of the client's calls; its id.
    Ended(u64),
    /// The server cancelled one of its own requests; its id as text.
    RequestCancelled(String),
    /// The notification matches no call or subscription.
    Stray,
}

/// The response to a request from the server.
pub(crate) enum RequestDisposition {
    Result(RawJson),
    Reject(RequestRefusal),
    /// Answered when the work is done.
    Later(PendingReply),
    /// Not answered: a server of the stateless era may not send requests.
    Unwanted,
    /// The peer is not an MCP server.
    NotMcp(NotMcpPeer),
}

/// The peer is not an MCP server; the evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotMcpPeer(pub &'static str);

/// Parameters of a call.
pub(crate) struct CallRequest {
    pub timeout: Duration,
    pub timeout_max: Duration,
    pub progress: Option<ProgressSink>,
    pub effect: CallEffect,
    pub cancel_policy: CancelPolicy,
    pub tag: Option<CallTag>,
}

/// The fields of a request that HTTP repeats in headers.
#[derive(Clone, Copy, Default)]
pub(crate) struct HeaderFields<'a> {
    pub method: &'a str,
    pub name: Option<&'a str>,
    pub header_params: &'a [(String, String)],
}

/// What the server is told when a call is dropped, times out or its connection closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CancelPolicy {
    Withdraw,
    /// Sends no cancellation: for the handshake, for log messages and for the start of a task. The link abandons the
    /// call.
    Forget,
}

/// The calls of one connection.
pub(crate) struct Engine {
    me: Weak<Engine>,
    open_requests: OpenRequests,
    /// Runtime on which server requests are answered, regardless of the thread they arrive on.
    runtime: Option<Handle>,
    closed: Notify,
    /// Total time the deadlines were paused, in nanoseconds.
    paused_nanos: AtomicU64,
    table: Mutex<InFlightTable>,
    link: Arc<dyn Link>,
    protocol: Arc<dyn Protocol>,
    observer: WireObserver,
    limits: Limits,
    result_buffers: BufferPool,
    /// Memory budget of this server.
    budget: ServerBudget,
    pub counters: CounterSet,
    /// Possible explanation of a missing response.
    last_anomaly: Mutex<Option<String>>,
    pub unreadable: UnreadableLines,
}

impl Engine {
    pub fn new(
        observer: WireObserver,
        link: Arc<dyn Link>,
        protocol: Arc<dyn Protocol>,
        limits: Limits,
        budget: ServerBudget,
    ) -> Arc<Self> {
        let table = Mutex::new(InFlightTable::new(limits.in_flight));
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            open_requests: OpenRequests::default(),
            runtime: Handle::try_current().ok(),
            closed: Notify::new(),
            paused_nanos: AtomicU64::new(0),
            table,
            link,
            protocol,
            counters: CounterSet::new(observer.server.clone()),
            observer,
            result_buffers: BufferPool::default(),
            limits,
            budget,
            last_anomaly: Mutex::default(),
            unreadable: UnreadableLines::default(),
        })
    }

    /// Registers a call and assigns its id and deadlines. Fails if the connection is closed or too many calls are in
    /// flight. Dropping the result has the effect of dropping a [`PendingCall`]: the server may get a cancellation.
    pub fn reserve(self: &Arc<Self>, request: CallRequest) -> Result<ReservedCall, CallError> {
        let now = Instant::now();
        let idle_timeout = request.timeout.min(MAX_TIMEOUT);
        let total_deadline = now + request.timeout_max.min(MAX_TIMEOUT);
        let waiting = WaitingCall {
            waker: None,
            since: now,
            idle_timeout,
            idle_deadline: (now + idle_timeout).min(total_deadline),
            total_deadline,
            progress: request.progress,
            last_progress: None,
            effect: request.effect,
            cancel_policy: request.cancel_policy,
            // Treated as possibly sent until the link reports otherwise.
            ticket: None,
            pause_left: self.limits.ask_timeout,
            detached: false,
            tag: request.tag,
        };
        let (id, needs_rearm) = self.table().insert(waiting)?;
        let effect = request.effect;
        Ok(ReservedCall {
            call: PendingCall::new(Arc::clone(self), id),
            digits: IdDigits::from_number(id),
            needs_rearm,
            effect,
        })
    }

    /// Sends the complete request of a reserved call, including its line ending, and returns the future of the call.
    /// Dropping the future cancels the call.
    pub fn send(
        &self,
        reserved: ReservedCall,
        fields: HeaderFields<'_>,
        parts: &[&[u8]],
    ) -> Result<PendingCall, CallError> {
        let ReservedCall { call, needs_rearm, effect, .. } = reserved;
        let HeaderFields { method, name, header_params } = fields;
        let facts = RequestFacts { id: call.id(), effect, method, name, header_params };
        let message = OutgoingMessage { parts, request: Some(facts) };
        let length = message.len();
        let submitted = if length > self.limits.max_message {
            Err(CallError::Invalid(format!(
                "request of {length} bytes exceeds the limit of {}",
                self.limits.max_message
            )))
        } else {
            self.submit(message).map_err(|refusal| match refusal {
                SubmitError::Full => CallError::Busy,
                SubmitError::Broken => self.closed_error_or(DisconnectCause::ClosedInput),
                SubmitError::Closed => self.closed_error_or(DisconnectCause::Closed),
                SubmitError::TooDeep(depth) => CallError::TooDeep(depth),
            })
        };
        match submitted {
            Ok(ticket) => self.table().record_ticket(call.id(), ticket),
            Err(error) => {
                call.forget();
                return Err(error);
            }
        }
        if needs_rearm {
            self.link.wake();
        }
        Ok(call)
    }

    fn submit(&self, message: OutgoingMessage<'_>) -> Result<Ticket, SubmitError> {
        if self.observer.has_tap() {
            self.observer.observe(Direction::Sent, message.parts.concat().trim_ascii_end());
        }
        self.link.submit(message)
    }

    /// Sends a message that gets no response: a notification, a reply or a cancellation.
    pub fn send_message(&self, message: &str) {
        let message = OutgoingMessage { parts: &[message.as_bytes(), b"\n"], request: None };
        if self.submit(message) == Err(SubmitError::Full) {
            self.counters.count_and_warn(CounterKind::Unsent, "write queue full, dropped a notification or a reply");
        }
    }

    /// Returns the time of the next deadline and records it as the time the driver has armed its timer for.
    pub fn next_deadline(&self) -> Instant {
        self.table().arm_timer()
    }

    /// Ends every expired call, and cancels it on the server if that is allowed.
    pub fn expire(&self, now: Instant, wakers: &mut Vec<Waker>) {
        let hint = self.last_anomaly();
        let expired = self.table().expire(now, hint.as_deref(), wakers);
        for ExpiredCall { id, limit, cancel_policy, .. } in expired {
            if cancel_policy == CancelPolicy::Withdraw {
                let reason = match limit {
                    TimeoutKind::Idle => "timed out",
                    TimeoutKind::Total => "timed out in spite of progress",
                };
                self.cancel_call(id, reason);
            } else {
                self.link.abandon(id);
            }
        }
    }

    /// Cancels all pending calls, as the first step of closing.
    pub fn cancel_all(&self) {
        let ids = self.table().cancellable_ids();
        for id in ids {
            self.cancel_call(id, "the connection is closing");
        }
    }

    /// Cancels a call on the server, in the way the link supports.
    fn cancel_call(&self, id: u64, reason: &str) {
        if !self.link.abandon(id) {
            self.send_message(&self.protocol.cancellation(id, reason));
        }
    }

    /// Ends all calls because the server is gone, and refuses new ones.
    pub fn close(&self, gone: DisconnectReport) {
        self.close_after_rejection(None, gone);
    }

    /// Like [`Engine::close`], if the server is known to have rejected one of the calls.
    pub fn close_after_rejection(&self, call: Option<u64>, gone: DisconnectReport) {
        let (gone, mut wakers) = (self.redact_report(gone), Vec::new());
        {
            let mut table = self.table();
            if let Some(id) = call {
                table.lose_call(id, &gone, Delivery::No, &mut wakers);
            }
            table.close(gone, |ticket| self.link.may_have_been_sent(ticket), &mut wakers);
        }
        self.counters.log_totals();
        wakers.into_iter().for_each(Waker::wake);
        self.open_requests.abort_all();
        self.closed.notify_waiters();
    }

    /// Ends all calls because the stream for their responses is lost. The connection stays open.
    pub fn lose_calls(&self, gone: DisconnectReport) {
        let mut wakers = Vec::new();
        let gone = self.redact_report(gone);
        self.table().lose_all(&gone, |ticket| self.link.may_have_been_sent(ticket), &mut wakers);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Ends one call that will get no response.
    pub fn lose_call(&self, id: u64, gone: DisconnectReport, delivery: Delivery) {
        let mut wakers = Vec::new();
        let gone = self.redact_report(gone);
        self.table().lose_call(id, &gone, delivery, &mut wakers);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Ends one call with an error.
    pub fn fail_call(&self, id: u64, error: CallError) {
        let mut wakers = Vec::new();
        self.fail(id, error, &mut wakers);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Returns the time until a call's deadline, or `None` if it is not pending.
    pub fn time_left(&self, id: u64) -> Option<Duration> {
        self.table().time_left(id, Instant::now())
    }

    /// Reports whether the server is gone for good.
    pub fn is_closed(&self) -> bool {
        self.table().closed_error().is_some()
    }

    /// Waits until the server is gone and returns the error of calls from then on.
    pub async fn wait_until_gone(&self) -> CallError {
        loop {
            let closed = self.closed.notified();
            let known = self.table().closed_error();
            match known {
                Some(error) => return error,
                None => closed.await,
            }
        }
    }

    /// Returns the memory budget of this server, for the readers of its messages.
    pub fn budget(&self) -> &ServerBudget {
        &self.budget
    }

    /// Returns the name, redactor and tap of the connection.
    pub fn observer(&self) -> &WireObserver {
        &self.observer
    }

    /// Returns the most recent possible explanation of a missing response.
    pub fn last_anomaly(&self) -> Option<String> {
        self.last_anomaly.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records a possible explanation. Text from the server in it must come from [`Engine::excerpt`].
    fn record_anomaly(&self, what: String) {
        *self.last_anomaly.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
    }

    /// Returns an excerpt of text from the server, escaped and redacted. Only the server's text is redacted: a secret
    /// may be an ordinary word.
    fn excerpt(&self, said: &UntrustedText) -> String {
        self.observer.redactor.redact_truncated(&said.truncate(EXCERPT).to_string()).into_owned()
    }

    /// Prepares the details of a lost server for display, redacted.
    fn redact_report(&self, gone: DisconnectReport) -> Arc<DisconnectReport> {
        let anomaly = self.last_anomaly().filter(|anomaly| gone.hint.as_ref() == Some(anomaly));
        let mut gone = gone.without_secrets(&self.observer.redactor);
        gone.hint = anomaly.or(gone.hint);
        Arc::new(gone)
    }

    /// Returns the error for a call made now. Until the full details are known it contains only `cause`.
    fn closed_error_or(&self, cause: DisconnectCause) -> CallError {
        let known = self.table().closed_error();
        known.unwrap_or_else(|| {
            CallError::RetryableDisconnect(Arc::new(DisconnectReport {
                cause,
                exit: None,
                stderr: Vec::new(),
                hint: None,
            }))
        })
    }

    /// Ends one call with an error, redacted.
    fn fail(&self, id: u64, error: CallError, wakers: &mut Vec<Waker>) -> bool {
        self.table().finish(id, Err(error.without_secrets(&self.observer.redactor)), wakers)
    }

    /// Ends one call with a protocol error in the client's own words.
    fn fail_protocol(&self, id: u64, what: String, wakers: &mut Vec<Waker>) -> bool {
        self.table().finish(id, Err(CallError::Protocol(what)), wakers)
    }

    fn table(&self) -> MutexGuard<'_, InFlightTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<JsonLimitExceeded> for CallError {
    fn from(bound: JsonLimitExceeded) -> Self {
        Self::TooComplex(bound)
    }
}

/// A call with an id that has not been sent.
pub(crate) struct ReservedCall {
    call: PendingCall,
    digits: IdDigits,
    /// The deadline is earlier than the one the driver has armed its timer for.
    needs_rearm: bool,
    effect: CallEffect,
}

impl ReservedCall {
    /// Returns the id.
    pub fn call_id(&self) -> u64 {
        self.call.id()
    }

    /// Returns the id as text, for the request.
    pub fn id_text(&self) -> IdDigits {
        self.digits
    }
}

/// A number as text, without an allocation.
#[derive(Clone, Copy)]
pub(crate) struct IdDigits {
    bytes: [u8; 20],
    start: usize,
}

impl IdDigits {
    fn from_number(mut number: u64) -> Self {
        let mut digits = Self { bytes: [0; 20], start: 20 };
        loop {
            digits.start -= 1;
            digits.bytes[digits.start] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                return digits;
            }
        }
    }

    pub fn text(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}
