//! Changes that come by themselves, so that there is something to watch.

use std::time::Instant;

use super::DemoServer;
use crate::message::Outbox;
use crate::port::Change;

impl DemoServer {
    /// Raises the tide, and hires a crane or dismisses it, as often as the options say and until the server closes.
    ///
    /// Nothing changes before a revision is agreed on: there is nobody yet who could hear of it.
    pub fn turn_tides(&self, out: &dyn Outbox) {
        let Some(every) = self.nature.tide else { return };
        while !self.closing.rings_before(Instant::now(), every) {
            let Some(revision) = self.negotiation.agreed() else { continue };
            let crane = if self.port.view().has_crane { Change::DismissCrane } else { Change::HireCrane };
            self.apply(crane, revision, out);
            self.apply(Change::RaiseTide, revision, out);
        }
    }
}
