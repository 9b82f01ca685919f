//! Resume state of the streams of one call, so that a resumed stream delivers no event twice.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use super::response_body::EventReader;

/// Maximum number of recorded event ids.
const MAX_EVENT_IDS: usize = 256;
/// Maximum bytes of an event id. Longer ids are ignored, as they could not be sent back.
pub(super) const MAX_EVENT_ID_BYTES: usize = 1 << 10;

/// The resume state of a call's streams.
#[derive(Default)]
pub(super) struct ResumeState {
    /// Id of the last event.
    pub last: Option<String>,
    /// Delay the server requests before the stream is resumed.
    pub retry: Option<Duration>,
    /// Ids seen before the last interruption. Ids are not compared within one stream: servers on the Java SDK give all
    /// of its events the same id.
    before: HashSet<u64>,
    since: Vec<u64>,
    hasher: RandomState,
}

impl ResumeState {
    /// Reports whether an event was not seen before an interruption.
    pub fn is_new(&mut self, id: Option<&str>) -> bool {
        let Some(id) = id.filter(|id| !id.is_empty() && id.len() <= MAX_EVENT_ID_BYTES) else { return true };
        let name = self.hasher.hash_one(id);
        if self.before.contains(&name) {
            return false;
        }
        if self.since.len() < MAX_EVENT_IDS {
            self.since.push(name);
        }
        true
    }

    /// Records the end of a stream.
    pub fn record_end(&mut self, events: &EventReader) {
        let last = events.last_id().filter(|id| id.len() <= MAX_EVENT_ID_BYTES).map(str::to_owned);
        self.last = last.or(self.last.take());
        self.retry = events.retry().or(self.retry);
        if self.before.len() > 4 * MAX_EVENT_IDS {
            self.before.clear();
        }
        self.before.extend(self.since.drain(..));
    }
}
