//! Completion of slash commands, servers, tools, prompts, resources, and of arguments by asking their server.
//!
//! `plan::plan` is pure: it looks at the typed text and the known names only. Completion blocks only for argument
//! values from a server, with a short timeout.

mod plan;
mod server_names;
mod template;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::runtime::Handle;
use wharf::Host;
use wharf_spec::is_control_or_bidi;
use wharf_wire::Reference;

use crate::slash;
use plan::{ArgumentOwner, CandidateQuery, CompletionPlan, plan};
use server_names::CompletableNames;
use wharf_terminal::editor::{Candidate, LineCompleter, starting_with};

/// Completion source, called on the editor's thread.
#[derive(Clone)]
pub struct CompletionSource {
    /// Set once the host has started.
    pub host: Arc<OnceLock<Host>>,
    pub runtime: Handle,
    /// Source of names that do not come from a server.
    pub others: Option<LocalNameSource>,
}

/// Lists names of a kind. Called on the editor's thread.
pub type LocalNameSource = Arc<dyn Fn(LocalNameKind) -> Vec<String> + Send + Sync>;

/// A kind of name that does not come from a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocalNameKind {
    Models,
    Conversations,
}

/// Maximum number of candidates.
const MAX_CANDIDATES: usize = 200;
/// The longest text that is offered, in bytes.
const MAX_CANDIDATE_BYTES: usize = 1_024;
/// Timeout for argument values from a server.
const VALUES_TIMEOUT: Duration = Duration::from_millis(500);

impl LineCompleter for CompletionSource {
    /// Returns the candidates for the end of a line and the byte offset they replace it from.
    fn candidates(&self, typed: &str) -> (usize, Vec<Candidate>) {
        let known = self.host.get().map(CompletableNames::from_host).unwrap_or_default();
        let Some(CompletionPlan { start, query }) = plan(&slash::grammar(), &known, typed) else {
            return (typed.len(), Vec::new());
        };
        let found = match query {
            CandidateQuery::Names(names) => names,
            CandidateQuery::Others { kind, word } => self.local_candidates(kind, word),
            CandidateQuery::Values(values) => self.request_values(&values),
        };
        (start, found.into_iter().filter(is_safe).take(MAX_CANDIDATES).collect())
    }
}

impl CompletionSource {
    fn local_candidates(&self, kind: LocalNameKind, word: &str) -> Vec<Candidate> {
        let names = self.others.as_ref().map(|others| others(kind)).unwrap_or_default();
        starting_with(word, names.iter().map(String::as_str)).map(Candidate::word).collect()
    }

    /// Asks a server for argument values. Returns none on an error or a timeout.
    fn request_values(&self, values: &plan::ArgumentQuery<'_>) -> Vec<Candidate> {
        let suggested = || {
            let connection = self.host.get()?.connection(values.server).ok()?;
            let reference = match values.owner {
                ArgumentOwner::Prompt(name) => Reference::Prompt(name),
                ArgumentOwner::Template(text) => Reference::Template(text),
            };
            let asking = connection.complete_argument(reference, values.argument, values.value, &values.given);
            let answer = self.runtime.block_on(async { tokio::time::timeout(VALUES_TIMEOUT, asking).await });
            Some(answer.ok()?.ok()?.values)
        };
        suggested().unwrap_or_default().iter().map(|value| values.candidate(value)).collect()
    }
}

/// Reports whether a candidate can be put on the line: bounded in length and free of control characters.
fn is_safe(candidate: &Candidate) -> bool {
    candidate.text.len() <= MAX_CANDIDATE_BYTES && !candidate.text.contains(is_control_or_bidi)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_not_offered() {
        for (text, expected) in [("plain", true), ("a\u{1b}[2J", false), ("a\nb", false), ("\u{202e}a", false)] {
            assert_eq!(is_safe(&Candidate::plain(text)), expected, "{text:?}");
        }
        assert!(!is_safe(&Candidate::plain(&"x".repeat(MAX_CANDIDATE_BYTES + 1))));
        assert_eq!(Candidate::plain("a\u{202e}").shown, "a\\u{202e}");
    }

    #[tokio::test]
    async fn completion_works_without_a_host() {
        let host = Arc::new(OnceLock::new());
        let completions = CompletionSource { host, runtime: Handle::current(), others: None };
        assert_eq!(completions.candidates("@").1, []);
    }
}
