//! Ends a service without losing calls: new requests are refused while those in progress finish.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;
use tokio::sync::watch;
use wharf_wire::{RawJson, Revision, code};

use crate::message::{ClientMessage, MessageKind};
use crate::service::{ClientConnection, Outbox, OutgoingMessage, Service};

/// Time after which a refused client may try again: another process has taken over by then.
const RETRY_AFTER_MS: u64 = 1000;

/// Counts the requests in progress of the services it wraps, and refuses new ones once it drains. Clones share the state.
#[derive(Clone, Default)]
pub struct RequestDrain {
    state: Arc<DrainState>,
}

#[derive(Default)]
struct DrainState {
    is_draining: AtomicBool,
    running: watch::Sender<usize>,
}

impl RequestDrain {
    /// Wraps a service.
    pub fn wrap(&self, service: Arc<dyn Service>) -> Arc<dyn Service> {
        Arc::new(DrainableService { service, state: Arc::clone(&self.state) })
    }

    /// Refuses all requests from now on, except `ping`.
    pub fn begin(&self) {
        self.state.is_draining.store(true, Ordering::SeqCst);
    }

    /// Waits until no request is in progress. Subscriptions do not count, because they have no end. Cancel-safe.
    pub async fn wait_until_idle(&self) {
        let mut running = self.state.running.subscribe();
        // The sender exists as long as `self`.
        let _ = running.wait_for(|running| *running == 0).await;
    }
}

struct DrainableService {
    service: Arc<dyn Service>,
    state: Arc<DrainState>,
}

impl DrainableService {
    fn connection(&self, inner: Arc<dyn ClientConnection>) -> Arc<dyn ClientConnection> {
        Arc::new(DrainableConnection { inner, state: Arc::clone(&self.state) })
    }
}

impl Service for DrainableService {
    fn has_sessions(&self) -> bool {
        self.service.has_sessions()
    }

    fn open_session(&self) -> Option<Arc<dyn ClientConnection>> {
        self.service.open_session().map(|inner| self.connection(inner))
    }

    fn open_request(&self, headers: &http::HeaderMap) -> Option<Arc<dyn ClientConnection>> {
        self.service.open_request(headers).map(|inner| self.connection(inner))
    }
}

struct DrainableConnection {
    inner: Arc<dyn ClientConnection>,
    state: Arc<DrainState>,
}

impl ClientConnection for DrainableConnection {
    fn receive(&self, message: ClientMessage, out: Arc<dyn Outbox>) {
        let is_counted = match message.kind() {
            MessageKind::Notification | MessageKind::Response => return self.inner.receive(message, out),
            MessageKind::Request if message.method() == "ping" => return self.inner.receive(message, out),
            MessageKind::Request => message.method() != "subscriptions/listen",
            MessageKind::Batch => true,
        };
        // Counted first: a request is either refused or waited for.
        let running = is_counted.then(|| RunningRequest::new(&self.state));
        if self.state.is_draining.load(Ordering::SeqCst) {
            return out.send(refusal(&message));
        }
        self.inner.receive(message, Arc::new(CountedOutbox { out, running: Mutex::new(running) }));
    }

    fn admit(&self, request: &ClientMessage) -> Result<(), OutgoingMessage> {
        self.inner.admit(request)
    }

    fn input_schema(&self, tool: &str) -> Option<RawJson> {
        self.inner.input_schema(tool)
    }

    fn revision(&self) -> Option<Revision> {
        self.inner.revision()
    }

    fn attach(&self, out: Arc<dyn Outbox>) -> io::Result<()> {
        self.inner.attach(out)
    }

    fn cancel_pending(&self) {
        self.inner.cancel_pending();
    }

    fn close(&self) {
        self.inner.close();
    }
}

fn refusal(message: &ClientMessage) -> OutgoingMessage {
    let error = json!({
        "code": code::INTERNAL,
        "message": "the server is shutting down and has not executed this request; send it again in a moment",
        "data": {"reason": "draining", "retryAfterMs": RETRY_AFTER_MS},
    });
    let reply = json!({"jsonrpc": "2.0", "id": message.id(), "error": error});
    OutgoingMessage::error(reply.to_string(), code::INTERNAL)
}

