//! One call over HTTP: its POST, and the body or stream that carries the response.

use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use wharf_net::{
    HttpRequest, HttpResponse, Method, NotAuthorized, RedirectPolicy, ResponseBody, SendError, StatusCode,
};
use wharf_spec::UntrustedText;
use wharf_wire::{Era, RpcError, View, code, scan};

use super::HttpTransportKind;
use super::errors;
use super::link::{HttpLink, QueuedBytes};
use super::link_tasks::SentFlag;
use super::post_request::{LAST_EVENT, PostRequest, SESSION};
use super::response_body::{
    CollectError, ContentKind, EXCERPT, EventReader, StreamItem, body_excerpt, collect_body, drain_rest, event_message,
};
use super::resume::ResumeState;
use super::session::SessionTarget;
use super::status::{StatusMeaning, challenge, classify_status, retry_after, with_jitter};
use crate::engine::{Delivery, Engine, MessageRelation, NotMcpPeer, ResponseChannel};
use crate::era::supported_revisions;
use crate::error::{BODY_WITHOUT_MESSAGE, CallError, DisconnectCause, DisconnectReport};

/// Maximum retries if the server asks to retry later.
const MAX_RETRIES: u32 = 5;
/// Maximum bytes of an error body that may contain a message.
const MAX_ERROR_BODY: usize = 64 << 10;
/// Maximum attempts to resume a stream.
const MAX_RESUMES: u32 = 5;
/// Time to wait for the end of the stream after the response, before the response is delivered regardless.
const STREAM_END_TIMEOUT: Duration = Duration::from_millis(5);
/// Interval for checking whether the call of a quiet stream is still pending.
const PENDING_CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// Bounds of the delay a server may request before a stream is resumed.
const MIN_RESUME_DELAY: Duration = Duration::from_millis(100);
const MAX_RESUME_DELAY: Duration = Duration::from_secs(60);

pub(super) struct HttpExchange {
    pub link: Arc<HttpLink>,
    pub engine: Arc<Engine>,
    pub post: PostRequest,
    pub sent_flag: SentFlag,
    pub queued: Option<QueuedBytes>,
}

/// The next step after an attempt.
enum ExchangeStep {
    Done,
    /// Retry after this delay.
    Again(Duration),
}

impl HttpExchange {
    /// Runs the call to its outcome. Dropping the future closes its connections.
    pub async fn run(mut self) {
        let link = self.link.clone();
        let _exchange_permit = if self.post.lasts { None } else { link.exchange_permits.acquire().await.ok() };
        let mut tries = 0;
        while let ExchangeStep::Again(wait) = self.attempt(tries).await {
            tries += 1;
            tokio::time::sleep(wait).await;
        }
    }

    async fn attempt(&mut self, tries: u32) -> ExchangeStep {
        let place = match self.link.target().await {
            Ok(place) => place,
            Err(why) => return self.lose(DisconnectReport::clone(&why), Delivery::No),
        };
        self.sent_flag.set();
        // If the call ends from now on, it counts as possibly sent. If it ended before, it was reported as not sent.
        if !self.is_pending() {
            return ExchangeStep::Done;
        }
        match self.link.post(&place, &self.post).await {
            Ok(response) => {
                self.queued = None;
                self.on_response(response, &place, tries).await
            }
            Err(error) => self.on_send_error(&error, tries),
        }
    }

    fn on_send_error(&self, error: &SendError, tries: u32) -> ExchangeStep {
        match error {
            SendError::NotAuthorized(why) => self.fail_unauthorized(why.clone(), 401, None, String::new()),
            SendError::Redirected { .. } | SendError::RedirectLoop => self.fail(CallError::Protocol(error.to_string())),
            // The connection was closed meanwhile. Requests that open a session are not retried elsewhere, and
            // repeating them is harmless.
            SendError::Broken(_) if tries == 0 && self.link.protocol.revision().is_none() => {
                ExchangeStep::Again(with_jitter(self.link.limits.send_again))
            }
            _ if !error.is_certainly_unsent() => self.lose(errors::from_send_error(error), Delivery::Maybe),
            // The request was not sent: a retry cannot execute it twice.
            SendError::Refused(_) | SendError::Unresolved { .. } if tries == 0 => {
                self.sent_flag.clear();
                ExchangeStep::Again(with_jitter(self.link.limits.send_again))
            }
            _ => self.lose(errors::from_send_error(error), Delivery::No),
        }
    }

