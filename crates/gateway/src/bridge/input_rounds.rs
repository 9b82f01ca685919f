//! The input rounds of a stateless server for a client of a handshake revision: requests to the client, and a retry
//! with its answers.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};
use wharf::wire::{InputRequest, InputRequired, JsonLimits, RpcError, View as _};
use wharf::{InputRound, RawJson};

use crate::client_class::{ClientClass, QuestionMethod};
use crate::questions::{ClientAnswer, ClientQuestion};

/// Maximum number of rounds of a call.
const MAX_ROUNDS: usize = 8;

/// Maximum number of questions in a round.
const MAX_ROUND_QUESTIONS: usize = 16;

/// Maximum bytes of the state that a server wants back.
const MAX_STATE_BYTES: usize = 64 * 1024;

/// Delay before the first retry without a question. It doubles with each round.
const RETRY_DELAY: Duration = Duration::from_millis(250);

/// The rounds of one call.
#[derive(Debug)]
pub(crate) struct InputRounds {
    class: ClientClass,
    rounds: usize,
    /// The requests of this round that are not answered yet, the next one last.
    open: Vec<InputRequest>,
    responses: String,
    state: Option<RawJson>,
    /// Delay before the retry, if the round has no question.
    delay: Option<Duration>,
    /// Ids of the pages that the client was sent to.
    pages: Vec<String>,
}

/// What to do next.
#[derive(Debug)]
pub(crate) enum RoundStep {
    Ask(ClientQuestion),
    Wait(Duration),
    Retry(InputRound),
}

/// Reason for which a call ends without a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RoundError {
    TooManyRounds,
    TooManyQuestions,
    StateTooLarge,
    Malformed(String),
    /// The server asks what the client has not declared.
    Undeclared(String),
    /// The client does not answer, so that there is nothing to retry with.
    Unanswered {
        method: &'static str,
        error: RpcError,
    },
}

impl InputRounds {
    pub fn new(class: ClientClass) -> Self {
        let (open, responses, pages) = (Vec::new(), String::new(), Vec::new());
        Self { class, rounds: 0, open, responses, state: None, delay: None, pages }
    }

    /// Begins the round of an `input_required` result.
    pub fn begin(&mut self, result: RawJson) -> Result<(), RoundError> {
        if self.rounds == MAX_ROUNDS {
            return Err(RoundError::TooManyRounds);
        }
        let asked = InputRequired::from_raw(result, &JsonLimits::default());
        let asked = asked.map_err(|error| RoundError::Malformed(error.to_string()))?;
        if asked.requests.len() > MAX_ROUND_QUESTIONS {
            return Err(RoundError::TooManyQuestions);
        }
        if asked.state.as_ref().is_some_and(|state| state.as_bytes().len() > MAX_STATE_BYTES) {
            return Err(RoundError::StateTooLarge);
        }
        self.delay = asked.requests.is_empty().then(|| RETRY_DELAY * (1 << self.rounds.min(4)));
        (self.open, self.state) = (asked.requests, asked.state);
        self.open.reverse();
        self.responses.clear();
        self.rounds += 1;
        Ok(())
    }

    /// Returns the next step of the round.
    pub fn next(&mut self) -> Result<RoundStep, RoundError> {
        if let Some(delay) = self.delay.take() {
            return Ok(RoundStep::Wait(delay));
        }
        let Some(request) = self.open.last() else {
            let responses =
                (!self.responses.is_empty()).then(|| RawJson::new_unchecked(format!("{{{}}}", self.responses)));
            return Ok(RoundStep::Retry(InputRound { responses, state: self.state.clone() }));
        };
        let undeclared = || RoundError::Undeclared(request.method.clone());
        let method = QuestionMethod::parse(&request.method).ok_or_else(undeclared)?;
        let raw = request.params.clone();
        let params: Value = match &raw {
            Some(raw) => {
                raw.decode(&JsonLimits::default()).map_err(|error| RoundError::Malformed(error.to_string()))?
            }
            None => Value::Null,
        };
        if !self.class.can_answer(method, &params) {
            return Err(undeclared());
        }
        let params = if params["mode"] == "url" { Some(self.page_params(params)) } else { raw };
        Ok(RoundStep::Ask(ClientQuestion::from_server(method, params)))
    }

