//! Saves a conversation on a dedicated thread, so that no run waits for the disk.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use tokio::sync::oneshot;
use wharf_agent::{ConversationTurn, SavedConversation, SavedConversationError};

use crate::console::Console;

/// Handle of the writer thread. Turns sent before it is dropped are still written.
pub struct ConversationWriter {
    id: String,
    // Unbounded: turns arrive at the speed of the model and are in memory anyway.
    lines: Sender<TurnRecord>,
    done: oneshot::Receiver<()>,
}

/// A turn and the servers in use at that time.
struct TurnRecord {
    turn: ConversationTurn,
    servers: Vec<String>,
}

impl ConversationWriter {
    pub fn new(saved: SavedConversation, console: Arc<Console>) -> Self {
        let id = saved.id().to_owned();
        let (lines, kept) = channel();
        let (finished, done) = oneshot::channel();
        std::thread::spawn(move || {
            write_turns(saved, &kept, &console);
            let _ = finished.send(());
        });
        Self { id, lines, done }
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn append(&self, turn: ConversationTurn, servers: Vec<String>) {
        // The thread ends early only after it has reported the error.
        let _ = self.lines.send(TurnRecord { turn, servers });
    }

    /// Waits until every turn is written.
    pub async fn finish(self) {
        let Self { lines, done, .. } = self;
        drop(lines);
        let _ = done.await;
    }
}

fn write_turns(mut saved: SavedConversation, kept: &Receiver<TurnRecord>, console: &Console) {
    while let Ok(TurnRecord { turn, servers }) = kept.recv() {
        let written: Result<(), SavedConversationError> =
            saved.append(&turn).and_then(|()| saved.record_servers(&servers));
        if let Err(error) = written {
            return console.warn(format_args!("could not save the conversation, later turns are not saved: {error}"));
        }
    }
}
