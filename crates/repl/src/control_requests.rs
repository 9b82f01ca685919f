//! Handling of requests from the control socket.

use serde_json::json;

use super::slash::ReplAction;
use super::{ReplSession, server_notices};
use wharf_terminal::control::{ControlRequest, PendingControlRequest, rows};
use wharf_terminal::managed_host::ReloadTrigger;

impl ReplSession<'_> {
    pub(super) fn on_control_request(&mut self, request: PendingControlRequest) {
        match request.request.clone() {
            ControlRequest::List => request.reply(rows::list_result(self.managed_host)),
            ControlRequest::One(id) => request.reply(rows::get_result(self.managed_host, &id)),
            ControlRequest::Reload => self.reload_and_reply(request),
            ControlRequest::Cancel => self.cancel_and_reply(request),
        }
    }

    /// Reloads the configuration and replies with the changes.
    fn reload_and_reply(&mut self, request: PendingControlRequest) {
        let (session, managed_host) = (self.session, self.managed_host);
        self.local_tasks.push(async move {
            let reloaded = match managed_host.reload(ReloadTrigger::Asked).await {
                Ok(reloaded) => reloaded,
                Err(failure) => {
                    request.fail(&failure);
                    return Ok(ReplAction::Nothing);
                }
            };
            server_notices::announce_reload(session, &reloaded);
            request.succeed(json!(reloaded));
            Ok(ReplAction::Reloaded(reloaded))
        });
    }

    fn cancel_and_reply(&mut self, request: PendingControlRequest) {
        let cancelled = self.cancel_run();
        request.succeed(json!({ "cancelled": cancelled }));
    }
}
