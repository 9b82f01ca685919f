//! Noticing that a model does the same over and over.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;
use wharf_json::{Bounds, Raw};

use super::CallReport;
use crate::conversation::ResultBlock;

/// The most calls that are taken for one pattern: one call, two in turn, or several at once, again and again.
const LONGEST_OF_CALLS: usize = 8;
/// The most answers that are taken for one pattern, however many calls each of them makes.
const LONGEST_OF_ROUNDS: usize = 3;
/// How often a model may go on after it was first told that it repeats itself.
const PATIENCE: u32 = 2;

/// A call, or all those of one answer, as far as they can be the same as others: the tools and what they are called with,
/// however that is spelt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Deed(u64);

/// What was done, and what came of it: call by call, and answer by answer.
#[derive(Debug)]
pub(super) struct Repeats {
    calls: Past,
    rounds: Past,
    ignored: u32,
}

/// Deeds with what came of each. Bounded by the requests of a run and by how long answers may be.
#[derive(Debug)]
struct Past {
    /// How often a pattern may be there.
    limit: usize,
    /// The most deeds that are taken for one pattern.
    longest: usize,
    done: Vec<(Deed, u64)>,
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

    fn of_round(deeds: &[Self]) -> Self {
        Self(hash_of(deeds))
    }
}

impl Repeats {
    pub fn new(limit: u32) -> Self {
        let limit = usize::try_from(limit.max(1)).unwrap_or(usize::MAX);
        let past = |longest| Past { limit, longest, done: Vec::new() };
        Self { calls: past(LONGEST_OF_CALLS), rounds: past(LONGEST_OF_ROUNDS), ignored: 0 }
    }

    /// How often a call was made with the same result each time, where that is as often as it may be. It is not to be
    /// carried out then.
    pub fn refuse(&mut self, deed: Deed) -> Option<u32> {
        self.calls.refuse(deed)
    }

    /// The same for all calls of an answer.
    pub fn refuse_round(&mut self, deeds: &[Deed]) -> Option<u32> {
        self.rounds.refuse(Deed::of_round(deeds))
    }

    /// Takes what was done for one answer, and what came of it, in order.
    pub fn record<'a>(&mut self, round: impl Iterator<Item = (Deed, &'a CallReport)>) {
        let round: Vec<(Deed, u64)> = round.map(|(deed, report)| (deed, hash_of_report(report))).collect();
        if round.is_empty() {
            return;
        }
        let (deeds, results): (Vec<Deed>, Vec<u64>) = round.iter().copied().unzip();
        self.rounds.done.push((Deed::of_round(&deeds), hash_of(&results)));
        self.calls.done.extend(round);
    }

    /// Notes whether the model did something else than what it was told to leave.
    pub fn note_round(&mut self, has_deeds: bool) {
        self.ignored = if has_deeds { 0 } else { self.ignored + 1 };
    }

    /// Whether the model was told and went on for longer than anybody waits.
    pub fn is_hopeless(&self) -> bool {
        self.ignored > PATIENCE
    }
}

impl Past {
    /// How often a deed was done with the same result each time, where that is as often as it may be. It counts as if it
    /// had been done once more, so that the pattern it is part of goes on.
    fn refuse(&mut self, deed: Deed) -> Option<u32> {
        let period = (1..=self.longest).find(|&period| self.goes_on(deed, period))?;
        let expected = self.done[self.done.len() - period];
        self.done.push(expected);
        let times = self.done.iter().rev().step_by(period).take_while(|done| **done == expected).count() - 1;
        Some(u32::try_from(times).unwrap_or(u32::MAX))
    }

    /// Whether this deed would go on with a pattern of so many that has been there as often as it may.
    fn goes_on(&self, deed: Deed, period: usize) -> bool {
        let Some(length) = period.checked_mul(self.limit).filter(|length| *length <= self.done.len()) else {
            return false;
        };
        let last = &self.done[self.done.len() - length..];
        last.iter().zip(&last[period..]).all(|(one, next)| one == next) && last[length - period].0 == deed
    }
}

fn hash_of_report(report: &CallReport) -> u64 {
    let mut hasher = DefaultHasher::new();
    report.is_error.hash(&mut hasher);
    for block in &report.content {
        match block {
            ResultBlock::Text(text) => text.hash(&mut hasher),
            ResultBlock::Image { media_type, data } => (media_type, data).hash(&mut hasher),
        }
    }
    hasher.finish()
}

fn hash_of(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
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
            repeats.record([(deed, &CallReport::error(pair[1]))].into_iter());
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

    /// Makes each word's calls at once, each with the digit behind it as its result; refused ones are told as `!`.
    fn check_rounds(done: &[&str], expected: &str) {
        let mut repeats = Repeats::new(3);
        let told = done.iter().map(|word| {
            let pairs: Vec<char> = word.chars().collect();
            let done = pairs.chunks(2).map(|pair| {
                let deed = Deed::of(&pair[0].to_string(), &Raw::empty_object(), None);
                (deed, CallReport::error(pair[1]))
            });
            let (deeds, reports): (Vec<Deed>, Vec<CallReport>) = done.unzip();
            if repeats.refuse_round(&deeds).is_some() {
                return '!';
            }
            repeats.record(deeds.into_iter().zip(&reports));
            '.'
        });
        assert_eq!(told.collect::<String>(), expected, "{done:?}");
    }

    #[test]
    fn however_many_calls_an_answer_makes_its_repetition_is_noticed() {
        let (nine, ten, other) = ("a1b1c1d1e1f1g1h1i1", "a1b1c1d1e1f1g1h1i1j1", "a1b1c1d1e1f1g1h1i2");
        check_rounds(&[nine; 5], "...!!");
        check_rounds(&[nine, ten].repeat(4), "......!!");
        check_rounds(&[nine, ten, "a1"].repeat(4), ".........!!!");
        check_rounds(&[nine, nine, other, nine, nine, other], "......");
        check_rounds(&[nine, nine, nine, ten, nine], ".....");
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
        (0..2).for_each(|_| repeats.record([(deed, &CallReport::error("x"))].into_iter()));
        assert_eq!((repeats.refuse(deed), repeats.refuse(deed)), (Some(2), Some(3)));
    }
}
