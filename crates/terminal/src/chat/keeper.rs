//! Writes a conversation down as it goes, on a thread of its own: nobody waits for the disk.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use tokio::sync::oneshot;
use wharf_agent::{SavedConversation, SavedError, Turn};

use crate::console::Console;

/// The one who writes. Dropped, it still writes what it was given.
pub struct Keeper {
    id: String,
    // Turns come as fast as a model speaks, and hold what is in memory anyway.
    lines: Sender<Kept>,
    done: oneshot::Receiver<()>,
}

/// A turn, and the servers there were when it was said.
struct Kept {
    turn: Turn,
    servers: Vec<String>,
}

impl Keeper {
    pub fn of(saved: SavedConversation, console: Arc<Console>) -> Self {
        let id = saved.id().to_owned();
        let (lines, kept) = channel();
        let (finished, done) = oneshot::channel();
        std::thread::spawn(move || {
            write(saved, &kept, &console);
            let _ = finished.send(());
        });
        Self { id, lines, done }
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn turn(&self, turn: Turn, servers: Vec<String>) {
        // The thread is gone only after it has said why.
        let _ = self.lines.send(Kept { turn, servers });
    }

    /// Waits until everything is written.
    pub async fn finish(self) {
        let Self { lines, done, .. } = self;
        drop(lines);
        let _ = done.await;
    }
}

fn write(mut saved: SavedConversation, kept: &Receiver<Kept>, console: &Console) {
    while let Ok(Kept { turn, servers }) = kept.recv() {
        let written: Result<(), SavedError> = saved.append(&turn).and_then(|()| saved.servers(&servers));
        if let Err(error) = written {
            return console.warn(format_args!("the conversation is not saved any more: {error}"));
        }
    }
}