    async fn on_response(&mut self, response: HttpResponse, place: &SessionTarget, tries: u32) -> ExchangeStep {
        if response.status.is_success() {
            return self.on_success(response, place).await;
        }
        // Rare paths are boxed, so that the common future stays small.
        match classify_status(response.status, self.post.effect, self.is_in_session(place)) {
            StatusMeaning::Login => Box::pin(self.on_unauthorized(response)).await,
            StatusMeaning::Later => Box::pin(self.retry_later(response, tries)).await,
            StatusMeaning::SessionExpired => Box::pin(self.on_not_found(response, place)).await,
            StatusMeaning::Refused | StatusMeaning::Unclear => {
                Box::pin(self.on_error_status(response, place, tries)).await
            }
        }
    }

    async fn on_success(&mut self, mut response: HttpResponse, place: &SessionTarget) -> ExchangeStep {
        if self.post.opens && self.link.form == HttpTransportKind::Streamable {
            self.link.session.set_session_id(response.headers.get(SESSION));
        }
        let kind = ContentKind::from_headers(&response.headers);
        if self.link.form == HttpTransportKind::Sse {
            return Box::pin(self.on_accepted(response, kind)).await;
        }
        match kind {
            ContentKind::Events => Box::pin(self.follow(self.link.events(response.body), place)).await,
            ContentKind::Json => match collect_body(&mut response.body, &self.link.limits, &self.link.budget).await {
                Ok(body) if body.trim_ascii().is_empty() => self.fail_without_response(response.status, ""),
                Ok(body) => self.deliver_single(body, ResponseChannel::Body).await,
                Err(CollectError::Refused(error)) => self.fail(error),
                Err(CollectError::Broken(what)) => self.lose(errors::stream_interrupted(&what), Delivery::Maybe),
            },
            ContentKind::Other => {
                let shown = body_excerpt(&mut response.body).await;
                self.fail_without_response(response.status, &shown)
            }
        }
    }

    fn fail_without_response(&self, status: StatusCode, shown: &str) -> ExchangeStep {
        let what = match shown {
            "" => format!("HTTP {status} without a response message"),
            shown => format!("HTTP {status} {BODY_WITHOUT_MESSAGE}{shown}"),
        };
        self.fail(CallError::Protocol(what))
    }

    /// Handles the reply to a POST before 2025-03-26, where the response comes on the stream. Some servers send it here
    /// instead.
    async fn on_accepted(&self, mut response: HttpResponse, kind: ContentKind) -> ExchangeStep {
        if kind == ContentKind::Json
            && let Ok(body) = collect_body(&mut response.body, &self.link.limits, &self.link.budget).await
        {
            let found = body.clone();
            if self.link.budget.offload_if_large(body.len(), move || is_response_body(&found)).await == Some(true) {
                return self.deliver_single(body, ResponseChannel::Shared).await;
            }
        } else {
            drain_rest(response.body).await;
        }
        ExchangeStep::Done
    }

    /// Reads a stream until the response arrives, resuming the stream if possible.
    async fn follow(&mut self, mut events: EventReader, place: &SessionTarget) -> ExchangeStep {
        let channel = if self.post.era == Era::Stateless { ResponseChannel::Own } else { ResponseChannel::Shared };
        let mut past = ResumeState::default();
        loop {
            let Ok(piece) = tokio::time::timeout(PENDING_CHECK_INTERVAL, events.next()).await else {
                // Answered elsewhere or cancelled: the stream is no longer needed.
                if self.is_pending() {
                    continue;
                }
                return ExchangeStep::Done;
            };
            match piece {
                StreamItem::Event(event) => {
                    if !past.is_new(event.id.as_deref()) {
                        continue;
                    }
                    let Some(message) = event_message(event).filter(|message| self.is_allowed_on_stream(message))
                    else {
                        continue;
                    };
                    match self.deliver_and_drain(message, channel, &mut events).await {
                        Ok(MessageRelation::Answer) => {
                            drain_rest(events.into_body()).await;
                            return ExchangeStep::Done;
                        }
                        Ok(MessageRelation::Other) if self.is_pending() => {}
                        Ok(MessageRelation::Other) => return ExchangeStep::Done,
                        Err(next) => return next,
                    }
                }
                StreamItem::TooLarge => return self.fail(CallError::TooLarge { limit: self.link.limits.max_message }),
                StreamItem::Discarded(exceeded) => return self.fail(CallError::Discarded(exceeded)),
                StreamItem::End(what) => {
                    past.record_end(&events);
                    events = match Box::pin(self.resume(&past, place, &what)).await {
                        Ok(events) => events,
                        Err(next) => return next,
                    };
                }
            }
        }
    }

