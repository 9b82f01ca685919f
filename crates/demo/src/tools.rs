//! The effects of the tools as values: a result, a change, a conversation or a crash.
//!
//! The caller performs all effects, so the functions here are pure and do not block.

mod definitions;

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::client_link::{CallContext, CallStop, SteppedWait};
use super::message::RpcError;
use super::port::{HarbourChange, HarbourView};
use super::revision::DemoRevision;
use super::subscriptions::ListenEnding;
use super::{arguments, content, elicitation, long_tools, resources, sampling};

pub use definitions::definitions;

/// Outcome of a tool call.
#[derive(Debug)]
pub enum DemoToolOutcome {
    /// Reply with this result now.
    Answer(Value),
    /// Reply with this result after the wait.
    Wait { wait: SteppedWait, answer: Value },
    /// Run this script with the client to get the result.
    Talk(ScriptedCall),
    /// Apply this change and report it.
    Change(HarbourChange),
    /// Send this log message if the client wants its level.
    Log { level: String, message: String },
    /// End all listens and report their number.
    EndListens(ListenEnding),
    /// Fail with an error that asks to open a page, and succeed on the retry.
    PageByError,
    /// Exit the process without a reply.
    Crash { exit_code: i32 },
}

/// Computes a tool's result from its arguments, with questions to the client.
type ToolScript = fn(&Map<String, Value>, &mut dyn CallContext) -> Result<Value, CallStop>;

/// A tool that communicates with the client.
#[derive(Debug)]
pub struct ScriptedCall {
    pub play: ToolScript,
    pub given: Map<String, Value>,
}

/// Task support of a tool.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DemoTaskSupport {
    Forbidden,
    Optional,
    Required,
}

impl DemoTaskSupport {
    /// Returns the task support of the tool `name`.
    pub fn of_tool(name: &str) -> Self {
        match name {
            "unload_ship" => Self::Optional,
            "survey_hull" => Self::Required,
            _ => Self::Forbidden,
        }
    }
}

/// Inputs of a call besides its parameters.
pub struct ToolInputs<'a> {
    pub revision: DemoRevision,
    pub environment: &'a [String],
    pub view: HarbourView,
    /// Arguments repeated in the request headers.
    pub mirrored: &'a [(String, String)],
}

/// Calls the tool that `params` name. Invalid arguments produce a result with `isError`.
///
/// # Errors
///
/// Fails with invalid params for an unknown tool.
pub fn call(params: &Map<String, Value>, around: &ToolInputs<'_>) -> Result<DemoToolOutcome, RpcError> {
    let name = params
        .get("name")
        .and_then(Value::as_str)
        .ok_or_else(|| RpcError::invalid_params("`name` must be a string"))?;
    let tool = definitions(around.revision, around.view)
        .into_iter()
        .find(|tool| tool["name"] == name)
        .ok_or_else(|| RpcError::invalid_params(format!("unknown tool `{name}`")))?;
    let none = Map::new();
    let given = match params.get("arguments") {
        None | Some(Value::Null) => &none,
        Some(Value::Object(given)) => given,
        Some(_) => return Err(RpcError::invalid_params("`arguments` must be an object")),
    };
    if let Err(complaint) = arguments::check_arguments(&tool["inputSchema"], given) {
        return Ok(DemoToolOutcome::Answer(error_result(&complaint)));
    }
    Ok(run(name, given, around))
}

/// Runs a tool with checked arguments.
fn run(name: &str, given: &Map<String, Value>, around: &ToolInputs<'_>) -> DemoToolOutcome {
    let revision = around.revision;
    let answer = match name {
        "echo" => text_result(given["text"].as_str().unwrap_or_default()),
        "add" => add(&given["a"], &given["b"], revision),
        "fail" => error_result("This tool always fails; that is what it is for."),
        "slow" => return slow(given),
        "json_response" => {
            let value = json!({"received": given, "count": given.len()});
            structured_result(&value, value.to_string(), revision)
        }
        "picture" => content_result(vec![content::logo()]),
        "mixed" => mixed(revision),
        "environment" => text_result(&environment_text(around.environment)),
        "crane" => text_result("Up it goes."),
        "clear_customs" => clear_customs(given, around.mirrored),
        _ => return run_with_effect(name, given),
    };
    DemoToolOutcome::Answer(answer)
}

