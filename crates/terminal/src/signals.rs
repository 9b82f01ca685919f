//! SIGINT, SIGTERM and SIGHUP: the first ends the command gracefully, the second exits immediately.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use crate::editor::restore;
use crate::failure::FailureKind;

/// Resolves on the first signal.
pub struct FirstSignal(oneshot::Receiver<()>);

impl FirstSignal {
    /// Starts to listen. From now on, signals do not end the process by default.
    ///
    /// # Errors
    ///
    /// Fails if a signal handler cannot be installed.
    pub fn listen() -> io::Result<Self> {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let [interrupt, terminate, hangup] = kinds.map(signal);
        let mut signals = [interrupt?, terminate?, hangup?];
        let (first, heard) = oneshot::channel();
        tokio::spawn(async move {
            next(&mut signals).await;
            let _ = first.send(());
            next(&mut signals).await;
            restore();
            // The guards notice the exit and stop the servers.
            std::process::exit(FailureKind::Interrupted.code().into());
        });
        Ok(Self(heard))
    }

    pub async fn wait(self) {
        if self.0.await.is_err() {
            // The signal task has ended, so no signal can arrive.
            std::future::pending::<()>().await;
        }
    }
}

async fn next([interrupt, terminate, hangup]: &mut [Signal; 3]) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
}
