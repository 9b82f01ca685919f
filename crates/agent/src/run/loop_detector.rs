//! Detection of repeated calls.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;
use wharf_json::{JsonLimits, RawJson};

use super::CallReport;
use crate::conversation::ResultBlock;

/// Maximum length of a pattern of calls, for example one call, two alternating calls, or several calls per response.
const MAX_CALL_PATTERN: usize = 8;
/// Maximum length of a pattern of responses, regardless of their number of calls.
const MAX_ROUND_PATTERN: usize = 3;
/// Maximum consecutive responses with only refused calls. One more ends the run.
const MAX_IGNORED_REFUSALS: u32 = 2;

/// Signature of a call, or of all calls of one response, for comparison: a hash of the tool and its arguments.
/// Formatting of the arguments does not matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct CallSignature(u64);

/// History of calls and results, per call and per response.
#[derive(Debug)]
pub(super) struct LoopDetector {
    calls: CallHistory,
    rounds: CallHistory,
    ignored: u32,
}

/// Signatures with their results. Bounded by the requests of a run and the maximum length of a response.
#[derive(Debug)]
struct CallHistory {
    /// Number of repetitions after which a pattern is refused.
    limit: usize,
    /// Maximum length of a pattern.
    longest: usize,
    done: Vec<(CallSignature, u64)>,
}

impl CallSignature {
    pub fn from_call(tool: &str, arguments: &RawJson, malformed: Option<&str>) -> Self {
        let mut hasher = DefaultHasher::new();
        (tool, malformed).hash(&mut hasher);
        match arguments.decode::<Value>(&JsonLimits::default()) {
            Ok(value) => value.hash(&mut hasher),
            Err(_) => arguments.as_str().hash(&mut hasher),
        }
        Self(hasher.finish())
    }

    fn from_round(signatures: &[Self]) -> Self {
        Self(hash_of(signatures))
    }
}

impl LoopDetector {
    pub fn new(limit: u32) -> Self {
        let limit = usize::try_from(limit.max(1)).unwrap_or(usize::MAX);
        let past = |longest| CallHistory { limit, longest, done: Vec::new() };
        Self { calls: past(MAX_CALL_PATTERN), rounds: past(MAX_ROUND_PATTERN), ignored: 0 }
    }

    /// Returns the number of times a call was made with the same result, if the limit is reached. The call must then
    /// not be executed.
    pub fn check_call(&mut self, signature: CallSignature) -> Option<u32> {
        self.calls.check(signature)
    }

    /// Same as [`LoopDetector::check_call`], for all calls of a response.
    pub fn check_round(&mut self, signatures: &[CallSignature]) -> Option<u32> {
        self.rounds.check(CallSignature::from_round(signatures))
    }

    /// Records the calls of one response with their results, in order.
    pub fn record<'a>(&mut self, round: impl Iterator<Item = (CallSignature, &'a CallReport)>) {
        let round: Vec<(CallSignature, u64)> =
            round.map(|(signature, report)| (signature, hash_of_report(report))).collect();
        if round.is_empty() {
            return;
        }
        let (signatures, results): (Vec<CallSignature>, Vec<u64>) = round.iter().copied().unzip();
        self.rounds.done.push((CallSignature::from_round(&signatures), hash_of(&results)));
        self.calls.done.extend(round);
    }

    /// Records whether the response had a call that was not refused.
    pub fn record_refusals(&mut self, has_accepted_calls: bool) {
        self.ignored = if has_accepted_calls { 0 } else { self.ignored + 1 };
    }

    /// Reports whether the model ignored too many refusals in a row.
    pub fn gave_up(&self) -> bool {
        self.ignored > MAX_IGNORED_REFUSALS
    }
}

impl CallHistory {
    /// Returns the number of identical results of a call, if the limit is reached. Records the refused call with the
    /// expected result, so that the pattern continues.
    fn check(&mut self, signature: CallSignature) -> Option<u32> {
        let period = (1..=self.longest).find(|&period| self.continues_pattern(signature, period))?;
        let expected = self.done[self.done.len() - period];
        self.done.push(expected);
        let times = self.done.iter().rev().step_by(period).take_while(|done| **done == expected).count() - 1;
        Some(u32::try_from(times).unwrap_or(u32::MAX))
    }

