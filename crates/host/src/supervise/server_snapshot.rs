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
    pub availability: Availability,
    pub since: SystemTime,
    pub last_error: Option<Arc<ServerError>>,
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
    Connecting,
    /// The call has to wake the server, from this moment on, and wait.
    OnDemand { not_before: Option<Instant> },
    /// Unavailable: the call fails.
    Unavailable,
}

impl ServerSnapshot {
    pub fn from_supervisor<A>(supervisor: &Supervisor<A, super::OpenConnection>) -> Self {
        let availability = Availability::from_phase(supervisor.phase(), |open| open.connection.clone());
        Self {
            state: supervisor.state(),
            epoch: supervisor.epoch(),
            started: supervisor.last_start(),
            availability,
            since: supervisor.since,
            last_error: supervisor.last_error.clone(),
            last_connected: supervisor.last_connected,
            restarts: supervisor.restarts,
            flapping: supervisor.is_flapping(),
        }
    }

    /// Reports whether a connection attempt of the server has ended before, or none is in progress.
    pub fn is_settled(&self) -> bool {
        self.state.is_settled() || self.last_error.is_some() || self.last_connected.is_some()
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
            Phase::Connecting { .. } | Phase::Reconnecting { .. } => Self::Connecting,
            Phase::Idle => Self::OnDemand { not_before: None },
            Phase::Failed { until, comes_back } if *comes_back != RecoveryTrigger::ByHand => {
                Self::OnDemand { not_before: Some(*until) }
            }
            _ => Self::Unavailable,
        }
    }
}
