//! The beat of the line that updates itself, however much else happens.

use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior, interval};

/// How often the line is drawn anew.
const EVERY: Duration = Duration::from_millis(100);

/// Beats on while nobody listens: whoever is called away does not wait for a whole beat again.
pub struct Ticks(Interval);

impl Ticks {
    /// Needs a runtime.
    pub fn begin() -> Self {
        let mut beats = interval(EVERY);
        // A beat that nobody could hear is not made up for.
        beats.set_missed_tick_behavior(MissedTickBehavior::Skip);
        Self(beats)
    }

    /// The next beat. Dropped while it waits, nothing is lost.
    pub async fn next(&mut self) {
        self.0.tick().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::{Instant, sleep, timeout};

    #[tokio::test(start_paused = true)]
    async fn news_do_not_put_a_beat_off() {
        let mut ticks = Ticks::begin();
        ticks.next().await;
        let (begun, mut beats) = (Instant::now(), 0);
        while begun.elapsed() < EVERY * 10 {
            // Something else happens all the time.
            if timeout(Duration::from_millis(30), ticks.next()).await.is_ok() {
                beats += 1;
            }
        }
        assert_eq!(beats, 10);
        // Somebody was away.
        sleep(EVERY * 20).await;
        ticks.next().await;
        assert!(timeout(EVERY / 2, ticks.next()).await.is_err());
    }
}