    /// Adds the id that a page has in 2025-11-25.
    fn page_params(&mut self, mut params: Value) -> RawJson {
        let id = params["elicitationId"].as_str().map(str::to_owned);
        let id = id.unwrap_or_else(|| format!("page-{}-{}", self.rounds, self.pages.len() + 1));
        params["elicitationId"] = id.as_str().into();
        self.pages.push(id);
        RawJson::new_unchecked(params.to_string())
    }

    /// Takes the client's answer to the last question.
    pub fn answer(&mut self, answer: ClientAnswer) -> Result<(), RoundError> {
        let Some(request) = self.open.pop() else { return Ok(()) };
        let result = match (answer, QuestionMethod::parse(&request.method)) {
            (Ok(result), _) => result,
            // An elicitation without an answer is cancelled, and the server decides.
            (Err(_), Some(QuestionMethod::Elicit) | None) => {
                RawJson::new_unchecked(json!({"action": "cancel"}).to_string())
            }
            (Err(error), Some(method)) => return Err(RoundError::Unanswered { method: method.as_str(), error }),
        };
        if !self.responses.is_empty() {
            self.responses.push(',');
        }
        self.responses.push_str(&format!("{}:{}", request.key.as_str(), result.as_str()));
        Ok(())
    }

    /// Returns the ids of the pages that are done when the call has its result.
    pub fn take_pages(&mut self) -> Vec<String> {
        std::mem::take(&mut self.pages)
    }
}

