//! Stable codes for the reasons a server is not usable. `docs/troubleshooting.md` documents each.

use wharf::{HostError, ServerError};
use wharf_client::{ConnectCause, DisconnectCause, DisconnectReport, NotAuthorized, ProcessExit};
use wharf_spec::LaunchRefusal;

use crate::failure::unavailable_error;

/// Reason that a server is not usable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeCode {
    ConfigMissing,
    ConfigBroken,
    ConfigDisabled,
    ApprovalNeeded,
    ApprovalChanged,
    ExpandUnset,
    ExpandFailed,
    PathNotFound,
    PathNotExecutable,
    PathNoDirectory,
    SpawnRefused,
    SpawnExited,
    SpawnKilled,
    HttpSetup,
    HttpUnreachable,
    TlsUntrusted,
    HttpStatus,
    HttpEndpoint,
    LoginNeeded,
    LoginDenied,
    LoginUnavailable,
    HandshakeTimeout,
    HandshakeNotMcp,
    HandshakeRefused,
    HandshakeRevision,
    HandshakeBroken,
    PingFailed,
    ListFailed,
}

impl ProbeCode {
    /// All codes with their names, in the order of the steps.
    pub const ALL: [(Self, &'static str); 28] = [
        (Self::ConfigMissing, "config.missing"),
        (Self::ConfigBroken, "config.broken"),
        (Self::ConfigDisabled, "config.disabled"),
        (Self::ApprovalNeeded, "approval.needed"),
        (Self::ApprovalChanged, "approval.changed"),
        (Self::ExpandUnset, "expand.unset"),
        (Self::ExpandFailed, "expand.failed"),
        (Self::PathNotFound, "path.not_found"),
        (Self::PathNotExecutable, "path.not_executable"),
        (Self::PathNoDirectory, "path.no_directory"),
        (Self::SpawnRefused, "spawn.refused"),
        (Self::SpawnExited, "spawn.exited"),
        (Self::SpawnKilled, "spawn.killed"),
        (Self::HttpSetup, "http.setup"),
        (Self::HttpUnreachable, "http.unreachable"),
        (Self::TlsUntrusted, "tls.untrusted"),
        (Self::HttpStatus, "http.status"),
        (Self::HttpEndpoint, "http.endpoint"),
        (Self::LoginNeeded, "login.needed"),
        (Self::LoginDenied, "login.denied"),
        (Self::LoginUnavailable, "login.unavailable"),
        (Self::HandshakeTimeout, "handshake.timeout"),
        (Self::HandshakeNotMcp, "handshake.not_mcp"),
        (Self::HandshakeRefused, "handshake.refused"),
        (Self::HandshakeRevision, "handshake.revision"),
        (Self::HandshakeBroken, "handshake.broken"),
        (Self::PingFailed, "ping.failed"),
        (Self::ListFailed, "list.failed"),
    ];

    /// Returns the stable name.
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(code, _)| *code == self).map_or("", |(_, word)| *word)
    }

    /// Returns the step at which this failure occurs.
    pub fn stage(self) -> &'static str {
        match self {
            Self::HttpSetup | Self::HttpUnreachable => "dial",
            Self::HttpStatus | Self::HttpEndpoint => "handshake",
            other => other.as_str().split('.').next().unwrap_or_default(),
        }
    }

    /// Returns the code of a server that did not become ready.
    pub fn from_host_error(error: &HostError) -> Self {
        match (unavailable_error(error), error) {
            (Some(ServerError::NotConnected(error)), _) => Self::from_cause(&error.cause),
            (Some(ServerError::Lost(gone)), _) => Self::from_gone(gone),
            (Some(ServerError::LoginRequired(_)), _) => Self::LoginNeeded,
            (None, HostError::NotInTime { .. }) => Self::HandshakeTimeout,
            _ => Self::HandshakeBroken,
        }
    }

    /// Returns the code of a connection failure.
    fn from_cause(cause: &ConnectCause) -> Self {
        match cause {
            ConnectCause::CommandNotFound { .. } => Self::PathNotFound,
            ConnectCause::NotExecutable { .. } => Self::PathNotExecutable,
            ConnectCause::NoSuchDirectory { .. } => Self::PathNoDirectory,
            ConnectCause::NotApproved(LaunchRefusal::NotApproved | LaunchRefusal::Unreadable(_)) => {
                Self::ApprovalNeeded
            }
            ConnectCause::NotApproved(_) => Self::ApprovalChanged,
            ConnectCause::Spawn(_) => Self::SpawnRefused,
            ConnectCause::BadAddress(_) | ConnectCause::BadHeader(_) | ConnectCause::Net(_) => Self::HttpSetup,
            cause if cause.needs_login() => Self::LoginNeeded,
            cause if cause.is_not_mcp() => Self::HandshakeNotMcp,
            cause if cause.not_authorized().is_some_and(NotAuthorized::is_transient) => Self::LoginUnavailable,
            ConnectCause::Unauthorized { .. } => Self::LoginDenied,
            ConnectCause::Status { .. } => Self::HttpStatus,
            ConnectCause::BadEndpoint { .. } => Self::HttpEndpoint,
            ConnectCause::Gone(gone) => Self::from_gone(gone),
            ConnectCause::TimedOut { .. } => Self::HandshakeTimeout,
            ConnectCause::ErrorResponse(_) => Self::HandshakeRefused,
            ConnectCause::NoCommonRevision(_) => Self::HandshakeRevision,
            _ => Self::HandshakeBroken,
        }
    }

    fn from_gone(gone: &DisconnectReport) -> Self {
        match (&gone.cause, gone.exit) {
            (DisconnectCause::NotMcp(_) | DisconnectCause::EndlessLine, _) => Self::HandshakeNotMcp,
            (DisconnectCause::NotAuthorized(_), _) => Self::LoginDenied,
            (DisconnectCause::StoppedReading(_), _) => Self::HandshakeTimeout,
            (DisconnectCause::Unreachable { passing: false, .. }, _) => Self::TlsUntrusted,
            (DisconnectCause::Unreachable { .. } | DisconnectCause::Cut(_), _) => Self::HttpUnreachable,
            (DisconnectCause::Status(_) | DisconnectCause::SessionExpired, _) => Self::HttpStatus,
            (_, Some(ProcessExit::Signal(_))) => Self::SpawnKilled,
            _ => Self::SpawnExited,
        }
    }
}

impl serde::Serialize for ProbeCode {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page has a section with cause and fix for each code, in this order, and no others.
    #[test]
    fn troubleshooting_page_documents_every_code() {
        let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/troubleshooting.md");
        let page = std::fs::read_to_string(page).unwrap();
        let mut found = Vec::new();
        for section in page.split("\n### `").skip(1) {
            let (word, rest) = section.split_once("`\n").unwrap();
            assert!(
                rest.contains("\n**Cause.** ") && rest.contains("\n**Fix.** "),
                "{word} lacks its cause or its fix"
            );
            found.push(word);
        }
        assert_eq!(found, ProbeCode::ALL.map(|(_, word)| word));
    }

    #[test]
    fn every_code_belongs_to_a_probe_step() {
        let steps = super::super::STDIO.iter().chain(&super::super::HTTP).collect::<Vec<_>>();
        for (code, word) in ProbeCode::ALL {
            assert_eq!(code.as_str(), word);
            assert!(steps.contains(&&code.stage()), "{word}: {}", code.stage());
        }
    }
}
