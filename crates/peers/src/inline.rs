//! In-process echo server that answers on the client's thread.

use wharf_client::{BoxedFuture, LocalServer, ServerEnd, Workers};

use crate::echo::append_response;

/// Answers like the echo servers, synchronously and without a thread of its own. All other cost of a call is the
/// caller's.
pub struct InlineEcho;

impl LocalServer for InlineEcho {
    fn serve(self: Box<Self>, mut end: ServerEnd, _workers: Workers) -> BoxedFuture<()> {
        Box::pin(async move {
            let outbox = end.sender();
            while let Some(message) = end.receive().await {
                let mut reply = Vec::new();
                append_response(&message.text, &mut reply);
                if !reply.is_empty() {
                    outbox.send(reply);
                }
            }
        })
    }
}
