//! What can be typed next: slash commands, servers, tools, prompts, resources, and arguments by the servers' own word.
//!
//! [`plan`] looks at what was typed and at what is known, and does nothing else; only where a server has to be asked for
//! the values of an argument is anybody waited for, and not long.

mod known;
mod plan;
mod template;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::runtime::Handle;
use wharf::Host;
use wharf_spec::acts;
use wharf_wire::Reference;

use crate::slash;
use known::Known;
use plan::{Owner, Plan, Sought, plan};
use wharf_terminal::editor::{Candidate, LineCompleter, starting_with};

/// Knows what can be typed. Asked on the editor's thread.
#[derive(Clone)]
pub struct Completions {
    /// There once the host has started.
    pub host: Arc<OnceLock<Host>>,
    pub runtime: Handle,
    /// Who knows the names that no server has.
    pub others: Option<Others>,
}

/// Lists names of a kind. Called on the editor's thread.
pub type Others = Arc<dyn Fn(Other) -> Vec<String> + Send + Sync>;

/// A kind of names that no server has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Other {
    Models,
    Conversations,
}

/// The most candidates that anybody looks at.
const MOST: usize = 200;
/// The longest text that is offered, in bytes.
const LONGEST: usize = 1_024;
/// How long a server may think about the values of an argument.
const PATIENCE: Duration = Duration::from_millis(500);

impl LineCompleter for Completions {
    /// What can be typed in the place of the end of a line, from where on.
    fn candidates(&self, typed: &str) -> (usize, Vec<Candidate>) {
        let known = self.host.get().map(Known::of).unwrap_or_default();
        let Some(Plan { start, sought }) = plan(&slash::grammar(), &known, typed) else {
            return (typed.len(), Vec::new());
        };
        let found = match sought {
            Sought::Names(names) => names,
            Sought::Others { kind, word } => self.others(kind, word),
            Sought::Values(values) => self.values(&values),
        };
        (start, found.into_iter().filter(is_harmless).take(MOST).collect())
    }
}

impl Completions {
    fn others(&self, kind: Other, word: &str) -> Vec<Candidate> {
        let names = self.others.as_ref().map(|others| others(kind)).unwrap_or_default();
        starting_with(word, names.iter().map(String::as_str)).map(Candidate::word).collect()
    }

    /// Asks a server. One that does not answer in time, or not at all, has nothing to suggest.
    fn values(&self, values: &plan::Values<'_>) -> Vec<Candidate> {
        let suggested = || {
            let connection = self.host.get()?.connection(values.server).ok()?;
            let reference = match values.owner {
                Owner::Prompt(name) => Reference::Prompt(name),
                Owner::Template(text) => Reference::Template(text),
            };
            let asking = connection.complete_argument(reference, values.argument, values.value, &values.given);
            let answer = self.runtime.block_on(async { tokio::time::timeout(PATIENCE, asking).await });
            Some(answer.ok()?.ok()?.values)
        };
        suggested().unwrap_or_default().iter().map(|value| values.candidate(value)).collect()
    }
}

/// Whether a text can be put on the line: what servers suggest is nothing that anybody would have typed.
fn is_harmless(candidate: &Candidate) -> bool {
    candidate.text.len() <= LONGEST && !candidate.text.contains(acts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_is_not_offered() {
        for (text, expected) in [("plain", true), ("a\u{1b}[2J", false), ("a\nb", false), ("\u{202e}a", false)] {
            assert_eq!(is_harmless(&Candidate::plain(text)), expected, "{text:?}");
        }
        assert!(!is_harmless(&Candidate::plain(&"x".repeat(LONGEST + 1))));
        assert_eq!(Candidate::plain("a\u{202e}").shown, "a\\u{202e}");
    }

    #[tokio::test]
    async fn nobody_waits_for_a_host_that_is_not_there() {
        let host = Arc::new(OnceLock::new());
        let completions = Completions { host, runtime: Handle::current(), others: None };
        assert_eq!(completions.candidates("@").1, []);
    }
}
