//! How often a project's changes may put questions about its servers.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// Changes within [`PERIOD`] that are asked about.
const MAX_CHANGES: usize = 3;
const PERIOD: Duration = Duration::from_secs(60);

/// Counts changes, so that a file that is rewritten again and again does not ask again and again.
#[derive(Debug, Default)]
pub struct ChangePace {
    /// When changes were asked about.
    asked: VecDeque<Instant>,
    is_paused: bool,
}

/// What becomes of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeFate {
    /// It is asked about.
    Asked,
    /// It is not asked about, and the person has to be told so.
    Paused,
    /// It is not asked about, as the person knows.
    StillPaused,
}

impl ChangePace {
    /// Decides about a change that happens now.
    pub fn decide(&mut self, now: Instant) -> ChangeFate {
        while self.asked.front().is_some_and(|asked| now.duration_since(*asked) >= PERIOD) {
            self.asked.pop_front();
        }
        if self.asked.len() < MAX_CHANGES {
            self.asked.push_back(now);
            self.is_paused = false;
            return ChangeFate::Asked;
        }
        match std::mem::replace(&mut self.is_paused, true) {
            false => ChangeFate::Paused,
            true => ChangeFate::StillPaused,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_changes_a_minute_are_asked_about_and_the_pause_is_told_once() {
        let begin = Instant::now();
        let mut pace = ChangePace::default();
        let mut at = |seconds| pace.decide(begin + Duration::from_secs(seconds));
        let fates: Vec<ChangeFate> = (0..6).map(&mut at).collect();
        use ChangeFate::{Asked, Paused, StillPaused};
        assert_eq!(fates, [Asked, Asked, Asked, Paused, StillPaused, StillPaused]);
        assert_eq!([at(60), at(61), at(62), at(63), at(64)], [Asked, Asked, Asked, Paused, StillPaused]);
    }
}
