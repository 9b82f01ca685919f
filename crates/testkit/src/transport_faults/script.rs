//! Scripts of a [`FaultProxy`](super::FaultProxy), as values.
//!
//! A [`Script`] is a list of [`Rule`]s with connection, direction, byte position and fault. This module also makes the
//! decisions, from byte counts to steps, so that the proxy only forwards.

use std::time::Duration;

/// Direction of travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    ToServer,
    ToClient,
}

/// Position of a fault, in bytes forwarded in its direction of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultPosition {
    /// When the connection opens, before any byte.
    Opening,
    /// When this many bytes were forwarded and one more has arrived but is not forwarded. `Before(0)` to the client
    /// means: the server has started to respond, and the client has received nothing.
    Before(u64),
    /// When this many bytes were forwarded.
    After(u64),
}

/// A fault of one direction, or for the first two of the whole connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ByteFault {
    /// RST to both sides.
    Cut,
    /// Closes both sides, like an exiting process.
    Close,
    /// FIN to the receiver; further data from the sender is discarded. The other direction continues.
    HalfClose,
    /// Delays everything once.
    Delay(Duration),
    /// From here on, forwards this many bytes at a time with a pause after each.
    Trickle { bytes: usize, every: Duration },
    /// Injects bytes.
    Garbage(Vec<u8>),
    /// Stops reading and forwarding without closing (H26). The kernel keeps acknowledging data and TCP keep-alives, so
    /// only a deadline or a protocol-level ping can detect it.
    BlackHole,
}

/// The connections a rule applies to; the first is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionFilter {
    Every,
    Only(u64),
    /// This connection and all later ones.
    From(u64),
}

/// One fault with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultRule {
    pub which: ConnectionFilter,
    pub direction: Direction,
    pub moment: FaultPosition,
    pub fault: ByteFault,
}

impl FaultRule {
    /// Creates a rule for every connection.
    pub fn new(direction: Direction, moment: FaultPosition, fault: ByteFault) -> FaultRule {
        FaultRule { which: ConnectionFilter::Every, direction, moment, fault }
    }

    /// Restricts the rule to some connections.
    pub fn for_connections(self, which: ConnectionFilter) -> FaultRule {
        FaultRule { which, ..self }
    }

    fn applies_to(&self, connection: u64) -> bool {
        match self.which {
            ConnectionFilter::Every => true,
            ConnectionFilter::Only(number) => connection == number,
            ConnectionFilter::From(number) => connection >= number,
        }
    }
}

/// Rules in order of evaluation. The empty script forwards everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultScript {
    pub rules: Vec<FaultRule>,
}

impl FaultScript {
    /// Appends a rule.
    pub fn with_rule(mut self, rule: FaultRule) -> FaultScript {
        self.rules.push(rule);
        self
    }

    /// Returns the rules of one direction of one connection.
    pub(super) fn lane(&self, connection: u64, direction: Direction) -> LaneState {
        let ours = self.rules.iter().filter(|rule| rule.direction == direction && rule.applies_to(connection));
        LaneState { pending: ours.map(|rule| (rule.moment, rule.fault.clone())).collect(), passed: 0, pace: None }
    }
}

impl From<FaultRule> for FaultScript {
    fn from(rule: FaultRule) -> FaultScript {
        FaultScript { rules: vec![rule] }
    }
}

/// State of one direction of one connection: forwarded bytes, and pending rules.
#[derive(Debug)]
pub(super) struct LaneState {
    pending: Vec<(FaultPosition, ByteFault)>,
    passed: u64,
    pace: Option<(usize, Duration)>,
}

/// The next action.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LaneStep {
    /// Forward this many bytes, then pause.
    Pass(usize, Duration),
    Strike(ByteFault),
}

impl LaneState {
    /// Returns the next step, given the number of waiting bytes; `None` if more bytes are needed.
    pub(super) fn next(&mut self, waiting: usize) -> Option<LaneStep> {
        if let Some(index) = self.pending.iter().position(|(moment, _)| self.is_due(*moment, waiting)) {
            let (_, fault) = self.pending.remove(index);
            if let ByteFault::Trickle { bytes, every } = fault {
                self.pace = Some((bytes.max(1), every));
                return self.next(waiting);
            }
            return Some(LaneStep::Strike(fault));
        }
        if waiting == 0 {
            return None;
        }
        let (most, pause) = self.pace.unwrap_or((usize::MAX, Duration::ZERO));
        let bytes = waiting.min(most).min(self.bytes_until_next_rule());
        self.passed += bytes as u64;
        Some(LaneStep::Pass(bytes, pause))
    }

