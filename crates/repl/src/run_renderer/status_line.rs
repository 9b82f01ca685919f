//! Status line of a run: spinner, current call, progress and elapsed time.

use std::time::Duration;

use wharf::tools::CallProgress;
use wharf_spec::EscapedText;

use wharf_terminal::clock::DurationText;
use wharf_terminal::progress::{ProgressText, spinner};

/// Maximum characters shown of a response that is not rendered yet.
const MAX_TAIL_CHARS: usize = 50;

/// Formats the status line while calls are in progress.
pub fn call_status(frame: usize, time: Duration, name: &str, progress: Option<&CallProgress>, others: usize) -> String {
    let text = |progress: &CallProgress| {
        let CallProgress { done, total, message } = progress;
        ProgressText { done: *done, total: *total, message: message.as_deref() }.with_bar()
    };
    let progress = progress.map(|progress| format!(" {}", text(progress))).unwrap_or_default();
    let others = match others {
        0 => String::new(),
        others => format!(" · {others} more"),
    };
    format!("{} {name}{progress} {}{others} · Ctrl-C cancels", spinner(frame), DurationText(time))
}

/// Formats the status line while the model responds, with the end of the unrendered text.
pub fn model_status(frame: usize, time: Duration, pending: &str) -> String {
    let line = pending.lines().last().unwrap_or_default();
    let skipped = line.chars().count().saturating_sub(MAX_TAIL_CHARS);
    let tail: String = line.chars().skip(skipped).collect();
    match tail.trim() {
        "" => format!("{} thinking {} · Ctrl-C cancels", spinner(frame), DurationText(time)),
        tail => format!("{} … {}", spinner(frame), EscapedText::single_line(tail, MAX_TAIL_CHARS)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tail_of_pending_text_is_shown() {
        let asked = |pending: &str| model_status(0, Duration::from_millis(5), pending);
        assert_eq!(asked(""), "⠋ thinking 5 ms · Ctrl-C cancels");
        assert_eq!(asked("one\ntwo \u{1b}"), "⠋ … two \\u{1b}");
        assert_eq!(asked(&"ab".repeat(40)), format!("⠋ … {}", "ab".repeat(25)));
    }
}
