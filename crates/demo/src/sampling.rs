//! Tools that use the client's model and roots.

use serde_json::{Map, Value, json};

use super::client_link::{CallContext, CallStop};
use super::questions::{ClientNeed, ServerQuestion};
use super::tools::{structured_result, text_result};

/// Maximum number of turns, after which the model must answer without the tool.
const MAX_TURNS: usize = 3;

/// `ask_model`: asks the client's model, optionally with a tool.
pub fn ask_model(given: &Map<String, Value>, talk: &mut dyn CallContext) -> Result<Value, CallStop> {
    let question = given.get("question").and_then(Value::as_str).unwrap_or("When is high water?");
    let with_tools = given.get("tools") == Some(&Value::Bool(true));
    let mut messages = vec![json!({"role": "user", "content": {"type": "text", "text": question}})];
    for turn in 1..=MAX_TURNS {
        let answer = talk.ask_one(model_turn(turn, &messages, with_tools))?;
        let uses = tool_uses(&answer["content"]);
        if uses.is_empty() {
            let text =
                text_of(&answer["content"]).ok_or_else(|| CallStop::Failed("The model gave no text.".to_owned()))?;
            return Ok(structured_result(&json!({"text": text, "model": answer["model"]}), text, talk.revision()));
        }
        messages.push(json!({"role": "assistant", "content": answer["content"]}));
        messages.push(json!({"role": "user", "content": uses.into_iter().map(tide_table).collect::<Vec<_>>()}));
    }
    Err(CallStop::Failed(format!("After {MAX_TURNS} turns the model still has not answered.")))
}

fn model_turn(turn: usize, messages: &[Value], with_tools: bool) -> ServerQuestion {
    let mut params = json!({
        "messages": messages,
        "systemPrompt": "You are a harbour master of few words.",
        "modelPreferences": {"hints": [{"name": "small"}], "speedPriority": 0.8, "intelligencePriority": 0.2},
        "temperature": 0.2,
        "maxTokens": 200,
    });
    if with_tools {
        let schema = json!({"type": "object", "properties": {"day": {"type": "string"}}});
        params["tools"] =
            json!([{"name": "tide_table", "description": "Says when high water is.", "inputSchema": schema}]);
        // The last turn must produce text.
        params["toolChoice"] = json!({"mode": if turn < MAX_TURNS { "auto" } else { "none" }});
    }
    let need = if with_tools { ClientNeed::SamplingWithTools } else { ClientNeed::Sampling };
    ServerQuestion { key: format!("turn-{turn}"), need, params: Some(params) }
}

/// Returns the content blocks of a message, which may be one or several.
fn blocks(content: &Value) -> &[Value] {
    content.as_array().map_or(std::slice::from_ref(content), Vec::as_slice)
}

fn tool_uses(content: &Value) -> Vec<&Value> {
    blocks(content).iter().filter(|block| block["type"] == "tool_use").collect()
}

fn text_of(content: &Value) -> Option<String> {
    let texts: Vec<_> = blocks(content).iter().filter_map(|block| block["text"].as_str()).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

fn tide_table(tool_use: &Value) -> Value {
    let said = json!([{"type": "text", "text": "High water is at 14:05."}]);
    json!({"type": "tool_result", "toolUseId": tool_use["id"], "content": said})
}

/// `show_roots`: lists the client's roots.
pub fn show_roots(_: &Map<String, Value>, talk: &mut dyn CallContext) -> Result<Value, CallStop> {
    let answer = talk.ask_one(ServerQuestion { key: "roots".to_owned(), need: ClientNeed::Roots, params: None })?;
    let roots = answer["roots"].as_array().ok_or_else(|| CallStop::Failed(format!("These are no roots: {answer}")))?;
    let lines: Vec<_> = roots.iter().map(|root| root["uri"].as_str().unwrap_or("(no URI)")).collect();
    Ok(text_result(&if lines.is_empty() { "(no roots)".to_owned() } else { lines.join("\n") }))
}
