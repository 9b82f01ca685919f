//! Rate limit for retries of reads, so that a failing server does not get twice the load.

use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

/// Maximum number of saved retries, and retries added per second.
const MAX_TOKENS: f64 = 20.0;
const TOKENS_PER_SECOND: f64 = 10.0;

/// The retry budget of a connection.
pub(crate) struct ReadRetryBudget(Mutex<RetryTokens>);

struct RetryTokens {
    left: f64,
    at: Instant,
}

impl Default for ReadRetryBudget {
    fn default() -> Self {
        Self(Mutex::new(RetryTokens { left: MAX_TOKENS, at: Instant::now() }))
    }
}

impl ReadRetryBudget {
    /// Takes one retry from the budget. Returns false if there is none.
    pub fn try_take(&self) -> bool {
        let mut saved = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        saved.left = (saved.left + (now - saved.at).as_secs_f64() * TOKENS_PER_SECOND).min(MAX_TOKENS);
        saved.at = now;
        let enough = saved.left >= 1.0;
        if enough {
            saved.left -= 1.0;
        }
        enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn retry_budget_is_exhausted_and_refills() {
        let budget = ReadRetryBudget::default();
        assert_eq!((0..100).filter(|_| budget.try_take()).count(), 20);
        tokio::time::advance(Duration::from_millis(300)).await;
        assert_eq!((0..100).filter(|_| budget.try_take()).count(), 3);
    }
}
