//! What the tools do, as values: an answer, a wait or the end of the process.
//!
//! Waiting and crashing are left to the caller, so nothing here takes time or has an effect.

mod definitions;

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::message::RpcError;
use super::revision::Revision;
use super::{arguments, content, resources};

pub use definitions::definitions;

/// What a call comes to.
#[derive(Debug)]
pub enum Outcome {
    /// The result to answer with now.
    Answer(Value),
    /// The result to answer with when the wait is over.
    Wait { wait: Wait, answer: Value },
    /// No answer: the process ends.
    Crash { exit_code: i32 },
}

/// A wait in equal steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wait {
    pub duration: Duration,
    pub steps: u32,
}

/// What a call may look at beside its own parameters.
pub struct Surroundings<'a> {
    pub revision: Revision,
    pub environment: &'a [String],
}

/// Calls the tool that `params` name.
///
/// Unsuitable arguments are an answer, with `isError`; only a call that names no tool fails.
pub fn call(params: &Map<String, Value>, around: &Surroundings<'_>) -> Result<Outcome, RpcError> {
    let name = params
        .get("name")
        .and_then(Value::as_str)
        .ok_or_else(|| RpcError::invalid_params("`name` must be a string"))?;
    let tool = definitions(around.revision)
        .into_iter()
        .find(|tool| tool["name"] == name)
        .ok_or_else(|| RpcError::invalid_params(format!("unknown tool `{name}`")))?;
    let none = Map::new();
    let given = match params.get("arguments") {
        None | Some(Value::Null) => &none,
        Some(Value::Object(given)) => given,
        Some(_) => return Err(RpcError::invalid_params("`arguments` must be an object")),
    };
    if let Err(complaint) = arguments::check(&tool["inputSchema"], given) {
        return Ok(Outcome::Answer(failure(&complaint)));
    }
    Ok(run(name, given, around))
}

/// Runs a tool whose arguments have been checked.
fn run(name: &str, given: &Map<String, Value>, around: &Surroundings<'_>) -> Outcome {
    let revision = around.revision;
    let answer = match name {
        "echo" => plain(given["text"].as_str().unwrap_or_default()),
        "add" => add(&given["a"], &given["b"], revision),
        "fail" => failure("This tool always fails; that is what it is for."),
        "slow" => return slow(given),
        "json_response" => {
            let value = json!({"received": given, "count": given.len()});
            structured(&value, value.to_string(), revision)
        }
        "picture" => blocks(vec![content::logo()]),
        "mixed" => mixed(revision),
        "environment" => plain(&listed(around.environment)),
        "crash" => {
            let exit_code = given.get("exit_code").and_then(Value::as_f64);
            return Outcome::Crash { exit_code: exit_code.unwrap_or(3.0) as i32 };
        }
        _ => unreachable!("`{name}` is listed, so it is here"),
    };
    Outcome::Answer(answer)
}

fn add(a: &Value, b: &Value, revision: Revision) -> Value {
    let exact = a.as_i64().zip(b.as_i64()).and_then(|(a, b)| a.checked_add(b));
    let sum = match exact {
        Some(sum) => json!(sum),
        None => json!(a.as_f64().unwrap_or_default() + b.as_f64().unwrap_or_default()),
    };
    // JSON has no infinity.
    if sum.is_null() {
        return failure("The sum is too large for a number.");
    }
    structured(&json!({"sum": sum}), sum.to_string(), revision)
}

fn slow(given: &Map<String, Value>) -> Outcome {
    let number = |name: &str| given.get(name).and_then(Value::as_f64).unwrap_or(5.0);
    let (seconds, steps) = (number("seconds"), number("steps") as u32);
    let plural = if steps == 1 { "" } else { "s" };
    Outcome::Wait {
        wait: Wait { duration: Duration::from_secs_f64(seconds), steps },
        answer: plain(&format!("Waited {seconds} s in {steps} step{plural}.")),
    }
}

fn mixed(revision: Revision) -> Value {
    let mut caption = content::text("One block of every kind.");
    caption["annotations"] = json!({"audience": ["user"], "priority": 0.8});
    let greeting = resources::definitions(revision).swap_remove(0);
    blocks(vec![
        caption,
        content::logo(),
        content::horn(revision),
        content::link(revision, &greeting),
        content::embedded(&resources::greeting()),
    ])
}

