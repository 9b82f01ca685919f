//! Published snapshots of a supervisor.

use std::sync::Arc;
use std::time::SystemTime;

use tokio::time::Instant;
use wharf_client::Connection;

use super::phase::{Phase, RecoveryTrigger, ServerState};
use super::step::Supervisor;
use crate::server_error::ServerError;

/// Snapshot of a supervisor's state, published on every change.
#[derive(Clone)]
pub(crate) struct ServerSnapshot {
    pub state: ServerState,
    /// Number of the connection attempt.
    pub epoch: u64,
    /// Start of the current or last connection attempt.
    pub started: Option<Instant>,
    pub way: Availability,
    pub since: SystemTime,
    pub trouble: Option<Arc<ServerError>>,
    pub last_connected: Option<SystemTime>,
    pub restarts: u32,
    pub flapping: bool,
}

/// Availability of a server for calls. `C` is the connection.
#[derive(Clone)]
pub(crate) enum Availability<C = Connection> {
    /// Connected: the call can be sent.
    Open(C),
    /// Not connected yet: the call waits.
    Coming,
    /// The call has to wake the server, from this moment on, and wait.
    Asleep { from: Option<Instant> },
    /// Unavailable: the call fails.
    Shut,
}

impl ServerSnapshot {
    pub fn from_supervisor<A>(supervisor: &Supervisor<A, super::OpenConnection>) -> Self {
        let way = Availability::from_phase(supervisor.phase(), |open| open.connection.clone());
        Self {
            state: supervisor.state(),
            epoch: supervisor.epoch(),
            started: supervisor.last_start(),
            way,
            since: supervisor.since,
            trouble: supervisor.last_trouble.clone(),
            last_connected: supervisor.last_connected,
            restarts: supervisor.restarts,
            flapping: supervisor.is_flapping(),
        }
    }

    /// Reports whether a connection attempt of the server has ended before, or none is in progress.
    pub fn is_settled(&self) -> bool {
        self.state.is_settled() || self.trouble.is_some() || self.last_connected.is_some()
    }

    /// Reports whether the server's tools may be listed: it is connected, or is going to connect when called.
    pub fn offers_tools(&self) -> bool {
        matches!(
            self.state,
            ServerState::Ready | ServerState::Reconnecting | ServerState::Connecting | ServerState::Idle
        )
    }
}

impl<C> Availability<C> {
    /// Returns the availability in a phase.
    pub fn from_phase<A, O>(phase: &Phase<A, O>, by: impl FnOnce(&O) -> C) -> Self {
        match phase {
            Phase::Ready { open, .. } => Self::Open(by(open)),
            Phase::Connecting { .. } | Phase::Reconnecting { .. } => Self::Coming,
            Phase::Idle => Self::Asleep { from: None },
            Phase::Failed { until, comes_back } if *comes_back != RecoveryTrigger::ByHand => {
                Self::Asleep { from: Some(*until) }
            }
            _ => Self::Shut,
        }
    }
}