fn run_with_effect(name: &str, given: &Map<String, Value>) -> DemoToolOutcome {
    let text = |name: &str| given.get(name).and_then(Value::as_str).unwrap_or_default();
    match name {
        "crash" => {
            let exit_code = given.get("exit_code").and_then(Value::as_f64);
            DemoToolOutcome::Crash { exit_code: exit_code.unwrap_or(3.0) as i32 }
        }
        "raise_tide" => DemoToolOutcome::Change(HarbourChange::RaiseTide),
        "hire_crane" => DemoToolOutcome::Change(HarbourChange::HireCrane),
        "dismiss_crane" => DemoToolOutcome::Change(HarbourChange::DismissCrane),
        "learn_shanty" => DemoToolOutcome::Change(HarbourChange::LearnShanty),
        "lay_buoy" => DemoToolOutcome::Change(HarbourChange::LayBuoy),
        "log_something" => {
            DemoToolOutcome::Log { level: text("level").to_owned(), message: text("message").to_owned() }
        }
        "end_subscriptions" => DemoToolOutcome::EndListens(match text("how") {
            "cancelled" => ListenEnding::Cancelled,
            "error" => ListenEnding::Error,
            _ => ListenEnding::Result,
        }),
        "open_harbour_page" if text("via") == "error" => DemoToolOutcome::PageByError,
        _ => DemoToolOutcome::Talk(ScriptedCall { play: script(name), given: given.clone() }),
    }
}

fn script(name: &str) -> ToolScript {
    match name {
        "book_berth" => elicitation::book_berth,
        "open_harbour_page" => elicitation::open_harbour_page,
        "many_questions" => elicitation::many_questions,
        "stubborn" => elicitation::stubborn,
        "ask_model" => sampling::ask_model,
        "show_roots" => sampling::show_roots,
        "unload_ship" => long_tools::unload_ship,
        "survey_hull" => long_tools::survey_hull,
        _ => unreachable!("`{name}` is listed, so it is here"),
    }
}

fn add(a: &Value, b: &Value, revision: DemoRevision) -> Value {
    let exact = a.as_i64().zip(b.as_i64()).and_then(|(a, b)| a.checked_add(b));
    let sum = match exact {
        Some(sum) => json!(sum),
        None => json!(a.as_f64().unwrap_or_default() + b.as_f64().unwrap_or_default()),
    };
    // JSON has no infinity.
    if sum.is_null() {
        return error_result("The sum is too large for a number.");
    }
    structured_result(&json!({"sum": sum}), sum.to_string(), revision)
}

fn slow(given: &Map<String, Value>) -> DemoToolOutcome {
    let number = |name: &str| given.get(name).and_then(Value::as_f64).unwrap_or(5.0);
    let (seconds, steps) = (number("seconds"), number("steps") as u32);
    let plural = if steps == 1 { "" } else { "s" };
    DemoToolOutcome::Wait {
        wait: SteppedWait { duration: Duration::from_secs_f64(seconds), steps },
        answer: text_result(&format!("Waited {seconds} s in {steps} step{plural}.")),
    }
}

fn mixed(revision: DemoRevision) -> Value {
    let mut caption = content::text("One block of every kind.");
    caption["annotations"] = json!({"audience": ["user"], "priority": 0.8});
    let greeting = resources::definitions(revision, HarbourView::default()).swap_remove(0);
    content_result(vec![
        caption,
        content::logo(),
        content::horn(revision),
        content::link(revision, &greeting),
        content::embed_resource(&resources::greeting()),
    ])
}

fn clear_customs(given: &Map<String, Value>, mirrored: &[(String, String)]) -> Value {
    let seen = mirrored.iter().find(|(name, _)| name == "mcp-param-region");
    let seen = match seen {
        Some((_, value)) => format!("the header Mcp-Param-Region said {}", Value::from(value.as_str())),
        None => "there was no header".to_owned(),
    };
    text_result(&format!("Cleared for {}; {seen}.", given["region"]))
}

fn environment_text(environment: &[String]) -> String {
    if environment.is_empty() { "(no environment variables)".to_owned() } else { environment.join("\n") }
}

fn content_result(content: Vec<Value>) -> Value {
    json!({"content": content, "isError": false})
}

/// Returns a text result.
pub fn text_result(text: &str) -> Value {
    content_result(vec![content::text(text)])
}

/// Returns an error result.
pub fn error_result(text: &str) -> Value {
    json!({"content": [content::text(text)], "isError": true})
}

