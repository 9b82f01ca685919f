//! The tools of the fixture.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;
use wharf_wire::{Era, code};

use crate::catalog;
use crate::client_requests::Question;
use crate::input_rounds;
use crate::list_changes::{ChangedList, notification};
use crate::methods::{FixtureError, FixtureRequest, FixtureResult};

/// Time between two notifications of a call.
const NOTIFICATION_INTERVAL: Duration = Duration::from_millis(50);

/// Calls a tool whose questions, if it has any of its own kind, are answered.
pub async fn call(request: &FixtureRequest, name: &str) -> FixtureResult {
    if let Some(question) = input_rounds::question_of_tool(name, &request.params["arguments"]) {
        return Ok(ask(request, &question).await);
    }
    match name {
        "test_simple_text" => Ok(text("This is a simple text response for testing.")),
        "test_image_content" => Ok(content(vec![catalog::image()])),
        "test_audio_content" => Ok(content(vec![catalog::audio()])),
        "test_embedded_resource" => {
            let resource = catalog::embedded_text("test://embedded-resource", "This is an embedded resource content.");
            Ok(content(vec![resource]))
        }
        "test_multiple_content_types" => Ok(mixed_content()),
        "test_error_handling" => {
            let mut result = text("This tool intentionally returns an error for testing");
            result["isError"] = true.into();
            Ok(result)
        }
        "test_tool_with_logging" | "test_logging_tool" => Ok(log(request).await),
        "test_tool_with_progress" => Ok(report_progress(request).await),
        "test_reconnection" => {
            sleep(Duration::from_millis(500)).await;
            Ok(text("Reconnection test completed"))
        }
        "test_missing_capability" => need_sampling(request),
        "test_trigger_tool_change" => Ok(change(request, ChangedList::Tools)),
        "test_trigger_prompt_change" => Ok(change(request, ChangedList::Prompts)),
        "test_input_required_result_request_state" => Ok(text("state-ok")),
        "json_schema_2020_12_tool" | "test_custom_header" | "test_extra_tool" => Ok(text("Done.")),
        name if name.starts_with("test_input_required_result_") || name == "test_streaming_elicitation" => {
            Ok(text("All questions are answered."))
        }
        _ => Err(FixtureError::new(code::INVALID_PARAMS, "unknown tool")),
    }
}

fn content(content: Vec<Value>) -> Value {
    json!({ "content": content })
}

fn text(text: &str) -> Value {
    content(vec![json!({"type": "text", "text": text})])
}

fn mixed_content() -> Value {
    let data = json!({
        "uri": "test://mixed-content-resource",
        "mimeType": "application/json",
        "text": r#"{"test":"data","value":123}"#,
    });
    let introduction = json!({"type": "text", "text": "Multiple content types test:"});
    content(vec![introduction, catalog::image(), json!({"type": "resource", "resource": data})])
}

async fn log(request: &FixtureRequest) -> Value {
    for line in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        if request.log_level.as_deref().is_some_and(|level| ["debug", "info"].contains(&level)) {
            let params = json!({"level": "info", "logger": "fixture", "data": line});
            request.out.send(notification("notifications/message", params));
        }
        sleep(NOTIFICATION_INTERVAL).await;
    }
    text("Logging test completed")
}

async fn report_progress(request: &FixtureRequest) -> Value {
    let token = &request.params["_meta"]["progressToken"];
    for progress in [0, 50, 100] {
        if !token.is_null() {
            let params = json!({"progressToken": token, "progress": progress, "total": 100});
            request.out.send(notification("notifications/progress", params));
        }
        sleep(NOTIFICATION_INTERVAL).await;
    }
    text("Progress test completed")
}

/// Asks the tool's question, and shows the answer.
async fn ask(request: &FixtureRequest, question: &Question<'_>) -> Value {
    let answer = match request.era {
        Era::Handshake => request.asked.ask(&request.out, question).await.unwrap_or_default(),
        // The rounds before this call have asked.
        Era::Stateless => request.params["inputResponses"][question.name].clone(),
    };
    if question.method == "sampling/createMessage" {
        return text(&format!("LLM response: {}", answer["content"]["text"].as_str().unwrap_or("none")));
    }
    let action = answer["action"].as_str().unwrap_or("none");
    text(&format!("User response: action={action}, content={}", answer["content"]))
}

fn need_sampling(request: &FixtureRequest) -> FixtureResult {
    if request.capabilities["sampling"].is_object() {
        return Ok(text("The client can sample."));
    }
    let data = json!({"requiredCapabilities": {"sampling": {}}});
    let error = FixtureError::new(code::MISSING_CAPABILITY, "Missing required client capability");
    Err(FixtureError { data: Some(data), ..error })
}

fn change(request: &FixtureRequest, list: ChangedList) -> Value {
    request.lists.change(list);
    text("Changed.")
}
