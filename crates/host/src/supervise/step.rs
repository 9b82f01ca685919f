//! Supervisor decisions. No clock, no I/O: events in, effects out.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use wharf_spec::{ActivationState, BackoffSettings, ReconnectPolicy};

use super::backoff::{RetrySchedule, STABLE_UPTIME};
use super::phase::{Phase, RecoveryTrigger, ServerState};
use crate::server_error::ServerError;

/// Minimum interval between two checks of a ready server, regardless of its settings.
const MIN_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The part of a server's settings that the supervisor needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SupervisionPolicy {
    pub admission: ActivationState,
    pub lazy: bool,
    pub reconnect: ReconnectPolicy,
    pub health_check: Option<Duration>,
    pub idle_stop: Option<Duration>,
}

/// A command to a supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SupervisorCommand {
    /// Connect, resetting the failure count.
    Connect,
    /// Disconnect until the next connect command.
    Disconnect,
    /// Disconnect and connect.
    Reconnect,
    /// Apply new settings, including whether the server may be used.
    Keep(SupervisionPolicy),
}

/// Input of the supervisor.
pub(crate) enum SupervisorEvent<C> {
    Command(SupervisorCommand),
    /// A call needs the server.
    Demand,
    Connected {
        epoch: u64,
        open: C,
    },
    NotConnected {
        epoch: u64,
        error: Arc<ServerError>,
    },
    /// The connection is gone, or did not answer a health check.
    Lost {
        epoch: u64,
        error: Arc<ServerError>,
    },
    /// A call was rejected for lack of a login.
    LoginRequired {
        epoch: u64,
        error: Arc<ServerError>,
    },
    /// The time returned by [`Supervisor::next_due`] has come.
    Due(ServerActivity),
}

/// Current use of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ServerActivity {
    pub in_flight: usize,
    /// Subscriptions and other holds that prevent an idle stop.
    pub held: usize,
    pub last_used: Instant,
}

impl ServerActivity {
    fn is_unused(self) -> bool {
        self.in_flight == 0 && self.held == 0
    }
}

/// Times at which a ready server is stopped as idle, health-checked, and considered stable.
struct ReadySchedule {
    stop: Option<Instant>,
    check: Option<Instant>,
    firm: Option<Instant>,
}

/// Output of the supervisor.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SupervisorEffect<C> {
    /// Start or dial the server. The result has to carry this epoch.
    Connect(u64),
    /// Close this connection.
    Close(C),
    /// Health-check the server.
    Check(u64),
}

/// A point in time by the monotonic and by the wall clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClockReading {
    pub at: Instant,
    pub date: SystemTime,
}

/// State machine that keeps one server connected.
pub(crate) struct Supervisor<A, C> {
    keeping: SupervisionPolicy,
    phase: Phase<A, C>,
    /// Number of the current attempt. Results of older attempts are stale.
    epoch: u64,
    attempts: RetrySchedule,
    /// The tools of the server are not known: it connects once even if it is lazy.
    is_unlisted: bool,
    pub since: SystemTime,
    pub last_error: Option<Arc<ServerError>>,
    pub last_connected: Option<SystemTime>,
    pub restarts: u32,
}

impl<A, C> Supervisor<A, C> {
    /// Creates a supervisor at rest; the first step is [`Supervisor::begin`].
    pub fn new(keeping: SupervisionPolicy, seed: u64, now: ClockReading) -> Self {
        Self {
            keeping,
            phase: Phase::from_admission(keeping.admission).unwrap_or(Phase::Idle),
            epoch: 0,
            attempts: RetrySchedule::new(seed),
            is_unlisted: false,
            since: now.date,
            last_error: None,
            last_connected: None,
            restarts: 0,
        }
    }

    /// Makes a lazy server connect once, so that its tools can be listed.
    pub fn list_once(&mut self) {
        self.is_unlisted = true;
    }

    /// Connects the server unless it is lazy.
    pub fn begin(&mut self, now: ClockReading) -> Vec<SupervisorEffect<C>> {
        let mut effects = Vec::new();
        if matches!(self.phase, Phase::Idle) && !self.waits_for_use() {
            self.connect(now, &mut effects);
        }
        effects
    }

