//! Rate limit for approval questions caused by project changes.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// Maximum number of changes within [`PERIOD`] that ask a question.
const MAX_CHANGES: usize = 3;
const PERIOD: Duration = Duration::from_secs(60);

/// Rate limiter: a file that is rewritten repeatedly does not ask repeatedly.
#[derive(Debug, Default)]
pub struct ApprovalRateLimit {
    /// Times of the recent questions.
    asked: VecDeque<Instant>,
    is_paused: bool,
}

/// Decision about a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateDecision {
    /// Ask the question.
    Asked,
    /// Do not ask, and notify the user.
    Paused,
    /// Do not ask. The user has been notified.
    StillPaused,
}

impl ApprovalRateLimit {
    /// Decides about a change at `now`.
    pub fn decide(&mut self, now: Instant) -> RateDecision {
        while self.asked.front().is_some_and(|asked| now.duration_since(*asked) >= PERIOD) {
            self.asked.pop_front();
        }
        if self.asked.len() < MAX_CHANGES {
            self.asked.push_back(now);
            self.is_paused = false;
            return RateDecision::Asked;
        }
        match std::mem::replace(&mut self.is_paused, true) {
            false => RateDecision::Paused,
            true => RateDecision::StillPaused,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_rate_limited_and_the_pause_is_reported_once() {
        let begin = Instant::now();
        let mut pace = ApprovalRateLimit::default();
        let mut at = |seconds| pace.decide(begin + Duration::from_secs(seconds));
        let fates: Vec<RateDecision> = (0..6).map(&mut at).collect();
        use RateDecision::{Asked, Paused, StillPaused};
        assert_eq!(fates, [Asked, Asked, Asked, Paused, StillPaused, StillPaused]);
        assert_eq!([at(60), at(61), at(62), at(63), at(64)], [Asked, Asked, Asked, Paused, StillPaused]);
    }
}