fn listed(environment: &[String]) -> String {
    if environment.is_empty() { "(no environment variables)".to_owned() } else { environment.join("\n") }
}

fn blocks(content: Vec<Value>) -> Value {
    json!({"content": content, "isError": false})
}

fn plain(text: &str) -> Value {
    blocks(vec![content::text(text)])
}

/// The answer of a tool that reports failure.
pub fn failure(text: &str) -> Value {
    json!({"content": [content::text(text)], "isError": true})
}

/// Structured content beside its text, which is all that older clients see.
fn structured(value: &Value, text: String, revision: Revision) -> Value {
    let mut result = blocks(vec![content::text(text)]);
    if revision.has_structured_content() {
        result["structuredContent"] = value.clone();
    }
    result
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const MODERN: Revision = Revision::V2026_07_28;

    fn run(name: &str, arguments: Value, revision: Revision) -> Outcome {
        let around = Surroundings { revision, environment: &["HOME".to_owned(), "PATH".to_owned()] };
        let params = json!({"name": name, "arguments": arguments});
        call(params.as_object().unwrap(), &around).unwrap()
    }

    #[track_caller]
    fn check_text(name: &str, arguments: Value, is_error: bool, expected: &str) {
        let Outcome::Answer(answer) = run(name, arguments, MODERN) else {
            panic!("{name} gave no answer");
        };
        assert_eq!(answer["content"][0]["text"], expected);
        assert_eq!(answer["isError"], is_error);
    }

    #[test]
    fn tools_answer() {
        check_text("echo", json!({"text": "ahoy"}), false, "ahoy");
        check_text("echo", json!({}), true, "The argument `text` is missing.");
        check_text("add", json!({"a": 1, "b": 2}), false, "3");
        check_text("add", json!({"a": 0.5, "b": 2}), false, "2.5");
        check_text("add", json!({"a": 1}), true, "The argument `b` is missing.");
        check_text("add", json!({"a": 1e308, "b": 1e308}), true, "The sum is too large for a number.");
        check_text("fail", json!({}), true, "This tool always fails; that is what it is for.");
        check_text("environment", json!({}), false, "HOME\nPATH");
        check_text("json_response", json!({"a": 1}), false, r#"{"count":1,"received":{"a":1}}"#);
    }

    #[test]
    fn effects_are_left_to_the_caller() {
        assert!(matches!(run("crash", json!({}), MODERN), Outcome::Crash { exit_code: 3 }));
        assert!(matches!(run("crash", json!({"exit_code": 7}), MODERN), Outcome::Crash { exit_code: 7 }));
        let Outcome::Wait { wait, answer } = run("slow", json!({"seconds": 0.5, "steps": 2}), MODERN) else {
            panic!("slow does not wait");
        };
        assert_eq!((wait.duration, wait.steps), (Duration::from_millis(500), 2));
        assert_eq!(answer["content"][0]["text"], "Waited 0.5 s in 2 steps.");
    }

    #[test]
    fn every_listed_tool_runs_and_says_only_what_its_revision_knows() {
        for revision in Revision::ALL {
            for tool in definitions(revision) {
                let name = tool["name"].as_str().unwrap();
                run(name, json!({"text": "a", "a": 1, "b": 2}), revision);
                let has = |field: &str| tool.get(field).is_some();
                assert_eq!(has("title"), revision.has_titles(), "{name}");
                assert_eq!(has("annotations"), revision.has_tool_annotations(), "{name}");
                assert!(revision.has_structured_content() || !has("outputSchema"), "{name}");
            }
        }
    }

    #[test]
    fn mixed_content_fits_the_revision() {
        let table = [
            (Revision::V2024_11_05, "text image text text resource"),
            (Revision::V2025_03_26, "text image audio text resource"),
            (Revision::V2025_06_18, "text image audio resource_link resource"),
            (MODERN, "text image audio resource_link resource"),
        ];
        for (revision, expected) in table {
            let Outcome::Answer(answer) = run("mixed", json!({}), revision) else {
                panic!("mixed gave no answer");
            };
            let content = answer["content"].as_array().unwrap();
            let kinds: Vec<_> = content.iter().map(|block| block["type"].as_str().unwrap()).collect();
            assert_eq!(kinds.join(" "), expected, "{revision}");
        }
    }
}
