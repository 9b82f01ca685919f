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

    /// Returns the rules of one connection, to the server and to the client.
    pub(super) fn lanes(&self, connection: u64) -> [LaneState; 2] {
        [Direction::ToServer, Direction::ToClient].map(|direction| self.lane(connection, direction))
    }

    fn lane(&self, connection: u64, direction: Direction) -> LaneState {
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
