//! Notes to add to an agent's next request to a model.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wharf_spec::EscapedText;

/// A bounded queue of notes, each with its source.
///
/// When the queue is full, the source with the most notes loses its oldest one, so that a verbose source cannot
/// displace the others.
#[derive(Debug, Default)]
pub struct NoteQueue {
    limits: NoteLimits,
    waiting: Mutex<Vec<AgentNote>>,
}

/// Limits of a note queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoteLimits {
    /// Maximum number of queued notes. Treated as at least 1.
    pub notes: usize,
    /// Maximum characters of one note.
    pub characters: usize,
}

/// An unsolicited note to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentNote {
    /// Source of the note.
    pub from: Arc<str>,
    /// Text of the note, bounded and with control characters escaped. May have several lines: a renderer must attribute
    /// all of them to the source.
    pub text: String,
    /// Number of notes, from any source, dropped since the previous note.
    pub missed: u64,
}

impl Default for NoteLimits {
    fn default() -> Self {
        Self { notes: 64, characters: 4096 }
    }
}

impl NoteQueue {
    /// Creates an empty queue.
    pub fn new(limits: NoteLimits) -> Self {
        Self { limits, waiting: Mutex::default() }
    }

    /// Adds a note. Never blocks, never fails.
    pub fn push(&self, from: &str, text: &str) {
        let from = EscapedText::single_line(from, 100).to_string().into();
        let text = EscapedText::multiline(text, self.limits.characters).to_string();
        let mut waiting = self.lock();
        waiting.push(AgentNote { from, text, missed: 0 });
        if waiting.len() > self.limits.notes.max(1) {
            let at = oldest_of_busiest_source(&waiting);
            let removed = waiting.remove(at);
            // The new note is last and never the one removed, so a following note exists to record the loss.
            waiting[at].missed += removed.missed + 1;
        }
    }

    /// Takes all queued notes, oldest first.
    pub fn take_all(&self) -> Vec<AgentNote> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<AgentNote>> {
        // The list is consistent between any two statements, so a poisoned lock is safe to use.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn oldest_of_busiest_source(notes: &[AgentNote]) -> usize {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for note in notes {
        *counts.entry(&note.from).or_default() += 1;
    }
    let most = counts.values().max().copied().unwrap_or_default();
    notes.iter().position(|note| counts[&*note.from] == most).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pushed: &[(&str, &str)], notes: usize, expected: &[(&str, &str, u64)]) {
        let queue = NoteQueue::new(NoteLimits { notes, characters: 5 });
        pushed.iter().for_each(|(from, text)| queue.push(from, text));
        let taken = queue.take_all();
        let taken: Vec<_> = taken.iter().map(|note| (&*note.from, note.text.as_str(), note.missed)).collect();
        assert_eq!(taken, expected, "{pushed:?}");
        assert!(queue.take_all().is_empty());
    }

    #[test]
    fn notes_are_limited_escaped_and_in_order() {
        check(&[], 2, &[]);
        check(&[("a", "1"), ("b", "2")], 2, &[("a", "1", 0), ("b", "2", 0)]);
        check(&[("a", "1"), ("a", "2"), ("a", "3"), ("a", "4")], 2, &[("a", "3", 2), ("a", "4", 0)]);
        check(&[("a", "1"), ("b", "2"), ("b", "3"), ("b", "4")], 2, &[("a", "1", 0), ("b", "4", 2)]);
        check(&[("a", "1"), ("b", "2"), ("c", "3")], 2, &[("b", "2", 1), ("c", "3", 0)]);
        check(&[("a", "1"), ("b", "2")], 0, &[("b", "2", 1)]);
        check(&[("a\nb", "1\n\u{1b}2")], 2, &[(r"a\nb", "1\n\\u{1b}2", 0)]);
        check(&[("a", "éééééé")], 2, &[("a", "ééééé…", 0)]);
    }
}
