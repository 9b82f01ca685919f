//! The phases of a server and the resources that each of them holds.

use std::time::Duration;

use tokio::time::Instant;
use wharf_spec::ActivationState;

/// The phase of a server. Each phase holds only the resources it needs; leaving the phase drops and thereby stops them.
///
/// `A` is a connection attempt, `C` an open connection with its lister.
pub(crate) enum Phase<A, C> {
    /// Disabled by its settings.
    Disabled,
    /// Configured by a project and not approved yet.
    Unapproved,
    /// Lazy and not needed yet.
    Idle,
    /// Disconnected by a command. Only a command reconnects it.
    Disconnected,
    /// Being started or dialled.
    Connecting { task: Option<A> },
    /// The server requires a login.
    AuthRequired,
    /// Connected.
    Ready { open: C, since: Instant, checked: Instant },
    /// Connection lost or attempt failed; a retry is scheduled.
    Reconnecting { due: Instant },
    /// All retries failed, or retrying is pointless or switched off.
    Failed { until: Instant, comes_back: RecoveryTrigger },
}

/// The event that ends a failure once its cool-down has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecoveryTrigger {
    /// The supervisor makes one attempt automatically.
    ByItself,
    /// The next call triggers one attempt. The failure is not transient.
    WhenWanted,
    /// Only a command reconnects: retries are switched off.
    ByHand,
}

/// The state of a server, as reported to users.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerState {
    /// Disabled by its settings.
    Disabled,
    /// Configured by a project and not approved yet.
    Unapproved,
    /// Lazy and not needed yet.
    Idle,
    /// Disconnected by a command.
    Disconnected,
    /// First connection attempt in progress.
    Connecting,
    /// The server requires a login.
    AuthRequired,
    /// Connected.
    Ready,
    /// Connection lost or attempt failed; retrying.
    Reconnecting,
    /// All retries failed, or retrying is pointless or switched off.
    Failed,
}

impl ServerState {
    /// Returns the state's name, as used in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Unapproved => "unapproved",
            Self::Idle => "idle",
            Self::Disconnected => "disconnected",
            Self::Connecting => "connecting",
            Self::AuthRequired => "auth_required",
            Self::Ready => "ready",
            Self::Reconnecting => "reconnecting",
            Self::Failed => "failed",
        }
    }

    /// Returns the state as the predicate of a sentence about the server.
    pub(crate) fn predicate(self) -> &'static str {
        match self {
            Self::Disabled => "is disabled",
            Self::Unapproved => "is not approved",
            Self::Idle => "is not started",
            Self::Disconnected => "is disconnected",
            Self::Connecting => "is connecting",
            Self::AuthRequired => "requires a login",
            Self::Ready => "is ready",
            Self::Reconnecting => "is reconnecting",
            Self::Failed => "has failed",
        }
    }

    /// Reports whether the first connection attempt has ended. A server that retries is settled: its first attempt has
    /// failed.
    pub fn is_settled(self) -> bool {
        self != Self::Connecting
    }
}

impl std::fmt::Display for ServerState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl<A, C> Phase<A, C> {
    /// Returns the phase of a server that may not be used.
    pub fn from_admission(admission: ActivationState) -> Option<Self> {
        match admission {
            ActivationState::Enabled => None,
            ActivationState::Disabled => Some(Self::Disabled),
            ActivationState::Unapproved => Some(Self::Unapproved),
        }
    }

    /// Returns the uptime of a ready server.
    pub fn uptime(&self, now: Instant) -> Option<Duration> {
        match self {
            Self::Ready { since, .. } => Some(now.saturating_duration_since(*since)),
            _ => None,
        }
    }
}
