//! Noticing that a model does the same over and over.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;
use wharf_json::{Bounds, Raw};

use super::CallReport;
use crate::conversation::ResultBlock;

/// The most calls that are taken for one pattern: one call, two in turn, or several at once, again and again.
const LONGEST_PATTERN: usize = 8;
/// How often a model may go on after it was first told that it repeats itself.
const PATIENCE: u32 = 2;

/// A call as far as it can be the same as another: the tool and what it is called with, however that is spelt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Deed(u64);

/// What was done, and what came of it.
#[derive(Debug)]
pub(super) struct Repeats {
    limit: usize,
    past: Vec<(Deed, u64)>,
    ignored: u32,
}

impl Deed {
    pub fn of(tool: &str, arguments: &Raw, malformed: Option<&str>) -> Self {
        let mut hasher = DefaultHasher::new();
        (tool, malformed).hash(&mut hasher);
        match arguments.decode::<Value>(&Bounds::default()) {
            Ok(value) => value.hash(&mut hasher),
            Err(_) => arguments.get().hash(&mut hasher),
        }
        Self(hasher.finish())
    }
}

impl Repeats {
    pub fn new(limit: u32) -> Self {
        Self { limit: usize::try_from(limit.max(1)).unwrap_or(usize::MAX), past: Vec::new(), ignored: 0 }
    }

    /// How often a call was made with the same result each time, where that is as often as it may be. It is not to be
    /// carried out then, and counts as if it had been, so that the pattern it is part of goes on.
    pub fn refuse(&mut self, deed: Deed) -> Option<u32> {
        let period = (1..=LONGEST_PATTERN).find(|&period| self.goes_on(deed, period))?;
        let expected = self.past[self.past.len() - period];
        self.past.push(expected);
        let times = self.past.iter().rev().step_by(period).take_while(|done| **done == expected).count() - 1;
        Some(u32::try_from(times).unwrap_or(u32::MAX))
    }

    pub fn record(&mut self, deed: Deed, report: &CallReport) {
        let mut hasher = DefaultHasher::new();
        report.is_error.hash(&mut hasher);
        for block in &report.content {
            match block {
                ResultBlock::Text(text) => text.hash(&mut hasher),
                ResultBlock::Image { media_type, data } => (media_type, data).hash(&mut hasher),
            }
        }
        self.past.push((deed, hasher.finish()));
    }

    /// Notes whether the model did something else than what it was told to leave.
    pub fn note_round(&mut self, has_deeds: bool) {
        self.ignored = if has_deeds { 0 } else { self.ignored + 1 };
    }

    /// Whether the model was told and went on for longer than anybody waits.
    pub fn is_hopeless(&self) -> bool {
        self.ignored > PATIENCE
    }

    /// Whether this call would go on with a pattern of so many calls that has been there as often as it may.
    fn goes_on(&self, deed: Deed, period: usize) -> bool {
        let Some(length) = period.checked_mul(self.limit).filter(|length| *length <= self.past.len()) else {
            return false;
        };
        let last = &self.past[self.past.len() - length..];
        last.iter().zip(&last[period..]).all(|(one, next)| one == next) && last[length - period].0 == deed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does what the letters say, each with the digit behind it as its result; refused ones are told as `!`.
    fn check(done: &str, limit: u32, expected: &str) {
        let mut repeats = Repeats::new(limit);
        let pairs: Vec<char> = done.chars().collect();
        let told = pairs.chunks(2).map(|pair| {
            let deed = Deed::of(&pair[0].to_string(), &Raw::empty_object(), None);
            if repeats.refuse(deed).is_some() {
                return '!';
            }
            repeats.record(deed, &CallReport::error(pair[1]));
            '.'
        });
        assert_eq!(told.collect::<String>(), expected, "{done}");
    }

    #[test]
    fn the_same_with_the_same_result_is_refused() {
        check("a1a1a1", 3, "...");
        check("a1a1a1a1a1", 3, "...!!");
        check("a1a1a1b1a1a1a1a1", 3, ".......!");
        check("a1b1a1b1a1b1a1b1a1", 3, "......!!!");
        check("a1b1c1a1b1c1a1b1c1a1b1c1", 3, ".........!!!");
        check("a1a1", 1, ".!");
        check("a1a1", 0, ".!");
    }

    #[test]
    fn what_gets_on_is_no_repetition() {
        check("a1a2a3a4a5a6", 3, "......");
        check("a1a1a2a2a3a3", 3, "......");
        check("a1b1a1b2a1b3a1b4", 3, "........");
        check("a1a1a1b1a1", 3, ".....");
    }

    #[test]
    fn arguments_are_the_same_however_they_are_spelt() {
        let of = |text: &str| Deed::of("t", &Raw::parse(text.to_owned()).unwrap(), None);
        assert_eq!(of(r#"{"a":1,"b":[2]}"#), of(r#"{ "b": [2], "a": 1 }"#));
        assert_ne!(of(r#"{"a":1}"#), of(r#"{"a":2}"#));
        assert_ne!(Deed::of("t", &Raw::empty_object(), Some("{")), Deed::of("t", &Raw::empty_object(), None));
    }

    #[test]
    fn it_is_told_how_often() {
        let (mut repeats, deed) = (Repeats::new(2), Deed::of("t", &Raw::empty_object(), None));
        (0..2).for_each(|_| repeats.record(deed, &CallReport::error("x")));
        assert_eq!((repeats.refuse(deed), repeats.refuse(deed)), (Some(2), Some(3)));
    }
}
