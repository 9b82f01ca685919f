//! The way of a call to its server: wait until it is there, take a turn, go, and go once more where that is safe.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::Instant;
use wharf_client::{CallError, Connection};

use crate::error::HostError;
use crate::server::Server;
use crate::supervise::{Standing, Way};

/// How often a call that has provably not arrived is made once more.
const AGAIN: usize = 2;

/// A connection to go by, and which one it is.
pub(crate) struct Passage {
    pub connection: Connection,
    pub epoch: u64,
}

/// What a call should do, by where its server stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Move {
    Go,
    Wait,
    /// Say that the server is needed, and wait.
    Wake,
    GiveUp,
}

/// A call that may have to be made more than once: which connection it has found broken, and how many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Journey {
    pub stale: Option<u64>,
    broken: usize,
}

impl Journey {
    /// Notes that the connection of this attempt broke before the call arrived; whether the call is made once more.
    pub fn goes_again(&mut self, epoch: u64) -> bool {
        self.stale = Some(epoch);
        self.broken += 1;
        self.broken <= AGAIN
    }
}

/// Decides what a call does next. `stale` is the attempt whose connection it has found broken.
pub(crate) fn next_move<C>(way: &Way<C>, epoch: u64, stale: Option<u64>, now: Instant) -> Move {
    match way {
        Way::Open(_) if stale == Some(epoch) => Move::Wait,
        Way::Open(_) => Move::Go,
        Way::Coming => Move::Wait,
        Way::Asleep { from } if from.is_none_or(|from| now >= from) => Move::Wake,
        Way::Asleep { .. } | Way::Shut => Move::GiveUp,
    }
}

/// How long something is waited for, all in all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    pub whole: Duration,
    pub until: Instant,
}

impl Patience {
    pub fn of(whole: Duration) -> Self {
        Self::since(Instant::now(), whole)
    }

    /// Waits that began then.
    pub fn since(began: Instant, whole: Duration) -> Self {
        // Nobody waits for a hundred years.
        let far = || began + Duration::from_secs(100 * 365 * 24 * 3600);
        Self { whole, until: began.checked_add(whole).unwrap_or_else(far) }
    }
}

impl Server {
    /// The open connection, without waiting.
    pub fn passage(&self) -> Option<Passage> {
        let standing = self.standing.borrow();
        match &standing.way {
            Way::Open(connection) => Some(Passage { connection: connection.clone(), epoch: standing.epoch }),
            _ => None,
        }
    }

    /// Waits until the server can be called, waking it if need be.
    ///
    /// Dropped while it waits, a server that was woken goes on getting ready.
    pub async fn open(&self, stale: Option<u64>, patience: Patience) -> Result<Passage, HostError> {
        if stale.is_none()
            && let Some(passage) = self.passage()
        {
            return Ok(passage);
        }
        match tokio::time::timeout_at(patience.until, self.opened(stale)).await {
            Ok(opened) => opened,
            Err(_) => Err(self.not_in_time(patience)),
        }
    }

    async fn opened(&self, stale: Option<u64>) -> Result<Passage, HostError> {
        let mut standing = self.standing.clone();
        loop {
            let now = standing.borrow_and_update().clone();
            match (next_move(&now.way, now.epoch, stale, Instant::now()), now.way.clone()) {
                (Move::Go, Way::Open(connection)) => return Ok(Passage { connection, epoch: now.epoch }),
                (Move::GiveUp, _) => return Err(self.unavailable(&now)),
                (Move::Wake, _) => self.wanted.notify_one(),
                _ => {}
            }
            if standing.changed().await.is_err() {
                return Err(HostError::Closed);
            }
        }
    }

    /// A turn, where the server is given only so many calls at once.
    pub async fn turn(&self, patience: Patience) -> Result<Option<OwnedSemaphorePermit>, HostError> {
        let Some(slots) = self.kept.load().slots.clone() else { return Ok(None) };
        match tokio::time::timeout_at(patience.until, slots.acquire_owned()).await {
            Ok(permit) => permit.map(Some).map_err(|_| HostError::Closed),
            Err(_) => Err(self.still("busy with as many calls as it is given at once", patience)),
        }
    }

