//! Mutual exclusion of logins to one server. A manual login has priority and cancels prompted ones.

use std::pin::pin;

use tokio::sync::watch;

/// Logins of one account that are in progress.
#[derive(Default)]
pub(crate) struct LoginLock {
    by_hand: watch::Sender<usize>,
    asked: watch::Sender<usize>,
}

/// A login in progress. Dropping it ends the login.
pub(crate) struct LoginTurn(watch::Sender<usize>);

impl LoginLock {
    /// Begins a manual login or logout. Returns once all prompted logins have been cancelled.
    pub async fn begin_manual(&self) -> LoginTurn {
        let turn = LoginTurn::enter(&self.by_hand);
        // Fails only if the sender is dropped, and then no prompted login is in progress.
        let _ = self.asked.subscribe().wait_for(|count| *count == 0).await;
        turn
    }

    /// Runs a prompted login. Returns `None` if a manual login is in progress or begins, which drops the future.
    pub async fn run_prompted<T>(&self, login: impl Future<Output = T>) -> Option<T> {
        let _turn = LoginTurn::enter(&self.asked);
        // Dropped before the turn ends.
        let login = pin!(login);
        let mut by_hand = self.by_hand.subscribe();
        tokio::select! {
            biased;
            _ = by_hand.wait_for(|count| *count > 0) => None,
            outcome = login => Some(outcome),
        }
    }
}

impl LoginTurn {
    fn enter(count: &watch::Sender<usize>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count.clone())
    }
}

impl Drop for LoginTurn {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::Arc;

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn manual_login_preempts_a_prompted_one() {
        let turns = Arc::new(LoginLock::default());
        let (held, mut given_up) = oneshot::channel::<()>();
        let asked = tokio::spawn({
            let turns = Arc::clone(&turns);
            async move {
                let login = async move {
                    let _held = held;
                    pending::<()>().await;
                };
                turns.run_prompted(login).await
            }
        });
        tokio::task::yield_now().await;
        let turn = turns.begin_manual().await;
        assert!(given_up.try_recv().is_err_and(|error| error == oneshot::error::TryRecvError::Closed));
        assert_eq!(asked.await.unwrap(), None);
        assert_eq!(turns.run_prompted(async { 1 }).await, None, "not while it is under way either");
        drop(turn);
        assert_eq!(turns.run_prompted(async { 1 }).await, Some(1));
    }
}
