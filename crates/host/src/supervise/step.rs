//! The one place where it is decided what to do about a server. No clock, no I/O: events in, effects out.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use wharf_spec::{Admission, Backoff, Reconnect};

use super::backoff::{Attempts, STABLE};
use super::phase::{ComesBack, Phase, State};
use crate::trouble::Trouble;

/// The shortest time between two looks at a server that is ready, whatever its settings say.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// How a server is kept: what of its settings the supervisor needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Keeping {
    pub admission: Admission,
    pub lazy: bool,
    pub reconnect: Reconnect,
    pub health_check: Option<Duration>,
    pub idle_stop: Option<Duration>,
}

/// What somebody wants of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    /// Bring it up, whatever went before.
    Connect,
    /// Take it off until somebody brings it up.
    Disconnect,
    /// Take it off and bring it up.
    Reconnect,
    /// Keep it in another way from now on. Who may use it is part of that.
    Keep(Keeping),
}

/// What happened.
pub(crate) enum Event<C> {
    Command(Command),
    /// A call needs it.
    Wanted,
    Connected {
        epoch: u64,
        open: C,
    },
    NotConnected {
        epoch: u64,
        trouble: Arc<Trouble>,
    },
    /// The connection is gone, or did not answer when it was asked whether it is there.
    Lost {
        epoch: u64,
        trouble: Arc<Trouble>,
    },
    /// A call was turned away for want of a login.
    TurnedAway {
        epoch: u64,
        trouble: Arc<Trouble>,
    },
    /// The time of [`Supervisor::due`] has come.
    Due(Activity),
}

/// How much a server is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Activity {
    pub in_flight: usize,
    /// Watched resources and the like, for which it has to stay.
    pub held: usize,
    pub last_used: Instant,
}

impl Activity {
    fn is_unused(self) -> bool {
        self.in_flight == 0 && self.held == 0
    }
}

/// When a server that is ready is to be stopped for want of use, asked whether it is there, and taken to stand firm.
struct Dates {
    stop: Option<Instant>,
    check: Option<Instant>,
    firm: Option<Instant>,
}

/// What to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Effect<C> {
    /// Start or dial it; the answer must bear this number.
    Connect(u64),
    /// End this connection.
    Close(C),
    /// Ask it whether it is there.
    Check(u64),
}

/// When things happened, by both clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub at: Instant,
    pub date: SystemTime,
}

/// Keeps one server connected.
pub(crate) struct Supervisor<A, C> {
    keeping: Keeping,
    phase: Phase<A, C>,
    /// Numbers attempts; what comes of an older one is stale.
    epoch: u64,
    attempts: Attempts,
    pub since: SystemTime,
    pub last_trouble: Option<Arc<Trouble>>,
    pub last_connected: Option<SystemTime>,
    pub restarts: u32,
}

impl<A, C> Supervisor<A, C> {
    /// A server at rest; the first step is [`Supervisor::begin`].
    pub fn new(keeping: Keeping, seed: u64, now: Moment) -> Self {
        Self {
            keeping,
            phase: Phase::barred(keeping.admission).unwrap_or(Phase::Idle),
            epoch: 0,
            attempts: Attempts::new(seed),
            since: now.date,
            last_trouble: None,
            last_connected: None,
            restarts: 0,
        }
    }

    /// Brings up what is not lazy.
    pub fn begin(&mut self, now: Moment) -> Vec<Effect<C>> {
        let mut effects = Vec::new();
        if matches!(self.phase, Phase::Idle) && !self.keeping.lazy {
            self.connect(now, &mut effects);
        }
        effects
    }

    /// Decides what an event means.
    pub fn step(&mut self, event: Event<C>, now: Moment) -> Vec<Effect<C>> {
        let mut effects = Vec::new();
        match event {
            Event::Command(command) => self.obey(command, now, &mut effects),
            Event::Wanted => self.wanted(now, &mut effects),
            Event::Connected { epoch, open } => self.connected(epoch, open, now, &mut effects),
            Event::NotConnected { epoch, trouble } => self.not_connected(epoch, trouble, now),
            Event::Lost { epoch, trouble } => self.lost(epoch, trouble, now, &mut effects),
            Event::TurnedAway { epoch, trouble } => self.turned_away(epoch, trouble, now, &mut effects),
            Event::Due(activity) => self.look(activity, now, &mut effects),
        }
        effects
    }

    pub fn phase(&self) -> &Phase<A, C> {
        &self.phase
    }

    /// For whoever waits on what a phase holds.
    pub fn phase_mut(&mut self) -> &mut Phase<A, C> {
        &mut self.phase
    }

