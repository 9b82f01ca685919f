//! A server of the model: a real supervisor with simulated connections, and the invariants checked after every step.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use tokio::time::Instant;

use super::super::clock_reading;
use crate::supervise::phase::Phase;
use crate::supervise::step::{ServerActivity, SupervisionPolicy, Supervisor, SupervisorEffect, SupervisorEvent};
use crate::supervise::{Availability, ServerState};

/// Time that calls of a server that has left have to finish.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// A simulated connection.
pub struct SimulatedLink {
    pub server: usize,
    pub epoch: u64,
    pub alive: Cell<bool>,
    closed: Cell<bool>,
}

pub type SimulatedLinkRef = Rc<SimulatedLink>;

/// An attempt in progress, counted until it is dropped.
pub struct SimulatedAttempt(Rc<Cell<usize>>);

impl SimulatedAttempt {
    fn new(count: &Rc<Cell<usize>>) -> Self {
        count.set(count.get() + 1);
        Self(Rc::clone(count))
    }
}

impl Drop for SimulatedAttempt {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

pub struct SimulatedServer {
    pub name: usize,
    pub keeping: SupervisionPolicy,
    pub in_flight: usize,
    pub held: usize,
    pub last_used: Instant,
    /// A wake-up has been requested and not been delivered yet.
    pub demand: bool,
    supervisor: Supervisor<SimulatedAttempt, SimulatedLinkRef>,
    attempts: Rc<Cell<usize>>,
    /// Connections that are open.
    unclosed: Vec<SimulatedLinkRef>,
    /// Time of the last start, unless a command has been processed since.
    started: Option<Instant>,
    leaving: Option<(Option<SimulatedLinkRef>, Instant)>,
}

impl SimulatedServer {
    pub fn new(name: usize, keeping: SupervisionPolicy, seed: u64, now: Instant) -> Self {
        let mut server = Self {
            name,
            keeping,
            in_flight: 0,
            held: 0,
            last_used: now,
            demand: false,
            supervisor: Supervisor::new(keeping, seed, clock_reading(now)),
            attempts: Rc::default(),
            unclosed: Vec::new(),
            started: None,
            leaving: None,
        };
        let effects = server.supervisor.begin(clock_reading(now));
        effects.into_iter().for_each(|effect| server.perform(effect, now));
        server.check();
        server
    }

    pub fn step(&mut self, event: SupervisorEvent<SimulatedLinkRef>, now: Instant, is_command: bool) {
        assert!(!self.has_left());
        let (before, barred_before) = (self.state(), self.is_barred());
        let effects = self.supervisor.step(event, clock_reading(now));
        if is_command && (before != self.state() || !effects.is_empty()) {
            self.started = None;
        }
        if self.is_barred() {
            let only_closes = effects.iter().all(|effect| matches!(effect, SupervisorEffect::Close(_)));
            assert!(only_closes, "a server that may not be used is left alone");
            let stale = |effect: &SupervisorEffect<SimulatedLinkRef>| matches!(effect, SupervisorEffect::Close(link) if link.epoch < self.epoch());
            assert!(!barred_before || effects.iter().all(stale), "it has nothing of its own");
        }
        effects.into_iter().for_each(|effect| self.perform(effect, now));
        self.check();
    }

    fn perform(&mut self, effect: SupervisorEffect<SimulatedLinkRef>, now: Instant) {
        match effect {
            SupervisorEffect::Connect(epoch) => {
                assert_eq!(epoch, self.epoch());
                assert!(self.is_connecting() && self.attempts.get() == 0, "one attempt at a time");
                let early = self.started.is_some_and(|started| now - started < Duration::from_secs(1));
                assert!(!early, "it is started once a second at most");
                self.started = Some(now);
                self.supervisor.store_attempt(SimulatedAttempt::new(&self.attempts));
            }
            SupervisorEffect::Close(link) => self.close(&link),
            SupervisorEffect::Check(epoch) => {
                assert!(epoch == self.epoch() && self.link().is_some(), "who is asked is there")
            }
        }
    }

