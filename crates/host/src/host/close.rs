//! The end of a host.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::Host;
use crate::account::ServerAccount;

/// Time to close in addition to the servers' grace periods.
const CLOSE_MARGIN: Duration = Duration::from_secs(1);

/// Time that accounts have to finish operations that must not be interrupted. They limit these to less themselves.
const ACCOUNT_FINISH_TIMEOUT: Duration = Duration::from_secs(15);

impl Host {
    /// Closes the host: rejects new calls, cancels calls in progress and stops every server, within one deadline. Then
    /// flushes the audit log, the state directory and the servers' logs.
    ///
    /// # Cancel safety
    ///
    /// The host is closed from the first poll on. Dropping the future before its end stops the remaining servers
    /// without their grace period, and the last log entries can be lost.
    ///
    /// # Example
    ///
    /// See [servers](Host#servers) for an example.
    pub async fn close(&self) {
        let context = self.context();
        let limits = &context.options.limits;
        let deadline = Instant::now() + limits.stop_grace + limits.term_grace + CLOSE_MARGIN;
        context.closing.send_replace(true);
        let mut accounts = self.leave_all();
        let mut background = std::mem::take(&mut *context.background.lock().unwrap_or_else(PoisonError::into_inner));
        background.abort_all();
        // Servers that are being added are stopped as well; none can be added afterwards.
        let _none_added = tokio::time::timeout_at(deadline, context.changing.acquire()).await;
        accounts.extend(self.leave_all());
        let mut tasks = std::mem::take(&mut *self.owner.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        while let Ok(Some(_)) = tokio::time::timeout_at(deadline, tasks.join_next()).await {}
        tasks.abort_all();
        while let Ok(Some(_)) = tokio::time::timeout_at(deadline, background.join_next()).await {}
        finish_accounts(accounts).await;
        let written = async {
            if let Some(audit) = &context.audit {
                audit.flush().await;
            }
            if let Some(disk) = &context.disk {
                disk.flush().await;
            }
            if let Some(logs) = &context.logs {
                logs.flush().await;
            }
        };
        if tokio::time::timeout_at(deadline.max(Instant::now() + CLOSE_MARGIN), written).await.is_err() {
            tracing::error!("saving state timed out on close");
        }
        context.event_bus.close();
    }

    /// Tells every server to leave. Returns their accounts.
    fn leave_all(&self) -> Vec<Arc<dyn ServerAccount>> {
        let servers = self.context().servers.swap(Arc::default());
        servers.values().for_each(|server| server.leave());
        servers.values().filter_map(|server| server.known_account().map(Arc::clone)).collect()
    }
}

/// Waits for uninterruptible operations of all accounts concurrently.
async fn finish_accounts(accounts: Vec<Arc<dyn ServerAccount>>) {
    let mut all: JoinSet<()> = accounts.iter().map(|account| account.finish()).collect();
    let finished = async { while all.join_next().await.is_some() {} };
    if tokio::time::timeout(ACCOUNT_FINISH_TIMEOUT, finished).await.is_err() {
        tracing::warn!("a token refresh was interrupted on close");
    }
}