    /// Ends the supervision: the server is taken off for good, and its connection handed back.
    pub fn end(&mut self, now: Moment) -> Option<C> {
        let mut effects = Vec::new();
        self.enter(Phase::Disconnected, now, &mut effects);
        effects.into_iter().find_map(|effect| match effect {
            Effect::Close(open) => Some(open),
            _ => None,
        })
    }

    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Whether it has been lost again and again, shortly after it was ready.
    pub fn is_flapping(&self) -> bool {
        self.attempts.failed() >= 2 && self.last_connected.is_some()
    }

    /// The attempt that an [`Effect::Connect`] asked for; it is stopped by being dropped.
    pub fn hold(&mut self, attempt: A) {
        if let Phase::Connecting { task } = &mut self.phase {
            *task = Some(attempt);
        }
    }

    /// Where it stands, in a word.
    pub fn state(&self) -> State {
        match self.phase {
            Phase::Disabled => State::Disabled,
            Phase::Unapproved => State::Unapproved,
            Phase::Idle => State::Idle,
            Phase::Disconnected => State::Disconnected,
            Phase::Connecting { .. } if self.attempts.failed() > 0 => State::Reconnecting,
            Phase::Connecting { .. } => State::Connecting,
            Phase::AuthRequired => State::AuthRequired,
            Phase::Ready { .. } => State::Ready,
            Phase::Reconnecting { .. } => State::Reconnecting,
            Phase::Failed { .. } => State::Failed,
        }
    }

    /// When to look again, if nothing happens before.
    pub fn due(&self, activity: Activity, now: Instant) -> Option<Instant> {
        match self.phase {
            Phase::Reconnecting { due } => Some(due),
            Phase::Failed { until, comes_back: ComesBack::ByItself } => Some(until),
            Phase::Ready { since, checked, .. } => {
                let Dates { stop, check, firm } = self.dates(since, checked, activity, now);
                [stop, check, firm].into_iter().flatten().min()
            }
            _ => None,
        }
    }

    /// What is to happen to a server that is ready, and when.
    fn dates(&self, since: Instant, checked: Instant, activity: Activity, now: Instant) -> Dates {
        // Somebody has brought it up for something: that it was last used long ago is no reason to stop it.
        let unused_since = activity.last_used.max(since);
        let stop = self.idle_stop().and_then(|time| match activity.is_unused() {
            true => unused_since.checked_add(time),
            false => now.checked_add(time.max(BETWEEN_LOOKS)),
        });
        let every = self.keeping.health_check.map(|time| time.max(BETWEEN_LOOKS));
        let check = every.and_then(|time| activity.last_used.max(checked).checked_add(time));
        let firm = (self.attempts.failed() > 0).then_some(since + STABLE);
        Dates { stop, check, firm }
    }

    fn obey(&mut self, command: Command, now: Moment, effects: &mut Vec<Effect<C>>) {
        match command {
            Command::Keep(keeping) => self.keep(keeping, now, effects),
            _ if self.keeping.admission != Admission::Enabled => {}
            Command::Disconnect => {
                self.attempts.forget();
                self.enter(Phase::Disconnected, now, effects);
            }
            // It is there, or on its way: begun once more, a slow one would never get there.
            Command::Connect if matches!(self.phase, Phase::Ready { .. } | Phase::Connecting { .. }) => {
                self.attempts.forget();
            }
            Command::Connect | Command::Reconnect => {
                self.attempts.forget();
                self.connect(now, effects);
            }
        }
    }

    fn keep(&mut self, keeping: Keeping, now: Moment, effects: &mut Vec<Effect<C>>) {
        let before = std::mem::replace(&mut self.keeping, keeping);
        if before.admission == keeping.admission {
            match self.phase {
                Phase::Idle if !keeping.lazy => self.connect(now, effects),
                // Perhaps that was what it took.
                Phase::Failed { .. } => self.begin_anew(now, effects),
                _ => {}
            }
            return;
        }
        self.last_trouble = None;
        self.begin_anew(now, effects);
    }

    /// Puts the server where one that is kept in this way begins.
    fn begin_anew(&mut self, now: Moment, effects: &mut Vec<Effect<C>>) {
        let keeping = self.keeping;
        self.attempts.forget();
        match Phase::barred(keeping.admission) {
            Some(barred) => self.enter(barred, now, effects),
            None if keeping.lazy => self.enter(Phase::Idle, now, effects),
            None => self.connect(now, effects),
        }
    }

    fn wanted(&mut self, now: Moment, effects: &mut Vec<Effect<C>>) {
        match self.phase {
            Phase::Idle => self.connect(now, effects),
            Phase::Failed { until, comes_back } if comes_back != ComesBack::ByHand && now.at >= until => {
                self.connect(now, effects);
            }
            _ => {}
        }
    }