    /// Adds a fault that is due immediately.
    pub(super) fn inject_now(&mut self, fault: ByteFault) {
        self.pending.push((FaultPosition::Opening, fault));
    }

    fn is_due(&self, moment: FaultPosition, waiting: usize) -> bool {
        match moment {
            FaultPosition::Opening => true,
            FaultPosition::Before(count) => self.passed >= count && waiting > 0,
            FaultPosition::After(count) => self.passed >= count,
        }
    }

    /// Returns the number of bytes that may pass before a rule must be evaluated again.
    fn bytes_until_next_rule(&self) -> usize {
        let ahead = self.pending.iter().filter_map(|(moment, _)| match moment {
            FaultPosition::Opening => None,
            FaultPosition::Before(count) | FaultPosition::After(count) => count.checked_sub(self.passed),
        });
        ahead.min().and_then(|count| usize::try_from(count).ok()).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds chunks of bytes to a lane and compares its steps.
    fn check(rules: &[(FaultPosition, ByteFault)], chunks: &[usize], expected: &[LaneStep]) {
        let mut lane = LaneState { pending: rules.to_vec(), passed: 0, pace: None };
        let (mut steps, mut waiting) = (Vec::new(), 0);
        for chunk in [&[0], chunks].concat() {
            waiting += chunk;
            while let Some(step) = lane.next(waiting) {
                if let LaneStep::Pass(bytes, _) = step {
                    waiting -= bytes;
                }
                steps.push(step);
            }
        }
        assert_eq!(steps, expected, "{rules:?} over {chunks:?}");
    }

    #[test]
    fn rules_apply_at_their_byte() {
        let pass = |bytes| LaneStep::Pass(bytes, Duration::ZERO);
        let strike = LaneStep::Strike;
        check(&[], &[5, 7], &[pass(5), pass(7)]);
        check(&[(FaultPosition::Opening, ByteFault::Cut)], &[], &[strike(ByteFault::Cut)]);
        check(&[(FaultPosition::Before(0), ByteFault::Cut)], &[], &[]);
        check(&[(FaultPosition::Before(0), ByteFault::Cut)], &[1], &[strike(ByteFault::Cut), pass(1)]);
        check(&[(FaultPosition::Before(3), ByteFault::Close)], &[3], &[pass(3)]);
        check(
            &[(FaultPosition::Before(3), ByteFault::Close)],
            &[2, 2],
            &[pass(2), pass(1), strike(ByteFault::Close), pass(1)],
        );
        check(&[(FaultPosition::After(3), ByteFault::Close)], &[3], &[pass(3), strike(ByteFault::Close)]);
        check(&[(FaultPosition::After(3), ByteFault::Close)], &[9], &[pass(3), strike(ByteFault::Close), pass(6)]);
    }

    #[test]
    fn a_trickle_begins_at_its_byte_and_stays() {
        let every = Duration::from_millis(3);
        let slow = |bytes| LaneStep::Pass(bytes, every);
        let trickle = (FaultPosition::After(4), ByteFault::Trickle { bytes: 2, every });
        check(&[trickle], &[9], &[LaneStep::Pass(4, Duration::ZERO), slow(2), slow(2), slow(1)]);
    }

    #[test]
    fn rules_are_for_their_connection_and_direction() {
        let rule =
            |which| FaultRule::new(Direction::ToClient, FaultPosition::Opening, ByteFault::Cut).for_connections(which);
        let fires =
            |which, connection, direction| FaultScript::from(rule(which)).lane(connection, direction).next(0).is_some();
        assert!(fires(ConnectionFilter::Every, 7, Direction::ToClient));
        assert!(!fires(ConnectionFilter::Every, 7, Direction::ToServer));
        assert!(fires(ConnectionFilter::Only(2), 2, Direction::ToClient));
        assert!(!fires(ConnectionFilter::Only(2), 3, Direction::ToClient));
        assert!(!fires(ConnectionFilter::From(2), 1, Direction::ToClient));
        assert!(fires(ConnectionFilter::From(2), 3, Direction::ToClient));
    }
}
