//! Routing of a call to its server: waits until the server is ready and permits one more concurrent call, sends the
//! call, and retries it if that is safe.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::Instant;
use wharf_client::{CallError, Connection};

use crate::error::HostError;
use crate::server::Server;
use crate::supervise::{Availability, ServerSnapshot};

/// Maximum number of retries of a call whose connection was lost, if it was not delivered or only reads.
const MAX_RETRIES: usize = 2;

/// An open connection and its epoch.
pub(crate) struct LiveConnection {
    pub connection: Connection,
    pub epoch: u64,
}

/// Next step of a call, given the availability of its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextStep {
    Go,
    Wait,
    /// Wake the server and wait.
    Wake,
    GiveUp,
}

/// Retry state of a call: the last broken connection and the number of broken ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RetryState {
    pub broken_epoch: Option<u64>,
    breaks: usize,
}

impl RetryState {
    /// Records that the connection of this epoch was lost and the call is safe to repeat. Returns whether to retry.
    pub fn record_break(&mut self, epoch: u64) -> bool {
        self.broken_epoch = Some(epoch);
        self.breaks += 1;
        self.breaks <= MAX_RETRIES
    }
}

/// Decides the next step of a call. `broken_epoch` is the epoch whose connection the call has found broken.
pub(crate) fn next_step<C>(
    availability: &Availability<C>,
    epoch: u64,
    broken_epoch: Option<u64>,
    now: Instant,
) -> NextStep {
    match availability {
        Availability::Open(_) if broken_epoch == Some(epoch) => NextStep::Wait,
        Availability::Open(_) => NextStep::Go,
        Availability::Connecting => NextStep::Wait,
        Availability::OnDemand { not_before } if not_before.is_none_or(|time| now >= time) => NextStep::Wake,
        Availability::OnDemand { .. } | Availability::Unavailable => NextStep::GiveUp,
    }
}

/// A deadline and the timeout that it was computed from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallDeadline {
    pub timeout: Duration,
    pub at: Instant,
}

impl CallDeadline {
    pub fn after(timeout: Duration) -> Self {
        Self::since(Instant::now(), timeout)
    }

    /// Creates a deadline relative to an earlier point in time.
    pub fn since(began: Instant, timeout: Duration) -> Self {
        // Saturate: Instant + Duration overflows.
        let far = || began + Duration::from_secs(100 * 365 * 24 * 3600);
        Self { timeout, at: began.checked_add(timeout).unwrap_or_else(far) }
    }
}

impl Server {
    /// Returns the open connection without waiting.
    pub fn live_connection(&self) -> Option<LiveConnection> {
        let snapshot = self.snapshot.borrow();
        match &snapshot.availability {
            Availability::Open(connection) => {
                Some(LiveConnection { connection: connection.clone(), epoch: snapshot.epoch })
            }
            _ => None,
        }
    }

    /// Waits until the server is connected, waking it if necessary.
    ///
    /// Dropping the future does not stop a server that was woken.
    pub async fn wait_until_open(
        &self,
        broken_epoch: Option<u64>,
        deadline: CallDeadline,
    ) -> Result<LiveConnection, HostError> {
        if broken_epoch.is_none()
            && let Some(live) = self.live_connection()
        {
            return Ok(live);
        }
        match tokio::time::timeout_at(deadline.at, self.wait_for_connection(broken_epoch)).await {
            Ok(opened) => opened,
            Err(_) => Err(self.timeout_error(deadline)),
        }
    }

    async fn wait_for_connection(&self, broken_epoch: Option<u64>) -> Result<LiveConnection, HostError> {
        let mut snapshot = self.snapshot.clone();
        loop {
            let now = snapshot.borrow_and_update().clone();
            match (next_step(&now.availability, now.epoch, broken_epoch, Instant::now()), now.availability.clone()) {
                (NextStep::Go, Availability::Open(connection)) => {
                    return Ok(LiveConnection { connection, epoch: now.epoch });
                }
                (NextStep::GiveUp, _) => return Err(self.unavailable_error(&now)),
                (NextStep::Wake, _) => self.demand.notify_one(),
                _ => {}
            }
            if snapshot.changed().await.is_err() {
                return Err(HostError::Closed);
            }
        }
    }

    /// Takes a permit, if the server limits concurrent calls.
    pub async fn acquire_concurrency_permit(
        &self,
        deadline: CallDeadline,
    ) -> Result<Option<OwnedSemaphorePermit>, HostError> {
        let Some(concurrency) = self.settings.load().concurrency.clone() else { return Ok(None) };
        match tokio::time::timeout_at(deadline.at, concurrency.acquire_owned()).await {
            Ok(permit) => permit.map(Some).map_err(|_| HostError::Closed),
            Err(_) => Err(self.busy_error("at its limit of concurrent calls", deadline)),
        }
    }

