//! Long-running tools that may become tasks.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::client_link::{CallContext, CallStop, SteppedWait};
use super::questions::{ClientNeed, ServerQuestion};
use super::tools::{structured_result, text_result};

/// `unload_ship`: unloads one container after the other, optionally after a signature.
pub fn unload_ship(given: &Map<String, Value>, talk: &mut dyn CallContext) -> Result<Value, CallStop> {
    let number = |name: &str, default: f64| given.get(name).and_then(Value::as_f64).unwrap_or(default);
    let (containers, interval_ms) = (number("containers", 3.0) as u32, number("interval_ms", 200.0));
    // Ask first, because each round runs the call from its start.
    let signature = match given.get("ask") {
        Some(Value::Bool(true)) => talk.ask_one(signature())?,
        _ => json!({"action": "accept", "content": {"name": "nobody"}}),
    };
    if signature["action"] != "accept" {
        return Err(CallStop::Failed("Nobody signed, so the ship stays as it is.".to_owned()));
    }
    let duration = Duration::from_secs_f64(interval_ms / 1000.0 * f64::from(containers));
    talk.wait(SteppedWait { duration, steps: containers })?;
    let text = format!("Unloaded {containers} containers, signed for by {}.", signature["content"]["name"]);
    Ok(structured_result(&json!({"unloaded": containers}), text, talk.revision()))
}

fn signature() -> ServerQuestion {
    let fields = json!({"name": {"type": "string", "title": "Name", "minLength": 1}});
    let params = json!({
        "message": "Who signs for the cargo?",
        "requestedSchema": {"type": "object", "properties": fields, "required": ["name"]},
    });
    ServerQuestion { key: "signature".to_owned(), need: ClientNeed::Form, params: Some(params) }
}

/// `survey_hull`: waits in three short steps.
pub fn survey_hull(_: &Map<String, Value>, talk: &mut dyn CallContext) -> Result<Value, CallStop> {
    talk.wait(SteppedWait { duration: Duration::from_millis(150), steps: 3 })?;
    Ok(text_result("The hull is sound."))
}
