//! Differences between revisions above the transport: request metadata, allowed server messages, and detection of the
//! era.

mod handshake;
mod negotiate;
mod stateless;

use std::sync::{Arc, OnceLock};

use wharf_wire::{Era, JsonLimits, Progress, RawJson, Revision, RpcError, UnsupportedRevision, View};

use crate::engine::{Engine, NotMcpPeer, NotificationEffect, Protocol, RequestDisposition, RequestOrigin, ResultKind};
use crate::notifications::{DispatchOutcome, NotificationHub};
use crate::options::{CallTag, NotificationObserver};
use crate::server_requests::ServerRequestHandler;

pub(crate) use handshake::{evaluate_initialize, initialize_params, request_logs};
pub(crate) use negotiate::{ProbeVerdict, evaluate_probe};
pub(crate) use stateless::{discover_params, forwarded_meta_members, meta_members};

pub(crate) const DISCOVER: &str = "server/discover";
/// Reports that a page is done (2025-11-25, client/elicitation).
const PAGE_DONE: &str = "notifications/elicitation/complete";
pub(crate) const INITIALIZE: &str = "initialize";
pub(crate) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// The client's name and version, as JSON.
const CLIENT_INFO: &str = concat!(r#"{"name":"wharf","version":""#, env!("CARGO_PKG_VERSION"), r#""}"#);

/// Protocol state of one connection. Undecided until a revision has been negotiated.
pub(crate) struct ProtocolState {
    revision: OnceLock<Revision>,
    observer: Option<Arc<dyn NotificationObserver>>,
    pub request_handler: ServerRequestHandler,
    pub notifications: NotificationHub,
}

impl ProtocolState {
    pub fn new(
        request_handler: ServerRequestHandler,
        notifications: NotificationHub,
        observer: Option<Arc<dyn NotificationObserver>>,
    ) -> Self {
        Self { revision: OnceLock::new(), observer, request_handler, notifications }
    }

    pub fn set_revision(&self, revision: Revision) {
        let _ = self.revision.set(revision);
    }

    fn era(&self) -> Option<Era> {
        self.revision.get().map(|revision| revision.era())
    }

    /// Handles `notifications/cancelled`. In the handshake era it cancels a server request; in the stateless era it
    /// ends a subscription.
    fn on_cancelled(&self, params: Option<&RawJson>) -> NotificationEffect {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct WireCancelledParams<'a> {
            #[serde(borrow)]
            request_id: &'a serde_json::value::RawValue,
        }
        let shape = params.and_then(|params| params.decode::<WireCancelledParams>(self.request_handler.bounds()).ok());
        let Some(WireCancelledParams { request_id }) = shape else { return NotificationEffect::None };
        if self.era() != Some(Era::Stateless) {
            return NotificationEffect::RequestCancelled(request_id.get().to_owned());
        }
        let id = request_id.get().parse::<u64>().ok();
        match id.filter(|id| self.notifications.subscriber_by_stream(*id).is_some()) {
            Some(id) => NotificationEffect::Ended(id),
            None => NotificationEffect::Stray,
        }
    }
}

impl Protocol for ProtocolState {
    fn request(&self, method: &str, params: Option<RawJson>, origin: RequestOrigin<'_>) -> RequestDisposition {
        match (self.era(), method) {
            // Only clients send these: the peer echoes its input, like `cat`.
            (_, DISCOVER | INITIALIZE) => RequestDisposition::NotMcp(NotMcpPeer("it echoed the request back")),
            (Some(Era::Stateless), _) => RequestDisposition::Unwanted,
            // Also allowed before and during the handshake (2025-11-25, basic/lifecycle).
            (_, "ping") => RequestDisposition::Result(RawJson::empty_object()),
            _ => match self.request_handler.begin_reply(method, params, origin) {
                Ok(pending_reply) => RequestDisposition::Later(pending_reply),
                Err(refusal) => RequestDisposition::Reject(refusal),
            },
        }
    }

    fn notification(&self, method: &str, params: Option<RawJson>, call: Option<CallTag>) -> NotificationEffect {
        if method == "notifications/progress" {
            let progress = params.and_then(|params| Progress::from_raw(params, self.request_handler.bounds()).ok());
            return progress.map_or(NotificationEffect::None, NotificationEffect::Progress);
        }
        if let Some(observer) = &self.observer {
            observer.notification(method, params.as_ref());
        }
        match method {
            "notifications/cancelled" => return self.on_cancelled(params.as_ref()),
            "notifications/message" => self.request_handler.log(params, call),
            _ => {
                if method == PAGE_DONE {
                    self.request_handler.report_page_done(params.as_ref(), call);
                }
                let posted = self.era().map(|era| self.notifications.dispatch(era, method, params.as_ref()));
                if posted == Some(DispatchOutcome::Stray) {
                    return NotificationEffect::Stray;
                }
            }
        }
        NotificationEffect::None
    }

    fn cancellation(&self, id: u64, reason: &str) -> String {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"{reason}"}}}}"#
        )
    }

    fn result_kind(&self, result_type: Option<&str>) -> Option<ResultKind> {
        // `resultType` has no meaning before the stateless era. Until the revision is negotiated, the caller validates
        // the result.
        if self.era() != Some(Era::Stateless) {
            return Some(ResultKind::Complete);
        }
        match result_type {
            None | Some("complete") => Some(ResultKind::Complete),
            Some("input_required") => Some(ResultKind::InputRequired),
            Some("task") if self.request_handler.services().tasks => Some(ResultKind::Task),
            Some(_) => None,
        }
    }

    fn accepts_batches(&self) -> bool {
        self.revision.get().is_some_and(|revision| revision.allows_batches())
    }

    fn revision(&self) -> Option<Revision> {
        self.revision.get().copied()
    }

    fn on_server_restarted(&self, engine: &Arc<Engine>) {
        self.notifications.reset_subscriptions();
        request_logs(engine, &self.request_handler);
    }

    fn on_messages_missed(&self) {
        self.notifications.mark_missed();
    }
}

/// Returns the revisions that a server lists in an unsupported-revision error.
pub(crate) fn supported_revisions(error: &RpcError) -> Vec<String> {
    let data = error.data.clone().and_then(|data| UnsupportedRevision::from_raw(data, &JsonLimits::default()).ok());
    data.unwrap_or_default().supported
}