impl fmt::Display for RoundError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyRounds => write!(f, "the server asked for input in more than {MAX_ROUNDS} rounds"),
            Self::TooManyQuestions => {
                write!(f, "the server asked more than {MAX_ROUND_QUESTIONS} questions in one round")
            }
            Self::StateTooLarge => write!(f, "the server's `requestState` exceeds {MAX_STATE_BYTES} bytes"),
            Self::Malformed(why) => write!(f, "the server's input request is invalid: {why}"),
            Self::Undeclared(method) => {
                let method = wharf::spec::UntrustedText::new(method.as_str());
                write!(f, "the server asked `{}`, which the client has not declared", method.truncate(60))
            }
            Self::Unanswered { method, error } => {
                let why = wharf::spec::UntrustedText::new(error.message.as_str());
                write!(f, "the client did not answer `{method}`: {}", why.truncate(200))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use wharf::wire::Revision;

    use super::*;

    fn rounds(capabilities: Value) -> InputRounds {
        InputRounds::new(ClientClass::from_capabilities(&capabilities, Revision::V2025_11_25))
    }

    fn raw(value: Value) -> RawJson {
        RawJson::new_unchecked(value.to_string())
    }

    fn required(requests: Value) -> RawJson {
        raw(json!({"resultType": "input_required", "inputRequests": requests, "requestState": "s"}))
    }

    fn form() -> Value {
        json!({"method": "elicitation/create", "params": {"message": "m"}})
    }

    fn failed() -> ClientAnswer {
        Err(RpcError { code: -1, message: "no".to_owned(), data: None })
    }

    /// Describes a step in one line.
    fn step(rounds: &mut InputRounds) -> String {
        match rounds.next() {
            Ok(RoundStep::Ask(question)) => format!("ask {}", question.method.as_str()),
            Ok(RoundStep::Wait(time)) => format!("wait {}", time.as_millis()),
            Ok(RoundStep::Retry(round)) => {
                let text = |raw: Option<RawJson>| raw.map_or("-".to_owned(), |raw| raw.as_str().to_owned());
                format!("retry {} {}", text(round.responses), text(round.state))
            }
            Err(error) => format!("fail {error}"),
        }
    }

    #[test]
    fn all_questions_are_asked_in_order_before_the_retry() {
        let mut rounds = rounds(json!({"elicitation": {}, "roots": {}, "sampling": {}}));
        let sample = json!({"method": "sampling/createMessage", "params": {"messages": []}});
        rounds.begin(required(json!({"a\"b": form(), "b": {"method": "roots/list"}, "c": sample}))).unwrap();
        for (method, answer) in [
            ("elicitation/create", json!({"action": "decline"})),
            ("roots/list", json!({"roots": []})),
            ("sampling/createMessage", json!({"role": "assistant"})),
        ] {
            assert_eq!(step(&mut rounds), format!("ask {method}"));
            rounds.answer(Ok(raw(answer))).unwrap();
        }
        let responses = r#"{"a\"b":{"action":"decline"},"b":{"roots":[]},"c":{"role":"assistant"}}"#;
        assert_eq!(step(&mut rounds), format!("retry {responses} \"s\""));
    }

    #[test]
    fn elicitation_without_an_answer_is_cancelled_and_others_end_the_call() {
        let mut rounds = rounds(json!({"elicitation": {}, "roots": {}, "sampling": {}}));
        rounds.begin(required(json!({"a": form()}))).unwrap();
        step(&mut rounds);
        rounds.answer(failed()).unwrap();
        assert_eq!(step(&mut rounds), r#"retry {"a":{"action":"cancel"}} "s""#);
        for method in ["roots/list", "sampling/createMessage"] {
            rounds.begin(required(json!({"a": {"method": method, "params": {}}}))).unwrap();
            step(&mut rounds);
            assert!(matches!(rounds.answer(failed()), Err(RoundError::Unanswered { .. })), "{method}");
        }
    }

    #[test]
    fn undeclared_and_unknown_questions_end_the_call() {
        let url = json!({"method": "elicitation/create", "params": {"mode": "url", "url": "https://a.example"}});
        for (capabilities, request) in [
            (json!({}), form()),
            (json!({"elicitation": {}}), url),
            (json!({"elicitation": {}}), json!({"method": "roots/list"})),
            (json!({"elicitation": {}, "roots": {}}), json!({"method": "sampling/createMessage"})),
            (json!({"elicitation": {}, "roots": {}}), json!({"method": "tools/call"})),
        ] {
            let mut rounds = rounds(capabilities);
            rounds.begin(required(json!({"a": request}))).unwrap();
            assert!(step(&mut rounds).starts_with("fail the server asked"), "{request}");
        }
    }

    #[test]
    fn page_gets_an_id_and_is_done_at_the_end() {
        let mut rounds = rounds(json!({"elicitation": {"url": {}}}));
        let url = json!({"method": "elicitation/create", "params": {"mode": "url", "url": "https://a.example"}});
        rounds.begin(required(json!({"a": url}))).unwrap();
        let Ok(RoundStep::Ask(question)) = rounds.next() else { panic!("no question") };
        assert!(question.params.unwrap().as_str().contains(r#""elicitationId":"page-1-1""#));
        assert_eq!(rounds.take_pages(), ["page-1-1"]);
    }

    #[test]
    fn retries_without_a_question_back_off_and_end() {
        let mut rounds = rounds(json!({}));
        let again = || raw(json!({"resultType": "input_required", "requestState": "s"}));
        for delay in [250, 500, 1000, 2000, 4000, 4000, 4000, 4000] {
            rounds.begin(again()).unwrap();
            assert_eq!([step(&mut rounds), step(&mut rounds)], [format!("wait {delay}"), "retry - \"s\"".to_owned()]);
        }
        assert_eq!(rounds.begin(again()), Err(RoundError::TooManyRounds));
    }

    #[test]
    fn round_is_bounded() {
        let many: serde_json::Map<String, Value> = (0..=MAX_ROUND_QUESTIONS).map(|n| (n.to_string(), form())).collect();
        let mut rounds = rounds(json!({"elicitation": {}}));
        assert_eq!(rounds.begin(required(many.into())), Err(RoundError::TooManyQuestions));
        let large = json!({"resultType": "input_required", "requestState": "x".repeat(MAX_STATE_BYTES)});
        assert_eq!(rounds.begin(raw(large)), Err(RoundError::StateTooLarge));
        assert!(matches!(rounds.begin(raw(json!({}))), Err(RoundError::Malformed(_))));
    }
}
