//! Requests to a client of a handshake revision, and its responses.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::json;
use tokio::sync::oneshot;
use wharf::wire::{JsonLimits, RpcError, View as _};
use wharf_serve::{ClientMessage, Outbox, OutgoingMessage};

use super::{ClientAnswer, ClientQuestion, unanswered};
use crate::responses::notification;

/// Maximum number of open questions per session.
const MAX_OPEN_QUESTIONS: usize = 64;

/// The open questions of one session.
#[derive(Default)]
pub(crate) struct SessionQuestions {
    asked: AtomicU64,
    open: Mutex<HashMap<String, oneshot::Sender<ClientAnswer>>>,
    ignored: AtomicU64,
}

impl SessionQuestions {
    fn open(&self) -> MutexGuard<'_, HashMap<String, oneshot::Sender<ClientAnswer>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request and waits for its response.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the request at the client.
    pub async fn ask(&self, question: &ClientQuestion, out: &dyn Outbox) -> ClientAnswer {
        let id = format!("wharf-{}", self.asked.fetch_add(1, Ordering::Relaxed) + 1);
        let (reply, answer) = oneshot::channel();
        {
            let mut open = self.open();
            if open.len() >= MAX_OPEN_QUESTIONS {
                return unanswered("too many questions are open");
            }
            open.insert(id.clone(), reply);
        }
        let mut withdrawal = WithdrawOnDrop { questions: self, id: &id, out, is_answered: false };
        let params = question.params.as_ref().map(|params| format!(",\"params\":{}", params.as_str()));
        out.send(OutgoingMessage::unsolicited(format!(
            r#"{{"jsonrpc":"2.0","id":{},"method":{}{}}}"#,
            json!(id),
            json!(question.method.as_str()),
            params.unwrap_or_default()
        )));
        let answered = answer.await;
        withdrawal.is_answered = true;
        answered.unwrap_or_else(|_| unanswered("the session has ended"))
    }

    /// Takes the response of the client. A late or foreign one is ignored and counted.
    pub fn receive(&self, message: &ClientMessage) {
        let id = message.id();
        let reply = id.as_str().and_then(|id| self.open().remove(id));
        let Some(reply) = reply else {
            self.ignored.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let envelope = message.envelope();
        let answer = match (envelope.result, envelope.error) {
            (Some(result), None) => Ok(result.to_shared_raw(message.text())),
            (_, Some(error)) => {
                let error = RpcError::from_raw(error.to_shared_raw(message.text()), &JsonLimits::default());
                error.map_or_else(|_| unanswered("the client's error cannot be read"), Err)
            }
            _ => unanswered("the client's response cannot be read"),
        };
        let _ = reply.send(answer);
    }

    #[cfg(test)]
    fn ignored(&self) -> u64 {
        self.ignored.load(Ordering::Relaxed)
    }
}

/// Withdraws a question that is dropped without an answer.
struct WithdrawOnDrop<'a> {
    questions: &'a SessionQuestions,
    id: &'a str,
    out: &'a dyn Outbox,
    is_answered: bool,
}

impl Drop for WithdrawOnDrop<'_> {
    fn drop(&mut self) {
        if self.questions.open().remove(self.id).is_some() && !self.is_answered {
            let params = json!({"requestId": self.id, "reason": "no longer needed"});
            self.out.send(notification("notifications/cancelled", &params));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::client_class::QuestionMethod;

    #[derive(Default)]
    struct SentMessages(Mutex<Vec<String>>);

    impl Outbox for SentMessages {
        fn send(&self, message: OutgoingMessage) {
            self.0.lock().unwrap().push(String::from_utf8(message.text.to_vec()).unwrap());
        }
    }

    fn roots() -> ClientQuestion {
        ClientQuestion::from_server(QuestionMethod::Roots, None)
    }

    fn respond(questions: &SessionQuestions, text: &'static str) {
        questions.receive(&ClientMessage::parse(text.into()).unwrap());
    }

    #[test]
    fn response_reaches_its_question_and_foreign_ones_are_ignored() {
        let (questions, sent) = (SessionQuestions::default(), SentMessages::default());
        let roots = roots();
        let mut asked = pin!(questions.ask(&roots, &sent));
        let mut context = Context::from_waker(Waker::noop());
        assert!(asked.as_mut().poll(&mut context).is_pending());
        assert_eq!(*sent.0.lock().unwrap(), [r#"{"jsonrpc":"2.0","id":"wharf-1","method":"roots/list"}"#]);
        respond(&questions, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        respond(&questions, r#"{"jsonrpc":"2.0","id":"wharf-2","result":{}}"#);
        assert!(asked.as_mut().poll(&mut context).is_pending());
        respond(&questions, r#"{"jsonrpc":"2.0","id":"wharf-1","result":{"roots":[]}}"#);
        respond(&questions, r#"{"jsonrpc":"2.0","id":"wharf-1","result":{"roots":[1]}}"#);
        let Poll::Ready(Ok(answer)) = asked.as_mut().poll(&mut context) else { panic!("no answer") };
        assert_eq!((answer.as_str(), questions.ignored()), (r#"{"roots":[]}"#, 3));
    }

    #[test]
    fn dropped_question_is_cancelled_at_the_client() {
        let (questions, sent) = (SessionQuestions::default(), SentMessages::default());
        {
            let roots = roots();
            let mut asked = pin!(questions.ask(&roots, &sent));
            assert!(asked.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        }
        let sent = sent.0.lock().unwrap();
        assert!(sent[1].contains("notifications/cancelled") && sent[1].contains("wharf-1"), "{sent:?}");
        assert!(questions.open().is_empty());
    }
}
