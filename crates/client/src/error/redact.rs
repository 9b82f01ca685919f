//! Removal of a server's secrets from errors about it.
//!
//! Applied once, where an error is created, so that the code that displays it does not have to. The data of an error
//! that requires a page are left unchanged: the address is opened, and without a secret it would be another one.

use std::sync::Arc;

use wharf_net::{AuthRecovery, NotAuthorized};
use wharf_spec::Redactor;
use wharf_wire::{RawJson, RpcError, code};

use super::{CallError, ConnectCause, DisconnectCause, DisconnectReport};

impl CallError {
    /// Redacts secrets in the error's texts.
    pub(crate) fn without_secrets(mut self, redactor: &Redactor) -> Self {
        if redactor.is_empty() {
            return self;
        }
        match &mut self {
            Self::ErrorResponse(error) => redact_rpc_error(error, redactor),
            Self::Protocol(text) | Self::Invalid(text) | Self::Task(text) | Self::Listing { problem: text, .. } => {
                redact_text(text, redactor);
            }
            Self::TimedOut { hint: Some(text), .. } | Self::Status { detail: text, .. } => redact_text(text, redactor),
            Self::Unauthorized { challenge, said, why, .. } => {
                challenge.iter_mut().chain([said]).for_each(|text| redact_text(text, redactor));
                why.iter_mut().for_each(|why| redact_auth_error(why, redactor));
            }
            Self::RetryableDisconnect(gone) | Self::OutcomeUnknown(gone) => redact_report(gone, redactor),
            _ => {}
        }
        self
    }
}

impl ConnectCause {
    /// Redacts secrets in the error's texts.
    pub(crate) fn without_secrets(mut self, redactor: &Redactor) -> Self {
        if redactor.is_empty() {
            return self;
        }
        match &mut self {
            Self::BadAddress(text) | Self::BadHeader(text) | Self::Protocol(text) => redact_text(text, redactor),
            Self::Unauthorized { challenge, why, .. } => {
                challenge.iter_mut().for_each(|text| redact_text(text, redactor));
                why.iter_mut().for_each(|why| redact_auth_error(why, redactor));
            }
            Self::Status { detail: text, .. } | Self::TimedOut { hint: Some(text), .. } => redact_text(text, redactor),
            Self::BadEndpoint { endpoint, stream } => {
                [endpoint, stream].into_iter().for_each(|text| redact_text(text, redactor));
            }
            Self::Gone(gone) => redact_report(gone, redactor),
            Self::ErrorResponse(error) => redact_rpc_error(error, redactor),
            Self::NoCommonRevision(texts) => texts.iter_mut().for_each(|text| redact_text(text, redactor)),
            _ => {}
        }
        self
    }
}

impl DisconnectReport {
    /// Redacts secrets in the texts.
    pub(crate) fn without_secrets(mut self, redactor: &Redactor) -> Self {
        match &mut self.cause {
            DisconnectCause::Unreachable { what, .. } | DisconnectCause::Cut(what) => redact_text(what, redactor),
            DisconnectCause::NotAuthorized(why) => redact_auth_error(why, redactor),
            _ => {}
        }
        self.hint.iter_mut().chain(&mut self.stderr).for_each(|text| redact_text(text, redactor));
        self
    }
}

fn redact_report(gone: &mut Arc<DisconnectReport>, redactor: &Redactor) {
    *gone = Arc::new(DisconnectReport::clone(gone).without_secrets(redactor));
}

fn redact_auth_error(why: &mut NotAuthorized, redactor: &Redactor) {
    redact_text(&mut why.reason, redactor);
    if let AuthRecovery::Scope(scope) = &mut why.remedy {
        redact_text(scope, redactor);
    }
}

fn redact_rpc_error(error: &mut RpcError, redactor: &Redactor) {
    redact_text(&mut error.message, redactor);
    let Some(data) = error.data.as_ref().filter(|_| error.code != code::URL_ELICITATION_REQUIRED) else { return };
    if let std::borrow::Cow::Owned(masked) = redactor.redact(data.as_str()) {
        // A secret that is a number leaves invalid JSON behind, which becomes a string.
        error.data = RawJson::parse(masked.clone()).or_else(|_| RawJson::from_value(&masked)).ok();
    }
}

fn redact_text(text: &mut String, redactor: &Redactor) {
    if let std::borrow::Cow::Owned(masked) = redactor.redact_truncated(text) {
        *text = masked;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::TimeoutKind;
    use std::time::Duration;

    const SECRET: &str = "hushhush";

    fn redactor() -> Redactor {
        let mut redactor = Redactor::default();
        redactor.add(SECRET);
        redactor
    }

    fn text() -> String {
        format!("<{SECRET}>")
    }

    fn refusal() -> RpcError {
        RpcError { code: -1, message: text(), data: RawJson::parse(format!(r#"{{"a":"{SECRET}"}}"#)).ok() }
    }

    fn why() -> NotAuthorized {
        NotAuthorized { remedy: AuthRecovery::Scope(text()), reason: text() }
    }

    fn gone(cause: DisconnectCause) -> Arc<DisconnectReport> {
        Arc::new(DisconnectReport { hint: Some(text()), stderr: vec![text()], ..DisconnectReport::from_cause(cause) })
    }

    #[test]
    fn call_errors_are_redacted() {
        let after = Duration::ZERO;
        for error in [
            CallError::ErrorResponse(refusal()),
            CallError::Protocol(text()),
            CallError::Invalid(text()),
            CallError::Task(text()),
            CallError::Listing { what: "tools", problem: text() },
            CallError::TimedOut { after, limit: TimeoutKind::Idle, hint: Some(text()) },
            CallError::Status { status: 400, detail: text(), retry_after: None },
            CallError::Unauthorized { status: 401, challenge: Some(text()), said: text(), why: Some(Box::new(why())) },
            CallError::RetryableDisconnect(gone(DisconnectCause::Cut(text()))),
            CallError::RetryableDisconnect(gone(DisconnectCause::NotAuthorized(why()))),
            CallError::OutcomeUnknown(gone(DisconnectCause::Unreachable { what: text(), passing: true })),
        ] {
            let masked = error.without_secrets(&redactor());
            let shown = format!("{masked} {masked:?}");
            assert!(shown.contains("<***>") && !shown.contains(SECRET), "{shown}");
        }
    }

    #[test]
    fn connect_errors_are_redacted() {
        for cause in [
            ConnectCause::BadAddress(text()),
            ConnectCause::BadHeader(text()),
            ConnectCause::Protocol(text()),
            ConnectCause::Unauthorized { status: 401, challenge: Some(text()), why: Some(Box::new(why())) },
            ConnectCause::Status { status: 400, detail: text() },
            ConnectCause::TimedOut { after: Duration::ZERO, hint: Some(text()) },
            ConnectCause::BadEndpoint { endpoint: text(), stream: text() },
            ConnectCause::Gone(gone(DisconnectCause::Exited)),
            ConnectCause::ErrorResponse(refusal()),
            ConnectCause::NoCommonRevision(vec![text()]),
        ] {
            let masked = cause.without_secrets(&redactor());
            let shown = format!("{masked} {masked:?}");
            assert!(shown.contains("<***>") && !shown.contains(SECRET), "{shown}");
        }
    }
}
