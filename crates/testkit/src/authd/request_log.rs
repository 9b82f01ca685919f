//! A record of all requests in order, and waiting for future ones.

use std::future::{Future, poll_fn};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use serde_json::Value;

use super::http::{self, field};
use crate::request::{Fields, Request};

/// One of the listeners.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ListenerSite {
    /// The protected server, and the issuer too if both share one origin.
    Server,
    /// The authorization server.
    Issuer,
    /// The second authorization server, for issuer moves; also the target of document redirects.
    Second,
}

/// A received request.
#[derive(Clone, Debug)]
pub struct RecordedRequest {
    /// The listener that received it.
    pub site: ListenerSite,
    /// `GET`, `POST` and so on.
    pub method: String,
    /// Path as received.
    pub path: String,
    /// Fields of the query.
    pub query: Fields,
    /// Fields of a form body.
    pub form: Fields,
    /// Headers, names in lower case.
    pub headers: Fields,
    /// Body, if it is JSON.
    pub json: Value,
}

impl RecordedRequest {
    pub(super) fn new(site: ListenerSite, request: &Request) -> RecordedRequest {
        RecordedRequest {
            site,
            method: request.method.clone(),
            path: request.path().to_owned(),
            query: http::query(request),
            form: http::form(request),
            headers: request.headers.clone(),
            json: request.json(),
        }
    }

    /// Returns a field of the form or the query.
    pub fn field(&self, name: &str) -> Option<&str> {
        field(&self.form, name).or_else(|| field(&self.query, name))
    }

    /// Returns a header by its lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        field(&self.headers, name)
    }

    /// Reports whether it is a token request with this grant: `refresh_token`, `authorization_code`, or a grant URN.
    pub fn is_grant(&self, grant: &str) -> bool {
        field(&self.form, "grant_type") == Some(grant)
    }

    /// Reports whether it is this MCP request.
    pub fn is_request(&self, method: &str) -> bool {
        self.json["method"] == method
    }
}

#[derive(Default)]
pub(super) struct AuthRequestLog {
    inner: Mutex<AuthRequestLogState>,
}

#[derive(Default)]
struct AuthRequestLogState {
    seen: Vec<RecordedRequest>,
    waiting: Vec<Waker>,
}

impl AuthRequestLog {
    pub fn record(&self, seen: RecordedRequest) {
        let mut inner = lock_ignoring_poison(&self.inner);
        inner.seen.push(seen);
        inner.waiting.drain(..).for_each(Waker::wake);
    }

    pub fn seen(&self) -> Vec<RecordedRequest> {
        lock_ignoring_poison(&self.inner).seen.clone()
    }

    /// Waits for the `count`-th matching request and returns it. Works on any runtime, or none.
    pub fn wait_for_nth(
        &self,
        count: usize,
        wanted: impl Fn(&RecordedRequest) -> bool,
    ) -> impl Future<Output = RecordedRequest> {
        poll_fn(move |context| {
            let mut inner = lock_ignoring_poison(&self.inner);
            if let Some(seen) = inner.seen.iter().filter(|seen| wanted(seen)).nth(count.saturating_sub(1)) {
                return Poll::Ready(seen.clone());
            }
            inner.waiting.push(context.waker().clone());
            Poll::Pending
        })
    }
}

/// Locks a mutex and ignores poisoning: a panic in another thread fails its own test, and the recorded data is still
/// valid.
pub(super) fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
