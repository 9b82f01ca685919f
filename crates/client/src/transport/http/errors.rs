//! Construction of the errors for failures over HTTP.

use std::time::Duration;

use wharf_net::{AuthRecovery, HttpResponse, NotAuthorized, SendError, StatusCode};

use crate::error::{ConnectCause, DisconnectCause, DisconnectReport};

/// Creates the error for a request without a response.
pub(super) fn from_send_error(error: &SendError) -> DisconnectReport {
    if let SendError::NotAuthorized(why) = error {
        return not_authorized(why.clone());
    }
    let what = error.to_string();
    DisconnectReport::from_cause(if error.is_certainly_unsent() {
        DisconnectCause::Unreachable { what, passing: error.is_transient() }
    } else {
        DisconnectCause::Cut(what)
    })
}

/// Creates the error for a response or stream that was interrupted.
pub(super) fn stream_interrupted(what: &str) -> DisconnectReport {
    DisconnectReport::from_cause(DisconnectCause::Cut(what.to_owned()))
}

/// Creates the error for a status that leaves the outcome of the call unknown.
pub(super) fn unclear_status(status: StatusCode, excerpt: &str) -> DisconnectReport {
    let hint = (!excerpt.is_empty()).then(|| format!("response body: {excerpt}"));
    DisconnectReport { hint, ..DisconnectReport::from_cause(DisconnectCause::Status(status.as_u16())) }
}

/// Creates the error for rejected or unavailable credentials.
pub(super) fn not_authorized(why: NotAuthorized) -> DisconnectReport {
    DisconnectReport::from_cause(DisconnectCause::NotAuthorized(why))
}

/// Creates the error for a server that newly requires a login.
pub(super) fn login_required(cause: &ConnectCause) -> DisconnectReport {
    let known = cause.not_authorized().cloned();
    not_authorized(known.unwrap_or_else(|| NotAuthorized { remedy: AuthRecovery::Login, reason: cause.to_string() }))
}

/// Creates the error for an error response to `initialize`.
pub(super) fn initialize_rejected(response: &HttpResponse) -> DisconnectReport {
    match (&response.not_authorized, response.status) {
        (Some(why), _) => not_authorized(why.clone()),
        (None, StatusCode::UNAUTHORIZED) => {
            let reason = "HTTP 401 for credentials that were accepted before".to_owned();
            not_authorized(NotAuthorized { remedy: AuthRecovery::Login, reason })
        }
        (None, other) => unclear_status(other, ""),
    }
}

/// Creates the error for an expired session.
pub(super) fn session_expired() -> DisconnectReport {
    DisconnectReport::from_cause(DisconnectCause::SessionExpired)
}

/// Creates the error for a server that no longer speaks the negotiated revision.
pub(super) fn revision_changed() -> DisconnectReport {
    DisconnectReport::from_cause(DisconnectCause::Changed)
}

/// Creates the error for a response that did not arrive in time.
pub(super) fn response_timeout(after: Duration) -> DisconnectReport {
    stream_interrupted(&format!("no response within {} ms", after.as_millis()))
}
