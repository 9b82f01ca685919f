//! SIGINT, SIGTERM and SIGHUP: the first asks the command to end, the second ends it.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use crate::editor::give_back;
use crate::failure::Kind;

/// Resolves when the first signal comes.
pub struct FirstSignal(oneshot::Receiver<()>);

impl FirstSignal {
    /// Begins to listen, and never stops: from now on no signal ends the process by itself.
    pub fn listen() -> io::Result<Self> {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let [interrupt, terminate, hangup] = kinds.map(signal);
        let mut signals = [interrupt?, terminate?, hangup?];
        let (first, heard) = oneshot::channel();
        tokio::spawn(async move {
            next(&mut signals).await;
            let _ = first.send(());
            next(&mut signals).await;
            give_back();
            // Servers end with their guards, which notice.
            std::process::exit(Kind::Interrupted.code().into());
        });
        Ok(Self(heard))
    }

    pub async fn wait(self) {
        if self.0.await.is_err() {
            // Nobody can tell of a signal any more.
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
