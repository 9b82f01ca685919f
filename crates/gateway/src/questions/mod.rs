//! Questions to clients: of servers, and of the permission gate.

mod asker;
mod pending;
mod session;

use std::sync::Arc;

use serde_json::Value;
use wharf::RawJson;
use wharf::wire::{ElicitationResponse, JsonLimits, RpcError, object_members};

use crate::client_class::QuestionMethod;
use crate::errors::rpc_error;

pub use asker::GatewayAsker;
pub(crate) use pending::QuestionSubject;
pub use pending::{AnswerError, PendingQuestion, PendingQuestions, PermissionDetails, QuestionKind};
pub(crate) use session::SessionQuestions;

/// A question to a client.
#[derive(Debug, Clone)]
pub(crate) struct ClientQuestion {
    pub method: QuestionMethod,
    pub params: Option<RawJson>,
    pub kind: QuestionKind,
    /// The call that a question for permission is about.
    pub permission: Option<Arc<PermissionDetails>>,
    /// The server's own name of the question, if it has one.
    pub name: Option<String>,
}

/// The result of a question, or the client's error.
pub(crate) type ClientAnswer = Result<RawJson, RpcError>;

impl ClientQuestion {
    /// Creates the question of a server.
    pub fn from_server(method: QuestionMethod, params: Option<RawJson>) -> Self {
        let kind = match method {
            QuestionMethod::Elicit => QuestionKind::Elicitation,
            QuestionMethod::Sample => QuestionKind::Sampling,
            QuestionMethod::Roots => QuestionKind::Roots,
        };
        Self { method, params, kind, name: None, permission: None }
    }

    /// Creates a question for permission, with the form for a client.
    pub fn permission(form: &Value, details: PermissionDetails) -> Self {
        let params = Some(RawJson::new_unchecked(form.to_string()));
        let (kind, permission) = (QuestionKind::Permission, Some(Arc::new(details)));
        Self { method: QuestionMethod::Elicit, params, kind, name: None, permission }
    }

    /// Sets the server's own name of the question: the id of its request.
    pub fn named(self, id: Option<&str>) -> Self {
        let name = id.and_then(|id| serde_json::from_str(id).ok());
        Self { name, ..self }
    }
}

/// Returns the answer to a question that no client answers.
pub(crate) fn unanswered(why: &str) -> ClientAnswer {
    Err(rpc_error(-1, why))
}

/// Reads the result of an elicitation. Anything else than an answer is a cancellation.
pub(crate) fn read_elicitation(answer: ClientAnswer) -> ElicitationResponse {
    let Ok(result) = answer else { return ElicitationResponse::Cancel };
    let Ok(members) = object_members(&result, &JsonLimits::default()) else { return ElicitationResponse::Cancel };
    let member = |name: &str| members.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
    let action = member("action").and_then(|action| action.decode::<String>(&JsonLimits::default()).ok());
    match action.as_deref() {
        Some("accept") => ElicitationResponse::Accept(member("content").filter(RawJson::is_object)),
        Some("decline") => ElicitationResponse::Decline,
        _ => ElicitationResponse::Cancel,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_elicitation_results_are_cancellations() {
        let read = |text: &str| read_elicitation(Ok(RawJson::new_unchecked(text.to_owned())));
        let content = RawJson::new_unchecked(r#"{"a":1e400}"#);
        let accepted = ElicitationResponse::Accept(Some(content));
        assert_eq!(read(r#"{"action":"accept","content":{"a":1e400}}"#), accepted);
        assert_eq!(read(r#"{"action":"accept"}"#), ElicitationResponse::Accept(None));
        assert_eq!(read(r#"{"action":"accept","content":3}"#), ElicitationResponse::Accept(None));
        assert_eq!(read(r#"{"action":"decline"}"#), ElicitationResponse::Decline);
        for other in [r#"{"action":"cancel"}"#, r#"{"action":7}"#, "{}", "[]", "null"] {
            assert_eq!(read(other), ElicitationResponse::Cancel, "{other}");
        }
        assert_eq!(read_elicitation(unanswered("late")), ElicitationResponse::Cancel);
    }
}
