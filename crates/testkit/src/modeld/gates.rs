//! Named gates. All are closed at first; an opened gate stays open.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use super::request_log::lock_ignoring_poison;

/// Interval at which a waiting response checks that the client is still connected.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

#[derive(Default)]
pub(super) struct NamedGates {
    opened: Mutex<OpenGates>,
    turned: Condvar,
}

#[derive(Default)]
struct OpenGates {
    names: BTreeSet<String>,
    all: bool,
}

impl NamedGates {
    pub fn open(&self, name: &str) {
        lock_ignoring_poison(&self.opened).names.insert(name.to_owned());
        self.turned.notify_all();
    }

    pub fn open_all(&self) {
        lock_ignoring_poison(&self.opened).all = true;
        self.turned.notify_all();
    }

    /// Waits until a gate is open, or until `is_over` returns true. Returns whether the gate is open.
    pub fn pass(&self, name: &str, is_over: impl Fn() -> bool) -> bool {
        let is_open = |opened: &OpenGates| opened.all || opened.names.contains(name);
        let mut opened = lock_ignoring_poison(&self.opened);
        while !is_open(&opened) && !is_over() {
            opened = self.wait(opened);
        }
        is_open(&opened)
    }

    fn wait<'a>(&'a self, opened: MutexGuard<'a, OpenGates>) -> MutexGuard<'a, OpenGates> {
        match self.turned.wait_timeout(opened, POLL_INTERVAL) {
            Ok((opened, _)) => opened,
            Err(poisoned) => poisoned.into_inner().0,
        }
    }
}