/// Returns structured content with its text. Older revisions get only the text.
pub fn structured_result(value: &Value, text: String, revision: DemoRevision) -> Value {
    let mut result = content_result(vec![content::text(text)]);
    if revision.has_structured_content() {
        result["structuredContent"] = value.clone();
    }
    result
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const MODERN: DemoRevision = DemoRevision::V2026_07_28;
    const FULL: HarbourView = HarbourView { tide: 0, has_crane: true, has_shanty: true, has_buoy: true };

    fn run(name: &str, arguments: Value, revision: DemoRevision) -> DemoToolOutcome {
        let around =
            ToolInputs { revision, environment: &["HOME".to_owned(), "PATH".to_owned()], view: FULL, mirrored: &[] };
        let params = json!({"name": name, "arguments": arguments});
        call(params.as_object().unwrap(), &around).unwrap()
    }

    #[track_caller]
    fn check_text(name: &str, arguments: Value, is_error: bool, expected: &str) {
        let DemoToolOutcome::Answer(answer) = run(name, arguments, MODERN) else {
            panic!("{name} gave no answer");
        };
        assert_eq!(answer["content"][0]["text"], expected);
        assert_eq!(answer["isError"], is_error);
    }

    #[test]
    fn tools_return_results_or_errors() {
        check_text("echo", json!({"text": "ahoy"}), false, "ahoy");
        check_text("echo", json!({}), true, "The argument `text` is missing.");
        check_text("add", json!({"a": 1, "b": 2}), false, "3");
        check_text("add", json!({"a": 0.5, "b": 2}), false, "2.5");
        check_text("add", json!({"a": 1}), true, "The argument `b` is missing.");
        check_text("add", json!({"a": 1e308, "b": 1e308}), true, "The sum is too large for a number.");
        check_text("fail", json!({}), true, "This tool always fails; that is what it is for.");
        check_text("clear_customs", json!({"region": "x"}), false, "Cleared for \"x\"; there was no header.");
        check_text("environment", json!({}), false, "HOME\nPATH");
        check_text("json_response", json!({"a": 1}), false, r#"{"count":1,"received":{"a":1}}"#);
    }

    #[test]
    fn crash_and_wait_are_returned_as_values() {
        assert!(matches!(run("crash", json!({}), MODERN), DemoToolOutcome::Crash { exit_code: 3 }));
        assert!(matches!(run("crash", json!({"exit_code": 7}), MODERN), DemoToolOutcome::Crash { exit_code: 7 }));
        let DemoToolOutcome::Wait { wait, answer } = run("slow", json!({"seconds": 0.5, "steps": 2}), MODERN) else {
            panic!("slow does not wait");
        };
        assert_eq!((wait.duration, wait.steps), (Duration::from_millis(500), 2));
        assert_eq!(answer["content"][0]["text"], "Waited 0.5 s in 2 steps.");
    }

    #[test]
    fn every_listed_tool_runs_within_its_revision() {
        for revision in DemoRevision::ALL {
            for tool in definitions(revision, FULL) {
                let name = tool["name"].as_str().unwrap();
                let mut arguments =
                    json!({"text": "a", "a": 1, "b": 2, "level": "info", "message": "m", "region": "r"});
                let known = tool["inputSchema"]["properties"].as_object();
                arguments
                    .as_object_mut()
                    .unwrap()
                    .retain(|name, _| known.is_some_and(|known| known.contains_key(name)));
                let outcome = run(name, arguments, revision);
                let complains = matches!(&outcome, DemoToolOutcome::Answer(answer) if answer["isError"] == true);
                assert_eq!(complains, name == "fail", "{name}");
                let has = |field: &str| tool.get(field).is_some();
                assert_eq!(has("title"), revision.has_titles(), "{name}");
                assert_eq!(has("annotations"), revision.has_tool_annotations(), "{name}");
                assert!(revision.has_structured_content() || !has("outputSchema"), "{name}");
                assert!(revision.has_icons() || !has("icons"), "{name}");
                let is_task = DemoTaskSupport::of_tool(name) != DemoTaskSupport::Forbidden;
                assert_eq!(has("execution"), revision.has_core_tasks() && is_task, "{name}");
            }
        }
    }

    #[test]
    fn each_revision_offers_its_tools() {
        let table = [
            ("show_roots", "2024-11-05 2025-03-26 2025-06-18 2025-11-25 2026-07-28"),
            ("book_berth", "2025-06-18 2025-11-25 2026-07-28"),
            ("open_harbour_page", "2025-11-25 2026-07-28"),
            ("survey_hull", "2025-11-25"),
            ("stubborn", "2026-07-28"),
            ("end_subscriptions", "2026-07-28"),
        ];
        for (name, expected) in table {
            let offers = |revision: &DemoRevision| definitions(*revision, FULL).iter().any(|tool| tool["name"] == name);
            let offering: Vec<_> =
                DemoRevision::ALL.into_iter().rev().filter(offers).map(DemoRevision::as_str).collect();
            assert_eq!(offering.join(" "), expected, "{name}");
        }
        let has_crane = |view| definitions(MODERN, view).iter().any(|tool| tool["name"] == "crane");
        assert!(has_crane(FULL) && !has_crane(HarbourView::default()));
    }

    #[test]
    fn mixed_content_fits_the_revision() {
        let table = [
            (DemoRevision::V2024_11_05, "text image text text resource"),
            (DemoRevision::V2025_03_26, "text image audio text resource"),
            (DemoRevision::V2025_06_18, "text image audio resource_link resource"),
            (MODERN, "text image audio resource_link resource"),
        ];
        for (revision, expected) in table {
            let DemoToolOutcome::Answer(answer) = run("mixed", json!({}), revision) else {
                panic!("mixed gave no answer");
            };
            let content = answer["content"].as_array().unwrap();
            let kinds: Vec<_> = content.iter().map(|block| block["type"].as_str().unwrap()).collect();
            assert_eq!(kinds.join(" "), expected, "{revision}");
        }
    }
}
