//! The questions that wait for a client's answer, so that another interface can answer them meanwhile.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_lc_rs::rand;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::Instant;
use wharf::RawJson;
use wharf::wire::{ElicitationResponse, JsonLimits};

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
    /// Random number of the question, below 2^24. A number that was read before a restart does not name another
    /// question afterwards.
    pub id: u64,
    /// The kind.
    pub kind: QuestionKind,
    /// Name of the client whose call waits. Untrusted.
    pub client: String,
    /// Principal of the client. The answer holds for it alone.
    pub principal: String,
    /// Name of the server that the question concerns.
    pub server: String,
    /// The tool, prompt or resource of the call that waits. Untrusted.
    pub target: String,
    /// Parameters of the question as sent to the client: for a form `message` and `requestedSchema`. Untrusted.
    pub params: Option<RawJson>,
    /// The call that a question for permission is about.
    pub permission: Option<Arc<PermissionDetails>>,
    /// Time since the question was asked.
    pub age: Duration,
    /// Time until it is no longer waited for.
    pub time_left: Duration,
}

/// The call that a question for permission is about.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PermissionDetails {
    /// Arguments of the call. Untrusted.
    pub arguments: RawJson,
    /// Reason for asking.
    pub reason: String,
    /// Changes of the tool's definition since it was approved: lines, escaped.
    pub changed: Option<String>,
    /// The values of the field `decision` that are accepted.
    pub choices: &'static [&'static str],
}

/// Reason for which an answer is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnswerError {
    /// The question does not exist, or has been answered.
    Unknown,
    /// Only a client can answer a question of this kind.
    OtherKind,
    /// The question for permission does not offer this answer.
    NotOffered,
}

impl fmt::Display for AnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "no such question is open; it may have been answered",
            Self::OtherKind => "only the client can answer this question",
            Self::NotOffered => "the question does not offer this answer",
        })
    }
}

impl std::error::Error for AnswerError {}

/// The subject of a question.
#[derive(Debug, Clone)]
pub(crate) struct QuestionSubject {
    pub client: String,
    pub principal: String,
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
    open: BTreeMap<u64, OpenQuestion>,
}

struct OpenQuestion {
    question: ClientQuestion,
    subject: QuestionSubject,
    asked: Instant,
    until: Instant,
    reply: oneshot::Sender<RawJson>,
}

impl OpenQuestion {
    /// Reports whether the question offers this answer. Forms of servers are theirs to judge.
    fn offers(&self, answer: &ElicitationResponse) -> bool {
        let Some(permission) = &self.question.permission else { return true };
        match answer {
            ElicitationResponse::Accept(Some(content)) => {
                let content: Value = content.decode(&JsonLimits::default()).unwrap_or_default();
                content["decision"].as_str().is_some_and(|decision| permission.choices.contains(&decision))
            }
            ElicitationResponse::Accept(None) => false,
            _ => true,
        }
    }
}

impl RegistryState {
    /// Returns a random number that no open question has. `None` without randomness.
    fn unused_id(&self) -> Option<u64> {
        loop {
            let mut bytes = [0; 3];
            rand::fill(&mut bytes).ok()?;
            let id = u64::from_be_bytes([0, 0, 0, 0, 0, bytes[0], bytes[1], bytes[2]]);
            if !self.open.contains_key(&id) {
                return Some(id);
            }
        }
    }
}

impl PendingQuestions {
    fn state(&self) -> MutexGuard<'_, RegistryState> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the open questions, oldest first.
    pub fn list(&self) -> Vec<PendingQuestion> {
        let now = Instant::now();
        let describe = |(id, open): (&u64, &OpenQuestion)| PendingQuestion {
            id: *id,
            kind: open.question.kind,
            client: open.subject.client.clone(),
            principal: open.subject.principal.clone(),
            server: open.subject.server.clone(),
            target: open.subject.target.clone(),
            params: open.question.params.clone(),
            permission: open.question.permission.clone(),
            age: now.saturating_duration_since(open.asked),
            time_left: open.until.saturating_duration_since(now),
        };
        let mut listed: Vec<_> = self.state().open.iter().map(describe).collect();
        listed.sort_by(|one, other| other.age.cmp(&one.age).then(one.id.cmp(&other.id)));
        listed
    }

