//! What other programs ask of this one.

use serde_json::{Value, json};

use super::slash::Wish;
use super::wishes::read;
use super::{Repl, announce};
use crate::control::{Order, Request, rows};
use crate::failure::Failure;

impl Repl<'_> {
    pub(super) fn ordered(&mut self, order: Order) {
        match order.request.clone() {
            Request::List => reply(order, rows::list(self.fleet)),
            Request::One(id) => reply(order, rows::one(self.fleet, &id)),
            Request::Reload => self.reload_for(order),
            Request::Cancel => self.cancel_for(order),
        }
    }

    /// Looks at the configuration again; whoever asked hears what has changed.
    fn reload_for(&mut self, order: Order) {
        let (session, fleet) = (self.session, self.fleet);
        self.errands.send(async move {
            let reloaded = match read(session).await {
                Ok(config) => fleet.reload(config).await,
                Err(failure) => {
                    order.refuse(&failure);
                    return Ok(Wish::Nothing);
                }
            };
            announce::reloaded(session, &reloaded);
            order.answer(rows::reloaded(&reloaded));
            Ok(Wish::Reloaded(reloaded.changes))
        });
    }

    fn cancel_for(&mut self, order: Order) {
        let cancelled = self.stop();
        order.answer(json!({ "cancelled": cancelled }));
    }
}

fn reply(order: Order, result: Result<Value, Failure>) {
    match result {
        Ok(result) => order.answer(result),
        Err(failure) => order.refuse(&failure),
    }
}