    fn connected(&mut self, epoch: u64, open: C, now: Moment, effects: &mut Vec<Effect<C>>) {
        if epoch != self.epoch || !matches!(self.phase, Phase::Connecting { .. }) {
            effects.push(Effect::Close(open));
            return;
        }
        if self.last_connected.is_some() {
            self.restarts += 1;
        }
        self.last_connected = Some(now.date);
        self.enter(Phase::Ready { open, since: now.at, checked: now.at }, now, effects);
    }

    fn not_connected(&mut self, epoch: u64, trouble: Arc<Trouble>, now: Moment) {
        if epoch != self.epoch || !matches!(self.phase, Phase::Connecting { .. }) {
            return;
        }
        let phase = match self.keeping.reconnect {
            _ if trouble.needs_login() => Phase::AuthRequired,
            Reconnect::Backoff(backoff) if trouble.is_passing() => self.again(backoff, now),
            Reconnect::Backoff(_) => self.given_up(ComesBack::WhenWanted, now),
            Reconnect::Off => self.given_up(ComesBack::ByHand, now),
        };
        self.last_trouble = Some(trouble);
        self.enter(phase, now, &mut Vec::new());
    }

    fn lost(&mut self, epoch: u64, trouble: Arc<Trouble>, now: Moment, effects: &mut Vec<Effect<C>>) {
        let Some(lasted) = self.phase.ready_for(now.at).filter(|_| epoch == self.epoch) else { return };
        let phase = match self.keeping.reconnect {
            _ if trouble.needs_login() => Phase::AuthRequired,
            Reconnect::Off => self.given_up(ComesBack::ByHand, now),
            Reconnect::Backoff(backoff) if lasted >= STABLE => {
                self.attempts.forget();
                Phase::Reconnecting { due: self.attempts.soon(backoff, now.at) }
            }
            Reconnect::Backoff(backoff) => self.again(backoff, now),
        };
        self.last_trouble = Some(trouble);
        self.enter(phase, now, effects);
    }

    /// Whoever says who we are knows whether a login is all that helps. Where nobody does, the server is asked: it may have
    /// meant that one call only.
    fn turned_away(&mut self, epoch: u64, trouble: Arc<Trouble>, now: Moment, effects: &mut Vec<Effect<C>>) {
        if trouble.is_logged_out() {
            self.lost(epoch, trouble, now, effects);
        } else if epoch == self.epoch && matches!(self.phase, Phase::Ready { .. }) {
            effects.push(Effect::Check(epoch));
        }
    }

    fn look(&mut self, activity: Activity, now: Moment, effects: &mut Vec<Effect<C>>) {
        match self.phase {
            Phase::Reconnecting { due } if now.at >= due => self.connect(now, effects),
            Phase::Failed { until, comes_back: ComesBack::ByItself } if now.at >= until => self.connect(now, effects),
            Phase::Ready { since, checked, .. } => {
                let dates = self.dates(since, checked, activity, now.at);
                self.look_at_ready(&dates, now, effects);
            }
            _ => {}
        }
    }

    fn look_at_ready(&mut self, dates: &Dates, now: Moment, effects: &mut Vec<Effect<C>>) {
        let is_due = |date: Option<Instant>| date.is_some_and(|date| now.at >= date);
        if is_due(dates.firm) {
            self.attempts.forget();
        }
        if is_due(dates.stop) {
            self.enter(Phase::Idle, now, effects);
        } else if is_due(dates.check)
            && let Phase::Ready { checked, .. } = &mut self.phase
        {
            *checked = now.at;
            effects.push(Effect::Check(self.epoch));
        }
    }

    /// Only what is lazy comes back by being needed.
    fn idle_stop(&self) -> Option<Duration> {
        self.keeping.idle_stop.filter(|_| self.keeping.lazy)
    }

    fn connect(&mut self, now: Moment, effects: &mut Vec<Effect<C>>) {
        self.epoch += 1;
        self.attempts.started(now.at);
        self.enter(Phase::Connecting { task: None }, now, effects);
        effects.push(Effect::Connect(self.epoch));
    }

    fn again(&mut self, backoff: Backoff, now: Moment) -> Phase<A, C> {
        match self.attempts.again(backoff, now.at) {
            Some(due) => Phase::Reconnecting { due },
            None => self.given_up(ComesBack::ByItself, now),
        }
    }

    fn given_up(&mut self, comes_back: ComesBack, now: Moment) -> Phase<A, C> {
        Phase::Failed { until: self.attempts.cool_down(now.at), comes_back }
    }

    /// Leaves one phase for another. A connection that is left behind is closed.
    fn enter(&mut self, phase: Phase<A, C>, now: Moment, effects: &mut Vec<Effect<C>>) {
        let before = self.state();
        if let Phase::Ready { open, .. } = std::mem::replace(&mut self.phase, phase) {
            effects.push(Effect::Close(open));
        }
        if self.state() != before {
            self.since = now.date;
        }
    }
}