    /// Processes one event and returns the effects to perform.
    pub fn step(&mut self, event: SupervisorEvent<C>, now: ClockReading) -> Vec<SupervisorEffect<C>> {
        let mut effects = Vec::new();
        match event {
            SupervisorEvent::Command(command) => self.on_command(command, now, &mut effects),
            SupervisorEvent::Demand => self.on_wake_requested(now, &mut effects),
            SupervisorEvent::Connected { epoch, open } => self.on_connected(epoch, open, now, &mut effects),
            SupervisorEvent::NotConnected { epoch, error } => self.on_connect_failed(epoch, error, now),
            SupervisorEvent::Lost { epoch, error } => self.on_lost(epoch, error, now, &mut effects),
            SupervisorEvent::LoginRequired { epoch, error } => self.on_call_rejected(epoch, error, now, &mut effects),
            SupervisorEvent::Due(activity) => self.on_timer(activity, now, &mut effects),
        }
        effects
    }

    pub fn phase(&self) -> &Phase<A, C> {
        &self.phase
    }

    /// Gives the task access to the resources that a phase holds.
    pub fn phase_mut(&mut self) -> &mut Phase<A, C> {
        &mut self.phase
    }

    /// Ends the supervision permanently. Returns the open connection, if there is one.
    pub fn end(&mut self, now: ClockReading) -> Option<C> {
        let mut effects = Vec::new();
        self.enter(Phase::Disconnected, now, &mut effects);
        effects.into_iter().find_map(|effect| match effect {
            SupervisorEffect::Close(open) => Some(open),
            _ => None,
        })
    }

    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns the start of the last connection attempt.
    pub fn last_start(&self) -> Option<Instant> {
        self.attempts.last_start()
    }

    /// Reports whether the connection has repeatedly been lost shortly after it became ready.
    pub fn is_flapping(&self) -> bool {
        self.attempts.failure_count() >= 2 && self.last_connected.is_some()
    }

    /// Stores the attempt that an [`SupervisorEffect::Connect`] started. Dropping the attempt stops it.
    pub fn store_attempt(&mut self, attempt: A) {
        if let Phase::Connecting { task } = &mut self.phase {
            *task = Some(attempt);
        }
    }

    /// Returns the state as reported to users.
    pub fn state(&self) -> ServerState {
        match self.phase {
            Phase::Disabled => ServerState::Disabled,
            Phase::Unapproved => ServerState::Unapproved,
            Phase::Idle => ServerState::Idle,
            Phase::Disconnected => ServerState::Disconnected,
            Phase::Connecting { .. } if self.attempts.failure_count() > 0 => ServerState::Reconnecting,
            Phase::Connecting { .. } => ServerState::Connecting,
            Phase::AuthRequired => ServerState::AuthRequired,
            Phase::Ready { .. } => ServerState::Ready,
            Phase::Reconnecting { .. } => ServerState::Reconnecting,
            Phase::Failed { .. } => ServerState::Failed,
        }
    }

    /// Returns the time of the next [`Event::Due`] if no other event arrives before.
    pub fn next_due(&self, activity: ServerActivity, now: Instant) -> Option<Instant> {
        match self.phase {
            Phase::Reconnecting { due } => Some(due),
            Phase::Failed { until, comes_back: RecoveryTrigger::ByItself } => Some(until),
            Phase::Ready { since, checked, .. } => {
                let ReadySchedule { stop, check, firm } = self.ready_schedule(since, checked, activity, now);
                [stop, check, firm].into_iter().flatten().min()
            }
            _ => None,
        }
    }

    /// Returns the scheduled times of a ready server.
    fn ready_schedule(
        &self,
        since: Instant,
        checked: Instant,
        activity: ServerActivity,
        now: Instant,
    ) -> ReadySchedule {
        // The idle time starts no earlier than the connection, even if the last use was long before.
        let unused_since = activity.last_used.max(since);
        let stop = self.idle_stop().and_then(|time| match activity.is_unused() {
            true => unused_since.checked_add(time),
            false => now.checked_add(time.max(MIN_CHECK_INTERVAL)),
        });
        let every = self.keeping.health_check.map(|time| time.max(MIN_CHECK_INTERVAL));
        let check = every.and_then(|time| activity.last_used.max(checked).checked_add(time));
        let firm = (self.attempts.failure_count() > 0).then_some(since + STABLE_UPTIME);
        ReadySchedule { stop, check, firm }
    }