/// A request in progress, counted until it is dropped.
struct RunningRequest(Arc<DrainState>);

impl RunningRequest {
    fn new(state: &Arc<DrainState>) -> Self {
        state.running.send_modify(|running| *running += 1);
        Self(Arc::clone(state))
    }
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        self.0.running.send_modify(|running| *running -= 1);
    }
}

/// The outbox of a request. The request ends with its response, or with the outbox.
struct CountedOutbox {
    out: Arc<dyn Outbox>,
    running: Mutex<Option<RunningRequest>>,
}

impl Outbox for CountedOutbox {
    fn send(&self, message: OutgoingMessage) {
        let is_response = message.is_response;
        self.out.send(message);
        if is_response {
            self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
    }

    fn session_outbox(&self) -> Option<Arc<dyn Outbox>> {
        self.out.session_outbox()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    /// A service that keeps the outbox of each request.
    #[derive(Default)]
    pub(crate) struct HeldRequests(Mutex<Vec<Arc<dyn Outbox>>>);

    struct HeldService(Arc<HeldRequests>);

    impl Service for HeldService {
        fn has_sessions(&self) -> bool {
            true
        }

        fn open_session(&self) -> Option<Arc<dyn ClientConnection>> {
            Some(Arc::clone(&self.0) as _)
        }

        fn open_request(&self, _: &http::HeaderMap) -> Option<Arc<dyn ClientConnection>> {
            None
        }
    }

    impl ClientConnection for HeldRequests {
        fn receive(&self, _: ClientMessage, out: Arc<dyn Outbox>) {
            self.0.lock().unwrap().push(out);
        }

        fn admit(&self, _: &ClientMessage) -> Result<(), OutgoingMessage> {
            Ok(())
        }

        fn input_schema(&self, _: &str) -> Option<RawJson> {
            None
        }

        fn revision(&self) -> Option<Revision> {
            None
        }

        fn attach(&self, _: Arc<dyn Outbox>) -> io::Result<()> {
            Ok(())
        }

        fn cancel_pending(&self) {}

        fn close(&self) {}
    }

    #[derive(Default)]
    struct SentMessages(Mutex<Vec<OutgoingMessage>>);

    impl Outbox for SentMessages {
        fn send(&self, message: OutgoingMessage) {
            self.0.lock().unwrap().push(message);
        }
    }

    fn request(method: &str) -> ClientMessage {
        let text = json!({"jsonrpc": "2.0", "id": 1, "method": method}).to_string();
        ClientMessage::parse(bytes::Bytes::from(text)).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn drain_waits_for_requests_and_refuses_new_ones() {
        let (drain, held, sent) = (RequestDrain::default(), Arc::<HeldRequests>::default(), SentMessages::default());
        let sent = Arc::new(sent);
        let connection = drain.wrap(Arc::new(HeldService(Arc::clone(&held)))).open_session().unwrap();
        let receive = |method: &str| connection.receive(request(method), Arc::clone(&sent) as _);
        receive("tools/call");
        receive("tools/call");
        receive("subscriptions/listen");
        drain.begin();
        receive("tools/call");
        receive("ping");
        let refused: Vec<_> = sent.0.lock().unwrap().iter().map(|message| message.error_code).collect();
        assert_eq!(refused, [Some(code::INTERNAL)]);
        assert_eq!(held.0.lock().unwrap().len(), 4, "two calls, a subscription and the ping");
        let is_idle = || async { timeout(Duration::from_secs(1), drain.wait_until_idle()).await.is_ok() };
        assert!(!is_idle().await);
        // One call is answered, the other one cancelled.
        held.0.lock().unwrap()[0].send(OutgoingMessage::response("{}"));
        assert!(!is_idle().await);
        held.0.lock().unwrap().remove(1);
        assert!(is_idle().await);
    }
}
