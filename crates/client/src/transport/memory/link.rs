//! The message queue of an in-process server.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use tokio::sync::Notify;

use super::workers::depth;
use crate::engine::{Link, OutgoingMessage, SubmitError, Ticket};

/// Maximum nesting of in-process calls: a tool that calls the host that calls the tool.
pub(crate) const MAX_CALL_DEPTH: usize = 8;

/// A message for the server.
#[derive(Debug, Clone)]
pub struct LocalMessage {
    /// The JSON text, without a line ending.
    pub text: Bytes,
    /// Number of enclosing calls to in-process servers. Work for the message must be given to the workers with this
    /// number.
    pub depth: usize,
}

pub(super) struct MemoryLink {
    queue: Mutex<MessageQueue>,
    /// Notified when a message has arrived.
    arrived: Notify,
    /// Notified when the deadlines or the state must be checked.
    look: Notify,
    limit: usize,
}

struct MessageQueue {
    waiting: VecDeque<LocalMessage>,
    bytes: usize,
    /// Total number of messages added and removed.
    put: u64,
    taken: u64,
    state: MemoryLinkState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MemoryLinkState {
    Open,
    Closing,
    Broken,
}

impl MemoryLink {
    pub fn new(limit: usize) -> Self {
        let queue = MessageQueue { waiting: VecDeque::new(), bytes: 0, put: 0, taken: 0, state: MemoryLinkState::Open };
        Self { queue: Mutex::new(queue), arrived: Notify::new(), look: Notify::new(), limit }
    }

    pub async fn receive(&self) -> Option<LocalMessage> {
        loop {
            let arrived = self.arrived.notified();
            {
                let mut queue = self.queue();
                if let Some(message) = queue.pop_front() {
                    return Some(message);
                }
                if queue.state != MemoryLinkState::Open {
                    return None;
                }
            }
            arrived.await;
        }
    }

    pub fn try_receive(&self) -> Option<LocalMessage> {
        self.queue().pop_front()
    }

    pub async fn wait_for_message(&self) {
        self.arrived.notified().await;
    }

    pub fn close(&self, state: MemoryLinkState) {
        {
            let mut queue = self.queue();
            if queue.state == MemoryLinkState::Open {
                queue.state = state;
            }
        }
        self.look.notify_one();
        self.arrived.notify_one();
    }

    pub fn is_open(&self) -> bool {
        self.queue().state == MemoryLinkState::Open
    }

    pub async fn wait_for_deadline_change(&self) {
        self.look.notified().await;
    }

    fn queue(&self) -> MutexGuard<'_, MessageQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MessageQueue {
    fn pop_front(&mut self) -> Option<LocalMessage> {
        let message = self.waiting.pop_front()?;
        self.taken += 1;
        self.bytes -= message.text.len();
        Some(message)
    }
}

impl Link for MemoryLink {
    fn submit(&self, message: OutgoingMessage<'_>) -> Result<Ticket, SubmitError> {
        let depth = depth();
        if depth >= MAX_CALL_DEPTH {
            return Err(SubmitError::TooDeep(depth));
        }
        let length = message.len();
        let mut text = BytesMut::with_capacity(length);
        message.parts.iter().for_each(|part| text.extend_from_slice(part));
        if text.ends_with(b"\n") {
            text.truncate(text.len() - 1);
        }
        let ticket = {
            let mut queue = self.queue();
            match queue.state {
                MemoryLinkState::Open => {}
                MemoryLinkState::Closing => return Err(SubmitError::Closed),
                MemoryLinkState::Broken => return Err(SubmitError::Broken),
            }
            if queue.bytes > 0 && queue.bytes + length > self.limit {
                return Err(SubmitError::Full);
            }
            queue.bytes += text.len();
            queue.put += 1;
            queue.waiting.push_back(LocalMessage { text: text.freeze(), depth });
            Ticket(queue.put)
        };
        self.arrived.notify_one();
        Ok(ticket)
    }

    fn may_have_been_sent(&self, ticket: Ticket) -> bool {
        self.queue().taken >= ticket.0
    }

    fn wake(&self) {
        self.look.notify_one();
    }
}