    /// Makes a call, and makes it again on the next connection where it has provably not arrived.
    ///
    /// Dropped while it waits, the call is withdrawn.
    pub async fn carry<T, F: Future<Output = Result<T, HostError>>>(
        &self,
        patience: Patience,
        call: impl Fn(Passage) -> F,
    ) -> Result<T, HostError> {
        let _turn = self.turn(patience).await?;
        self.travel(patience, call).await
    }

    /// The same for one request whose errors are the connection's own.
    pub async fn ask<T, F: Future<Output = Result<T, CallError>>>(
        &self,
        patience: Patience,
        request: impl Fn(Connection) -> F,
    ) -> Result<T, HostError> {
        let asked = self.carry(patience, |passage| {
            let answer = request(passage.connection);
            async { answer.await.map_err(|error| self.failed(error)) }
        });
        asked.await
    }

    /// The same without a turn, for what is no call.
    pub async fn travel<T, F: Future<Output = Result<T, HostError>>>(
        &self,
        patience: Patience,
        call: impl Fn(Passage) -> F,
    ) -> Result<T, HostError> {
        let _in_use = self.usage.begin();
        let mut journey = Journey::default();
        loop {
            let passage = self.open(journey.stale, patience).await?;
            let (connection, epoch) = (passage.connection.clone(), passage.epoch);
            let outcome = call(passage).await;
            if let Err(HostError::Call { error, .. }) = &outcome {
                self.turned_away(epoch, error);
            }
            let undelivered = matches!(outcome, Err(HostError::Call { error: CallError::ServerGone(_), .. }));
            if !(undelivered && connection.is_gone() && journey.goes_again(epoch)) {
                return outcome;
            }
        }
    }

    /// Waits until the tools of this connection have been listed. One that is lost before errs as a call of it would.
    pub async fn learned(&self, passage: &Passage, patience: Patience) -> Result<(), HostError> {
        self.reached(&self.listed, passage, patience).await
    }

    /// Waits until everything this connection offers has been listed.
    pub async fn learned_all(&self, passage: &Passage, patience: Patience) -> Result<(), HostError> {
        self.reached(&self.listed_all, passage, patience).await
    }

    async fn reached(&self, mark: &watch::Sender<u64>, passage: &Passage, patience: Patience) -> Result<(), HostError> {
        if *mark.borrow() >= passage.epoch {
            return Ok(());
        }
        let mut listed = mark.subscribe();
        let learned = async {
            tokio::select! {
                biased;
                _ = listed.wait_for(|listed| *listed >= passage.epoch) => Ok(()),
                gone = passage.connection.gone() => Err(self.failed(CallError::ServerGone(gone))),
            }
        };
        match tokio::time::timeout_at(patience.until, learned).await {
            Ok(learned) => learned,
            Err(_) => Err(self.still("listing what it offers", patience)),
        }
    }

    pub fn failed(&self, error: CallError) -> HostError {
        HostError::Call { server: self.name.clone(), error }
    }

    pub fn unavailable(&self, standing: &Standing) -> HostError {
        HostError::Unavailable {
            server: self.name.clone(),
            state: standing.state,
            since: standing.since,
            trouble: standing.trouble.clone(),
        }
    }

    fn not_in_time(&self, patience: Patience) -> HostError {
        let standing = self.standing.borrow();
        let trouble = standing.trouble.as_ref().map(Arc::clone);
        let (server, what) = (self.name.clone(), standing.state.as_str());
        HostError::NotInTime { server, what, after: patience.whole, trouble }
    }

    fn still(&self, what: &'static str, patience: Patience) -> HostError {
        HostError::NotInTime { server: self.name.clone(), what, after: patience.whole, trouble: None }
    }
}
