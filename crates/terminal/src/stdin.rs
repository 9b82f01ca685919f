//! Reads standard input on a dedicated thread. A blocking read cannot be interrupted, so shutdown never joins the
//! thread.

use std::io::{self, Read as _};

use tokio::sync::{mpsc, oneshot};

/// Reads standard input to its end.
pub async fn read_all() -> io::Result<String> {
    let (sender, read) = oneshot::channel();
    wharf_threads::start_thread("wharf-stdin", move || {
        let mut text = String::new();
        let _ = sender.send(io::stdin().read_to_string(&mut text).map(|_| text));
    })?;
    read.await.unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
}

/// Reads standard input line by line. The channel closes at end of input.
///
/// # Errors
///
/// Fails if no thread can be started.
pub fn lines() -> io::Result<mpsc::Receiver<String>> {
    let (line, lines) = mpsc::channel(1);
    wharf_threads::start_thread("wharf-stdin", move || {
        for text in io::stdin().lines() {
            let Ok(text) = text else { return };
            if line.blocking_send(text).is_err() {
                return;
            }
        }
    })?;
    Ok(lines)
}
