//! The questions that wait for a client's answer, so that another interface can answer them meanwhile.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use wharf::RawJson;
use wharf::wire::ElicitationResponse;

use super::ClientQuestion;

/// Maximum number of registered questions. Further ones can be answered by their clients only.
const MAX_PENDING_QUESTIONS: usize = 256;

/// The kind of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuestionKind {
    /// Whether a call is allowed. The form has the field `decision`: `once`, `session` or `no`.
    Permission,
    /// A form or a page of a server.
    Elicitation,
    /// The use of a model.
    Sampling,
    /// The directories that a server may use.
    Roots,
}

/// A question that waits for an answer.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PendingQuestion {
    /// Number of the question, unique in this gateway.
    pub id: u64,
    /// The kind.
    pub kind: QuestionKind,
    /// Name of the client that is asked. Untrusted.
    pub client: String,
    /// Name of the server that the question concerns.
    pub server: String,
    /// The tool, prompt or resource of the call that waits. Untrusted.
    pub target: String,
    /// Parameters of the question as sent to the client: for a form `message` and `requestedSchema`. Untrusted.
    pub params: Option<RawJson>,
    /// Time since the question was asked.
    pub age: Duration,
}

/// Reason for which an answer is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnswerError {
    /// The question does not exist, or has been answered.
    Unknown,
    /// Only a client can answer a question of this kind.
    OtherKind,
}

impl fmt::Display for AnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "no such question is open; it may have been answered",
            Self::OtherKind => "only the client can answer this question",
        })
    }
}

impl std::error::Error for AnswerError {}

/// The subject of a question.
#[derive(Debug, Clone)]
pub(crate) struct QuestionSubject {
    pub client: String,
    pub server: String,
    pub target: String,
}

/// The questions of a gateway that wait for an answer. Cloning shares them.
#[derive(Clone, Default)]
pub struct PendingQuestions {
    shared: Arc<Mutex<RegistryState>>,
}

#[derive(Default)]
struct RegistryState {
    registered: u64,
    open: BTreeMap<u64, OpenQuestion>,
}

struct OpenQuestion {
    question: ClientQuestion,
    subject: QuestionSubject,
    asked: Instant,
    reply: oneshot::Sender<RawJson>,
}

impl PendingQuestions {
    fn state(&self) -> MutexGuard<'_, RegistryState> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the open questions, oldest first.
    pub fn list(&self) -> Vec<PendingQuestion> {
        let describe = |(id, open): (&u64, &OpenQuestion)| PendingQuestion {
            id: *id,
            kind: open.question.kind,
            client: open.subject.client.clone(),
            server: open.subject.server.clone(),
            target: open.subject.target.clone(),
            params: open.question.params.clone(),
            age: open.asked.elapsed(),
        };
        self.state().open.iter().map(describe).collect()
    }

    /// Answers a question for its client. The client's own answer is ignored then.
    ///
    /// # Errors
    ///
    /// Fails if the question is not open, or is neither a form nor a page nor a question for permission.
    pub fn answer(&self, id: u64, answer: &ElicitationResponse) -> Result<(), AnswerError> {
        let mut state = self.state();
        let open = state.open.get(&id).ok_or(AnswerError::Unknown)?;
        if !matches!(open.question.kind, QuestionKind::Permission | QuestionKind::Elicitation) {
            return Err(AnswerError::OtherKind);
        }
        let open = state.open.remove(&id).ok_or(AnswerError::Unknown)?;
        drop(state);
        open.reply.send(answer.to_raw()).map_err(|_| AnswerError::Unknown)
    }

    /// Registers a question until the returned value is dropped.
    pub(crate) fn register(&self, question: &ClientQuestion, subject: QuestionSubject) -> RegisteredQuestion {
        let (reply, answer) = oneshot::channel();
        let mut state = self.state();
        if state.open.len() >= MAX_PENDING_QUESTIONS {
            return RegisteredQuestion { registry: self.clone(), id: None, answer };
        }
        state.registered += 1;
        let id = state.registered;
        state.open.insert(id, OpenQuestion { question: question.clone(), subject, asked: Instant::now(), reply });
        RegisteredQuestion { registry: self.clone(), id: Some(id), answer }
    }
}

/// The registration of a question.
pub(crate) struct RegisteredQuestion {
    registry: PendingQuestions,
    id: Option<u64>,
    answer: oneshot::Receiver<RawJson>,
}

impl RegisteredQuestion {
    /// Resolves when another interface answers the question.
    pub async fn answered(&mut self) -> RawJson {
        match (&mut self.answer).await {
            Ok(answer) => answer,
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for RegisteredQuestion {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.registry.state().open.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client_class::QuestionMethod;

    fn subject() -> QuestionSubject {
        QuestionSubject { client: "c".to_owned(), server: "s".to_owned(), target: "t".to_owned() }
    }

    #[tokio::test]
    async fn question_is_answered_once_and_by_its_number() {
        let questions = PendingQuestions::default();
        let form = ClientQuestion::from_server(QuestionMethod::Elicit, None);
        let mut first = questions.register(&form, subject());
        let second = questions.register(&ClientQuestion::from_server(QuestionMethod::Sample, None), subject());
        let listed: Vec<_> = questions.list().iter().map(|question| (question.id, question.kind)).collect();
        assert_eq!(listed, [(1, QuestionKind::Elicitation), (2, QuestionKind::Sampling)]);
        assert_eq!(questions.answer(2, &ElicitationResponse::Decline), Err(AnswerError::OtherKind));
        assert_eq!(questions.answer(3, &ElicitationResponse::Decline), Err(AnswerError::Unknown));
        questions.answer(1, &ElicitationResponse::Decline).unwrap();
        assert_eq!(first.answered().await.as_str(), r#"{"action":"decline"}"#);
        assert_eq!(questions.answer(1, &ElicitationResponse::Decline), Err(AnswerError::Unknown));
        drop(second);
        assert!(questions.list().is_empty());
    }

    #[test]
    fn registry_is_bounded() {
        let questions = PendingQuestions::default();
        let form = ClientQuestion::from_server(QuestionMethod::Elicit, None);
        let all: Vec<_> = (0..=MAX_PENDING_QUESTIONS).map(|_| questions.register(&form, subject())).collect();
        assert_eq!(questions.list().len(), MAX_PENDING_QUESTIONS);
        drop(all);
        assert!(questions.list().is_empty());
    }
}
