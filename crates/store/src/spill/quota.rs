//! The remaining quota of a spill directory.

use super::{FileTotals, SpillError, SpillLimits};

/// The remaining quota.
pub(super) struct RemainingQuota {
    total: u64,
    one: u64,
    used: FileTotals,
}

impl RemainingQuota {
    pub(super) fn new(limits: &SpillLimits, used: &FileTotals) -> Result<Self, SpillError> {
        let room = Self { total: limits.total_bytes, one: limits.one, used: *used };
        if used.files >= limits.files { Err(room.full_error()) } else { Ok(room) }
    }

    pub(super) fn check(&self, bytes: u64) -> Result<(), SpillError> {
        match bytes {
            _ if bytes > self.one => Err(SpillError::TooLarge { limit: self.one }),
            _ if self.used.bytes.saturating_add(bytes) > self.total => Err(self.full_error()),
            _ => Ok(()),
        }
    }

    fn full_error(&self) -> SpillError {
        SpillError::Full { used: self.used.bytes, files: self.used.files, limit: self.total }
    }
}
