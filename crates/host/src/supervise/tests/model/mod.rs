//! Several supervisors under random histories of commands, replacements, failures, losses and calls. Invariants: no
//! call is lost, made twice or sent to another server, and no connection is left open.

mod call;
mod finish;
mod random;
mod server;

use std::collections::HashSet;
use std::panic::catch_unwind;
use std::time::Duration;

use tokio::time::Instant;

use self::call::{CallEndKind, SimulatedCall};
use self::random::SeededRandom;
use self::server::SimulatedServer;
use super::{login_error, permanent_error, transient_error};
use crate::supervise::step::{SupervisorCommand, SupervisorEvent};

/// Number of histories, each with its own seed.
const SEEDS: u64 = 10_000;
/// The single seed to run when debugging a failed history.
const ONLY_SEED: Option<u64> = None;
/// Number of random events in a history before it is left to come to rest.
const EVENTS_PER_HISTORY: usize = 2_500;
const NAMES: usize = 4;
/// Maximum number of calls in progress.
const MAX_CALLS: usize = 40;

#[test]
fn random_histories_never_lose_or_misroute_a_call() {
    let seeds = ONLY_SEED.map_or(0..SEEDS, |seed| seed..seed + 1);
    let mut ends = HashSet::new();
    for seed in seeds {
        match catch_unwind(|| Simulation::new(seed).run()) {
            Ok(seen) => ends.extend(seen),
            Err(_) => panic!("the history of seed {seed} failed (see above): set `ONLY` to debug it"),
        }
    }
    // A run that covers fewer kinds of ends would prove too little.
    assert!(ONLY_SEED.is_some() || ends.len() >= CallEndKind::LEAST, "{ends:?}");
}

/// Servers and calls. Events that a runtime would process in any order are processed in random order.
pub(super) struct Simulation {
    dice: SeededRandom,
    now: Instant,
    /// All servers of the history. A later server of the same name has replaced an earlier one.
    servers: Vec<SimulatedServer>,
    /// Index of the current server of each name.
    current: [usize; NAMES],
    calls: Vec<SimulatedCall>,
    /// Calls in progress.
    live: Vec<usize>,
    ends: HashSet<CallEndKind>,
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let mut world = Self {
            dice: SeededRandom::new(seed),
            now: Instant::now(),
            servers: Vec::new(),
            current: [0; NAMES],
            calls: Vec::new(),
            live: Vec::new(),
            ends: HashSet::new(),
        };
        (0..NAMES).for_each(|name| world.replace(name));
        world
    }

    /// Runs a history and returns the kinds of ends of its calls.
    fn run(mut self) -> HashSet<CallEndKind> {
        for _ in 0..EVENTS_PER_HISTORY {
            self.random_event();
        }
        self.run_until_idle();
        self.check_service();
        self.check_recovery();
        self.close();
        self.ends
    }

    /// Performs one random event, if it is possible.
    fn random_event(&mut self) {
        let server = match self.dice.below(8) {
            0 => self.dice.below(self.servers.len()),
            _ => self.current[self.dice.below(NAMES)],
        };
        match self.dice.below(100) {
            0..16 => self.make_call(),
            16..50 => self.advance_some_call(),
            50..62 => self.finish_attempt(server),
            62..66 => self.break_connection(server),
            66..72 => self.notify_loss(server),
            72..74 => self.deliver_stale_result(server),
            74..79 => self.command(server),
            79..81 => {
                let name = self.dice.below(NAMES);
                self.replace(name);
            }
            81..88 => self.advance_time(),
            88..92 => self.deliver_wake_up(server),
            92..97 => self.deliver_timer(server),
            97..99 => self.servers[server].held = self.dice.below(2),
            _ => self.drain(server),
        }
    }

    fn step(&mut self, server: usize, event: SupervisorEvent<server::SimulatedLinkRef>) {
        let is_command = matches!(event, SupervisorEvent::Command(_));
        self.servers[server].step(event, self.now, is_command);
    }

    fn finish_attempt(&mut self, server: usize) {
        if !self.servers[server].is_connecting() {
            return;
        }
        let epoch = self.servers[server].epoch();
        let error = match self.dice.below(20) {
            0..11 => return self.connect(server),
            11..15 => transient_error(),
            15..17 => permanent_error(),
            17 => login_error(),
            // The attempt hangs.
            _ => return,
        };
        self.step(server, SupervisorEvent::NotConnected { epoch, error });
    }

    fn connect(&mut self, server: usize) {
        let epoch = self.servers[server].epoch();
        let open = self.servers[server].open(server, epoch);
        self.step(server, SupervisorEvent::Connected { epoch, open });
    }

    /// Breaks the connection. Calls notice it themselves; the supervisor is notified separately.
    fn break_connection(&mut self, server: usize) {
        if let Some(link) = self.servers[server].link() {
            link.alive.set(false);
        }
    }

    /// Notifies the supervisor of a loss. Sometimes a false one, as for a server that hangs.
    fn notify_loss(&mut self, server: usize) {
        let Some(link) = self.servers[server].link() else { return };
        if !link.alive.get() || self.dice.below(8) == 0 {
            self.step(server, SupervisorEvent::Lost { epoch: link.epoch, error: transient_error() });
        }
    }

    /// Delivers the result of an outdated attempt.
    fn deliver_stale_result(&mut self, server: usize) {
        let epoch = self.servers[server].epoch();
        if epoch == 0 || self.servers[server].has_left() {
            return;
        }
        let event = match self.dice.below(3) {
            0 => SupervisorEvent::Connected { epoch: epoch - 1, open: self.servers[server].open(server, epoch - 1) },
            1 => SupervisorEvent::NotConnected { epoch: epoch - 1, error: permanent_error() },
            _ => SupervisorEvent::Lost { epoch: epoch - 1, error: transient_error() },
        };
        self.step(server, event);
    }

    fn command(&mut self, server: usize) {
        if self.servers[server].has_left() {
            return;
        }
        let command = match self.dice.below(8) {
            0 | 1 => SupervisorCommand::Connect,
            2 => SupervisorCommand::Disconnect,
            3 => SupervisorCommand::Reconnect,
            _ => {
                let keeping = self.dice.policy();
                self.servers[server].keeping = keeping;
                SupervisorCommand::Keep(keeping)
            }
        };
        self.step(server, SupervisorEvent::Command(command));
    }

    /// Replaces the server of a name. As in a change of the server set, the new server exists before the old one
    /// leaves.
    fn replace(&mut self, name: usize) {
        let (keeping, seed) = (self.dice.policy(), self.dice.next());
        let first = self.servers.len() < NAMES;
        let before = std::mem::replace(&mut self.current[name], self.servers.len());
        self.servers.push(SimulatedServer::new(name, keeping, seed, self.now));
        if !first {
            self.servers[before].leave(self.now);
        }
    }

    fn advance_time(&mut self) {
        let most = [5, 300, 2_000, 15_000, 700_000][self.dice.below(5)];
        let millis = self.dice.below(most);
        self.now += Duration::from_millis(millis as u64);
    }

    /// Delivers a pending wake-up to the server.
    fn deliver_wake_up(&mut self, server: usize) {
        if std::mem::take(&mut self.servers[server].demand) && !self.servers[server].has_left() {
            self.step(server, SupervisorEvent::Demand);
        }
    }

    fn deliver_timer(&mut self, server: usize) {
        if !self.servers[server].has_left() {
            self.servers[server].deliver_timer(self.now);
        }
    }

    /// Closes the connection of a server that has left, once it is unused or its drain timeout has passed.
    fn drain(&mut self, server: usize) {
        self.servers[server].drain(self.now);
    }
}