    /// Reports whether the server may send this message on the stream. Before negotiation, a response under the rules
    /// of the stateless era may not contain requests (2026-07-28, basic/transports).
    fn is_allowed_on_stream(&self, message: &[u8]) -> bool {
        if self.post.era == Era::Handshake || self.link.protocol.revision().is_some() {
            return true;
        }
        let asks = scan(message).is_ok_and(|envelope| envelope.method.is_some() && envelope.id(message).is_some());
        if asks {
            tracing::warn!("ignored a server request, which this revision does not allow");
        }
        !asks
    }

    /// Delivers a message. After the response, briefly waits for the end of the stream, so that the woken caller finds
    /// the connection free.
    async fn deliver_and_drain(
        &self,
        message: Bytes,
        channel: ResponseChannel,
        events: &mut EventReader,
    ) -> Result<MessageRelation, ExchangeStep> {
        let (heard, wakers) = self.deliver(message, channel).await;
        if matches!(heard, Ok(MessageRelation::Answer)) {
            tokio::select! {
                biased;
                // A separate task returns the connection to the pool; yield so that it can run.
                _ = events.next() => tokio::task::yield_now().await,
                () = tokio::time::sleep(STREAM_END_TIMEOUT) => {}
            }
        }
        drop(wakers);
        heard.map_err(|peer| self.close_not_mcp(peer))
    }

    /// Resumes an interrupted stream of the handshake era, always by GET (2025-11-25, basic/transports).
    async fn resume(&self, past: &ResumeState, place: &SessionTarget, what: &str) -> Result<EventReader, ExchangeStep> {
        let last = match &past.last {
            Some(last) if self.post.era == Era::Handshake => last,
            _ => return Err(self.lose(errors::stream_interrupted(what), Delivery::Maybe)),
        };
        let wait = past.retry.unwrap_or(self.link.limits.resume).clamp(MIN_RESUME_DELAY, MAX_RESUME_DELAY);
        for _ in 0..MAX_RESUMES {
            tokio::time::sleep(wait).await;
            if !self.is_pending() {
                return Err(ExchangeStep::Done);
            }
            match self.link.net.send(self.link.stream_request(place, Some(last))).await {
                Ok(response)
                    if response.status.is_success()
                        && ContentKind::from_headers(&response.headers) == ContentKind::Events =>
                {
                    return Ok(self.link.events(response.body));
                }
                Ok(response) if response.status.is_server_error() => {}
                Ok(response) if response.status == StatusCode::NOT_FOUND && place.id.is_some() => {
                    // The server accepted the call before it lost the session.
                    return Err(self.on_session_lost(place, Delivery::Maybe));
                }
                Ok(response) => {
                    let what = format!("{what}, and resuming failed (HTTP {})", response.status);
                    return Err(self.lose(errors::stream_interrupted(&what), Delivery::Maybe));
                }
                Err(_) => {}
            }
        }
        Err(self.lose(errors::stream_interrupted(&format!("{what}, and resuming failed")), Delivery::Maybe))
    }

    async fn on_unauthorized(&self, mut response: HttpResponse) -> ExchangeStep {
        let challenge = challenge(&response.headers);
        let status = response.status.as_u16();
        let said = body_excerpt(&mut response.body).await;
        match response.not_authorized {
            Some(why) => self.fail_unauthorized(why, status, challenge, said),
            None => self.fail(CallError::Unauthorized { status, challenge, said, why: None }),
        }
    }

    /// Handles a failure of the authorizer. The rejected call was not executed, so it may be retried if the failure is
    /// transient.
    fn fail_unauthorized(
        &self,
        why: NotAuthorized,
        status: u16,
        challenge: Option<String>,
        said: String,
    ) -> ExchangeStep {
        if why.is_transient() {
            return self.lose(errors::not_authorized(why), Delivery::No);
        }
        self.fail(CallError::Unauthorized { status, challenge, said, why: Some(Box::new(why)) })
    }

