//! The steps of the tour, printed as they run and collected for the JSON document.

use std::time::Instant;

use serde::Serialize;
use wharf_spec::UntrustedText;

use wharf_terminal::clock::{DurationText, millis};
use wharf_terminal::failure::Failure;
use wharf_terminal::session::CommandSession;
use wharf_terminal::style::{BAD, GOOD, HEADING, QUIET, paint};
use wharf_terminal::table::wrap;

/// Result of a scene: escaped lines to show, or the error.
pub type SceneResult = Result<Vec<String>, String>;

pub struct DemoTour<'a> {
    session: &'a CommandSession,
    began: Instant,
    steps: Vec<StepDocument>,
}

#[derive(Serialize)]
struct StepDocument {
    name: &'static str,
    ok: bool,
    duration_ms: u64,
    detail: String,
}

#[derive(Serialize)]
struct TourDocument<'a> {
    success: bool,
    duration_ms: u64,
    steps: &'a [StepDocument],
}

impl<'a> DemoTour<'a> {
    pub fn new(session: &'a CommandSession) -> Self {
        Self { session, began: Instant::now(), steps: Vec::new() }
    }

    /// Runs one scene and returns whether it succeeded.
    ///
    /// # Errors
    ///
    /// Fails only if the output cannot be written.
    pub async fn step(
        &mut self,
        name: &'static str,
        title: &str,
        scene: impl Future<Output = SceneResult>,
    ) -> Result<bool, Failure> {
        let number = self.steps.len() + 1;
        self.show(format_args!("{}\n", paint(HEADING, format_args!("{number}. {title}"))))?;
        let began = Instant::now();
        let played = scene.await;
        let duration = began.elapsed();
        let ok = played.is_ok();
        let lines = played.unwrap_or_else(|problem| vec![problem_text(&problem)]);
        let detail = lines.join("\n");
        for line in detail.lines() {
            let line = wrap(&format!("   {line}"), self.session.console.stdout_width());
            self.show(format_args!("{line}\n"))?;
        }
        let mark = if ok { paint(GOOD, "✓ passed") } else { paint(BAD, "✗ failed") };
        self.show(format_args!("   {mark}{}\n\n", paint(QUIET, format_args!(", {}", DurationText(duration)))))?;
        let detail = anstream::adapter::strip_str(&detail).to_string();
        self.steps.push(StepDocument { name, ok, duration_ms: millis(duration), detail });
        Ok(ok)
    }

    /// Prints the summary and returns whether all steps succeeded.
    ///
    /// # Errors
    ///
    /// Fails if the output cannot be written.
    pub fn finish(self) -> Result<bool, Failure> {
        let success = self.steps.iter().all(|step| step.ok);
        if self.session.console.mode.json {
            let duration_ms = millis(self.began.elapsed());
            self.session.console.print_document(success, &TourDocument { success, duration_ms, steps: &self.steps })?;
        } else if success {
            let duration = DurationText(self.began.elapsed());
            self.show(format_args!("{} in {duration}. Next, try your own server:\n", paint(GOOD, "All steps passed")))?;
            self.show("   wharf tools --stdio \"npx -y @modelcontextprotocol/server-everything\"\n")?;
        }
        Ok(success)
    }

    fn show(&self, text: impl std::fmt::Display) -> Result<(), Failure> {
        if self.session.console.mode.json { Ok(()) } else { self.session.console.print(text) }
    }
}

/// Returns the text of a problem, escaped and without the styles that a rendered failure has.
fn problem_text(problem: &str) -> String {
    UntrustedText::new(anstream::adapter::strip_str(problem).to_string()).multiline().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styled_problem_is_shown_without_escape_sequences() {
        let problem = format!("{}: cannot connect\n  next: retry\u{7}", paint(BAD, "error"));
        assert_eq!(problem_text(&problem), "error: cannot connect\n  next: retry");
    }
}
