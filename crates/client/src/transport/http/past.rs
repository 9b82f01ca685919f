//! What the streams of one call have said so far, so that one that is taken up again is not heard twice.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use super::answer::Events;

/// Names of events kept, which a stream that is taken up again may repeat.
const NAMES_KEPT: usize = 256;
/// Longer names of events are none: they could not be sent back.
pub(super) const LONGEST_NAME: usize = 1 << 10;

/// What a call's streams have said so far.
#[derive(Default)]
pub(super) struct Past {
    /// Where the last one was cut.
    pub last: Option<String>,
    /// How long the server wants to be left alone before it is taken up again.
    pub retry: Option<Duration>,
    /// What came before the last cut. Within one stream nothing is compared: servers on the Java SDK give all its events
    /// the same name.
    before: HashSet<u64>,
    since: Vec<u64>,
    hasher: RandomState,
}

impl Past {
    /// Whether an event has not been seen before a cut.
    pub fn is_new(&mut self, id: Option<&str>) -> bool {
        let Some(id) = id.filter(|id| !id.is_empty() && id.len() <= LONGEST_NAME) else { return true };
        let name = self.hasher.hash_one(id);
        if self.before.contains(&name) {
            return false;
        }
        if self.since.len() < NAMES_KEPT {
            self.since.push(name);
        }
        true
    }

    /// A stream has ended.
    pub fn note(&mut self, events: &Events) {
        let last = events.last_id().filter(|id| id.len() <= LONGEST_NAME).map(str::to_owned);
        self.last = last.or(self.last.take());
        self.retry = events.retry().or(self.retry);
        if self.before.len() > 4 * NAMES_KEPT {
            self.before.clear();
        }
        self.before.extend(self.since.drain(..));
    }
}
