//! SIGINT, SIGTERM and SIGHUP: the first ends the command gracefully, the second exits immediately. A SIGHUP that the
//! process inherited as ignored stays ignored.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use crate::editor::restore;
use crate::failure::FailureKind;

/// Resolves on the first signal.
pub struct FirstSignal {
    received: oneshot::Receiver<()>,
    is_received: bool,
}

impl FirstSignal {
    /// Starts to listen, and runs `on_first` after the first signal. From now on, signals do not end the process by
    /// default.
    ///
    /// # Errors
    ///
    /// Fails if a signal handler cannot be installed.
    pub fn listen(on_first: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        let mut kinds = vec![SignalKind::interrupt(), SignalKind::terminate()];
        // `nohup` ignores SIGHUP for the program it starts.
        if !is_ignored(SignalKind::hangup()) {
            kinds.push(SignalKind::hangup());
        }
        let mut signals = kinds.into_iter().map(signal).collect::<io::Result<Vec<Signal>>>()?;
        // With a handler, a write beyond `ulimit -f` fails with EFBIG instead of ending the process.
        let _ = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?;
        let (first, received) = oneshot::channel();
        tokio::spawn(async move {
            next(&mut signals).await;
            let _ = first.send(());
            on_first();
            next(&mut signals).await;
            restore();
            // The guards notice the exit and stop the servers.
            std::process::exit(FailureKind::Interrupted.code().into());
        });
        Ok(Self { received, is_received: false })
    }

    /// Reports whether the first signal has arrived.
    pub fn is_received(&self) -> bool {
        self.is_received
    }

    /// Waits for the first signal. Returns at once after it. Cancel-safe.
    pub async fn wait(&mut self) {
        if self.is_received {
            return;
        }
        self.is_received = (&mut self.received).await.is_ok();
        if !self.is_received {
            // The signal task has ended, so no signal can arrive.
            std::future::pending::<()>().await;
        }
    }
}

/// Waits for any of the signals.
async fn next(signals: &mut [Signal]) {
    poll_fn(|context| {
        let is_ready = |signal: &mut Signal| signal.poll_recv(context).is_ready();
        if signals.iter_mut().any(is_ready) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Reports whether this process inherited a signal as ignored.
fn is_ignored(signal: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    mask & (1 << (signal.as_raw_value() - 1)) != 0
}