    fn on_command(&mut self, command: SupervisorCommand, now: ClockReading, effects: &mut Vec<SupervisorEffect<C>>) {
        match command {
            SupervisorCommand::Keep(keeping) => self.apply_policy(keeping, now, effects),
            _ if self.keeping.admission != ActivationState::Enabled => {}
            SupervisorCommand::Disconnect => {
                self.attempts.reset();
                self.enter(Phase::Disconnected, now, effects);
            }
            // Connected or connecting: restarting the attempt would keep a slow server from ever getting ready.
            SupervisorCommand::Connect if matches!(self.phase, Phase::Ready { .. } | Phase::Connecting { .. }) => {
                self.attempts.reset();
            }
            SupervisorCommand::Connect | SupervisorCommand::Reconnect => {
                self.attempts.reset();
                self.connect(now, effects);
            }
        }
    }

    fn apply_policy(&mut self, keeping: SupervisionPolicy, now: ClockReading, effects: &mut Vec<SupervisorEffect<C>>) {
        let before = std::mem::replace(&mut self.keeping, keeping);
        if before.admission == keeping.admission {
            match self.phase {
                Phase::Idle if !self.waits_for_use() => self.connect(now, effects),
                // The new settings may fix the failure.
                Phase::Failed { .. } => self.restart(now, effects),
                _ => {}
            }
            return;
        }
        self.last_error = None;
        self.restart(now, effects);
    }

    /// Moves the server to the initial phase for its settings.
    fn restart(&mut self, now: ClockReading, effects: &mut Vec<SupervisorEffect<C>>) {
        let keeping = self.keeping;
        self.attempts.reset();
        match Phase::from_admission(keeping.admission) {
            Some(barred) => self.enter(barred, now, effects),
            None if self.waits_for_use() => self.enter(Phase::Idle, now, effects),
            None => self.connect(now, effects),
        }
    }

    fn on_wake_requested(&mut self, now: ClockReading, effects: &mut Vec<SupervisorEffect<C>>) {
        match self.phase {
            Phase::Idle => self.connect(now, effects),
            Phase::Failed { until, comes_back } if comes_back != RecoveryTrigger::ByHand && now.at >= until => {
                self.connect(now, effects);
            }
            _ => {}
        }
    }

    fn on_connected(&mut self, epoch: u64, open: C, now: ClockReading, effects: &mut Vec<SupervisorEffect<C>>) {
        if epoch != self.epoch || !matches!(self.phase, Phase::Connecting { .. }) {
            effects.push(SupervisorEffect::Close(open));
            return;
        }
        if self.last_connected.is_some() {
            self.restarts += 1;
        }
        self.last_connected = Some(now.date);
        self.is_unlisted = false;
        self.enter(Phase::Ready { open, since: now.at, checked: now.at }, now, effects);
    }

    fn on_connect_failed(&mut self, epoch: u64, error: Arc<ServerError>, now: ClockReading) {
        if epoch != self.epoch || !matches!(self.phase, Phase::Connecting { .. }) {
            return;
        }
        let phase = match self.keeping.reconnect {
            _ if error.needs_login() => Phase::AuthRequired,
            ReconnectPolicy::Backoff(backoff) if error.is_transient() => self.schedule_retry(backoff, now),
            ReconnectPolicy::Backoff(_) => self.enter_cool_down(RecoveryTrigger::WhenWanted, now),
            ReconnectPolicy::Off => self.enter_cool_down(RecoveryTrigger::ByHand, now),
        };
        self.last_error = Some(error);
        self.enter(phase, now, &mut Vec::new());
    }

