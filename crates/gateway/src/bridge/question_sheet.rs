//! The questions of a call to a stateless client: what its `input_required` result lists, and what a retry answers.

use std::collections::BTreeMap;

use serde_json::json;
use wharf::RawJson;
use wharf::wire::{JsonLimits, object_members};

use crate::questions::ClientQuestion;

/// Maximum number of open questions of a call.
const MAX_OPEN_QUESTIONS: usize = 16;

/// The open questions of one call. Each has a reply `R`, which its answer is given to.
#[derive(Debug)]
pub(crate) struct QuestionSheet<R> {
    asked: u64,
    open: BTreeMap<u64, (ClientQuestion, R)>,
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
        self.open.insert(self.asked, (question, reply));
        Ok(self.asked)
    }

    /// Removes a question that no longer needs an answer.
    pub fn withdraw(&mut self, number: u64) {
        self.open.remove(&number);
    }

    pub fn has_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Returns the open questions as `inputRequests`.
    pub fn to_requests(&self) -> RawJson {
        let requests = self.open.iter().map(|(number, (question, _))| {
            let params = question.params.as_ref().map(|params| format!(",\"params\":{}", params.as_str()));
            format!("\"q{number}\":{{\"method\":{}{}}}", json!(question.method.as_str()), params.unwrap_or_default())
        });
        RawJson::new_unchecked(format!("{{{}}}", requests.collect::<Vec<_>>().join(",")))
    }

    /// Takes the replies that `inputResponses` answer. Late and foreign answers are left out; their number is returned.
    pub fn answer(&mut self, responses: &RawJson) -> (Vec<(R, RawJson)>, usize) {
        let members = object_members(responses, &JsonLimits::default()).unwrap_or_default();
        let mut answered = Vec::new();
        let mut ignored = 0;
        for (key, value) in &members {
            let number = key.strip_prefix('q').and_then(|number| number.parse().ok());
            match number.and_then(|number| self.open.remove(&number)) {
                Some((_, reply)) => answered.push((reply, value.clone())),
                None => ignored += 1,
            }
        }
        (answered, ignored)
    }
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
    fn open_questions_are_bounded() {
        let mut sheet = QuestionSheet::default();
        assert!((0..MAX_OPEN_QUESTIONS).all(|_| sheet.add(question(QuestionMethod::Roots, None), ()).is_ok()));
        assert_eq!(sheet.add(question(QuestionMethod::Roots, None), ()), Err(()));
    }
}
