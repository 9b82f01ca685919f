//! A set of futures polled alongside an event loop: commands, reloads, reconnections.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

/// Pending futures of one task. Dropping the set cancels them.
pub struct LocalTasks<'a, T>(Vec<Pin<Box<dyn Future<Output = T> + 'a>>>);

impl<T> Default for LocalTasks<'_, T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'a, T> LocalTasks<'a, T> {
    pub fn push(&mut self, future: impl Future<Output = T> + 'a) {
        self.0.push(Box::pin(future));
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Waits for the next future to finish and returns its output. If several are ready, they complete in insertion
    /// order. Never resolves while the set is empty. Cancel-safe.
    pub async fn next(&mut self) -> T {
        poll_fn(|context| {
            for at in 0..self.0.len() {
                if let Poll::Ready(done) = self.0[at].as_mut().poll(context) {
                    drop(self.0.remove(at));
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
    async fn first_finished_task_is_returned_first() {
        let mut local_tasks = LocalTasks::default();
        let (slow, waits) = oneshot::channel();
        local_tasks.push(async { waits.await.unwrap() });
        local_tasks.push(async { 2 });
        assert_eq!(local_tasks.next().await, 2);
        slow.send(1).unwrap();
        assert_eq!(local_tasks.next().await, 1);
        assert!(local_tasks.is_empty());
    }

    #[tokio::test]
    async fn ready_tasks_keep_insertion_order() {
        let mut local_tasks = LocalTasks::default();
        (1..=4).for_each(|number| local_tasks.push(async move { number }));
        for expected in 1..=4 {
            assert_eq!(local_tasks.next().await, expected);
        }
    }
}
