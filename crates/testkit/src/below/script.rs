//! What a [`FaultProxy`](super::FaultProxy) does to the bytes that pass through it, as a value.
//!
//! A [`Script`] is a list of [`Rule`]s: at which connection, in which direction, at which byte, what happens. This
//! module also decides, byte count in and step out, so that the proxy itself only carries.

use std::time::Duration;

/// The way bytes travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    ToServer,
    ToClient,
}

/// When a rule applies, counted in the bytes its direction has let through on the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// As soon as the connection is open, before any byte.
    Opening,
    /// When so many bytes have passed and one more arrives, which has not passed yet. `Before(0)` towards the client
    /// means: the server has begun to answer, and the client knows nothing of it.
    Before(u64),
    /// As soon as so many bytes have passed.
    After(u64),
}

/// What happens to a direction, or for the first two to the whole connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// RST to both sides.
    Cut,
    /// Closes both sides, as a process that exits does.
    Close,
    /// FIN to the receiver; whatever its sender sends from then on is thrown away. The other direction lives on.
    HalfClose,
    /// Holds everything back once, for so long.
    Delay(Duration),
    /// From then on so many bytes at a time, with a pause after each.
    Trickle { bytes: usize, every: Duration },
    /// Puts bytes in between that nobody sent.
    Garbage(Vec<u8>),
    /// Reads and forwards nothing any more, and closes nothing (H26). The system goes on acknowledging what is sent,
    /// TCP keep-alive included; only a deadline or a ping of the protocol above can tell.
    BlackHole,
}

/// Which connections a rule is for; the first is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    Every,
    Only(u64),
    /// This one and all that come after it.
    From(u64),
}

/// One thing that goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub which: Which,
    pub direction: Direction,
    pub moment: Moment,
    pub fault: Fault,
}

impl Rule {
    /// A rule for every connection.
    pub fn new(direction: Direction, moment: Moment, fault: Fault) -> Rule {
        Rule { which: Which::Every, direction, moment, fault }
    }

    /// The same rule for some connections.
    pub fn on(self, which: Which) -> Rule {
        Rule { which, ..self }
    }

    fn applies_to(&self, connection: u64) -> bool {
        match self.which {
            Which::Every => true,
            Which::Only(number) => connection == number,
            Which::From(number) => connection >= number,
        }
    }
}

/// Rules in the order in which they are tried; the empty script forwards faithfully.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    pub rules: Vec<Rule>,
}

impl Script {
    /// Adds a rule at the end.
    pub fn with(mut self, rule: Rule) -> Script {
        self.rules.push(rule);
        self
    }

    /// What one direction of one connection has before it.
    pub(super) fn lane(&self, connection: u64, direction: Direction) -> Lane {
        let ours = self.rules.iter().filter(|rule| rule.direction == direction && rule.applies_to(connection));
        Lane { pending: ours.map(|rule| (rule.moment, rule.fault.clone())).collect(), passed: 0, pace: None }
    }
}

impl From<Rule> for Script {
    fn from(rule: Rule) -> Script {
        Script { rules: vec![rule] }
    }
}

/// One direction of one connection: how far it has come, and which rules are still ahead.
#[derive(Debug)]
pub(super) struct Lane {
    pending: Vec<(Moment, Fault)>,
    passed: u64,
    pace: Option<(usize, Duration)>,
}

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Let so many bytes through, then pause.
    Pass(usize, Duration),
    Strike(Fault),
}

impl Lane {
    /// The next step when so many bytes have arrived and wait; none when only new bytes can bring one about.
    pub(super) fn next(&mut self, waiting: usize) -> Option<Step> {
        if let Some(index) = self.pending.iter().position(|(moment, _)| self.is_due(*moment, waiting)) {
            let (_, fault) = self.pending.remove(index);
            if let Fault::Trickle { bytes, every } = fault {
                self.pace = Some((bytes.max(1), every));
                return self.next(waiting);
            }
            return Some(Step::Strike(fault));
        }
        if waiting == 0 {
            return None;
        }
        let (most, pause) = self.pace.unwrap_or((usize::MAX, Duration::ZERO));
        let bytes = waiting.min(most).min(self.free());
        self.passed += bytes as u64;
        Some(Step::Pass(bytes, pause))
    }