    /// Answers a question for its client. The client's own answer is ignored then.
    ///
    /// # Errors
    ///
    /// Fails if the question is not open, is neither a form nor a page nor a question for permission, or is one for
    /// permission that does not offer the answer. It stays open then.
    pub fn answer(&self, id: u64, answer: &ElicitationResponse) -> Result<(), AnswerError> {
        let mut state = self.state();
        let open = state.open.get(&id).ok_or(AnswerError::Unknown)?;
        if !matches!(open.question.kind, QuestionKind::Permission | QuestionKind::Elicitation) {
            return Err(AnswerError::OtherKind);
        }
        if !open.offers(answer) {
            return Err(AnswerError::NotOffered);
        }
        let open = state.open.remove(&id).ok_or(AnswerError::Unknown)?;
        drop(state);
        open.reply.send(answer.to_raw()).map_err(|_| AnswerError::Unknown)
    }

    /// Registers a question, which is waited for until an instant, as long as the returned value exists.
    pub(crate) fn register(
        &self,
        question: &ClientQuestion,
        subject: QuestionSubject,
        until: Instant,
    ) -> RegisteredQuestion {
        let (reply, answer) = oneshot::channel();
        let mut state = self.state();
        let id = state.unused_id().filter(|_| state.open.len() < MAX_PENDING_QUESTIONS);
        if let Some(id) = id {
            let (question, asked) = (question.clone(), Instant::now());
            state.open.insert(id, OpenQuestion { question, subject, asked, until, reply });
        }
        drop(state);
        RegisteredQuestion { registry: self.clone(), id, answer }
    }
}

/// The registration of a question.
pub(crate) struct RegisteredQuestion {
    registry: PendingQuestions,
    id: Option<u64>,
    answer: oneshot::Receiver<RawJson>,
}

impl RegisteredQuestion {
    /// Reports whether another interface can answer the question.
    pub fn is_listed(&self) -> bool {
        self.id.is_some()
    }

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
        let text = str::to_owned;
        QuestionSubject { client: text("c"), principal: text("p"), server: text("s"), target: text("t") }
    }

    fn register(questions: &PendingQuestions, question: &ClientQuestion) -> RegisteredQuestion {
        questions.register(question, subject(), Instant::now() + Duration::from_secs(60))
    }

    #[tokio::test]
    async fn question_is_answered_once_and_by_its_number() {
        let questions = PendingQuestions::default();
        let form = ClientQuestion::from_server(QuestionMethod::Elicit, None);
        let mut first = register(&questions, &form);
        let second = register(&questions, &ClientQuestion::from_server(QuestionMethod::Sample, None));
        let listed = questions.list();
        let id_of = |kind| listed.iter().find(|question| question.kind == kind).unwrap().id;
        let (form, sample) = (id_of(QuestionKind::Elicitation), id_of(QuestionKind::Sampling));
        assert_eq!(questions.answer(sample, &ElicitationResponse::Decline), Err(AnswerError::OtherKind));
        assert_eq!(questions.answer(1 << 24, &ElicitationResponse::Decline), Err(AnswerError::Unknown));
        questions.answer(form, &ElicitationResponse::Decline).unwrap();
        assert_eq!(first.answered().await.as_str(), r#"{"action":"decline"}"#);
        assert_eq!(questions.answer(form, &ElicitationResponse::Decline), Err(AnswerError::Unknown));
        drop(second);
        assert!(questions.list().is_empty());
    }

    #[test]
    fn registry_is_bounded() {
        let questions = PendingQuestions::default();
        let form = ClientQuestion::from_server(QuestionMethod::Elicit, None);
        let all: Vec<_> = (0..=MAX_PENDING_QUESTIONS).map(|_| register(&questions, &form)).collect();
        assert!(!all[MAX_PENDING_QUESTIONS].is_listed());
        assert_eq!(questions.list().len(), MAX_PENDING_QUESTIONS);
        drop(all);
        assert!(questions.list().is_empty());
    }

    #[test]
    fn permission_is_answered_with_an_offered_choice_only() {
        let questions = PendingQuestions::default();
        let arguments = RawJson::empty_object();
        let details = PermissionDetails { arguments, reason: String::new(), changed: None, choices: &["once", "no"] };
        let _registered = register(&questions, &ClientQuestion::permission(&Value::Null, details));
        let id = questions.list()[0].id;
        let accept = |text: &'static str| ElicitationResponse::Accept(Some(RawJson::new_unchecked(text)));
        for wrong in [accept(r#"{"decision":"session"}"#), accept("{}"), ElicitationResponse::Accept(None)] {
            assert_eq!(questions.answer(id, &wrong), Err(AnswerError::NotOffered), "{wrong:?}");
        }
        assert_eq!(questions.answer(id, &accept(r#"{"decision":"once"}"#)), Ok(()));
    }
}
