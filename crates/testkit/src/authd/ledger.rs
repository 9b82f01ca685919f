//! Everything that arrived, in order, and waiting for what has not arrived yet.

use std::future::{Future, poll_fn};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use serde::Serialize;
use serde_json::Value;

use super::http::{self, field};
use crate::request::{Fields, Request};

/// Which of the listeners.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Site {
    /// The protected server, and everything else where both are at one origin.
    Server,
    /// The authorization server.
    Issuer,
    /// The authorization server that the first one's users are moved to; also where documents are redirected to.
    Second,
}

/// A request that arrived.
#[derive(Clone, Debug, Serialize)]
pub struct Seen {
    /// Where.
    pub site: Site,
    /// `GET`, `POST` and so on.
    pub method: String,
    /// The path, as it came.
    pub path: String,
    /// The fields of the query.
    pub query: Fields,
    /// The fields of the body, where it is a form.
    pub form: Fields,
    /// The headers, names in lower case.
    pub headers: Fields,
    /// The body, where it is JSON.
    pub json: Value,
}

impl Seen {
    pub(super) fn new(site: Site, request: &Request) -> Seen {
        Seen {
            site,
            method: request.method.clone(),
            path: request.path().to_owned(),
            query: http::query(request),
            form: http::form(request),
            headers: request.headers.clone(),
            json: request.json(),
        }
    }

    /// The value of a field of the form or the query.
    pub fn field(&self, name: &str) -> Option<&str> {
        field(&self.form, name).or_else(|| field(&self.query, name))
    }

    /// The value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        field(&self.headers, name)
    }

    /// Whether it asks for tokens by this grant: `refresh_token`, `authorization_code`, or one with a long name.
    pub fn is_grant(&self, grant: &str) -> bool {
        field(&self.form, "grant_type") == Some(grant)
    }

    /// Whether it is this request of the Model Context Protocol.
    pub fn is_request(&self, method: &str) -> bool {
        self.json["method"] == method
    }
}

#[derive(Default)]
pub(super) struct Ledger {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    seen: Vec<Seen>,
    waiting: Vec<Waker>,
}

impl Ledger {
    pub fn record(&self, seen: Seen) {
        let mut inner = locked(&self.inner);
        inner.seen.push(seen);
        inner.waiting.drain(..).for_each(Waker::wake);
    }

    pub fn seen(&self) -> Vec<Seen> {
        locked(&self.inner).seen.clone()
    }

    /// The request of this kind that makes so many of them, once it has arrived. Runs on any runtime, or none.
    pub fn nth(&self, count: usize, wanted: impl Fn(&Seen) -> bool) -> impl Future<Output = Seen> {
        poll_fn(move |context| {
            let mut inner = locked(&self.inner);
            if let Some(seen) = inner.seen.iter().filter(|seen| wanted(seen)).nth(count.saturating_sub(1)) {
                return Poll::Ready(seen.clone());
            }
            inner.waiting.push(context.waker().clone());
            Poll::Pending
        })
    }
}

/// A panic elsewhere fails its own test; what was recorded before is still true.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
