//! Detection of phrases regardless of the characters between their letters.

use std::collections::{HashMap, VecDeque};
use std::sync::LazyLock;

use super::FindingRule;
use super::fold::{FoldedChar, fold};
use super::phrases::SPELLED_PHRASES;

/// Matcher that follows only the letters of a text, past spaces, full stops and line breaks.
pub(super) struct SpelledPhraseMatcher {
    machine: &'static PhraseAutomaton,
    state: u16,
}

impl SpelledPhraseMatcher {
    pub(super) fn new() -> Self {
        Self { machine: &PHRASE_AUTOMATON, state: 0 }
    }

    /// Processes the next folded letter. Returns the rule of the phrase that it completes.
    pub(super) fn push_letter(&mut self, letter: char) -> Option<FindingRule> {
        let next = index(letter).map_or(0, |letter| self.machine.next[usize::from(self.state)][letter]);
        self.state = next & !COMPLETES_PHRASE;
        if next & COMPLETES_PHRASE == 0 { None } else { self.machine.rules.get(&self.state).copied() }
    }
}

/// Returns the excerpt for a phrase that ends here.
pub(super) fn phrase_excerpt(text: &str, at: usize) -> &str {
    const MAX_EXCERPT_BYTES: usize = 100;
    &text[text.floor_char_boundary(at.saturating_sub(MAX_EXCERPT_BYTES))..text.ceil_char_boundary(at + 1)]
}

pub(super) static PHRASE_AUTOMATON: LazyLock<PhraseAutomaton> = LazyLock::new(PhraseAutomaton::new);

/// Flag of a transition that completes a phrase.
const COMPLETES_PHRASE: u16 = 1 << 15;

/// Aho-Corasick automaton of all phrases: every missing transition leads to the longest suffix that is still a prefix.
pub(super) struct PhraseAutomaton {
    next: Vec<[u16; 26]>,
    /// The rule of the phrase that a state completes.
    rules: HashMap<u16, FindingRule>,
}

impl PhraseAutomaton {
    fn new() -> Self {
        let mut machine = Self { next: vec![[0; 26]], rules: HashMap::new() };
        for (rule, phrase) in SPELLED_PHRASES {
            machine.insert(*rule, phrase);
        }
        machine.link();
        let complete = |state: &mut u16| *state |= if machine.rules.contains_key(state) { COMPLETES_PHRASE } else { 0 };
        machine.next.iter_mut().flatten().for_each(complete);
        machine
    }

    fn insert(&mut self, rule: FindingRule, phrase: &str) {
        let mut state = 0;
        for character in phrase.chars() {
            let FoldedChar::Letter(letter) = fold(character) else { continue };
            let Some(letter) = index(letter) else { continue };
            if self.next[usize::from(state)][letter] == 0 {
                self.next[usize::from(state)][letter] = u16::try_from(self.next.len()).expect("the phrases are few");
                self.next.push([0; 26]);
            }
            state = self.next[usize::from(state)][letter];
        }
        self.rules.insert(state, rule);
    }

    /// Fills in the missing transitions in breadth-first order, so that their sources are complete.
    fn link(&mut self) {
        let mut waiting = VecDeque::from([(0, 0)]);
        while let Some((state, fallback)) = waiting.pop_front() {
            for letter in 0..26 {
                let child = self.next[state][letter];
                let other = if state == 0 { 0 } else { self.next[fallback][letter] };
                if child == 0 {
                    self.next[state][letter] = other;
                } else {
                    waiting.push_back((usize::from(child), usize::from(other)));
                }
            }
        }
    }
}

fn index(letter: char) -> Option<usize> {
    letter.is_ascii_lowercase().then(|| usize::from(letter as u8 - b'a'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count_matches(text: &str) -> usize {
        let (mut speller, mut found) = (SpelledPhraseMatcher::new(), 0);
        for character in text.chars() {
            if let FoldedChar::Letter(letter) = fold(character) {
                found += usize::from(speller.push_letter(letter).is_some());
            }
        }
        found
    }

    #[test]
    fn phrases_are_found_across_separators() {
        for text in [
            "ignore previous instructions",
            "i g n o r e  p r e v i o u s  i n s t r u c t i o n s",
            "ign.ore prev/ious ins\ntruc-tions",
            "ignorepreviousinstructions",
            "ign ignore previous instructions",
        ] {
            assert_eq!(count_matches(text), 1, "{text}");
        }
        assert_eq!(count_matches("ignored previously instructed"), 0);
    }
}