    async fn retry_later(&self, mut response: HttpResponse, tries: u32) -> ExchangeStep {
        let asked = retry_after(&response.headers, SystemTime::now());
        let least = self.link.limits.send_again;
        let wait = with_jitter(asked.map_or(least * 2u32.pow(tries), |asked| asked.max(least)));
        let left = self.engine.time_left(self.post.id).unwrap_or_default();
        if tries < MAX_RETRIES && wait < left {
            drain_rest(response.body).await;
            return ExchangeStep::Again(wait);
        }
        let (status, detail) = (response.status.as_u16(), body_excerpt(&mut response.body).await);
        self.fail(CallError::Status { status, detail, retry_after: asked })
    }

    /// Handles 404 in a session: the session has expired, unless the message reports an unknown method.
    async fn on_not_found(&self, mut response: HttpResponse, place: &SessionTarget) -> ExchangeStep {
        let body = self.read_error_body(&mut response).await;
        match error_in_body(&body, &self.link.limits) {
            Some(error) if error.code == code::METHOD_NOT_FOUND => {
                self.deliver_single(body, ResponseChannel::Refusal).await
            }
            _ => self.on_session_lost(place, Delivery::No),
        }
    }

    async fn read_error_body(&self, response: &mut HttpResponse) -> Bytes {
        let body = tokio::time::timeout(self.link.limits.dial, response.body.collect(MAX_ERROR_BODY)).await;
        body.ok().and_then(Result::ok).unwrap_or_default()
    }

    /// Handles an expired session. A POST that the server rejects because of its session was not executed
    /// (2025-11-25, basic/transports, session management). It is not sent again here: the new session may define the
    /// tool in another way.
    fn on_session_lost(&self, place: &SessionTarget, delivery: Delivery) -> ExchangeStep {
        self.link.on_session_expired(place);
        self.lose(errors::session_expired(), delivery)
    }

    /// Handles an error status, which often comes with a message that gives the reason.
    async fn on_error_status(&self, mut response: HttpResponse, place: &SessionTarget, tries: u32) -> ExchangeStep {
        let status = response.status;
        let body = self.read_error_body(&mut response).await;
        if let Some(error) = error_in_body(&body, &self.link.limits) {
            if self.is_in_session(place) && is_unknown_session(status, &error) {
                return self.on_session_lost(place, Delivery::No);
            }
            if error.code == code::UNSUPPORTED_REVISION
                && let Some(agreed) = self.link.protocol.revision()
            {
                let still_spoken = supported_revisions(&error).iter().any(|named| named == agreed.as_str());
                match (still_spoken, tries) {
                    (false, _) => return self.on_revision_changed(),
                    // The server rejects a revision it lists as supported, and has done nothing: possibly a partial
                    // upgrade.
                    (true, 0) => return ExchangeStep::Again(with_jitter(self.link.limits.send_again)),
                    (true, _) => {}
                }
            }
            if self.post.opens && matches!(status.as_u16(), 400 | 404 | 405) && error.code != code::UNSUPPORTED_REVISION
            {
                // The server may only speak the older transport: the status is then more useful than the message.
                let message = UntrustedText::new(error.message.as_str());
                let detail = format!("{} (code {})", message.truncate(200), error.code);
                return self.fail(CallError::Status { status: status.as_u16(), detail, retry_after: None });
            }
            return self.deliver_single(body, ResponseChannel::Refusal).await;
        }
        let shown = UntrustedText::from_bytes(body.trim_ascii()).truncate(EXCERPT).to_string();
        if status.is_server_error() {
            return self.lose(errors::unclear_status(status, &shown), Delivery::Maybe);
        }
        self.fail(CallError::Status { status: status.as_u16(), detail: shown, retry_after: None })
    }

    /// Handles a server that no longer speaks the negotiated revision. The next connection negotiates again.
    fn on_revision_changed(&self) -> ExchangeStep {
        tracing::warn!("server no longer speaks the negotiated revision");
        self.engine.close_after_rejection(Some(self.post.id), errors::revision_changed());
        ExchangeStep::Done
    }

