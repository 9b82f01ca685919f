//! What takes its time while the REPL goes on: commands, attachments, reconnections.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use super::slash::Wish;
use crate::failure::Failure;

/// What came of an errand.
pub type Done = Result<Wish, Failure>;

/// Errands under way. Dropped, they are dropped too.
#[derive(Default)]
pub struct Errands<'a>(Vec<Pin<Box<dyn Future<Output = Done> + 'a>>>);

impl<'a> Errands<'a> {
    pub fn send(&mut self, errand: impl Future<Output = Done> + 'a) {
        self.0.push(Box::pin(errand));
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next one to be done; never, where there is none. Dropped while it waits, nothing is lost.
    pub async fn next(&mut self) -> Done {
        poll_fn(|context| {
            for at in 0..self.0.len() {
                if let Poll::Ready(done) = self.0[at].as_mut().poll(context) {
                    drop(self.0.swap_remove(at));
                    return Poll::Ready(done);
                }
            }
            Poll::Pending
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn whoever_is_done_first_is_told_first() {
        let mut errands = Errands::default();
        let (slow, waits) = oneshot::channel();
        errands.send(async { waits.await.map_err(Failure::other) });
        errands.send(async { Ok(Wish::Clear) });
        assert_eq!(errands.next().await.ok(), Some(Wish::Clear));
        slow.send(Wish::Leave).ok();
        assert_eq!(errands.next().await.ok(), Some(Wish::Leave));
        assert!(errands.is_empty());
    }
}
