//! Status line for servers that are starting.

use std::time::Duration;

use tokio::time::Instant;

use crate::session::CommandSession;

/// Delay before the status line appears.
const STATUS_DELAY: Duration = Duration::from_millis(200);
/// Interval of the status line.
const STATUS_INTERVAL: Duration = Duration::from_millis(100);
const STATUS_FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// Awaits a future. On a terminal, a status line shows the pending work and the elapsed time.
pub async fn with_startup_status<T>(
    session: &CommandSession,
    began: Instant,
    told: impl Fn() -> String,
    work: impl Future<Output = T>,
) -> T {
    if !session.console.shows_status() {
        return work.await;
    }
    tokio::pin!(work);
    loop {
        let tick = (Instant::now() + STATUS_INTERVAL).max(began + STATUS_DELAY);
        tokio::select! {
            biased;
            done = &mut work => {
                session.console.clear_status();
                return done;
            }
            () = tokio::time::sleep_until(tick) => session.console.show_status(&startup_frame(&told(), began.elapsed())),
        }
    }
}

fn startup_frame(told: &str, since: Duration) -> String {
    let turn = usize::try_from(since.as_millis() / STATUS_INTERVAL.as_millis()).unwrap_or(0);
    format!("{} {told}, {} s", STATUS_FRAMES[turn % STATUS_FRAMES.len()], since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_moves() {
        assert_eq!(startup_frame("git · starting", Duration::from_millis(250)), "⠹ git · starting, 0 s");
        assert_eq!(startup_frame("git · starting", Duration::from_millis(1300)), "⠸ git · starting, 1 s");
    }
}