    /// Takes a permit and makes a call. If the connection is lost and the call was not delivered or only reads, retries
    /// it on the next connection.
    ///
    /// Dropping the future cancels the call.
    pub async fn call_with_retry<T, F: Future<Output = Result<T, HostError>>>(
        &self,
        deadline: CallDeadline,
        call: impl Fn(LiveConnection) -> F,
    ) -> Result<T, HostError> {
        let _concurrency_permit = self.acquire_concurrency_permit(deadline).await?;
        self.with_connection(deadline, call).await
    }

    /// Makes a single request whose errors are those of the connection, with permit and retries as in
    /// [`Server::call_with_retry`].
    pub async fn request_with_retry<T, F: Future<Output = Result<T, CallError>>>(
        &self,
        deadline: CallDeadline,
        request: impl Fn(Connection) -> F,
    ) -> Result<T, HostError> {
        let calling = self.call_with_retry(deadline, |live| {
            let answer = request(live.connection);
            async { answer.await.map_err(|error| self.call_error(error)) }
        });
        calling.await
    }

    /// Runs an operation with retries as in [`Server::call_with_retry`], but without taking a permit.
    pub async fn with_connection<T, F: Future<Output = Result<T, HostError>>>(
        &self,
        deadline: CallDeadline,
        call: impl Fn(LiveConnection) -> F,
    ) -> Result<T, HostError> {
        let _in_use = self.usage.track_call();
        let mut retry = RetryState::default();
        loop {
            let live = self.wait_until_open(retry.broken_epoch, deadline).await?;
            let (connection, epoch) = (live.connection.clone(), live.epoch);
            let outcome = call(live).await;
            if let Err(HostError::Call { error, .. }) = &outcome {
                self.report_rejected(epoch, error);
            }
            let is_repeatable =
                matches!(outcome, Err(HostError::Call { error: CallError::RetryableDisconnect(_), .. }));
            if !(is_repeatable && connection.is_gone() && retry.record_break(epoch)) {
                return outcome;
            }
        }
    }

    /// Waits until the tools of this connection have been listed. If the connection is lost before, returns the same
    /// error as a call.
    pub async fn wait_for_tools(&self, live: &LiveConnection, deadline: CallDeadline) -> Result<(), HostError> {
        self.wait_for_epoch(&self.listed, live, deadline).await
    }

    /// Waits until all lists of this connection have been read.
    pub async fn wait_for_all_lists(&self, live: &LiveConnection, deadline: CallDeadline) -> Result<(), HostError> {
        self.wait_for_epoch(&self.listed_all, live, deadline).await
    }

    async fn wait_for_epoch(
        &self,
        listed_epoch: &watch::Sender<u64>,
        live: &LiveConnection,
        deadline: CallDeadline,
    ) -> Result<(), HostError> {
        if *listed_epoch.borrow() >= live.epoch {
            return Ok(());
        }
        let mut listed = listed_epoch.subscribe();
        let wait_for_listing = async {
            tokio::select! {
                biased;
                _ = listed.wait_for(|listed| *listed >= live.epoch) => Ok(()),
                gone = live.connection.wait_until_gone() => Err(self.call_error(CallError::RetryableDisconnect(gone))),
            }
        };
        match tokio::time::timeout_at(deadline.at, wait_for_listing).await {
            Ok(outcome) => outcome,
            Err(_) => Err(self.busy_error("listing its tools, resources and prompts", deadline)),
        }
    }

    pub fn call_error(&self, error: CallError) -> HostError {
        HostError::Call { server: self.name.clone(), error }
    }

    pub fn unavailable_error(&self, snapshot: &ServerSnapshot) -> HostError {
        HostError::Unavailable {
            server: self.name.clone(),
            state: snapshot.state,
            since: snapshot.since,
            last_error: snapshot.last_error.clone(),
        }
    }

    fn timeout_error(&self, deadline: CallDeadline) -> HostError {
        let snapshot = self.snapshot.borrow();
        let last_error = snapshot.last_error.as_ref().map(Arc::clone);
        let (server, what) = (self.name.clone(), snapshot.state.as_str());
        HostError::NotInTime { server, what, after: deadline.timeout, last_error }
    }

    fn busy_error(&self, what: &'static str, deadline: CallDeadline) -> HostError {
        HostError::NotInTime { server: self.name.clone(), what, after: deadline.timeout, last_error: None }
    }
}
