//! An echo server that lives in the client's process and answers on the client's own thread.

use wharf_client::{LocalServer, Pending, ServerEnd, Workers};

use crate::echo::{Era, answer};

/// Answers as the echo servers do, at once and without a thread of its own: whatever else a call costs is the caller's.
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
