//! The future of one call.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::table::CallOutcome;
use super::{CancelPolicy, Engine};

/// Future of the call's outcome. Dropping it before it resolves removes the call, so that a late response is ignored.
/// With [`CancelPolicy::Withdraw`] it also cancels the call on the server.
pub(crate) struct PendingCall {
    engine: Arc<Engine>,
    id: u64,
    /// Dropping the future has nothing to do: the call has its outcome or goes on without a waiter.
    is_disarmed: bool,
}

impl PendingCall {
    pub(super) fn new(engine: Arc<Engine>, id: u64) -> Self {
        Self { engine, id, is_disarmed: false }
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// Lets the call continue without a waiter.
    pub fn detach(mut self) {
        self.is_disarmed = true;
        self.engine.table().detach(self.id);
    }

    /// Removes the call without notifying the server, which never received it.
    pub(super) fn forget(mut self) {
        self.is_disarmed = true;
        self.engine.table().remove(self.id);
    }
}

impl Future for PendingCall {
    type Output = CallOutcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<CallOutcome> {
        let outcome = self.engine.table().poll(self.id, context.waker());
        self.is_disarmed |= outcome.is_ready();
        outcome
    }
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        if self.is_disarmed {
            return;
        }
        match self.engine.table().remove(self.id) {
            Some(CancelPolicy::Withdraw) => self.engine.cancel_call(self.id, "no longer needed"),
            Some(CancelPolicy::Forget) => drop(self.engine.link.abandon(self.id)),
            None => {}
        }
    }
}
