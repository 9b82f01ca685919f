//! A call of the model. It decides as `Server::carry` and `Context::call_passed` do, using the same functions.

use std::rc::Rc;
use std::time::Duration;

use tokio::time::Instant;

use super::server::SimulatedLinkRef;
use super::{MAX_CALLS, NAMES, Simulation};
use crate::routing::{NextStep, RetryState, next_step};
use crate::supervise::Availability;

/// Timeout of a call that waits for its server.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

pub struct SimulatedCall {
    name: usize,
    /// The server that had the name when the call was made.
    made_of: usize,
    /// The server that currently handles the call.
    pub server: usize,
    retry: RetryState,
    stage: CallStage,
    delivered: bool,
    until: Instant,
}

enum CallStage {
    Waiting,
    /// Has a connection and has not been sent.
    Going(SimulatedLinkRef),
    /// Delivered and not answered.
    Arrived(SimulatedLinkRef),
    Over(End),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Holds the server that answered.
    Answered(usize),
    Unknown,
    Gone,
    Unavailable,
    NotInTime,
}

/// The end of a call, and whether its server was replaced in the meantime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallEndKind {
    end: &'static str,
    replaced: bool,
}

impl CallEndKind {
    /// Number of kinds that occur: all except a call that moves to another server and then finds three broken
    /// connections.
    pub const LEAST: usize = 9;

    fn from_call(call: &SimulatedCall, end: End) -> Self {
        let end = match end {
            End::Answered(_) => "answered",
            End::Unknown => "unknown",
            End::Gone => "gone",
            End::Unavailable => "unavailable",
            End::NotInTime => "not in time",
        };
        Self { end, replaced: call.server != call.made_of }
    }
}

impl SimulatedCall {
    pub fn end(&self) -> Option<End> {
        match self.stage {
            CallStage::Over(end) => Some(end),
            _ => None,
        }
    }
}

impl Simulation {
    pub(super) fn make_call(&mut self) {
        if self.live.len() < MAX_CALLS {
            let name = self.dice.below(NAMES);
            self.call(name);
        }
    }

    /// Makes a call and returns its index.
    pub(super) fn call(&mut self, name: usize) -> usize {
        let server = self.current[name];
        self.servers[server].in_flight += 1;
        let (retry, until) = (RetryState::default(), self.now + CALL_TIMEOUT);
        let made =
            SimulatedCall { name, made_of: server, server, retry, stage: CallStage::Waiting, delivered: false, until };
        self.live.push(self.calls.len());
        self.calls.push(made);
        self.calls.len() - 1
    }

    pub(super) fn advance_some_call(&mut self) {
        if self.live.is_empty() {
            return;
        }
        let call = self.live[self.dice.below(self.live.len())];
        self.advance(call);
        if matches!(self.calls[call].stage, CallStage::Waiting) && self.now >= self.calls[call].until {
            self.end_call(call, End::NotInTime);
        }
    }

    /// Performs the next step of a call. Returns whether there was one.
    pub(super) fn advance(&mut self, call: usize) -> bool {
        match &self.calls[call].stage {
            CallStage::Waiting => self.find_connection(call),
            CallStage::Going(link) => self.deliver(call, Rc::clone(link)),
            CallStage::Arrived(link) => {
                let end = if link.alive.get() { End::Answered(link.server) } else { End::Unknown };
                self.end_call(call, end);
                true
            }
            CallStage::Over(_) => false,
        }
    }

    fn find_connection(&mut self, call: usize) -> bool {
        let (server, broken_epoch) = (&mut self.servers[self.calls[call].server], self.calls[call].retry.broken_epoch);
        match (next_step(&server.availability(), server.epoch(), broken_epoch, self.now), server.availability()) {
            (NextStep::Go, Availability::Open(link)) => {
                assert_eq!(link.epoch, server.epoch(), "a connection goes by the number it is known by");
                self.calls[call].stage = CallStage::Going(link);
                true
            }
            (NextStep::Wake, _) => !std::mem::replace(&mut server.demand, true),
            (NextStep::GiveUp, _) => {
                self.move_to_replacement(call);
                true
            }
            _ => false,
        }
    }

    /// Moves the call to the server's replacement if there is one, otherwise ends it.
    fn move_to_replacement(&mut self, call: usize) {
        let SimulatedCall { name, server, .. } = self.calls[call];
        let now = self.current[name];
        if now == server {
            return self.end_call(call, End::Unavailable);
        }
        self.release(server);
        self.servers[now].in_flight += 1;
        self.calls[call].server = now;
        self.calls[call].retry = RetryState::default();
    }

    fn deliver(&mut self, call: usize, link: SimulatedLinkRef) -> bool {
        let SimulatedCall { name, made_of, delivered, .. } = self.calls[call];
        if !link.alive.get() {
            let again = self.calls[call].retry.record_break(link.epoch);
            if again {
                self.calls[call].stage = CallStage::Waiting;
            } else {
                self.end_call(call, End::Gone);
            }
            return true;
        }
        assert!(!delivered, "a call arrives once");
        assert_eq!(self.servers[link.server].name, name, "a call arrives at its own server");
        assert!(link.server >= made_of, "a call made after a replacement does not go to what was replaced");
        self.calls[call].delivered = true;
        self.calls[call].stage = CallStage::Arrived(link);
        true
    }

    fn end_call(&mut self, call: usize, end: End) {
        assert_eq!(self.calls[call].end(), None, "a call ends once");
        let arrived = matches!(end, End::Answered(_) | End::Unknown);
        assert_eq!(arrived, self.calls[call].delivered, "how a call ends tells whether it arrived");
        self.ends.insert(CallEndKind::from_call(&self.calls[call], end));
        self.calls[call].stage = CallStage::Over(end);
        self.live.retain(|other| *other != call);
        self.release(self.calls[call].server);
    }

    fn release(&mut self, server: usize) {
        self.servers[server].in_flight -= 1;
        self.servers[server].last_used = self.now;
    }
}
