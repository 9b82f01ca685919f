//! The link to a server over HTTP: each message is its own request, and each request its own task.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use bytes::{Bytes, BytesMut};
use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore, watch};
use url::Url;
use wharf_net::Net;
use wharf_spec::HttpSpec;
use wharf_wire::{Era, Revision};

use super::exchange::HttpExchange;
use super::link_tasks::LinkTasks;
use super::post_request::{ConfiguredHeaders, PostRequest};
use super::session::LinkSession;
use super::{HttpTransportKind, RemoteServer};
use crate::budget::ServerBudget;
use crate::engine::{Engine, Link, OutgoingMessage, Protocol, RequestFacts, SubmitError, Ticket};
use crate::era::{DISCOVER, INITIALIZE, INITIALIZED};
use crate::error::{DisconnectCause, DisconnectReport};
use crate::limits::Limits;
use crate::transport::{LinkSetup, expire_calls};

pub(super) struct HttpLink {
    me: Weak<HttpLink>,
    pub net: Net,
    /// Configured address of the server.
    pub home: Url,
    /// The server's spec, used to display addresses.
    pub spec: HttpSpec,
    pub form: HttpTransportKind,
    pub headers: ConfiguredHeaders,
    pub limits: Limits,
    /// Memory budget of this server.
    pub budget: ServerBudget,
    pub protocol: Arc<dyn Protocol>,
    pub session: LinkSession,
    pub tasks: LinkTasks,
    engine: OnceLock<Weak<Engine>>,
    /// Limits concurrent requests, as each may use its own connection.
    pub exchange_permits: Semaphore,
    /// Bytes of messages that wait to be sent or for the response headers.
    queued: AtomicUsize,
    refusing: AtomicBool,
    deadline_check: Notify,
    /// True once it is known if the server offers its own stream.
    pub stream_decided: watch::Sender<bool>,
}

impl HttpLink {
    pub fn new(remote: RemoteServer, opening: &LinkSetup) -> Arc<Self> {
        let RemoteServer { spec, headers, net, form } = remote;
        let limits = opening.limits.clone();
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            net,
            home: spec.url.clone(),
            spec,
            form,
            headers,
            protocol: opening.protocol.clone(),
            session: LinkSession::default(),
            tasks: LinkTasks::new(Handle::current(), opening.span.clone()),
            engine: OnceLock::new(),
            exchange_permits: Semaphore::new(limits.exchanges),
            queued: AtomicUsize::new(0),
            refusing: AtomicBool::new(false),
            deadline_check: Notify::new(),
            stream_decided: watch::Sender::new(false),
            budget: opening.budget.clone(),
            limits,
        })
    }

    pub fn attach(&self, engine: &Arc<Engine>) {
        let _ = self.engine.set(Arc::downgrade(engine));
    }

    pub fn runtime(&self) -> &Handle {
        self.tasks.runtime()
    }

    /// Returns the engine, unless the connection is gone.
    pub fn engine(&self) -> Option<Arc<Engine>> {
        self.engine.get().and_then(Weak::upgrade)
    }

    /// Expires calls while the link exists.
    pub fn spawn_expiry(&self, engine: &Arc<Engine>) {
        let Some(link) = self.me.upgrade() else { return };
        let clock = ExpiryGuard(engine.clone());
        self.tasks.spawn_background(async move { expire_calls(&clock.0, &link.deadline_check).await });
    }

    /// Stops accepting messages.
    pub fn stop_accepting(&self) {
        self.refusing.store(true, Ordering::Release);
    }

    pub fn is_closed(&self) -> bool {
        self.refusing.load(Ordering::Acquire)
    }

    /// Sends pending messages, ends the session, and ends all tasks.
    pub async fn shut_down(&self) {
        self.tasks.abort_calls();
        // Cancellations are being sent and before 2025-03-26 need the stream. The wait for them is bounded.
        let _ = tokio::time::timeout(self.limits.stop_grace / 2, self.tasks.wait_until_sent()).await;
        let _ = tokio::time::timeout(self.limits.stop_grace / 2, self.delete_session()).await;
        self.tasks.abort_all();
        self.tasks.wait_until_idle().await;
    }

    /// Returns the era and revision under which a request is sent.
    pub fn era_of(&self, method: &str) -> (Era, Option<Revision>) {
        match self.protocol.revision() {
            Some(revision) => (revision.era(), Some(revision)),
            None if method == DISCOVER => (Era::Stateless, Some(Revision::LATEST_STATELESS)),
            None => (Era::Handshake, None),
        }
    }

    fn is_stateless(&self) -> bool {
        self.protocol.revision().is_none_or(|revision| revision.era() == Era::Stateless)
    }

    fn submit_request(&self, facts: RequestFacts<'_>, body: Bytes, queued: QueuedBytes) -> Result<Ticket, SubmitError> {
        let Some(engine) = self.engine() else { return Err(SubmitError::Closed) };
        if facts.method == INITIALIZE {
            self.session.set_initialize(body.clone());
        }
        let post = PostRequest::request(self, facts, body);
        let link = queued.link.clone();
        self.tasks.spawn_call(facts.id, |sent_flag| {
            HttpExchange { link, engine, post, sent_flag, queued: Some(queued) }.run()
        });
        Ok(Ticket(facts.id))
    }

    fn submit_notification(&self, body: Bytes, queued: QueuedBytes) -> Ticket {
        if &body[..] == INITIALIZED.as_bytes() {
            // From here on: later requests must not overtake it.
            self.session.hold_messages();
            self.tasks.spawn_message(async move {
                queued.link.send_initialized().await;
                queued.link.spawn_server_stream();
                if queued.link.form == HttpTransportKind::Sse {
                    queued.link.stream_decided.send_replace(true);
                }
            });
        } else {
            let post = PostRequest::notification(self, body);
            self.tasks.spawn_message(async move { queued.link.post_notification(post).await });
        }
        Ticket(0)
    }
}

