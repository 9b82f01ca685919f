//! Handling of requests from the control socket.

use serde_json::json;

use super::slash::Wish;
use super::{ReplSession, announce};
use wharf_terminal::control::{Order, Request, rows};
use wharf_terminal::fleet::Look;

impl ReplSession<'_> {
    pub(super) fn ordered(&mut self, order: Order) {
        match order.request.clone() {
            Request::List => order.reply(rows::list(self.fleet)),
            Request::One(id) => order.reply(rows::one(self.fleet, &id)),
            Request::Reload => self.reload_for(order),
            Request::Cancel => self.cancel_for(order),
        }
    }

    /// Reloads the configuration and replies with the changes.
    fn reload_for(&mut self, order: Order) {
        let (session, fleet) = (self.session, self.fleet);
        self.errands.send(async move {
            let reloaded = match fleet.reload(Look::Asked).await {
                Ok(reloaded) => reloaded,
                Err(failure) => {
                    order.refuse(&failure);
                    return Ok(Wish::Nothing);
                }
            };
            announce::reloaded(session, &reloaded);
            order.answer(json!(reloaded));
            Ok(Wish::Reloaded(reloaded))
        });
    }

    fn cancel_for(&mut self, order: Order) {
        let cancelled = self.stop();
        order.answer(json!({ "cancelled": cancelled }));
    }
}
