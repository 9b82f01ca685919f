//! The future of one call.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::table::Outcome;
use super::{Engine, WhenDropped};

/// Resolves to the call's one outcome. Dropped before, it withdraws the call: the server is told, and an answer
/// that comes all the same finds nobody.
pub(crate) struct Call {
    engine: Arc<Engine>,
    id: u64,
    ended: bool,
}

impl Call {
    pub(super) fn new(engine: Arc<Engine>, id: u64) -> Self {
        Self { engine, id, ended: false }
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// Lets the call go on with nobody waiting for it.
    pub fn detach(mut self) {
        self.ended = true;
        self.engine.table().detach(self.id);
    }

    /// Removes the call without a word to the server, which never heard of it.
    pub(super) fn forget(mut self) {
        self.ended = true;
        self.engine.table().remove(self.id);
    }
}

impl Future for Call {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        let outcome = self.engine.table().poll(self.id, context.waker());
        self.ended |= outcome.is_ready();
        outcome
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let told = self.engine.table().remove(self.id);
        match told {
            Some(WhenDropped::Withdraw) => self.engine.withdraw(self.id, "no longer needed"),
            Some(WhenDropped::Forget) => drop(self.engine.link.abandon(self.id)),
            None => {}
        }
    }
}
