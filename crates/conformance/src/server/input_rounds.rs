//! Tools and a prompt that need input of the client: in rounds of the same request in the stateless revision, by
//! requests to the client in the others.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::client_requests::Question;

/// The questions of one round.
pub type InputRound = Vec<Question<'static>>;

/// Returns the question of a tool that asks one in every era, and reports the answer.
pub fn question_of_tool(name: &str, arguments: &Value) -> Option<Question<'static>> {
    let argument = |name: &str| arguments[name].as_str().unwrap_or_default();
    Some(match name {
        "test_sampling" => Question::sampling("sample", argument("prompt")),
        "test_elicitation" => {
            let properties = json!({"username": {"type": "string"}, "email": {"type": "string"}});
            Question::form("response", argument("message"), properties)
        }
        "test_elicitation_sep1034_defaults" => defaults_form(),
        "test_elicitation_sep1330_enums" => enums_form(),
        _ => return None,
    })
}

/// Returns the rounds of a tool or prompt that asks. `capabilities` are those of the client.
pub fn rounds(name: &str, capabilities: &Value) -> Option<Vec<InputRound>> {
    let ask_name = || Question::form("user_name", "What is your name?", json!({"name": {"type": "string"}}));
    let confirm = || Question::form("confirm", "Please confirm", json!({"ok": {"type": "boolean"}}));
    let text = |field: &str| json!({field: {"type": "string"}});
    Some(match name {
        "test_input_required_result_elicitation" | "test_streaming_elicitation" => vec![vec![ask_name()]],
        "test_input_required_result_sampling" => {
            vec![vec![Question::sampling("capital_question", "What is the capital of France?")]]
        }
        "test_input_required_result_list_roots" => vec![vec![Question::roots("client_roots")]],
        "test_input_required_result_request_state" | "test_input_required_result_tampered_state" => {
            vec![vec![confirm()]]
        }
        "test_input_required_result_multiple_inputs" => {
            let greeting = Question::sampling("greeting", "Generate a greeting");
            vec![vec![ask_name(), greeting, Question::roots("client_roots")]]
        }
        "test_input_required_result_multi_round" => vec![
            vec![Question::form("step1", "Step 1: What is your name?", text("name"))],
            vec![Question::form("step2", "Step 2: What is your favorite color?", text("color"))],
        ],
        "test_input_required_result_capabilities" => {
            let all = [ask_name(), Question::sampling("capital_question", "What is the capital of France?")];
            let can_answer = |question: &Question<'_>| capabilities[question.capability()].is_object();
            vec![all.into_iter().filter(can_answer).collect()]
        }
        "test_input_required_result_prompt" => {
            vec![vec![Question::form("user_context", "What context should the prompt use?", text("context"))]]
        }
        _ => return None,
    })
}

fn defaults_form() -> Question<'static> {
    Question::optional_form(
        "defaults",
        "Please review the values",
        json!({
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
            "verified": {"type": "boolean", "default": true},
        }),
    )
}

fn enums_form() -> Question<'static> {
    let titled = |word: &str| {
        let option =
            |number: &str, title: &str| json!({"const": format!("value{number}"), "title": format!("{title} {word}")});
        json!([option("1", "First"), option("2", "Second"), option("3", "Third")])
    };
    let options = json!(["option1", "option2", "option3"]);
    Question::optional_form(
        "enums",
        "Please choose",
        json!({
            "untitledSingle": {"type": "string", "enum": options},
            "titledSingle": {"type": "string", "oneOf": titled("Option")},
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
            "titledMulti": {"type": "array", "items": {"anyOf": titled("Choice")}},
        }),
    )
}

/// Progress of a stateless request through its rounds.
#[derive(Debug, PartialEq)]
pub enum RoundStep {
    /// All questions are answered.
    Complete,
    /// This result asks the next questions.
    Ask(Value),
    /// The state was changed by someone else.
    Tampered,
}

/// Decides what a request with these parameters gets.
pub fn step(name: &str, rounds: &[InputRound], params: &Value) -> RoundStep {
    let done = match params.get("requestState").filter(|state| !state.is_null()) {
        None => 0,
        Some(state) => match state.as_str().and_then(|state| read_state(name, state)) {
            Some(done) => done,
            None => return RoundStep::Tampered,
        },
    };
    let answers = &params["inputResponses"];
    let Some(round) = rounds.get(done) else { return RoundStep::Complete };
    let is_answered = round.iter().all(|question| question.is_answered_by(&answers[question.name]));
    match (is_answered, rounds.get(done + 1)) {
        (false, _) => RoundStep::Ask(input_required(name, done, round)),
        (true, Some(next)) => RoundStep::Ask(input_required(name, done + 1, next)),
        (true, None) => RoundStep::Complete,
    }
}

fn input_required(name: &str, done: usize, round: &InputRound) -> Value {
    let question = |question: &Question<'static>| {
        (question.name.to_owned(), json!({"method": question.method, "params": question.params}))
    };
    let requests: serde_json::Map<String, Value> = round.iter().map(question).collect();
    json!({"resultType": "input_required", "inputRequests": requests, "requestState": write_state(name, done)})
}

/// Key of the digests. A real server draws one at its start.
const STATE_KEY: &str = "fixture";

fn write_state(name: &str, done: usize) -> String {
    let digest = Sha256::digest(format!("{STATE_KEY}/{name}/{done}/{STATE_KEY}"));
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{done}.{digest}")
}

/// Returns the number of rounds done, if the state is one of ours.
fn read_state(name: &str, state: &str) -> Option<usize> {
    let (done, _) = state.split_once('.')?;
    let done = done.parse().ok()?;
    (write_state(name, done) == state).then_some(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_follow_each_other_and_tampered_state_is_found() {
        let name = "test_input_required_result_multi_round";
        let rounds = rounds(name, &json!({})).unwrap();
        let RoundStep::Ask(first) = step(name, &rounds, &json!({})) else { panic!("nothing asked") };
        let answer = json!({"action": "accept", "content": {}});
        let retry = |state: &Value, key: &str| {
            step(name, &rounds, &json!({"requestState": state, "inputResponses": {key: answer}}))
        };
        let RoundStep::Ask(second) = retry(&first["requestState"], "step1") else { panic!("no second round") };
        assert!(second["inputRequests"]["step2"].is_object());
        assert!(matches!(retry(&first["requestState"], "other"), RoundStep::Ask(_)));
        assert_eq!(retry(&second["requestState"], "step2"), RoundStep::Complete);
        assert_eq!(retry(&json!("0.x"), "step1"), RoundStep::Tampered);
    }
}
