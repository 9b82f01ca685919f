//! Where a server stands, and what it needs only while it stands there.

use std::time::Duration;

use tokio::time::Instant;
use wharf_spec::Admission;

/// Where a server stands. Each phase holds what only it needs; leaving it drops that, and dropping stops it.
///
/// `A` is an attempt under way, `C` an open connection and whatever attends to it.
pub(crate) enum Phase<A, C> {
    /// Switched off.
    Disabled,
    /// From a project's own file, and approved by nobody yet.
    Unapproved,
    /// Lazy, and nobody has needed it.
    Idle,
    /// Taken off by hand: only a hand brings it back.
    Disconnected,
    /// Being started or dialled.
    Connecting { task: Option<A> },
    /// It wants to know who asks.
    AuthRequired,
    /// It can be called.
    Ready { open: C, since: Instant, checked: Instant },
    /// Lost, or not to be had, and about to be tried again.
    Reconnecting { due: Instant },
    /// Given up.
    Failed { until: Instant, comes_back: ComesBack },
}

/// Who ends a failure that has cooled down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ComesBack {
    /// One attempt of its own accord.
    ByItself,
    /// One attempt, once somebody needs the server: nothing says that it will be there.
    WhenWanted,
    /// Nobody but a person: trying again is switched off.
    ByHand,
}

/// Where a server stands, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Switched off.
    Disabled,
    /// From a project's own file, and approved by nobody yet.
    Unapproved,
    /// Lazy, and nobody has needed it.
    Idle,
    /// Taken off by hand.
    Disconnected,
    /// Being started or dialled for the first time.
    Connecting,
    /// It wants a login.
    AuthRequired,
    /// It can be called.
    Ready,
    /// Lost, or not to be had, and being tried again.
    Reconnecting,
    /// Given up.
    Failed,
}

impl State {
    /// The word, as in JSON.
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

    /// Whether nothing more is to be expected of it unless somebody acts or time passes.
    pub fn is_settled(self) -> bool {
        !matches!(self, Self::Connecting | Self::Reconnecting)
    }
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl<A, C> Phase<A, C> {
    /// Where a server that may not be used stands.
    pub fn barred(admission: Admission) -> Option<Self> {
        match admission {
            Admission::Enabled => None,
            Admission::Disabled => Some(Self::Disabled),
            Admission::Unapproved => Some(Self::Unapproved),
        }
    }

    /// How long it has been ready.
    pub fn ready_for(&self, now: Instant) -> Option<Duration> {
        match self {
            Self::Ready { since, .. } => Some(now.saturating_duration_since(*since)),
            _ => None,
        }
    }
}
