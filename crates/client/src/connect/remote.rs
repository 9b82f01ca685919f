//! Connecting over HTTP: which of the protocol's forms a server speaks there, where nobody says.

use wharf_spec::{HttpForm, HttpSpec, Redactor};
use wharf_wire::Era;

use super::verdicts::Verdict;
use super::{Attempt, Introduction, Started};
use crate::connection::Connection;
use crate::error::{ConnectCause, ConnectError};
use crate::options::{ConnectOptions, Negotiation};
use crate::trace::StepOutcome;
use crate::transport::http::{Form, Remote};
use crate::transport::{Transport, check_launch};

/// Dials a server and agrees with it on a form and a revision.
///
/// A server whose form is not given is tried as Streamable HTTP, stateless first, and then as HTTP+SSE. Dropped while it
/// waits, it ends whatever it has begun.
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

/// Checks the approval, then reads the certificates and prepares the way to the server.
async fn open(spec: &HttpSpec, attempt: &Attempt) -> Result<Remote, ConnectCause> {
    check_launch(spec.launch_check.as_ref(), None).await?;
    Remote::new(spec, Form::Streamable, &attempt.options, &attempt.redactor).await
}

type Met = Result<(Started, Introduction), ConnectCause>;

impl Attempt {
    /// Begins with what the server spoke the last time, and with everything when it does not any more.
    async fn find_form(&mut self, spec: &HttpSpec, remote: &Remote) -> Met {
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
                // Perhaps somebody in between would like its questions and sessions back.
                tracing::warn!(server = self.options.name, "the server speaks an older form than it did the last time");
            }
            verdicts.note(&spec.url, verdict);
        }
        met
    }

    async fn recall(&mut self, verdict: Verdict, remote: &Remote) -> Met {
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
            // An outage is none of the form's.
            met => met,
        }
    }

    async fn as_before(&mut self, verdict: Verdict, remote: &Remote) -> Met {
        let negotiation = self.options.negotiation;
        if verdict == Verdict::Handshake {
            self.options.negotiation = Negotiation::Handshake;
        }
        let form = if verdict == Verdict::Sse { Form::Sse } else { Form::Streamable };
        let met = self.introduce(&remote.in_form(form)).await;
        self.options.negotiation = negotiation;
        met
    }

    async fn try_forms(&mut self, remote: &Remote) -> Met {
        let refused = match self.introduce(remote).await {
            Err(cause @ ConnectCause::Status { status: 400 | 404 | 405, .. }) => cause,
            met => return met,
        };
        self.tracer.excuse();
        self.tracer.say("fall back", StepOutcome::Detour, "trying HTTP+SSE");
        match self.introduce(&remote.in_form(Form::Sse)).await {
            // Not even asked.
            Err(ConnectCause::Gone(gone)) if gone.not_authorized().is_some() => Err(ConnectCause::Gone(gone)),
            // What the newer form said is the better account of a server that speaks neither.
            Err(ConnectCause::Status { .. } | ConnectCause::Gone(_)) => Err(refused),
            met => met,
        }
    }
}

fn verdict_of(started: &Started, introduction: &Introduction) -> Verdict {
    match (started.open.transport, introduction.revision.era()) {
        (Transport::HttpSse, _) => Verdict::Sse,
        (_, Era::Handshake) => Verdict::Handshake,
        (_, Era::Stateless) => Verdict::Stateless,
    }
}
