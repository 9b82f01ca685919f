//! The end of a history: the system comes to rest, and no server is stuck unless it needs a command.

use wharf_spec::ActivationState;

use super::call::End;
use super::{NAMES, Simulation};
use crate::supervise::phase::{Phase, RecoveryTrigger};
use crate::supervise::step::{SupervisionPolicy, SupervisorCommand, SupervisorEvent};

/// Maximum number of rounds before a history counts as endless.
const MAX_ROUNDS: usize = 2_000;

impl Simulation {
    /// Runs until the system is at rest. Every attempt succeeds and no connection is lost; calls end before their
    /// timeout.
    pub(super) fn run_until_idle(&mut self) {
        for _ in 0..MAX_ROUNDS {
            let moved = self.advance_all();
            if self.is_at_rest() {
                return;
            }
            if !moved {
                self.wait_for_next();
            }
        }
        panic!("it does not come to rest");
    }

    fn advance_all(&mut self) -> bool {
        let mut moved = false;
        for server in 0..self.servers.len() {
            moved |= self.advance_server(server);
        }
        for call in self.live.clone() {
            moved |= self.advance(call);
        }
        moved
    }

    fn advance_server(&mut self, server: usize) -> bool {
        self.drain(server);
        if self.servers[server].has_left() {
            return false;
        }
        let demand = self.servers[server].demand;
        self.deliver_wake_up(server);
        if self.servers[server].is_connecting() {
            self.connect(server);
            return true;
        }
        let lost = self.servers[server].link().is_some_and(|link| !link.alive.get());
        if lost {
            self.notify_loss(server);
        }
        let due = self.servers[server].due(self.now).is_some_and(|due| due <= self.now);
        if due {
            self.deliver_timer(server);
        }
        demand || lost || due
    }

    fn wait_for_next(&mut self) {
        let dates = self.servers.iter().flat_map(|server| [server.due(self.now), server.drains_until()]);
        let next = dates.flatten().filter(|date| *date > self.now).min();
        self.now = next.expect("something is still to come, so it comes at some time");
    }

    fn is_at_rest(&self) -> bool {
        let rests = |phase: &Phase<_, _>| {
            let coming = matches!(phase, Phase::Connecting { .. } | Phase::Reconnecting { .. });
            !coming && !matches!(phase, Phase::Failed { comes_back: RecoveryTrigger::ByItself, .. })
        };
        let connected = |server: &super::SimulatedServer| server.link().is_none_or(|link| link.alive.get());
        let calm = self.servers.iter().all(|it| rests(it.phase()) && connected(it) && it.drains_until().is_none());
        calm && self.live.is_empty()
    }

    /// Checks that each server is in the expected phase and serves calls accordingly.
    pub(super) fn check_service(&mut self) {
        for name in 0..NAMES {
            let server = self.current[name];
            let SupervisionPolicy { admission, lazy, .. } = self.servers[server].keeping;
            let serves = match *self.servers[server].phase() {
                Phase::Ready { .. } => true,
                Phase::Idle => {
                    assert!(lazy, "only what is lazy rests");
                    true
                }
                Phase::Failed { until, comes_back } => {
                    self.now = self.now.max(until);
                    comes_back != RecoveryTrigger::ByHand
                }
                _ => false,
            };
            let barred = matches!(self.servers[server].phase(), Phase::Disabled | Phase::Unapproved);
            assert_eq!(barred, admission != ActivationState::Enabled);
            self.expect(name, if serves { End::Answered(server) } else { End::Unavailable });
        }
    }

    /// Checks that a command can leave every phase.
    pub(super) fn check_recovery(&mut self) {
        for name in 0..NAMES {
            let server = self.current[name];
            let keeping = SupervisionPolicy { admission: ActivationState::Enabled, ..self.servers[server].keeping };
            self.servers[server].keeping = keeping;
            self.step(server, SupervisorEvent::Command(SupervisorCommand::Keep(keeping)));
            self.step(server, SupervisorEvent::Command(SupervisorCommand::Connect));
            self.expect(name, End::Answered(server));
        }
    }

    fn expect(&mut self, name: usize, end: End) {
        let call = self.call(name);
        self.run_until_idle();
        assert_eq!(self.calls[call].end(), Some(end));
    }

    pub(super) fn close(&mut self) {
        for server in self.current {
            self.servers[server].leave(self.now);
        }
        self.run_until_idle();
        assert!(self.servers.iter().all(|server| server.in_flight == 0 && server.has_left()));
    }
}