    /// Reports whether the call would continue a pattern of this length that has already been repeated `limit` times.
    fn continues_pattern(&self, signature: CallSignature, period: usize) -> bool {
        let Some(length) = period.checked_mul(self.limit).filter(|length| *length <= self.done.len()) else {
            return false;
        };
        let last = &self.done[self.done.len() - length..];
        last.iter().zip(&last[period..]).all(|(one, next)| one == next) && last[length - period].0 == signature
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

    /// Makes the calls given as letters, each with the digit after it as its result. A refused call yields `!`.
    fn check(done: &str, limit: u32, expected: &str) {
        let mut repeats = LoopDetector::new(limit);
        let pairs: Vec<char> = done.chars().collect();
        let decisions = pairs.chunks(2).map(|pair| {
            let signature = CallSignature::from_call(&pair[0].to_string(), &RawJson::empty_object(), None);
            if repeats.check_call(signature).is_some() {
                return '!';
            }
            repeats.record([(signature, &CallReport::error(pair[1]))].into_iter());
            '.'
        });
        assert_eq!(decisions.collect::<String>(), expected, "{done}");
    }

    #[test]
    fn repeated_call_with_same_result_is_refused() {
        check("a1a1a1", 3, "...");
        check("a1a1a1a1a1", 3, "...!!");
        check("a1a1a1b1a1a1a1a1", 3, ".......!");
        check("a1b1a1b1a1b1a1b1a1", 3, "......!!!");
        check("a1b1c1a1b1c1a1b1c1a1b1c1", 3, ".........!!!");
        check("a1a1", 1, ".!");
        check("a1a1", 0, ".!");
    }

    #[test]
    fn progressing_calls_are_not_repetitions() {
        check("a1a2a3a4a5a6", 3, "......");
        check("a1a1a2a2a3a3", 3, "......");
        check("a1b1a1b2a1b3a1b4", 3, "........");
        check("a1a1a1b1a1", 3, ".....");
    }

    /// Makes the calls of each word as one response, each with the digit after it as its result. A refused response
    /// yields `!`.
    fn check_rounds(done: &[&str], expected: &str) {
        let mut repeats = LoopDetector::new(3);
        let decisions = done.iter().map(|word| {
            let pairs: Vec<char> = word.chars().collect();
            let done = pairs.chunks(2).map(|pair| {
                let signature = CallSignature::from_call(&pair[0].to_string(), &RawJson::empty_object(), None);
                (signature, CallReport::error(pair[1]))
            });
            let (signatures, reports): (Vec<CallSignature>, Vec<CallReport>) = done.unzip();
            if repeats.check_round(&signatures).is_some() {
                return '!';
            }
            repeats.record(signatures.into_iter().zip(&reports));
            '.'
        });
        assert_eq!(decisions.collect::<String>(), expected, "{done:?}");
    }

    #[test]
    fn repetition_of_many_parallel_calls_is_detected() {
        let (nine, ten, other) = ("a1b1c1d1e1f1g1h1i1", "a1b1c1d1e1f1g1h1i1j1", "a1b1c1d1e1f1g1h1i2");
        check_rounds(&[nine; 5], "...!!");
        check_rounds(&[nine, ten].repeat(4), "......!!");
        check_rounds(&[nine, ten, "a1"].repeat(4), ".........!!!");
        check_rounds(&[nine, nine, other, nine, nine, other], "......");
        check_rounds(&[nine, nine, nine, ten, nine], ".....");
    }

    #[test]
    fn argument_order_and_whitespace_do_not_matter() {
        let of = |text: &str| CallSignature::from_call("t", &RawJson::parse(text.to_owned()).unwrap(), None);
        assert_eq!(of(r#"{"a":1,"b":[2]}"#), of(r#"{ "b": [2], "a": 1 }"#));
        assert_ne!(of(r#"{"a":1}"#), of(r#"{"a":2}"#));
        assert_ne!(
            CallSignature::from_call("t", &RawJson::empty_object(), Some("{")),
            CallSignature::from_call("t", &RawJson::empty_object(), None)
        );
    }

    #[test]
    fn repetition_count_is_reported() {
        let (mut repeats, signature) =
            (LoopDetector::new(2), CallSignature::from_call("t", &RawJson::empty_object(), None));
        (0..2).for_each(|_| repeats.record([(signature, &CallReport::error("x"))].into_iter()));
        assert_eq!((repeats.check_call(signature), repeats.check_call(signature)), (Some(2), Some(3)));
    }
}