    fn close(&mut self, link: &SimulatedLinkRef) {
        assert!(!link.closed.replace(true), "a connection is closed once");
        link.alive.set(false);
        self.unclosed.retain(|other| !Rc::ptr_eq(other, link));
    }

    /// Checks the invariants.
    fn check(&self) {
        assert_eq!(self.attempts.get(), usize::from(self.is_connecting()), "an attempt is held just while connecting");
        let held = self.link().or_else(|| self.leaving.as_ref()?.0.clone());
        assert_eq!(self.unclosed.len(), usize::from(held.is_some()), "a connection is held or closed");
        assert!(self.unclosed.iter().zip(&held).all(|(link, held)| Rc::ptr_eq(link, held)));
    }

    /// Delivers a timer event. A timer that is due has to cause an effect or move to a later time.
    pub fn deliver_timer(&mut self, now: Instant) {
        let due = self.due(now);
        let before = (self.state(), self.epoch());
        self.step(SupervisorEvent::Due(self.activity(now)), now, false);
        if due.is_some_and(|due| due <= now) && before == (self.state(), self.epoch()) {
            assert!(self.due(now).is_none_or(|next| next > now), "it would be looked at without end");
        }
    }

    pub fn due(&self, now: Instant) -> Option<Instant> {
        if self.has_left() { None } else { self.supervisor.next_due(self.activity(now), now) }
    }

    fn activity(&self, now: Instant) -> ServerActivity {
        let last_used = if self.in_flight > 0 { now } else { self.last_used };
        ServerActivity { in_flight: self.in_flight, held: self.held, last_used }
    }

    /// Opens a connection for an attempt.
    pub fn open(&mut self, server: usize, epoch: u64) -> SimulatedLinkRef {
        let link = Rc::new(SimulatedLink { server, epoch, alive: Cell::new(true), closed: Cell::new(false) });
        self.unclosed.push(Rc::clone(&link));
        link
    }

    /// Ends the supervision. Calls in progress have a short time to finish.
    pub fn leave(&mut self, now: Instant) {
        let link = self.supervisor.end(clock_reading(now));
        self.leaving = Some((link, now + DRAIN_TIMEOUT));
        self.check();
    }

    pub fn drain(&mut self, now: Instant) {
        let Some((link, until)) = &mut self.leaving else { return };
        if self.in_flight == 0 || now >= *until {
            let link = link.take();
            link.iter().for_each(|link| self.close(link));
            self.check();
        }
    }

    /// Returns the end of the drain timeout while the server is draining.
    pub fn drains_until(&self) -> Option<Instant> {
        self.leaving.as_ref().and_then(|(link, until)| link.as_ref().map(|_| *until))
    }

    pub fn has_left(&self) -> bool {
        self.leaving.is_some()
    }

    pub fn epoch(&self) -> u64 {
        self.supervisor.epoch()
    }

    pub fn state(&self) -> ServerState {
        self.supervisor.state()
    }

    pub fn phase(&self) -> &Phase<SimulatedAttempt, SimulatedLinkRef> {
        self.supervisor.phase()
    }

    pub fn availability(&self) -> Availability<SimulatedLinkRef> {
        Availability::from_phase(self.supervisor.phase(), Rc::clone)
    }

    pub fn is_connecting(&self) -> bool {
        matches!(self.phase(), Phase::Connecting { .. })
    }

    fn is_barred(&self) -> bool {
        matches!(self.phase(), Phase::Disabled | Phase::Unapproved)
    }

    /// Returns the connection of a ready server.
    pub fn link(&self) -> Option<SimulatedLinkRef> {
        match self.phase() {
            Phase::Ready { open, .. } => Some(Rc::clone(open)),
            _ => None,
        }
    }
}
