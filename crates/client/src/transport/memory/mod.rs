//! In-process servers, which exchange whole messages with the client.
//!
//! Requests wait in a queue from which the server takes them. Messages sent to the outbox go straight to the waiting
//! call. A handler that blocks, panics or leaks affects only its own server: handlers run on [`Workers`], not on the
//! host's runtime.

mod link;
mod workers;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tracing::Instrument as _;

use super::{LinkHandle, LinkSetup, ServerStarter, StartedServer, Transport};
use crate::engine::Engine;
use crate::error::{ConnectCause, DisconnectCause, DisconnectReport};
use crate::limits::Limits;
use crate::services::BoxedFuture;

pub use link::LocalMessage;
use link::{MemoryLink, MemoryLinkState};
use workers::CatchPanic;
pub use workers::{HandlerPanic, Workers, WorkersHealth};

/// An in-process server.
pub trait LocalServer: Send + 'static {
    /// Serves one connection. The connection ends when the future completes or the client disconnects. Runs on the
    /// host's runtime, so it must not block: request handling belongs on the workers.
    fn serve(self: Box<Self>, end: ServerEnd, workers: Workers) -> BoxedFuture<()>;
}

/// Forwards to the boxed server.
impl LocalServer for Box<dyn LocalServer> {
    fn serve(self: Box<Self>, end: ServerEnd, workers: Workers) -> BoxedFuture<()> {
        (*self).serve(end, workers)
    }
}

/// The server's end of a connection.
#[derive(Clone)]
pub struct ServerEnd {
    link: Arc<MemoryLink>,
    outbox: ClientSender,
}

impl ServerEnd {
    /// Waits for the next message. Returns `None` once the client has disconnected.
    pub async fn receive(&mut self) -> Option<LocalMessage> {
        self.link.receive().await
    }

    /// Returns the next message, if one is queued.
    pub(crate) fn try_receive(&self) -> Option<LocalMessage> {
        self.link.try_receive()
    }

    /// Resolves when a message has arrived since the last call, or the client has disconnected. Only one task may wait
    /// at a time.
    pub(crate) async fn wait_for_message(&self) {
        self.link.wait_for_message().await;
    }

    /// Returns the sender for messages to the client. Cheap to clone and usable on any thread.
    pub fn sender(&self) -> ClientSender {
        self.outbox.clone()
    }
}

/// Sends messages to the client.
#[derive(Clone)]
pub struct ClientSender {
    engine: Arc<Engine>,
    limits: Arc<Limits>,
}

impl ClientSender {
    /// Sends one message, a JSON object on one line. An oversized response fails its call.
    pub fn send(&self, message: impl Into<Bytes>) {
        let message: Bytes = message.into();
        let mut wakers = Vec::new();
        if message.len() > self.limits.max_message {
            let mut scanner = wharf_wire::Scanner::new();
            scanner.push(&message);
            self.engine.deliver_oversized(&scanner.partial_envelope(), &mut wakers);
        } else if self.engine.deliver(&message, &mut wakers).is_err() {
            tracing::warn!("in-process server sent a client-only request");
        }
        wakers.into_iter().for_each(std::task::Waker::wake);
    }
}

/// An in-process server that can be started once.
pub(crate) struct LocalServerStarter(Mutex<Option<Box<dyn LocalServer>>>);

impl LocalServerStarter {
    pub fn new(server: impl LocalServer) -> Self {
        Self(Mutex::new(Some(Box::new(server))))
    }
}

impl ServerStarter for LocalServerStarter {
    fn start(&self, opening: LinkSetup) -> BoxedFuture<Result<StartedServer, ConnectCause>> {
        let server = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let opened = match server {
            Some(server) => Ok(open_link(server, &opening)),
            None => Err(ConnectCause::Protocol("an in-process server can be started only once".to_owned())),
        };
        Box::pin(std::future::ready(opened))
    }

    fn can_restart(&self) -> bool {
        false
    }
}

fn open_link(server: Box<dyn LocalServer>, opening: &LinkSetup) -> StartedServer {
    let limits = Arc::new(opening.limits.clone());
    let link = Arc::new(MemoryLink::new(limits.queued));
    let engine = opening.engine(link.clone());
    let workers = Workers::new(&opening.observer.server, &limits);
    let end = ServerEnd { link: link.clone(), outbox: ClientSender { engine: engine.clone(), limits } };
    let (done, ended) = watch::channel(false);
    let serving = server.serve(end, workers.clone());
    let serving = run(serving, engine.clone(), link.clone(), workers.clone(), done);
    let task = tokio::spawn(serving.instrument(opening.span.clone()));
    let mut open = StartedServer::new(
        engine,
        Transport::Memory,
        LocalLinkHandle { link, workers, task: task.abort_handle(), ended },
    );
    open.detail = "in-process server".to_owned();
    open
}

/// Serves, expires calls, and ends every call when the server is done.
async fn run(
    serving: BoxedFuture<()>,
    engine: Arc<Engine>,
    link: Arc<MemoryLink>,
    workers: Workers,
    done: watch::Sender<bool>,
) {
    let mut serving = CatchPanic(Box::pin(serving));
    let stopped = tokio::select! {
        outcome = &mut serving => Some(outcome),
        () = expire_until_closed(&engine, &link) => None,
    };
    // A server that ends because the client disconnected has not stopped by itself.
    let cause = if link.is_open() { DisconnectCause::Stopped } else { DisconnectCause::Closed };
    match stopped {
        Some(Err(panicked)) => tracing::warn!(%panicked, "in-process server failed"),
        Some(Ok(())) => {}
        // Poll once more, so that the server receives the cancellations.
        None => drop(tokio::time::timeout(Duration::ZERO, &mut serving).await),
    }
    link.close(MemoryLinkState::Broken);
    engine.close(DisconnectReport { cause, exit: None, stderr: Vec::new(), hint: None });
    drop(serving);
    workers.stop().await;
    let _ = done.send(true);
}

/// Expires calls until the link is closed.
async fn expire_until_closed(engine: &Engine, link: &MemoryLink) {
    while link.is_open() {
        let due = engine.next_deadline();
        tokio::select! {
            () = link.wait_for_deadline_change() => {}
            () = tokio::time::sleep_until(due) => {
                let mut wakers = Vec::new();
                engine.expire(tokio::time::Instant::now(), &mut wakers);
                wakers.into_iter().for_each(std::task::Waker::wake);
            }
        }
    }
}

struct LocalLinkHandle {
    link: Arc<MemoryLink>,
    workers: Workers,
    task: AbortHandle,
    ended: watch::Receiver<bool>,
}

impl LinkHandle for LocalLinkHandle {
    fn workers(&self) -> Option<WorkersHealth> {
        Some(self.workers.health())
    }

    fn close(&self) -> BoxedFuture<()> {
        self.link.close(MemoryLinkState::Closing);
        let mut ended = self.ended.clone();
        Box::pin(async move {
            let _ = ended.wait_for(|ended| *ended).await;
        })
    }
}

impl Drop for LocalLinkHandle {
    fn drop(&mut self) {
        self.link.close(MemoryLinkState::Broken);
        self.workers.stop_without_waiting();
        self.task.abort();
    }
}