    fn on_lost(
        &mut self,
        epoch: u64,
        error: Arc<ServerError>,
        now: ClockReading,
        effects: &mut Vec<SupervisorEffect<C>>,
    ) {
        let Some(lasted) = self.phase.uptime(now.at).filter(|_| epoch == self.epoch) else { return };
        let phase = match self.keeping.reconnect {
            _ if error.needs_login() => Phase::AuthRequired,
            ReconnectPolicy::Off => self.enter_cool_down(RecoveryTrigger::ByHand, now),
            ReconnectPolicy::Backoff(backoff) if lasted >= STABLE_UPTIME => {
                self.attempts.reset();
                Phase::Reconnecting { due: self.attempts.after_stable_loss(backoff, now.at) }
            }
            ReconnectPolicy::Backoff(backoff) => self.schedule_retry(backoff, now),
        };
        self.last_error = Some(error);
        self.enter(phase, now, effects);
    }

    /// Handles a rejected call. If the authorizer reports that only a login helps, the connection is lost. Otherwise
    /// the server is health-checked, because the rejection may concern that one call only.
    fn on_call_rejected(
        &mut self,
        epoch: u64,
        error: Arc<ServerError>,
        now: ClockReading,
        effects: &mut Vec<SupervisorEffect<C>>,
    ) {
        if error.needs_only_login() {
            self.on_lost(epoch, error, now, effects);
        } else if epoch == self.epoch && matches!(self.phase, Phase::Ready { .. }) {
            effects.push(SupervisorEffect::Check(epoch));
        }
    }

    fn on_timer(&mut self, activity: ServerActivity, now: ClockReading, effects: &mut Vec<SupervisorEffect<C>>) {
        match self.phase {
            Phase::Reconnecting { due } if now.at >= due => self.connect(now, effects),
            Phase::Failed { until, comes_back: RecoveryTrigger::ByItself } if now.at >= until => {
                self.connect(now, effects)
            }
            Phase::Ready { since, checked, .. } => {
                let dates = self.ready_schedule(since, checked, activity, now.at);
                self.on_ready_timer(&dates, now, effects);
            }
            _ => {}
        }
    }

    fn on_ready_timer(&mut self, dates: &ReadySchedule, now: ClockReading, effects: &mut Vec<SupervisorEffect<C>>) {
        let is_due = |date: Option<Instant>| date.is_some_and(|date| now.at >= date);
        if is_due(dates.firm) {
            self.attempts.reset();
        }
        if is_due(dates.stop) {
            self.enter(Phase::Idle, now, effects);
        } else if is_due(dates.check)
            && let Phase::Ready { checked, .. } = &mut self.phase
        {
            *checked = now.at;
            effects.push(SupervisorEffect::Check(self.epoch));
        }
    }

    /// Reports whether the server connects on first use only.
    fn waits_for_use(&self) -> bool {
        self.keeping.lazy && !self.is_unlisted
    }

    /// Returns the idle timeout. It applies to lazy servers only, because only those are restarted on demand.
    fn idle_stop(&self) -> Option<Duration> {
        self.keeping.idle_stop.filter(|_| self.keeping.lazy)
    }

    fn connect(&mut self, now: ClockReading, effects: &mut Vec<SupervisorEffect<C>>) {
        self.epoch += 1;
        self.attempts.record_start(now.at);
        self.enter(Phase::Connecting { task: None }, now, effects);
        effects.push(SupervisorEffect::Connect(self.epoch));
    }

    fn schedule_retry(&mut self, backoff: BackoffSettings, now: ClockReading) -> Phase<A, C> {
        match self.attempts.record_failure(backoff, now.at) {
            Some(due) => Phase::Reconnecting { due },
            None => self.enter_cool_down(RecoveryTrigger::ByItself, now),
        }
    }

    fn enter_cool_down(&mut self, comes_back: RecoveryTrigger, now: ClockReading) -> Phase<A, C> {
        Phase::Failed { until: self.attempts.cool_down(now.at), comes_back }
    }

    /// Changes the phase. The connection of the previous phase is closed.
    fn enter(&mut self, phase: Phase<A, C>, now: ClockReading, effects: &mut Vec<SupervisorEffect<C>>) {
        let before = self.state();
        if let Phase::Ready { open, .. } = std::mem::replace(&mut self.phase, phase) {
            effects.push(SupervisorEffect::Close(open));
        }
        if self.state() != before {
            self.since = now.date;
        }
    }
}
