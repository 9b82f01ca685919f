//! Everything that arrived, in order, and waiting for what has not arrived yet.

use std::collections::BTreeSet;
use std::future::{Future, poll_fn};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use serde::Serialize;
use serde_json::Value;

use super::format::Format;
use crate::request::Fields;

/// A request that arrived.
#[derive(Clone, Debug, Serialize)]
pub struct Recorded {
    /// The API it was for.
    pub format: Format,
    /// The headers, names in lower case; the key is among them.
    pub headers: Fields,
    /// The body, or null where it is not JSON.
    pub body: Value,
    /// Why the real API would have refused it, and this one did.
    pub refusal: Option<String>,
}

impl Recorded {
    /// The value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The names of the tools that were offered, in order.
    pub fn tool_names(&self) -> Vec<&str> {
        let tools = self.body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
        tools.iter().filter_map(|tool| tool["name"].as_str().or_else(|| tool["function"]["name"].as_str())).collect()
    }
}

#[derive(Default)]
pub(super) struct Ledger {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    requests: Vec<Recorded>,
    left: BTreeSet<usize>,
    waiting: Vec<Waker>,
}

impl Ledger {
    /// Keeps a request, and numbers it from 1.
    pub fn record(&self, request: Recorded) -> usize {
        let mut inner = locked(&self.inner);
        inner.requests.push(request);
        inner.waiting.drain(..).for_each(Waker::wake);
        inner.requests.len()
    }

    /// Keeps that the client of a request went before it was answered.
    pub fn record_left(&self, number: usize) {
        let mut inner = locked(&self.inner);
        inner.left.insert(number);
        inner.waiting.drain(..).for_each(Waker::wake);
    }

    pub fn requests(&self) -> Vec<Recorded> {
        locked(&self.inner).requests.clone()
    }

    pub fn arrived(&self, number: usize) -> impl Future<Output = Recorded> {
        self.once(move |inner| inner.requests.get(number.saturating_sub(1)).cloned())
    }

    pub fn left(&self, number: usize) -> impl Future<Output = ()> {
        self.once(move |inner| inner.left.contains(&number).then_some(()))
    }

    /// Waits until there is something to be found.
    fn once<T>(&self, find: impl Fn(&Inner) -> Option<T>) -> impl Future<Output = T> {
        poll_fn(move |context| {
            let mut inner = locked(&self.inner);
            if let Some(found) = find(&inner) {
                return Poll::Ready(found);
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
