//! A record of all requests in order, and waiting for future ones.

use std::collections::BTreeSet;
use std::future::{Future, poll_fn};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use serde_json::Value;

use super::format::ModelApiFormat;
use super::new_content::{NewContent, ScriptedToolResult};
use crate::request::Fields;

/// A received request.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The API it was sent to.
    pub format: ModelApiFormat,
    /// Headers, names in lower case; includes the API key.
    pub headers: Fields,
    /// Body; null if it is not JSON.
    pub body: Value,
    /// The reason the request was rejected, as by the real API.
    pub refusal: Option<String>,
}

impl Recorded {
    /// Returns a header by its lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns the names of the offered tools, in order.
    pub fn tool_names(&self) -> Vec<&str> {
        let tools = self.body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
        tools.iter().filter_map(|tool| tool["name"].as_str().or_else(|| tool["function"]["name"].as_str())).collect()
    }

    /// Returns the results of the calls in the model's last response, in order; earlier results are ignored.
    pub fn results(&self) -> Vec<ScriptedToolResult> {
        NewContent::from_request(self.format, &self.body).results
    }
}

#[derive(Default)]
pub(super) struct Ledger {
    inner: Mutex<ModelRequestLogState>,
    /// Wakes threads that wait.
    news: Condvar,
}

#[derive(Default)]
struct ModelRequestLogState {
    requests: Vec<Recorded>,
    left: BTreeSet<usize>,
    waiting: Vec<Waker>,
}

impl Ledger {
    /// Records a request and returns its number, starting at 1.
    pub fn record(&self, request: Recorded) -> usize {
        let mut inner = lock_ignoring_poison(&self.inner);
        inner.requests.push(request);
        self.notify(&mut inner);
        inner.requests.len()
    }

    /// Records that the client disconnected before its request was answered.
    pub fn record_left(&self, number: usize) {
        let mut inner = lock_ignoring_poison(&self.inner);
        inner.left.insert(number);
        self.notify(&mut inner);
    }

    pub fn requests(&self) -> Vec<Recorded> {
        lock_ignoring_poison(&self.inner).requests.clone()
    }

    pub fn wait_for_request(&self, number: usize) -> impl Future<Output = Recorded> {
        self.wait_for(move |inner| inner.request(number))
    }

    pub fn wait_for_disconnect(&self, number: usize) -> impl Future<Output = ()> {
        self.wait_for(move |inner| inner.disconnect(number))
    }

    #[track_caller]
    pub fn expect_request(&self, patience: Duration, number: usize) -> Recorded {
        self.expect_within(patience, &format!("request {number} did not come"), |inner| inner.request(number))
    }

    #[track_caller]
    pub fn expect_disconnect(&self, patience: Duration, number: usize) {
        self.expect_within(patience, &format!("the client of request {number} did not leave"), |inner| {
            inner.disconnect(number)
        });
    }

    fn notify(&self, inner: &mut ModelRequestLogState) {
        inner.waiting.drain(..).for_each(Waker::wake);
        self.news.notify_all();
    }

    /// Waits until `find` returns a value.
    fn wait_for<T>(&self, find: impl Fn(&ModelRequestLogState) -> Option<T>) -> impl Future<Output = T> {
        poll_fn(move |context| {
            let mut inner = lock_ignoring_poison(&self.inner);
            if let Some(found) = find(&inner) {
                return Poll::Ready(found);
            }
            inner.waiting.push(context.waker().clone());
            Poll::Pending
        })
    }

    /// Waits on this thread; panics after the timeout.
    #[track_caller]
    fn expect_within<T>(
        &self,
        patience: Duration,
        otherwise: &str,
        find: impl Fn(&ModelRequestLogState) -> Option<T>,
    ) -> T {
        let inner = lock_ignoring_poison(&self.inner);
        let waited = self.news.wait_timeout_while(inner, patience, |inner| find(inner).is_none());
        let (inner, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match find(&inner) {
            Some(found) => found,
            None => panic!("{otherwise}; what came: {:?}", inner.requests),
        }
    }
}

impl ModelRequestLogState {
    fn request(&self, number: usize) -> Option<Recorded> {
        self.requests.get(number.saturating_sub(1)).cloned()
    }

    fn disconnect(&self, number: usize) -> Option<()> {
        self.left.contains(&number).then_some(())
    }
}

/// Locks a mutex and ignores poisoning: a panic in another thread fails its own test, and the recorded data is still
/// valid.
pub(super) fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
