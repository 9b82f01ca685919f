//! In-process echo server that answers on the client's thread.

use wharf_client::{LocalServer, Pending, ServerEnd, Workers};

use crate::echo::{Era, answer};

/// Answers like the echo servers, synchronously and without a thread of its own. All other cost of a call is the
/// caller's.
pub struct InlineEcho;

impl LocalServer for InlineEcho {
    fn serve(self: Box<Self>, mut end: ServerEnd, _workers: Workers) -> Pending<()> {
        Box::pin(async move {
            let outbox = end.outbox();
            while let Some(message) = end.receive().await {
                let mut reply = Vec::new();
                answer(&message.text, Era::Modern, &mut reply);
                if !reply.is_empty() {
                    outbox.send(reply);
                }
            }
        })
    }
}
