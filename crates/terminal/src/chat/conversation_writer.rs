//! Saves a conversation on a dedicated thread, so that no run waits for the disk.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;
use wharf_agent::{ConversationTurn, SavedConversation, SavedConversationError, TurnBlock};

use crate::console::Console;

/// Handle of the writer thread. Turns sent before it is dropped are still written.
pub struct ConversationWriter {
    id: String,
    // Unbounded: turns arrive at the speed of the model and are in memory anyway.
    lines: Sender<ConversationRecord>,
    done: oneshot::Receiver<()>,
    /// The writer, if no thread could be started: it then writes on the caller's thread.
    inline: Option<Mutex<TurnWriter>>,
}

/// A record to write.
enum ConversationRecord {
    /// A turn and the servers in use at that time.
    Turn { turn: ConversationTurn, servers: Vec<String> },
    /// The result of a call while others are pending.
    Result(TurnBlock),
}

/// Writes turns until a write fails.
struct TurnWriter {
    saved: SavedConversation,
    records: Receiver<ConversationRecord>,
    console: Arc<Console>,
    has_failed: bool,
}

impl ConversationWriter {
    pub fn new(saved: SavedConversation, console: Arc<Console>) -> Self {
        let id = saved.id().to_owned();
        let (lines, records) = channel();
        let (finished, done) = oneshot::channel();
        let writer = Arc::new(Mutex::new(Some(TurnWriter { saved, records, console, has_failed: false })));
        let taken = Arc::clone(&writer);
        let run = move || {
            let writer = taken.lock().unwrap_or_else(PoisonError::into_inner).take();
            writer.into_iter().for_each(TurnWriter::write_all);
            let _ = finished.send(());
        };
        let inline = match wharf_threads::start_thread("wharf-conversation", run) {
            Ok(()) => None,
            Err(_) => writer.lock().unwrap_or_else(PoisonError::into_inner).take().map(Mutex::new),
        };
        Self { id, lines, done, inline }
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn append(&self, turn: ConversationTurn, servers: Vec<String>) {
        // The thread ends early only after it has reported the error.
        let _ = self.lines.send(ConversationRecord::Turn { turn, servers });
        self.write_inline();
    }

    /// Saves the result of a call before the turn with all results.
    pub fn append_result(&self, result: TurnBlock) {
        let _ = self.lines.send(ConversationRecord::Result(result));
        self.write_inline();
    }

    /// Writes what is waiting, if there is no thread for it.
    fn write_inline(&self) {
        if let Some(writer) = &self.inline {
            writer.lock().unwrap_or_else(PoisonError::into_inner).write_pending();
        }
    }

    /// Waits until every turn is written.
    pub async fn finish(self) {
        let Self { lines, done, .. } = self;
        drop(lines);
        let _ = done.await;
    }
}

impl TurnWriter {
    /// Writes records until the sender is dropped.
    fn write_all(mut self) {
        while let Ok(record) = self.records.recv() {
            self.write(record);
        }
    }

    /// Writes the records that are waiting.
    fn write_pending(&mut self) {
        while let Ok(record) = self.records.try_recv() {
            self.write(record);
        }
    }

    fn write(&mut self, record: ConversationRecord) {
        if self.has_failed {
            return;
        }
        let written: Result<(), SavedConversationError> = match record {
            ConversationRecord::Turn { turn, servers } => {
                self.saved.append(&turn).and_then(|()| self.saved.record_servers(&servers))
            }
            ConversationRecord::Result(result) => self.saved.append_result(result),
        };
        if let Err(error) = written {
            self.has_failed = true;
            self.console.warn(format_args!("could not save the conversation, later turns are not saved: {error}"));
        }
    }
}
