//! Queue of messages and conversation changes, processed in the order typed.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use super::slash::ActionResult;

/// Queued input. The first one is being prepared. Dropping the queue cancels all of it.
#[derive(Default)]
pub struct InputQueue<'a>(VecDeque<QueuedInput<'a>>);

/// Kind of queued input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputKind {
    /// A message to the agent.
    Message,
    /// Starts or resumes another conversation.
    Change,
}

/// State of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConversationState {
    Free,
    /// A run in progress or about to start.
    Busy,
}

struct QueuedInput<'a> {
    kind: InputKind,
    preparation: InputPreparation<'a>,
}

enum InputPreparation<'a> {
    InProgress(Pin<Box<dyn Future<Output = ActionResult> + 'a>>),
    Done(ActionResult),
}

impl<'a> InputQueue<'a> {
    /// Appends input. Its future is not polled before it is first in the queue.
    pub fn push(&mut self, kind: InputKind, future: impl Future<Output = ActionResult> + 'a) {
        self.0.push_back(QueuedInput { kind, preparation: InputPreparation::InProgress(Box::pin(future)) });
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Drops all messages, including one being prepared, and returns their number. Conversation changes stay:
    /// cancelling a run does not cancel a requested change.
    pub fn drop_messages(&mut self) -> usize {
        let before = self.0.len();
        self.0.retain(|waiting| waiting.kind != InputKind::Message);
        before - self.0.len()
    }

    /// Waits until the first input is prepared and the conversation is free, and returns its result. A failure is
    /// returned without waiting for the conversation. Never resolves while the queue is empty. Cancel-safe.
    pub async fn next(&mut self, state: ConversationState) -> ActionResult {
        poll_fn(|context| {
            let Some(first) = self.0.front_mut() else { return Poll::Pending };
            if let InputPreparation::InProgress(future) = &mut first.preparation {
                match future.as_mut().poll(context) {
                    Poll::Ready(done) => first.preparation = InputPreparation::Done(done),
                    Poll::Pending => return Poll::Pending,
                }
            }
            let may_go =
                state == ConversationState::Free || matches!(first.preparation, InputPreparation::Done(Err(_)));
            match self.0.pop_front_if(|_| may_go) {
                Some(QueuedInput { preparation: InputPreparation::Done(done), .. }) => Poll::Ready(done),
                _ => Poll::Pending,
            }
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;
    use wharf_agent::TurnBlock;

    use super::*;
    use crate::slash::ReplAction;
    use wharf_terminal::failure::Failure;

    fn message(text: &str) -> ReplAction {
        ReplAction::SendMessage(vec![TurnBlock::Text(text.to_owned())])
    }

    /// Returns a result that is ready without waiting.
    async fn now(queue: &mut InputQueue<'_>, state: ConversationState) -> Option<ActionResult> {
        tokio::select! {
            biased;
            done = queue.next(state) => Some(done),
            () = std::future::ready(()) => None,
        }
    }

    #[tokio::test]
    async fn turns_are_processed_in_order() {
        let (slow, waits) = oneshot::channel();
        let mut queue = InputQueue::default();
        queue.push(InputKind::Message, async { waits.await.map_err(Failure::other) });
        queue.push(InputKind::Message, async { Ok(message("second")) });
        queue.push(InputKind::Change, async { Ok(ReplAction::Clear) });
        queue.push(InputKind::Message, async { Ok(message("third")) });
        assert!(now(&mut queue, ConversationState::Free).await.is_none());
        slow.send(message("first")).unwrap();
        for expected in [message("first"), message("second"), ReplAction::Clear, message("third")] {
            assert!(now(&mut queue, ConversationState::Busy).await.is_none());
            assert_eq!(queue.next(ConversationState::Free).await.ok(), Some(expected));
        }
        assert!(queue.is_empty());
    }

    #[tokio::test]
    async fn messages_are_dropped_and_changes_stay() {
        let (_slow, waits) = oneshot::channel::<ReplAction>();
        let mut queue = InputQueue::default();
        queue.push(InputKind::Message, async { waits.await.map_err(Failure::other) });
        queue.push(InputKind::Change, async { Ok(ReplAction::Clear) });
        queue.push(InputKind::Message, async { Ok(message("never")) });
        assert!(now(&mut queue, ConversationState::Free).await.is_none());
        assert_eq!(queue.drop_messages(), 2);
        assert_eq!(queue.next(ConversationState::Free).await.ok(), Some(ReplAction::Clear));
        assert!(queue.is_empty());
    }

    #[tokio::test]
    async fn failures_are_returned_during_a_run() {
        let mut queue = InputQueue::default();
        queue.push(InputKind::Message, async { Err(Failure::usage("no such resource")) });
        queue.push(InputKind::Message, async { Ok(message("good")) });
        assert!(queue.next(ConversationState::Busy).await.is_err());
        assert!(now(&mut queue, ConversationState::Busy).await.is_none());
        assert_eq!(queue.next(ConversationState::Free).await.ok(), Some(message("good")));
    }
}
