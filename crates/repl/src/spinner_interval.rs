//! Fixed-rate timer for the status line, independent of other events.

use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior, interval};

/// Interval between redraws of the status line.
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);

/// Timer that keeps running while it is not awaited, so that an interrupted wait does not restart the interval.
pub struct SpinnerInterval(Interval);

impl SpinnerInterval {
    /// Starts the timer. Requires a Tokio runtime.
    pub fn start() -> Self {
        let mut ticks = interval(REDRAW_INTERVAL);
        // Missed ticks are skipped.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        Self(ticks)
    }

    /// Waits for the next tick. Cancel-safe.
    pub async fn next(&mut self) {
        self.0.tick().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::{Instant, sleep, timeout};

    #[tokio::test(start_paused = true)]
    async fn other_events_do_not_delay_a_tick() {
        let mut spinner = SpinnerInterval::start();
        spinner.next().await;
        let (begun, mut ticks) = (Instant::now(), 0);
        while begun.elapsed() < REDRAW_INTERVAL * 10 {
            // Another event keeps occurring.
            if timeout(Duration::from_millis(30), spinner.next()).await.is_ok() {
                ticks += 1;
            }
        }
        assert_eq!(ticks, 10);
        // After a period without awaiting the timer.
        sleep(REDRAW_INTERVAL * 20).await;
        spinner.next().await;
        assert!(timeout(REDRAW_INTERVAL / 2, spinner.next()).await.is_err());
    }
}
