//! Periodic changes to watch.

use std::time::Instant;

use super::DemoServer;
use crate::message::Outbox;
use crate::port::HarbourChange;

impl DemoServer {
    /// Raises the tide, and hires or dismisses a crane, periodically until the server closes.
    ///
    /// Waits until a revision is negotiated, since no client can receive a notification before.
    pub fn run_tide_changes(&self, out: &dyn Outbox) {
        let Some(every) = self.nature.tide else { return };
        while !self.closing.is_cancelled_within(Instant::now(), every) {
            let Some(revision) = self.negotiation.negotiated() else { continue };
            let crane = if self.port.view().has_crane { HarbourChange::DismissCrane } else { HarbourChange::HireCrane };
            self.apply(crane, revision, out);
            self.apply(HarbourChange::RaiseTide, revision, out);
        }
    }
}