    /// Delivers the only message of the response.
    async fn deliver_single(&self, message: Bytes, channel: ResponseChannel) -> ExchangeStep {
        match self.deliver(message, channel).await.0 {
            Ok(_) => ExchangeStep::Done,
            Err(peer) => self.close_not_mcp(peer),
        }
    }

    /// Delivers a message; a large one on the low-priority thread. The returned value wakes the callers when dropped.
    async fn deliver(
        &self,
        message: Bytes,
        channel: ResponseChannel,
    ) -> (Result<MessageRelation, NotMcpPeer>, WakeOnDrop) {
        let (engine, id) = (Arc::clone(&self.engine), self.post.id);
        let delivered = self.link.budget.offload_if_large(message.len(), move || {
            let mut wakers = WakeOnDrop::default();
            (engine.deliver_for(id, &message, channel, &mut wakers.0), wakers)
        });
        delivered.await.unwrap_or((Ok(MessageRelation::Other), WakeOnDrop::default()))
    }

    fn close_not_mcp(&self, NotMcpPeer(what): NotMcpPeer) -> ExchangeStep {
        self.engine.close(DisconnectReport::from_cause(DisconnectCause::NotMcp(what)));
        ExchangeStep::Done
    }

    /// Reports whether the request belongs to a session named by the server.
    fn is_in_session(&self, place: &SessionTarget) -> bool {
        place.id.is_some() && self.post.era == Era::Handshake && !self.post.opens
    }

    /// Reports whether the call is still pending.
    fn is_pending(&self) -> bool {
        self.engine.time_left(self.post.id).is_some()
    }

    fn fail(&self, error: CallError) -> ExchangeStep {
        self.engine.fail_call(self.post.id, error);
        ExchangeStep::Done
    }

    fn lose(&self, gone: DisconnectReport, delivery: Delivery) -> ExchangeStep {
        self.engine.lose_call(self.post.id, gone, delivery);
        ExchangeStep::Done
    }
}

impl Drop for HttpExchange {
    /// Ends the call if the exchange ends without an outcome, by a panic or with its runtime.
    fn drop(&mut self) {
        if self.link.form == HttpTransportKind::Streamable && self.is_pending() {
            self.lose(errors::stream_interrupted("internal error: the request task ended"), Delivery::Maybe);
        }
    }
}

/// Wakers of calls with an outcome, woken on drop. An exchange that is aborted in between must still wake them.
#[derive(Default)]
struct WakeOnDrop(Vec<Waker>);

impl Drop for WakeOnDrop {
    fn drop(&mut self) {
        self.0.drain(..).for_each(Waker::wake);
    }
}

/// Reports whether a body is a response, not only an acknowledgement.
fn is_response_body(body: &Bytes) -> bool {
    scan(body).is_ok_and(|found| found.method.is_none() && (found.result.is_some() || found.error.is_some()))
}

/// Returns the error in a body, if it is an error response.
fn error_in_body(body: &Bytes, limits: &crate::limits::Limits) -> Option<RpcError> {
    let envelope = scan(body).ok().filter(|envelope| envelope.method.is_none())?;
    RpcError::from_raw(envelope.error?.to_raw(body), &limits.bounds).ok()
}

/// Reports whether an error means an unknown session. Restarted servers on the TypeScript SDK 1 return 400 instead of
/// 404.
fn is_unknown_session(status: StatusCode, error: &RpcError) -> bool {
    status == StatusCode::BAD_REQUEST && error.code == -32000 && error.message.to_ascii_lowercase().contains("session")
}

impl HttpLink {
    /// Returns a reader for the events of a stream, within the limits and the budget.
    pub fn events(&self, body: ResponseBody) -> EventReader {
        EventReader::new(body, &self.limits, &self.budget)
    }

    /// Creates a GET for a stream: a new one, or one resumed after an event.
    pub fn stream_request(&self, place: &SessionTarget, after: Option<&str>) -> HttpRequest {
        let mut headers = self.headers.stream_headers(self.protocol.revision());
        if let Some(id) = &place.id {
            headers.insert(SESSION, id.clone());
        }
        // Ignore an id that a header cannot contain.
        if let Some(last) = after.and_then(|last| last.parse().ok()) {
            headers.insert(LAST_EVENT, last);
        }
        let url = place.url.clone();
        HttpRequest { method: Method::GET, url, headers, body: Bytes::new(), redirects: RedirectPolicy::SameOrigin }
    }
}
