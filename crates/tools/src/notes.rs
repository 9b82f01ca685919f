//! What an agent is told before its next request to a model.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wharf_spec::Shown;

/// A bounded queue of notes, each saying whom it is from.
///
/// When it is full, the oldest note of whoever has most in it makes room, so that one who says much drowns nobody else.
#[derive(Debug, Default)]
pub struct Notes {
    limits: NoteLimits,
    waiting: Mutex<Vec<Note>>,
}

/// How much may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoteLimits {
    /// Notes that wait at once; at least one may.
    pub notes: usize,
    /// Characters of one note.
    pub characters: usize,
}

/// Something an agent is told unasked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Note {
    /// Whom it is from.
    pub from: Arc<str>,
    /// What it says, bounded, and without characters that act. It may have several lines: whoever shows it makes clear
    /// that all of them are from the same.
    pub text: String,
    /// How many notes, of whomever, had to make room since the note before this one.
    pub missed: u64,
}

impl Default for NoteLimits {
    fn default() -> Self {
        Self { notes: 64, characters: 4096 }
    }
}

impl Notes {
    /// An empty queue.
    pub fn new(limits: NoteLimits) -> Self {
        Self { limits, waiting: Mutex::default() }
    }

    /// Adds a note; never waits, never fails.
    pub fn push(&self, from: &str, text: &str) {
        let from = Shown::line(from, 100).to_string().into();
        let text = Shown::lines(text, self.limits.characters).to_string();
        let mut waiting = self.lock();
        waiting.push(Note { from, text, missed: 0 });
        if waiting.len() > self.limits.notes.max(1) {
            let at = oldest_of_the_loudest(&waiting);
            let removed = waiting.remove(at);
            // The new note is last and never the one that goes, so there is always a next one to say so.
            waiting[at].missed += removed.missed + 1;
        }
    }

    /// Takes all that wait, oldest first.
    pub fn take(&self) -> Vec<Note> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Note>> {
        // A list of notes is whole at every moment, so a panic elsewhere has not harmed it.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn oldest_of_the_loudest(notes: &[Note]) -> usize {
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
        let queue = Notes::new(NoteLimits { notes, characters: 5 });
        pushed.iter().for_each(|(from, text)| queue.push(from, text));
        let taken = queue.take();
        let taken: Vec<_> = taken.iter().map(|note| (&*note.from, note.text.as_str(), note.missed)).collect();
        assert_eq!(taken, expected, "{pushed:?}");
        assert!(queue.take().is_empty());
    }

    #[test]
    fn notes_are_bounded_plain_and_in_order() {
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