impl Link for HttpLink {
    fn submit(&self, message: OutgoingMessage<'_>) -> Result<Ticket, SubmitError> {
        let link = self.me.upgrade().filter(|_| !self.is_closed());
        let Some(link) = link else { return Err(SubmitError::Closed) };
        let body = concat_message(&message);
        let queued = QueuedBytes::reserve(&link, body.len())?;
        match message.request {
            Some(facts) => self.submit_request(facts, body, queued),
            None => Ok(self.submit_notification(body, queued)),
        }
    }

    fn abandon(&self, id: u64) -> bool {
        self.tasks.abort_call(id);
        // Only in the stateless era does closing the stream cancel the call, and there is no other way.
        self.form == HttpTransportKind::Streamable && self.is_stateless()
    }

    fn may_have_been_sent(&self, ticket: Ticket) -> bool {
        self.tasks.may_have_been_sent(ticket.0)
    }

    fn wake(&self) {
        self.deadline_check.notify_one();
    }
}

/// Guard of the task that expires calls. If that task ends, calls would never time out, so the connection is closed.
struct ExpiryGuard(Arc<Engine>);

impl Drop for ExpiryGuard {
    fn drop(&mut self) {
        self.0.close(DisconnectReport::from_cause(DisconnectCause::Closed));
    }
}

/// Bytes that wait to be sent.
pub(super) struct QueuedBytes {
    link: Arc<HttpLink>,
    bytes: usize,
}

impl QueuedBytes {
    fn reserve(link: &Arc<HttpLink>, bytes: usize) -> Result<Self, SubmitError> {
        let before = link.queued.fetch_add(bytes, Ordering::AcqRel);
        let entered = Self { link: link.clone(), bytes };
        if before > 0 && before + bytes > link.limits.queued { Err(SubmitError::Full) } else { Ok(entered) }
    }
}

impl Drop for QueuedBytes {
    fn drop(&mut self) {
        self.link.queued.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

fn concat_message(message: &OutgoingMessage<'_>) -> Bytes {
    let mut text = BytesMut::with_capacity(message.len());
    message.parts.iter().for_each(|part| text.extend_from_slice(part));
    if text.ends_with(b"\n") {
        text.truncate(text.len() - 1);
    }
    text.freeze()
}
