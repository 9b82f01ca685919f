//! The questions of a call to a stateless client: what its `input_required` result lists, and what a retry answers.

use std::collections::BTreeMap;

use serde_json::json;
use wharf::RawJson;
use wharf::wire::{JsonLimits, object_members};

use crate::questions::ClientQuestion;

/// Maximum number of open questions of a call.
const MAX_OPEN_QUESTIONS: usize = 16;

/// Maximum characters of a server's name of a question that clients see.
const MAX_NAME_CHARS: usize = 64;

/// The open questions of one call. Each has a reply `R`, which its answer is given to.
#[derive(Debug)]
pub(crate) struct QuestionSheet<R> {
    asked: u64,
    open: BTreeMap<u64, OpenQuestion<R>>,
}

#[derive(Debug)]
struct OpenQuestion<R> {
    /// Key in `inputRequests`.
    key: String,
    question: ClientQuestion,
    reply: R,
}

impl<R> Default for QuestionSheet<R> {
    fn default() -> Self {
        Self { asked: 0, open: BTreeMap::new() }
    }
}

impl<R> QuestionSheet<R> {
    /// Adds a question and returns its number, which no other question of the call has. Returns the reply if there are
    /// too many.
    pub fn add(&mut self, question: ClientQuestion, reply: R) -> Result<u64, R> {
        if self.open.len() >= MAX_OPEN_QUESTIONS {
            return Err(reply);
        }
        self.asked += 1;
        let name = question.name.clone().filter(|name| is_key(name) && !self.has_key(name));
        let key = name.unwrap_or_else(|| format!("q{}", self.asked));
        self.open.insert(self.asked, OpenQuestion { key, question, reply });
        Ok(self.asked)
    }

    fn has_key(&self, key: &str) -> bool {
        self.open.values().any(|open| open.key == key)
    }

    /// Removes a question that no longer needs an answer.
    pub fn withdraw(&mut self, number: u64) {
        self.open.remove(&number);
    }

    pub fn has_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Returns the oldest open question.
    pub fn first(&self) -> Option<(u64, &ClientQuestion)> {
        self.open.iter().next().map(|(number, open)| (*number, &open.question))
    }

    /// Takes the reply of one question.
    pub fn take(&mut self, number: u64) -> Option<R> {
        self.open.remove(&number).map(|open| open.reply)
    }

    /// Returns the open questions as `inputRequests`.
    pub fn to_requests(&self) -> RawJson {
        let requests = self.open.values().map(|OpenQuestion { key, question, .. }| {
            let params = question.params.as_ref().map(|params| format!(",\"params\":{}", params.as_str()));
            let method = json!(question.method.as_str());
            format!("{}:{{\"method\":{method}{}}}", json!(key), params.unwrap_or_default())
        });
        RawJson::new_unchecked(format!("{{{}}}", requests.collect::<Vec<_>>().join(",")))
    }

    /// Takes the replies that `inputResponses` answer. Late and foreign answers are left out; their number is returned.
    pub fn answer(&mut self, responses: &RawJson) -> (Vec<(R, RawJson)>, usize) {
        let members = object_members(responses, &JsonLimits::default()).unwrap_or_default();
        let mut answered = Vec::new();
        let mut ignored = 0;
        for (key, value) in &members {
            let number = self.open.iter().find(|(_, open)| open.key == *key).map(|(number, _)| *number);
            match number.and_then(|number| self.open.remove(&number)) {
                Some(open) => answered.push((open.reply, value.clone())),
                None => ignored += 1,
            }
        }
        (answered, ignored)
    }
}

/// Reports whether a server's name of a question can be its key. `q` and a number are keys of the gateway.
fn is_key(name: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_.-".contains(letter);
    let is_own = name.strip_prefix('q').is_some_and(|rest| rest.chars().all(|letter| letter.is_ascii_digit()));
    (1..=MAX_NAME_CHARS).contains(&name.len()) && name.chars().all(is_plain) && !is_own
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client_class::QuestionMethod;

    fn raw(text: &str) -> RawJson {
        RawJson::new_unchecked(text.to_owned())
    }

    fn question(method: QuestionMethod, params: Option<&str>) -> ClientQuestion {
        ClientQuestion::from_server(method, params.map(raw))
    }

    #[test]
    fn retry_answers_the_questions_it_names() {
        let mut sheet = QuestionSheet::default();
        assert_eq!(sheet.add(question(QuestionMethod::Elicit, Some(r#"{"x":1e400}"#)), "a"), Ok(1));
        assert_eq!(sheet.add(question(QuestionMethod::Roots, None), "b"), Ok(2));
        let requests = r#"{"q1":{"method":"elicitation/create","params":{"x":1e400}},"q2":{"method":"roots/list"}}"#;
        assert_eq!(sheet.to_requests().as_str(), requests);
        let (answered, ignored) = sheet.answer(&raw(r#"{"q2":{"roots":[]},"q3":{},"p1":{},"q":1}"#));
        assert_eq!((answered.len(), answered[0].0, answered[0].1.as_str(), ignored), (1, "b", r#"{"roots":[]}"#, 3));
        assert!(sheet.has_open());
        assert_eq!(sheet.answer(&raw("[]")).0.len(), 0);
        sheet.withdraw(1);
        assert!(!sheet.has_open());
        assert_eq!(sheet.add(question(QuestionMethod::Roots, None), "c"), Ok(3), "no number is used again");
        assert_eq!(sheet.answer(&raw(r#"{"q1":{}}"#)).1, 1, "an answer that comes late is ignored");
    }

    #[test]
    fn question_has_the_name_that_its_server_gives_it() {
        let named = |name: &str| ClientQuestion {
            name: Some(name.to_owned()),
            ..ClientQuestion::from_server(QuestionMethod::Roots, None)
        };
        let mut sheet = QuestionSheet::default();
        for name in ["user_name", "user_name", "q7", "", "a b", &"x".repeat(65)] {
            sheet.add(named(name), name.to_owned()).unwrap();
        }
        let requests: serde_json::Value = serde_json::from_str(sheet.to_requests().as_str()).unwrap();
        let keys: Vec<&String> = requests.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["q2", "q3", "q4", "q5", "q6", "user_name"]);
        assert_eq!(sheet.answer(&raw(r#"{"user_name":{},"q3":{}}"#)).0.len(), 2);
    }

    #[test]
    fn open_questions_are_bounded() {
        let mut sheet = QuestionSheet::default();
        assert!((0..MAX_OPEN_QUESTIONS).all(|_| sheet.add(question(QuestionMethod::Roots, None), ()).is_ok()));
        assert_eq!(sheet.add(question(QuestionMethod::Roots, None), ()), Err(()));
    }
}
