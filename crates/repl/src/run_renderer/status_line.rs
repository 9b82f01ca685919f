//! Status line of a run: spinner, current call, progress and elapsed time.

use std::time::Duration;

use wharf::tools::CallProgress;
use wharf_spec::EscapedText;

const SPINNER: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
/// Cells of the progress bar.
const CELLS: u32 = 20;
/// Maximum characters shown of a response that is not rendered yet.
const MAX_TAIL_CHARS: usize = 50;

/// Formats the status line while calls are in progress.
pub fn call_status(frame: usize, time: Duration, name: &str, progress: Option<&CallProgress>, others: usize) -> String {
    let progress = progress.map(|progress| format!(" {}", format_progress(progress))).unwrap_or_default();
    let others = match others {
        0 => String::new(),
        others => format!(" · {others} more"),
    };
    format!("{} {name}{progress} {}{others} · Ctrl-C cancels", spinner(frame), format_duration(time))
}

/// Formats the status line while the model responds, with the end of the unrendered text.
pub fn model_status(frame: usize, time: Duration, pending: &str) -> String {
    let line = pending.lines().last().unwrap_or_default();
    let skipped = line.chars().count().saturating_sub(MAX_TAIL_CHARS);
    let tail: String = line.chars().skip(skipped).collect();
    match tail.trim() {
        "" => format!("{} thinking {} · Ctrl-C cancels", spinner(frame), format_duration(time)),
        tail => format!("{} … {}", spinner(frame), EscapedText::single_line(tail, MAX_TAIL_CHARS)),
    }
}

/// Formats a duration as `12 ms`, `3.2 s` or `1m 05s`.
pub fn format_duration(time: Duration) -> String {
    match time.as_millis() {
        0..1000 => format!("{} ms", time.as_millis()),
        1000..60_000 => format!("{:.1} s", time.as_secs_f64()),
        _ => format!("{}m {:02}s", time.as_secs() / 60, time.as_secs() % 60),
    }
}

fn spinner(frame: usize) -> char {
    SPINNER[frame % SPINNER.len()]
}

/// Formats the progress of a call, as a bar if the total is known.
fn format_progress(progress: &CallProgress) -> String {
    let message =
        progress.message.as_deref().map(|text| format!(" {}", EscapedText::single_line(text, 60))).unwrap_or_default();
    let total = progress.total.filter(|total| *total > 0.0 && total.is_finite() && progress.done.is_finite());
    match total {
        Some(total) => {
            let share = (progress.done / total).clamp(0.0, 1.0);
            let full = (share * f64::from(CELLS)).round();
            let bar: String = (0..CELLS).map(|cell| if f64::from(cell) < full { '█' } else { '░' }).collect();
            format!("{bar} {:.0}%{message}", share * 100.0)
        }
        None => format!("{}{message}", progress.done),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_formatted() {
        let progress =
            |done, total, message: Option<&str>| CallProgress { done, total, message: message.map(str::to_owned) };
        for (progress, expected) in [
            (progress(1.0, Some(4.0), None), "█████░░░░░░░░░░░░░░░ 25%"),
            (progress(9.0, Some(4.0), Some("over\u{1b}")), "████████████████████ 100% over\\u{1b}"),
            (progress(3.0, None, None), "3"),
            (progress(f64::NAN, Some(2.0), None), "NaN"),
            (progress(3.0, Some(0.0), Some("x")), "3 x"),
        ] {
            assert_eq!(format_progress(&progress), expected);
        }
    }

    #[test]
    fn durations_are_formatted() {
        for (millis, expected) in [(0, "0 ms"), (999, "999 ms"), (3_240, "3.2 s"), (65_000, "1m 05s")] {
            assert_eq!(format_duration(Duration::from_millis(millis)), expected);
        }
    }

    #[test]
    fn tail_of_pending_text_is_shown() {
        let asked = |pending: &str| model_status(0, Duration::from_millis(5), pending);
        assert_eq!(asked(""), "⠋ thinking 5 ms · Ctrl-C cancels");
        assert_eq!(asked("one\ntwo \u{1b}"), "⠋ … two \\u{1b}");
        assert_eq!(asked(&"ab".repeat(40)), format!("⠋ … {}", "ab".repeat(25)));
    }
}
