//! The questions of a running gateway that wait for an answer, as `wharf questions` and `wharf answer` see them.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wharf_client::redact_json;
use wharf_gateway::{AnswerError, Gateway, PendingQuestion, QuestionKind};
use wharf_spec::Redactor;
use wharf_wire::{ElicitationResponse, JsonLimits, RawJson, object_members};

use super::project::ProjectTable;

/// Maximum number of questions in a list, oldest first.
const MAX_LISTED: usize = 64;
/// Maximum characters of a text in a list.
const MAX_LISTED_CHARS: usize = 2_000;
/// Maximum characters of a text of a single question. Together they fit into one line of the socket.
const MAX_SINGLE_CHARS: usize = 64 * 1024;
/// Maximum characters of names.
const MAX_NAME_CHARS: usize = 200;

/// The questions of a gateway.
#[derive(Debug, Serialize, Deserialize)]
pub struct OpenQuestions {
    pub items: Vec<OpenQuestion>,
    /// Number of further questions.
    pub more: usize,
}

/// A question that waits for an answer. All texts are untrusted.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenQuestion {
    pub id: String,
    pub kind: OpenQuestionKind,
    pub client: String,
    pub principal: String,
    pub project: String,
    pub server: String,
    pub target: String,
    /// Arguments of the call that needs permission, without secrets.
    pub arguments: Option<String>,
    /// Set if the arguments are longer than shown.
    pub is_shortened: bool,
    /// Reason for asking for permission.
    pub reason: Option<String>,
    /// Changes of the tool's definition.
    pub changed: Option<String>,
    /// Message of a server.
    pub message: Option<String>,
    /// Page of a server.
    pub url: Option<String>,
    /// Answers that a question for permission accepts.
    pub choices: Vec<String>,
    /// Parameters of a form, of a single question only.
    pub form: Option<Value>,
    pub age_ms: u64,
    pub time_left_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OpenQuestionKind {
    Permission,
    Form,
    Page,
    Sampling,
    Roots,
}

/// Returns the spelling of a question's number.
pub fn id_text(id: u64) -> String {
    format!("{id:06x}")
}

/// Reads a question's number.
pub fn parse_id(text: &str) -> Option<u64> {
    let is_id = text.len() == 6 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

/// Returns the open questions of all projects, oldest first, or one of them in full.
pub fn list(projects: &ProjectTable, id: Option<u64>) -> OpenQuestions {
    let limit = if id.is_some() { MAX_SINGLE_CHARS } else { MAX_LISTED_CHARS };
    let mut found = Vec::new();
    for (project, gateway) in projects.gateways() {
        let questions = gateway.questions().list().into_iter();
        let wanted = questions.filter(|question| id.is_none_or(|id| question.id == id));
        found.extend(wanted.map(|question| describe(&project, &gateway, &question, limit)));
    }
    found.sort_by_key(|question| std::cmp::Reverse(question.age_ms));
    let more = found.len().saturating_sub(MAX_LISTED);
    found.truncate(MAX_LISTED);
    if id.is_none() {
        found.iter_mut().for_each(|question| question.form = None);
    }
    OpenQuestions { items: found, more }
}

/// Answers a question for its client.
///
/// # Errors
///
/// Fails if the question is not open, or does not offer the answer.
pub fn answer(projects: &ProjectTable, id: u64, answer: &str) -> Result<(), AnswerError> {
    let answer = parse_answer(answer).ok_or(AnswerError::NotOffered)?;
    for (_, gateway) in projects.gateways() {
        match gateway.questions().answer(id, &answer) {
            Err(AnswerError::Unknown) => {}
            answered => return answered,
        }
    }
    Err(AnswerError::Unknown)
}

fn parse_answer(answer: &str) -> Option<ElicitationResponse> {
    let answer = RawJson::parse(answer.to_owned()).ok()?;
    let members = object_members(&answer, &JsonLimits::default()).ok()?;
    let member = |name: &str| members.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
    match member("action")?.as_str() {
        r#""accept""# => Some(ElicitationResponse::Accept(member("content"))),
        r#""decline""# => Some(ElicitationResponse::Decline),
        r#""cancel""# => Some(ElicitationResponse::Cancel),
        _ => None,
    }
}

fn describe(project: &str, gateway: &Gateway, question: &PendingQuestion, limit: usize) -> OpenQuestion {
    let params: Value = question.params.as_ref().map(decode).unwrap_or_default();
    let kind = match question.kind {
        QuestionKind::Permission => OpenQuestionKind::Permission,
        QuestionKind::Sampling => OpenQuestionKind::Sampling,
        QuestionKind::Roots => OpenQuestionKind::Roots,
        _ if params["mode"] == "url" => OpenQuestionKind::Page,
        _ => OpenQuestionKind::Form,
    };
    let text = |name: &str| params[name].as_str().map(|text| shorten(text, limit));
    let (permission, is_permission) = (question.permission.as_deref(), kind == OpenQuestionKind::Permission);
    let arguments = permission.map(|details| redacted(gateway, &question.server, details.arguments.as_str()));
    let millis = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    OpenQuestion {
        id: id_text(question.id),
        kind,
        client: shorten(&question.client, MAX_NAME_CHARS),
        principal: shorten(&question.principal, MAX_NAME_CHARS),
        project: project.to_owned(),
        server: question.server.clone(),
        target: shorten(&question.target, MAX_NAME_CHARS),
        is_shortened: arguments.as_ref().is_some_and(|text| text.chars().nth(limit).is_some()),
        arguments: arguments.map(|text| shorten(&text, limit)),
        reason: permission.map(|details| shorten(&details.reason, limit)),
        changed: permission.and_then(|details| Some(shorten(details.changed.as_deref()?, limit))),
        message: text("message").filter(|_| !is_permission),
        url: text("url").filter(|_| kind == OpenQuestionKind::Page),
        choices: permission.iter().flat_map(|details| details.choices.iter().map(|choice| (*choice).into())).collect(),
        form: Some(params).filter(|params| !is_permission && params.to_string().len() <= MAX_SINGLE_CHARS),
        age_ms: millis(question.age),
        time_left_ms: millis(question.time_left),
    }
}

fn decode(params: &RawJson) -> Value {
    params.decode(&JsonLimits::default()).unwrap_or_default()
}

/// Removes the secrets of a server, and values that their names announce as secrets.
fn redacted(gateway: &Gateway, server: &str, arguments: &str) -> String {
    match gateway.host().connection(server) {
        Ok(connection) => redact_json(arguments, connection.redactor()),
        Err(_) => redact_json(arguments, &Redactor::default()),
    }
}

fn shorten(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_six_digits() {
        for id in [0, 1, 0xff_ff_ff] {
            assert_eq!(parse_id(&id_text(id)), Some(id));
        }
        for wrong in ["", "1", "0000001", "00000g", "+00001", "0x0001"] {
            assert_eq!(parse_id(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn texts_are_bounded() {
        assert_eq!((shorten("äbc", 2).as_str(), shorten("äb", 2).as_str()), ("äb…", "äb"));
    }
}
