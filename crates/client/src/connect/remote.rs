//! Connecting over HTTP, including detection of the transport if it is not configured.

use wharf_spec::{HttpSpec, HttpTransport, Redactor};
use wharf_wire::Era;

use super::transport_cache::DetectedTransport;
use super::{ConnectAttempt, NegotiatedServer, OpenedServer};
use crate::connection::Connection;
use crate::error::{ConnectCause, ConnectError};
use crate::options::{ConnectOptions, NegotiationMode};
use crate::trace::StepOutcome;
use crate::transport::http::{HttpTransportKind, RemoteServer};
use crate::transport::{Transport, check_launch};

/// Connects to an HTTP server and negotiates a transport and a revision.
///
/// If no transport is configured, Streamable HTTP is tried first, starting with the stateless era, then HTTP+SSE.
///
/// # Cancel safety
///
/// Dropping the future ends the connections it has opened.
pub async fn connect_http(spec: &HttpSpec, options: ConnectOptions) -> Result<Connection, ConnectError> {
    let mut attempt = ConnectAttempt::new(options, Redactor::for_http(spec));
    let remote = match prepare_remote(spec, &attempt).await {
        Ok(remote) => remote,
        Err(cause) => {
            let cause = attempt.record_failure("open", cause);
            return Err(attempt.into_error(cause));
        }
    };
    let met = match spec.form {
        HttpTransport::Streamable => attempt.start_and_negotiate(&remote).await,
        HttpTransport::Sse => attempt.start_and_negotiate(&remote.with_transport(HttpTransportKind::Sse)).await,
        HttpTransport::Automatic => attempt.detect_transport(spec, &remote).await,
    };
    match met {
        Ok((started, introduction)) => Ok(attempt.into_connection(started, introduction)),
        Err(cause) => Err(attempt.into_error(cause)),
    }
}

/// Checks the approval, then loads the certificates and sets up the HTTP client.
async fn prepare_remote(spec: &HttpSpec, attempt: &ConnectAttempt) -> Result<RemoteServer, ConnectCause> {
    check_launch(spec.launch_check.as_ref(), None).await?;
    RemoteServer::new(spec, HttpTransportKind::Streamable, &attempt.options, &attempt.redactor).await
}

type NegotiationResult = Result<(OpenedServer, NegotiatedServer), ConnectCause>;

impl ConnectAttempt {
    /// Tries the cached transport first, and detects it again if it no longer works.
    async fn detect_transport(&mut self, spec: &HttpSpec, remote: &RemoteServer) -> NegotiationResult {
        let cache = self.options.transport_cache.clone();
        let ttl = self.options.limits.transport_cache_ttl;
        let known = cache.as_ref().and_then(|cache| cache.find(&spec.url, ttl));
        let met = match known {
            Some(detected) => self.try_cached_transport(detected, remote).await,
            None => self.try_transports(remote).await,
        };
        if let (Ok((started, introduction)), Some(cache)) = (&met, cache) {
            let detected = detected_transport(started, introduction);
            if known == Some(DetectedTransport::Stateless) && detected != DetectedTransport::Stateless {
                // Possibly a downgrade by an intermediary.
                tracing::warn!(server = self.options.name, "server now speaks an older transport than last time");
            }
            cache.record(&spec.url, detected);
        }
        met
    }

    async fn try_cached_transport(&mut self, detected: DetectedTransport, remote: &RemoteServer) -> NegotiationResult {
        self.tracer.record_unredacted("recall", StepOutcome::Fine, detected);
        match self.negotiate_as(detected, remote).await {
            Err(
                ConnectCause::Status { .. }
                | ConnectCause::ErrorResponse(_)
                | ConnectCause::Protocol(_)
                | ConnectCause::NoCommonRevision(_),
            ) => {
                self.tracer.mark_detour();
                self.tracer.record_unredacted(
                    "recall",
                    StepOutcome::Detour,
                    "cached transport no longer works, detecting again",
                );
                self.try_transports(remote).await
            }
            // An outage is no evidence about the transport.
            met => met,
        }
    }

    async fn negotiate_as(&mut self, detected: DetectedTransport, remote: &RemoteServer) -> NegotiationResult {
        let negotiation = self.options.negotiation;
        if detected == DetectedTransport::Handshake {
            self.options.negotiation = NegotiationMode::Handshake;
        }
        let form =
            if detected == DetectedTransport::Sse { HttpTransportKind::Sse } else { HttpTransportKind::Streamable };
        let met = self.start_and_negotiate(&remote.with_transport(form)).await;
        self.options.negotiation = negotiation;
        met
    }

    async fn try_transports(&mut self, remote: &RemoteServer) -> NegotiationResult {
        let refused = match self.start_and_negotiate(remote).await {
            Err(cause @ ConnectCause::Status { status: 400 | 404 | 405, .. }) => cause,
            met => return met,
        };
        self.tracer.mark_detour();
        self.tracer.record_unredacted("fall back", StepOutcome::Detour, "trying HTTP+SSE");
        match self.start_and_negotiate(&remote.with_transport(HttpTransportKind::Sse)).await {
            // The request was not sent.
            Err(ConnectCause::Gone(gone)) if gone.not_authorized().is_some() => Err(ConnectCause::Gone(gone)),
            // The error of the newer transport is more useful for a server that speaks neither.
            Err(ConnectCause::Status { .. } | ConnectCause::Gone(_)) => Err(refused),
            met => met,
        }
    }
}

fn detected_transport(started: &OpenedServer, introduction: &NegotiatedServer) -> DetectedTransport {
    match (started.server.transport, introduction.revision.era()) {
        (Transport::HttpSse, _) => DetectedTransport::Sse,
        (_, Era::Handshake) => DetectedTransport::Handshake,
        (_, Era::Stateless) => DetectedTransport::Stateless,
    }
}
