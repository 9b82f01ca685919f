//! Status lines of work in progress: spinner, startup of servers, progress of calls.

use std::fmt;
use std::time::Duration;

use tokio::time::Instant;
use wharf_spec::UntrustedText;

use crate::session::CommandSession;

/// Delay before the status line appears.
const STATUS_DELAY: Duration = Duration::from_millis(200);
/// Interval of the status line.
const STATUS_INTERVAL: Duration = Duration::from_millis(100);
/// Delay before the pending work is named where no status line is visible.
const NOTE_DELAY: Duration = Duration::from_secs(5);
const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
/// Cells of the progress bar.
const BAR_CELLS: usize = 20;
/// Maximum characters of a progress message.
const MAX_MESSAGE_CHARS: usize = 200;

/// Returns a frame of the spinner.
pub fn spinner(frame: usize) -> char {
    FRAMES[frame % FRAMES.len()]
}

/// Awaits a future. On a terminal, a status line shows the pending work and the elapsed time; elsewhere one line on stderr
/// names it after a while.
pub async fn with_startup_status<T>(
    session: &CommandSession,
    began: Instant,
    status_text: impl Fn() -> String,
    work: impl Future<Output = T>,
) -> T {
    if !session.console.shows_status() {
        let note = || session.console.say(format_args!("still waiting: {}", status_text()));
        return with_note(began, note, work).await;
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
            () = tokio::time::sleep_until(tick) => session.console.show_status(&startup_frame(&status_text(), began.elapsed())),
        }
    }
}

/// Awaits a future, and calls `note` when it is pending for long. Work that goes on after that has been announced before.
async fn with_note<T>(began: Instant, note: impl FnOnce(), work: impl Future<Output = T>) -> T {
    tokio::pin!(work);
    let due = began + NOTE_DELAY;
    if Instant::now() < due {
        match tokio::time::timeout_at(due, &mut work).await {
            Ok(done) => return done,
            Err(_) => note(),
        }
    }
    work.await
}

/// Describes servers that are starting, as in `git, files · starting`.
pub fn starting_text<S: AsRef<str>>(names: &[S]) -> String {
    format!("{} · starting", names.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", "))
}

fn startup_frame(status_text: &str, since: Duration) -> String {
    let turn = usize::try_from(since.as_millis() / STATUS_INTERVAL.as_millis()).unwrap_or(0);
    format!("{} {status_text}, {} s", spinner(turn), since.as_secs())
}

/// Progress of a call, formatted as `40% message`, or as the bare number if the total is unknown.
pub struct ProgressText<'a> {
    pub done: f64,
    pub total: Option<f64>,
    /// Untrusted.
    pub message: Option<&'a str>,
}

impl ProgressText<'_> {
    /// Formats the progress after a bar, which is empty if the total is unknown.
    pub fn with_bar(&self) -> String {
        let Some(share) = self.share() else { return self.to_string() };
        let full = (share * BAR_CELLS as f64).round() as usize;
        format!("{}{} {self}", "█".repeat(full), "░".repeat(BAR_CELLS - full))
    }

    fn share(&self) -> Option<f64> {
        let total = self.total.filter(|total| *total > 0.0 && total.is_finite() && self.done.is_finite());
        total.map(|total| (self.done / total).clamp(0.0, 1.0))
    }
}

impl fmt::Display for ProgressText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.share() {
            Some(share) => write!(f, "{:.0}%", share * 100.0)?,
            None => write!(f, "{}", self.done)?,
        }
        match self.message.filter(|message| !message.is_empty()) {
            Some(message) => write!(f, " {}", UntrustedText::new(message).truncate(MAX_MESSAGE_CHARS)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn startup_frame_shows_spinner_and_seconds() {
        let status_text = starting_text(&["git", "files"]);
        assert_eq!(startup_frame(&status_text, Duration::from_millis(250)), "⠹ git, files · starting, 0 s");
        assert_eq!(startup_frame(&status_text, Duration::from_millis(1300)), "⠸ git, files · starting, 1 s");
    }

    #[tokio::test(start_paused = true)]
    async fn long_work_is_announced_once() {
        let began = Instant::now();
        for (seconds, expected) in [(4, 0), (3, 1), (9, 0)] {
            let mut notes = 0;
            with_note(began, || notes += 1, tokio::time::sleep(Duration::from_secs(seconds))).await;
            assert_eq!(notes, expected, "work of {seconds} s");
        }
    }

    #[test]
    fn progress_is_formatted() {
        for (done, total, message, expected) in [
            (1.0, Some(4.0), None, "█████░░░░░░░░░░░░░░░ 25%"),
            (9.0, Some(4.0), Some("over\u{1b}"), "████████████████████ 100% over\\u{1b}"),
            (3.0, None, None, "3"),
            (f64::NAN, Some(2.0), None, "NaN"),
            (3.0, Some(0.0), Some("x"), "3 x"),
        ] {
            assert_eq!(ProgressText { done, total, message }.with_bar(), expected);
        }
    }
}
