//! Standard input, read on a thread of its own: nothing can interrupt such a read, so nobody may wait for its thread.

use std::io::{self, Read as _};

use tokio::sync::{mpsc, oneshot};

/// Everything, up to the end.
pub async fn read_all() -> io::Result<String> {
    let (whole, read) = oneshot::channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        let _ = whole.send(io::stdin().read_to_string(&mut text).map(|_| text));
    });
    read.await.unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
}

/// Line by line. The channel closes at the end of the input.
pub fn lines() -> mpsc::Receiver<String> {
    let (line, lines) = mpsc::channel(1);
    std::thread::spawn(move || {
        for text in io::stdin().lines() {
            let Ok(text) = text else { return };
            if line.blocking_send(text).is_err() {
                return;
            }
        }
    });
    lines
}