    /// Adds a fault that is due at once.
    pub(super) fn strike(&mut self, fault: Fault) {
        self.pending.push((Moment::Opening, fault));
    }

    fn is_due(&self, moment: Moment, waiting: usize) -> bool {
        match moment {
            Moment::Opening => true,
            Moment::Before(count) => self.passed >= count && waiting > 0,
            Moment::After(count) => self.passed >= count,
        }
    }

    /// How many bytes may pass before a rule must be looked at again.
    fn free(&self) -> usize {
        let ahead = self.pending.iter().filter_map(|(moment, _)| match moment {
            Moment::Opening => None,
            Moment::Before(count) | Moment::After(count) => count.checked_sub(self.passed),
        });
        ahead.min().and_then(|count| usize::try_from(count).ok()).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds a lane chunks of bytes and tells what it did with them.
    fn check(rules: &[(Moment, Fault)], chunks: &[usize], expected: &[Step]) {
        let mut lane = Lane { pending: rules.to_vec(), passed: 0, pace: None };
        let (mut steps, mut waiting) = (Vec::new(), 0);
        for chunk in [&[0], chunks].concat() {
            waiting += chunk;
            while let Some(step) = lane.next(waiting) {
                if let Step::Pass(bytes, _) = step {
                    waiting -= bytes;
                }
                steps.push(step);
            }
        }
        assert_eq!(steps, expected, "{rules:?} over {chunks:?}");
    }

    #[test]
    fn rules_are_met_at_their_byte() {
        let pass = |bytes| Step::Pass(bytes, Duration::ZERO);
        let strike = Step::Strike;
        check(&[], &[5, 7], &[pass(5), pass(7)]);
        check(&[(Moment::Opening, Fault::Cut)], &[], &[strike(Fault::Cut)]);
        check(&[(Moment::Before(0), Fault::Cut)], &[], &[]);
        check(&[(Moment::Before(0), Fault::Cut)], &[1], &[strike(Fault::Cut), pass(1)]);
        check(&[(Moment::Before(3), Fault::Close)], &[3], &[pass(3)]);
        check(&[(Moment::Before(3), Fault::Close)], &[2, 2], &[pass(2), pass(1), strike(Fault::Close), pass(1)]);
        check(&[(Moment::After(3), Fault::Close)], &[3], &[pass(3), strike(Fault::Close)]);
        check(&[(Moment::After(3), Fault::Close)], &[9], &[pass(3), strike(Fault::Close), pass(6)]);
    }

    #[test]
    fn a_trickle_begins_at_its_byte_and_stays() {
        let every = Duration::from_millis(3);
        let slow = |bytes| Step::Pass(bytes, every);
        let trickle = (Moment::After(4), Fault::Trickle { bytes: 2, every });
        check(&[trickle], &[9], &[Step::Pass(4, Duration::ZERO), slow(2), slow(2), slow(1)]);
    }

    #[test]
    fn rules_are_for_their_connection_and_direction() {
        let rule = |which| Rule::new(Direction::ToClient, Moment::Opening, Fault::Cut).on(which);
        let fires =
            |which, connection, direction| Script::from(rule(which)).lane(connection, direction).next(0).is_some();
        assert!(fires(Which::Every, 7, Direction::ToClient));
        assert!(!fires(Which::Every, 7, Direction::ToServer));
        assert!(fires(Which::Only(2), 2, Direction::ToClient));
        assert!(!fires(Which::Only(2), 3, Direction::ToClient));
        assert!(!fires(Which::From(2), 1, Direction::ToClient));
        assert!(fires(Which::From(2), 3, Direction::ToClient));
    }
}
