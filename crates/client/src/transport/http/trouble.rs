//! What went wrong over HTTP, as the account a call or a connection ends with.

use std::time::Duration;

use wharf_net::{NotAuthorized, Remedy, Response, SendError, StatusCode};

use crate::error::{ConnectCause, Gone, GoneCause};

/// A request that got no answer at all.
pub(super) fn unsent(error: &SendError) -> Gone {
    if let SendError::NotAuthorized(why) = error {
        return not_authorized(why.clone());
    }
    let what = error.to_string();
    Gone::because(if error.never_left() {
        GoneCause::Unreachable { what, passing: error.may_pass() }
    } else {
        GoneCause::Cut(what)
    })
}

/// An answer that broke off, or never came on the stream that was to bring it.
pub(super) fn cut(what: &str) -> Gone {
    Gone::because(GoneCause::Cut(what.to_owned()))
}

/// A status that says nothing about what became of the request.
pub(super) fn status(status: StatusCode, excerpt: &str) -> Gone {
    let hint = (!excerpt.is_empty()).then(|| format!("it said: {excerpt}"));
    Gone { hint, ..Gone::because(GoneCause::Status(status.as_u16())) }
}

/// Nobody knows us there, or nobody can tell at present who we are.
pub(super) fn not_authorized(why: NotAuthorized) -> Gone {
    Gone::because(GoneCause::NotAuthorized(why))
}

/// The server wants a login and had none to complain of before.
pub(super) fn logged_out(cause: &ConnectCause) -> Gone {
    let known = cause.not_authorized().cloned();
    not_authorized(known.unwrap_or_else(|| NotAuthorized { remedy: Remedy::Login, reason: cause.to_string() }))
}

/// An answer that is an error, to something that every session begins with.
pub(super) fn turned_away(response: &Response) -> Gone {
    match (&response.not_authorized, response.status) {
        (Some(why), _) => not_authorized(why.clone()),
        (None, StatusCode::UNAUTHORIZED) => {
            let reason = "it answered HTTP 401 to what it took before".to_owned();
            not_authorized(NotAuthorized { remedy: Remedy::Login, reason })
        }
        (None, other) => status(other, ""),
    }
}

/// The server has forgotten the session.
pub(super) fn expired() -> Gone {
    Gone::because(GoneCause::SessionExpired)
}

/// The server is not what it was when it was met.
pub(super) fn changed() -> Gone {
    Gone::because(GoneCause::Changed)
}

/// Nothing came in time.
pub(super) fn unanswered(after: Duration) -> Gone {
    cut(&format!("no answer within {} ms", after.as_millis()))
}
