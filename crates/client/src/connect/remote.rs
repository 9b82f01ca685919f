//! Connecting over HTTP, including detection of the transport if it is not configured.

use wharf_spec::{HttpForm, HttpSpec, Redactor};
use wharf_wire::Era;

use super::verdicts::Verdict;
use super::{Attempt, NegotiatedServer, Started};
use crate::connection::Connection;
use crate::error::{ConnectCause, ConnectError};
use crate::options::{ConnectOptions, Negotiation};
use crate::trace::StepOutcome;
use crate::transport::http::{Form, Remote};
use crate::transport::{Transport, check_launch};

/// Connects to an HTTP server and negotiates a transport and a revision.
///
/// If no transport is configured, Streamable HTTP is tried first, starting with the stateless era, then HTTP+SSE.
///
/// # Cancel safety
///
/// Dropping the future ends the connections it has opened.
pub async fn connect_http(spec: &HttpSpec, options: ConnectOptions) -> Result<Connection, ConnectError> {
    let mut attempt = Attempt::new(options, Redactor::for_address(spec));
    let remote = match open(spec, &attempt).await {
        Ok(remote) => remote,
        Err(cause) => {
            let cause = attempt.failed("open", cause);
            return attempt.give_up(cause);
        }
    };
    let met = match spec.form {
        HttpForm::Streamable => attempt.introduce(&remote).await,
        HttpForm::Sse => attempt.introduce(&remote.in_form(Form::Sse)).await,
        HttpForm::Automatic => attempt.find_form(spec, &remote).await,
    };
    match met {
        Ok((started, introduction)) => Ok(attempt.settle(started, introduction)),
        Err(cause) => attempt.give_up(cause),
    }
}

/// Checks the approval, then loads the certificates and sets up the HTTP client.
async fn open(spec: &HttpSpec, attempt: &Attempt) -> Result<Remote, ConnectCause> {
    check_launch(spec.launch_check.as_ref(), None).await?;
    Remote::new(spec, Form::Streamable, &attempt.options, &attempt.redactor).await
}

type NegotiationResult = Result<(Started, NegotiatedServer), ConnectCause>;

impl Attempt {
    /// Tries the cached transport first, and detects it again if it no longer works.
    async fn find_form(&mut self, spec: &HttpSpec, remote: &Remote) -> NegotiationResult {
        let verdicts = self.options.verdicts.clone();
        let kept = self.options.limits.verdict;
        let known = verdicts.as_ref().and_then(|verdicts| verdicts.find(&spec.url, kept));
        let met = match known {
            Some(verdict) => self.recall(verdict, remote).await,
            None => self.try_forms(remote).await,
        };
        if let (Ok((started, introduction)), Some(verdicts)) = (&met, verdicts) {
            let verdict = verdict_of(started, introduction);
            if known == Some(Verdict::Stateless) && verdict != Verdict::Stateless {
                // Possibly a downgrade by an intermediary.
                tracing::warn!(server = self.options.name, "the server speaks an older form than it did the last time");
            }
            verdicts.note(&spec.url, verdict);
        }
        met
    }

    async fn recall(&mut self, verdict: Verdict, remote: &Remote) -> NegotiationResult {
        self.tracer.say("recall", StepOutcome::Fine, verdict);
        match self.as_before(verdict, remote).await {
            Err(
                ConnectCause::Status { .. }
                | ConnectCause::Refused(_)
                | ConnectCause::Protocol(_)
                | ConnectCause::NoCommonRevision(_),
            ) => {
                self.tracer.excuse();
                self.tracer.say("recall", StepOutcome::Detour, "no longer so: finding out anew");
                self.try_forms(remote).await
            }
            // An outage is no evidence about the transport.
            met => met,
        }
    }

    async fn as_before(&mut self, verdict: Verdict, remote: &Remote) -> NegotiationResult {
        let negotiation = self.options.negotiation;
        if verdict == Verdict::Handshake {
            self.options.negotiation = Negotiation::Handshake;
        }
        let form = if verdict == Verdict::Sse { Form::Sse } else { Form::Streamable };
        let met = self.introduce(&remote.in_form(form)).await;
        self.options.negotiation = negotiation;
        met
    }

    async fn try_forms(&mut self, remote: &Remote) -> NegotiationResult {
        let refused = match self.introduce(remote).await {
            Err(cause @ ConnectCause::Status { status: 400 | 404 | 405, .. }) => cause,
            met => return met,
        };
        self.tracer.excuse();
        self.tracer.say("fall back", StepOutcome::Detour, "trying HTTP+SSE");
        match self.introduce(&remote.in_form(Form::Sse)).await {
            // The request was not sent.
            Err(ConnectCause::Gone(gone)) if gone.not_authorized().is_some() => Err(ConnectCause::Gone(gone)),
            // The error of the newer transport is more useful for a server that speaks neither.
            Err(ConnectCause::Status { .. } | ConnectCause::Gone(_)) => Err(refused),
            met => met,
        }
    }
}

fn verdict_of(started: &Started, introduction: &NegotiatedServer) -> Verdict {
    match (started.open.transport, introduction.revision.era()) {
        (Transport::HttpSse, _) => Verdict::Sse,
        (_, Era::Handshake) => Verdict::Handshake,
        (_, Era::Stateless) => Verdict::Stateless,
    }
}
