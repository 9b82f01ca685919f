//! Queue of messages and conversation changes, processed in the order typed.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use super::slash::ActionResult;

/// Queued turns. The first one is being prepared. Dropping the queue cancels them all.
#[derive(Default)]
pub struct TurnQueue<'a>(VecDeque<QueuedTurn<'a>>);

/// Kind of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnKind {
    /// A message to the agent.
    Message,
    /// Starts or resumes another conversation.
    Change,
}

/// Holder of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConversationHolder {
    Nobody,
    /// A run in progress or about to start.
    Run,
}

struct QueuedTurn<'a> {
    turn: TurnKind,
    errand: TurnPreparation<'a>,
}

enum TurnPreparation<'a> {
    UnderWay(Pin<Box<dyn Future<Output = ActionResult> + 'a>>),
    Done(ActionResult),
}

impl<'a> TurnQueue<'a> {
    /// Appends a turn. Its future is not polled before it is first in the queue.
    pub fn push(&mut self, turn: TurnKind, errand: impl Future<Output = ActionResult> + 'a) {
        self.0.push_back(QueuedTurn { turn, errand: TurnPreparation::UnderWay(Box::pin(errand)) });
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Drops all messages, including one being prepared, and returns their number. Conversation changes stay:
    /// cancelling a run does not cancel a requested change.
    pub fn drop_messages(&mut self) -> usize {
        let before = self.0.len();
        self.0.retain(|waiting| waiting.turn != TurnKind::Message);
        before - self.0.len()
    }

    /// Waits until the first turn is prepared and the conversation is free, and returns its result. A failure is
    /// returned without waiting for the conversation. Never resolves while the queue is empty. Cancel-safe.
    pub async fn next(&mut self, holder: ConversationHolder) -> ActionResult {
        poll_fn(|context| {
            let Some(first) = self.0.front_mut() else { return Poll::Pending };
            if let TurnPreparation::UnderWay(errand) = &mut first.errand {
                match errand.as_mut().poll(context) {
                    Poll::Ready(done) => first.errand = TurnPreparation::Done(done),
                    Poll::Pending => return Poll::Pending,
                }
            }
            let may_go = holder == ConversationHolder::Nobody || matches!(first.errand, TurnPreparation::Done(Err(_)));
            match self.0.pop_front_if(|_| may_go) {
                Some(QueuedTurn { errand: TurnPreparation::Done(done), .. }) => Poll::Ready(done),
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

    fn said(text: &str) -> ReplAction {
        ReplAction::Say(vec![TurnBlock::Text(text.to_owned())])
    }

    /// Returns a result that is ready without waiting.
    async fn now(turns: &mut TurnQueue<'_>, holder: ConversationHolder) -> Option<ActionResult> {
        tokio::select! {
            biased;
            done = turns.next(holder) => Some(done),
            () = std::future::ready(()) => None,
        }
    }

    #[tokio::test]
    async fn turns_are_processed_in_order() {
        let (slow, waits) = oneshot::channel();
        let mut turns = TurnQueue::default();
        turns.push(TurnKind::Message, async { waits.await.map_err(Failure::other) });
        turns.push(TurnKind::Message, async { Ok(said("second")) });
        turns.push(TurnKind::Change, async { Ok(ReplAction::Clear) });
        turns.push(TurnKind::Message, async { Ok(said("third")) });
        assert!(now(&mut turns, ConversationHolder::Nobody).await.is_none());
        slow.send(said("first")).unwrap();
        for expected in [said("first"), said("second"), ReplAction::Clear, said("third")] {
            assert!(now(&mut turns, ConversationHolder::Run).await.is_none());
            assert_eq!(turns.next(ConversationHolder::Nobody).await.ok(), Some(expected));
        }
        assert!(turns.is_empty());
    }

    #[tokio::test]
    async fn messages_are_dropped_and_changes_stay() {
        let (_slow, waits) = oneshot::channel::<ReplAction>();
        let mut turns = TurnQueue::default();
        turns.push(TurnKind::Message, async { waits.await.map_err(Failure::other) });
        turns.push(TurnKind::Change, async { Ok(ReplAction::Clear) });
        turns.push(TurnKind::Message, async { Ok(said("never")) });
        assert!(now(&mut turns, ConversationHolder::Nobody).await.is_none());
        assert_eq!(turns.drop_messages(), 2);
        assert_eq!(turns.next(ConversationHolder::Nobody).await.ok(), Some(ReplAction::Clear));
        assert!(turns.is_empty());
    }

    #[tokio::test]
    async fn failures_are_returned_during_a_run() {
        let mut turns = TurnQueue::default();
        turns.push(TurnKind::Message, async { Err(Failure::usage("no such resource")) });
        turns.push(TurnKind::Message, async { Ok(said("good")) });
        assert!(turns.next(ConversationHolder::Run).await.is_err());
        assert!(now(&mut turns, ConversationHolder::Run).await.is_none());
        assert_eq!(turns.next(ConversationHolder::Nobody).await.ok(), Some(said("good")));
    }
}
