//! What went wrong over HTTP, as the account a call or a connection ends with.

use std::time::Duration;

use wharf_net::{SendError, StatusCode};

use crate::error::{Gone, GoneCause};

/// A request that got no answer at all.
pub(super) fn unsent(error: &SendError) -> Gone {
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
