//! Formats steps as text or as JSON.

use std::fmt::Write as _;

use serde::Serialize;

use super::{ProbeStep, StepState};
use crate::clock::{DurationText, millis};
use crate::style::{BAD, GOOD, NAME, QUIET, WARNING, paint};
use crate::table::truncate_columns;

/// Minimum width of the detail column.
const MIN_DETAIL_WIDTH: usize = 20;

impl StepState {
    /// Returns the symbol, the word and the style.
    fn label(self) -> (&'static str, &'static str, anstyle::Style) {
        match self {
            Self::Ok => ("✓", "ok", GOOD),
            Self::Detour => ("~", "detour", WARNING),
            Self::Failed => ("✗", "failed", BAD),
            Self::NotReached => ("·", "not reached", QUIET),
        }
    }
}

/// Formats a line per step, and one per piece of evidence. Without a width, details are not shortened.
pub fn render_steps(steps: &[ProbeStep], width: Option<usize>) -> String {
    let mut text = String::new();
    let word_width = steps.iter().map(|step| step.state.label().1.len()).max().unwrap_or(0);
    for step in steps {
        let (mark, word, style) = step.state.label();
        let duration = step.duration.map(|duration| DurationText(duration).to_string()).unwrap_or_default();
        let room = width.map_or(usize::MAX, |width| width.saturating_sub(26 + word_width).max(MIN_DETAIL_WIDTH));
        let detail =
            if step.state == StepState::Failed { step.detail.clone() } else { truncate_columns(&step.detail, room) };
        let head = format!(
            "  {} {}{:gap$}{word:word_width$} {duration:>8}  ",
            paint(style, mark),
            paint(NAME, step.name),
            "",
            gap = 10usize.saturating_sub(step.name.len()),
        );
        let _ = writeln!(text, "{}", format_args!("{head}{detail}").to_string().trim_end());
        for line in &step.evidence {
            let _ = writeln!(text, "      {} {line}", paint(QUIET, "│"));
        }
    }
    text
}

/// JSON document of a step.
#[derive(Serialize)]
pub struct ProbeStepDocument<'a> {
    name: &'static str,
    /// `None` if the step was not reached.
    ok: Option<bool>,
    state: StepState,
    duration_ms: Option<u64>,
    detail: &'a str,
    evidence: &'a [String],
}

pub fn step_document(step: &ProbeStep) -> ProbeStepDocument<'_> {
    ProbeStepDocument {
        name: step.name,
        ok: (step.state != StepState::NotReached).then_some(step.state != StepState::Failed),
        state: step.state,
        duration_ms: step.duration.map(millis),
        detail: &step.detail,
        evidence: &step.evidence,
    }
}
