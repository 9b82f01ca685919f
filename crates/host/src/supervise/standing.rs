//! Where a server stands, as everybody else sees it.

use std::sync::Arc;
use std::time::SystemTime;

use tokio::time::Instant;
use wharf_client::Connection;

use super::phase::{ComesBack, Phase, State};
use super::step::Supervisor;
use crate::trouble::Trouble;

/// Where a server stands, published whenever that changes.
#[derive(Clone)]
pub(crate) struct Standing {
    pub state: State,
    /// Which attempt this is about.
    pub epoch: u64,
    pub way: Way,
    pub since: SystemTime,
    pub trouble: Option<Arc<Trouble>>,
    pub last_connected: Option<SystemTime>,
    pub restarts: u32,
    pub flapping: bool,
}

/// What a call can do about it. `C` is what it goes by.
#[derive(Clone)]
pub(crate) enum Way<C = Connection> {
    /// Go.
    Open(C),
    /// Wait: something will come of it.
    Coming,
    /// Say that the server is needed, from this moment on, and wait.
    Asleep { from: Option<Instant> },
    /// Give up.
    Shut,
}

impl Standing {
    pub fn of<A>(supervisor: &Supervisor<A, super::Open>) -> Self {
        let way = Way::of(supervisor.phase(), |open| open.connection.clone());
        Self {
            state: supervisor.state(),
            epoch: supervisor.epoch(),
            way,
            since: supervisor.since,
            trouble: supervisor.last_trouble.clone(),
            last_connected: supervisor.last_connected,
            restarts: supervisor.restarts,
            flapping: supervisor.is_flapping(),
        }
    }

    /// Whether its tools may be shown: it can be called, or will be there for whoever calls.
    pub fn offers_tools(&self) -> bool {
        matches!(self.state, State::Ready | State::Reconnecting | State::Connecting | State::Idle)
    }
}

impl<C> Way<C> {
    /// What a phase means for calls.
    pub fn of<A, O>(phase: &Phase<A, O>, by: impl FnOnce(&O) -> C) -> Self {
        match phase {
            Phase::Ready { open, .. } => Self::Open(by(open)),
            Phase::Connecting { .. } | Phase::Reconnecting { .. } => Self::Coming,
            Phase::Idle => Self::Asleep { from: None },
            Phase::Failed { until, comes_back } if *comes_back != ComesBack::ByHand => {
                Self::Asleep { from: Some(*until) }
            }
            _ => Self::Shut,
        }
    }
}
