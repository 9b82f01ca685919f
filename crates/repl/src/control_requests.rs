//! Handling of requests from the control socket.

use serde_json::json;

use super::slash::ReplAction;
use super::{ReplSession, server_notices};
use wharf_terminal::control::{ControlRequest, PendingControlRequest, rows};
use wharf_terminal::managed_host::ReloadTrigger;

impl ReplSession<'_> {
    pub(super) fn ordered(&mut self, order: PendingControlRequest) {
        match order.request.clone() {
            ControlRequest::List => order.reply(rows::list(self.fleet)),
            ControlRequest::One(id) => order.reply(rows::one(self.fleet, &id)),
            ControlRequest::Reload => self.reload_for(order),
            ControlRequest::Cancel => self.cancel_for(order),
        }
    }

    /// Reloads the configuration and replies with the changes.
    fn reload_for(&mut self, order: PendingControlRequest) {
        let (session, fleet) = (self.session, self.fleet);
        self.errands.send(async move {
            let reloaded = match fleet.reload(ReloadTrigger::Asked).await {
                Ok(reloaded) => reloaded,
                Err(failure) => {
                    order.refuse(&failure);
                    return Ok(ReplAction::Nothing);
                }
            };
            server_notices::reloaded(session, &reloaded);
            order.answer(json!(reloaded));
            Ok(ReplAction::Reloaded(reloaded))
        });
    }

    fn cancel_for(&mut self, order: PendingControlRequest) {
        let cancelled = self.stop();
        order.answer(json!({ "cancelled": cancelled }));
    }
}
