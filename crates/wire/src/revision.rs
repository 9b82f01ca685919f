//! The dated revisions of the protocol, and their two eras.

use std::fmt;
use std::str::FromStr;

/// A dated revision of the protocol, ordered by age.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    /// The first public revision; HTTP+SSE.
    V2024_11_05,
    /// Adds Streamable HTTP and batches.
    V2025_03_26,
    /// Adds elicitation and structured content; removes batches.
    V2025_06_18,
    /// The last revision with a handshake.
    V2025_11_25,
    /// The first stateless revision: every request carries `_meta`.
    V2026_07_28,
}

/// The setup of a connection: one handshake, or metadata in every request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Era {
    /// Starts with `initialize` and `notifications/initialized` (2024-11-05 to 2025-11-25).
    Handshake,
    /// Every request carries version and capabilities in `_meta` (2026-07-28 on).
    Stateless,
}

impl Revision {
    /// Every revision, oldest first.
    pub const ALL: [Revision; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];
    /// The newest revision with a handshake; offered in `initialize`.
    pub const LATEST_HANDSHAKE: Revision = Self::V2025_11_25;
    /// The newest stateless revision; named in probes.
    pub const LATEST_STATELESS: Revision = Self::V2026_07_28;

    /// Returns the revision's string on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// Returns the era of the revision.
    pub const fn era(self) -> Era {
        match self {
            Self::V2026_07_28 => Era::Stateless,
            _ => Era::Handshake,
        }
    }

    /// Reports whether the revision allows arrays of messages (2025-03-26 only).
    pub const fn allows_batches(self) -> bool {
        matches!(self, Self::V2025_03_26)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The error for an unknown version string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownRevision;

impl fmt::Display for UnknownRevision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown protocol revision, expected one of ")?;
        for (n, revision) in Revision::ALL.iter().enumerate() {
            write!(f, "{}{revision}", if n == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownRevision {}

impl FromStr for Revision {
    type Err = UnknownRevision;

    fn from_str(text: &str) -> Result<Self, UnknownRevision> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == text).ok_or(UnknownRevision)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_round_trip_and_order_by_date() {
        for pair in Revision::ALL.windows(2) {
            assert!(pair[0] < pair[1] && pair[0].as_str() < pair[1].as_str());
        }
        for revision in Revision::ALL {
            assert_eq!(revision.as_str().parse(), Ok(revision));
        }
        assert!("2026-07-29".parse::<Revision>().is_err());
    }
}
