//! How much poison is found, and how much honest text is taken for it (threat T11).
//!
//! `attacks.txt`, `exact.txt` and `benign.txt` are what the rules were written against: 96.7 % of 11,774 poisoned tools
//! found, 0.9 % of 3,817 honest ones withheld. `unseen_*.txt` were written when the rules stood and are never tuned to:
//! 25.0 % of 40 found, 1.0 % of 202 withheld. That is what to expect of texts that nobody has thought of. The set of
//! unseen attacks is the twelfth; of those before it, since taken in among the others, 28, 62, 24, 63, 60, 66, 74, 72,
//! 72, 22 and 25 % were found when they were new. Whoever tunes the rules to a set writes a new one.
//!
//! The rules find less than they once did, in order to withhold less: of 1,060 tools of 44 servers that people use, 2
//! are withheld where it had been 116. Of servers that they had not been tuned to yet, it was about 3 % both times.

mod corpus;
mod cost;

use corpus::{Sample, attacks, benign, plain, unseen};
use wharf::inspect::{inspect, is_quarantined};

/// How many of the samples are quarantined, and the first few that should have been judged otherwise.
struct Tally {
    judged: usize,
    quarantined: usize,
    wrong: Vec<String>,
}

impl Tally {
    fn of(samples: impl Iterator<Item = Sample>, is_poison: bool) -> Self {
        let mut tally = Self { judged: 0, quarantined: 0, wrong: Vec::new() };
        for sample in samples {
            let findings = inspect(&sample.tool);
            let quarantined = is_quarantined(&findings);
            tally.judged += 1;
            tally.quarantined += usize::from(quarantined);
            if quarantined != is_poison {
                let signs: Vec<_> =
                    findings.iter().map(|f| format!("{} {:?} {}", f.rule, f.weight, f.excerpt)).collect();
                tally.wrong.push(format!("[{}] {} {signs:?}", sample.form, sample.text));
            }
        }
        tally
    }

    fn share(&self) -> f64 {
        self.quarantined as f64 / self.judged as f64
    }

    fn shown(&self) -> String {
        let wrong = self.wrong[..self.wrong.len().min(40)].join("\n");
        format!("{} of {} quarantined ({:.1} %)\n{wrong}", self.quarantined, self.judged, 100.0 * self.share())
    }
}

#[test]
fn poisoned_texts_are_detected_in_any_disguise() {
    let tally = Tally::of(attacks(), true);
    assert!(tally.judged >= 200 && tally.share() >= 0.95, "{}", tally.shown());
}

/// Without the disguises, some of which give themselves away.
#[test]
fn plain_poisoned_texts_are_detected() {
    let tally = Tally::of(plain("attacks.txt"), true);
    assert!(tally.judged >= 60 && tally.share() >= 0.95, "{}", tally.shown());
}

#[test]
fn benign_tools_are_not_quarantined() {
    let tally = Tally::of(benign(), false);
    assert!(tally.judged >= 2_000 && tally.share() <= 0.01, "{}", tally.shown());
    let tally = Tally::of(plain("benign.txt"), false);
    assert!(tally.judged >= 150 && tally.share() <= 0.01, "{}", tally.shown());
}

#[test]
fn unseen_texts_meet_minimum_detection_rates() {
    let (attacks, benign) = unseen();
    let found = Tally::of(attacks, true);
    assert!(found.judged >= 40 && found.share() >= 0.20, "{}", found.shown());
    let withheld = Tally::of(benign, false);
    assert!(withheld.judged >= 150 && withheld.share() <= 0.03, "{}", withheld.shown());
}
