//! Tools, a prompt and a resource that ask the user: by a form, by a web page, repeatedly, and without end.

use serde_json::{Map, Value, json};

use super::client_link::{CallContext, CallStop};
use super::content;
use super::port::LOG_URI;
use super::questions::{ClientNeed, ServerQuestion};
use super::revision::DemoRevision;
use super::rounds::nonce;
use super::tools::{structured_result, text_result};

/// `book_berth`: asks with a form that has a field of every type.
pub fn book_berth(_: &Map<String, Value>, talk: &mut dyn CallContext) -> Result<Value, CallStop> {
    let revision = talk.revision();
    let mut params = json!({
        "message": "Which berth shall it be?",
        "requestedSchema": {
            "type": "object",
            "properties": berth_fields(revision),
            "required": ["email", "nights", "ship"],
        },
    });
    if revision.has_elicitation_modes() {
        params["mode"] = "form".into();
    }
    let answer =
        talk.ask_one(ServerQuestion { key: "berth".to_owned(), need: ClientNeed::Form, params: Some(params) })?;
    let mut report = json!({"action": answer["action"]});
    let text = match (answer["action"].as_str(), answer.get("content")) {
        (Some("accept"), Some(content)) => {
            report["content"] = content.clone();
            format!("Booked: {content}")
        }
        (Some("decline"), _) => "No berth was booked: the form was declined.".to_owned(),
        (Some("cancel"), _) => "No berth was booked: the form was cancelled.".to_owned(),
        _ => return Err(CallStop::Failed(format!("This answers no form: {answer}"))),
    };
    Ok(structured_result(&report, text, revision))
}

fn berth_fields(revision: DemoRevision) -> Value {
    let mut fields = json!({
        "ship": {
            "type": "string", "title": "Ship", "description": "The name on the bow",
            "minLength": 2, "maxLength": 40, "default": "Second Draft",
        },
        "email": {"type": "string", "title": "E-mail", "description": "Where to send the bill", "format": "email"},
        "nights": {"type": "integer", "title": "Nights", "minimum": 1, "maximum": 30, "default": 2},
        "length": {"type": "number", "title": "Length in metres", "minimum": 2.5, "maximum": 400},
        "pilot": {"type": "boolean", "title": "Send a pilot", "default": true},
        "quay": {"type": "string", "title": "Quay", "enum": ["north", "east", "west"], "default": "east"},
        "cargo": {
            "type": "string", "title": "Cargo",
            "enum": ["none", "dry", "wet"], "enumNames": ["No cargo", "Dry goods", "Liquids"],
        },
    });
    if revision.has_elicitation_modes() {
        add_later_fields(&mut fields);
    } else {
        keep_only_defaults_of_booleans(&mut fields);
    }
    fields
}

/// Adds the field types of 2025-11-25.
fn add_later_fields(fields: &mut Value) {
    fields["flag"] = json!({
        "type": "string", "title": "Flag", "default": "no",
        "oneOf": [{"const": "no", "title": "Norway"}, {"const": "nl", "title": "The Netherlands"}],
    });
    fields["services"] = json!({
        "type": "array", "title": "Services", "minItems": 0, "maxItems": 2,
        "items": {"type": "string", "enum": ["water", "power", "waste"]}, "default": ["water"],
    });
    fields["crew"] = json!({
        "type": "array", "title": "Crew aboard", "minItems": 1,
        "items": {"anyOf": [{"const": "cook", "title": "A cook"}, {"const": "cat", "title": "A ship's cat"}]},
    });
}

fn keep_only_defaults_of_booleans(fields: &mut Value) {
    for field in fields.as_object_mut().into_iter().flat_map(Map::values_mut) {
        if field["type"] != "boolean"
            && let Some(field) = field.as_object_mut()
        {
            field.remove("default");
        }
    }
}

/// `open_harbour_page`: asks the user to open a web page.
pub fn open_harbour_page(_: &Map<String, Value>, talk: &mut dyn CallContext) -> Result<Value, CallStop> {
    let mut page = harbour_page();
    let id = page["elicitationId"].clone();
    let is_stateless = talk.revision().is_stateless();
    if is_stateless {
        page.as_object_mut().expect("a page is an object").remove("elicitationId");
    }
    let answer = talk.ask_one(ServerQuestion { key: "page".to_owned(), need: ClientNeed::Url, params: Some(page) })?;
    if answer["action"] != "accept" {
        return Ok(text_result("The harbour page was not opened."));
    }
    if !is_stateless {
        talk.notify(page_completed(&id));
    }
    Ok(text_result(PAPERS_IN_ORDER))
}

pub const PAPERS_IN_ORDER: &str = "The papers are in order.";

/// Returns the page request of 2025-11-25.
pub fn harbour_page() -> Value {
    let paper = format!("{:016x}", nonce());
    json!({
        "mode": "url",
        "message": "Please fill in the ship's papers.",
        "url": format!("https://harbour.example/papers?ship=second%20draft&paper={paper}"),
        "elicitationId": paper,
    })
}

/// Returns the notification that the page is completed (2025-11-25 client/elicitation, "Completion Notifications").
pub fn page_completed(id: &Value) -> Value {
    let params = json!({"elicitationId": id});
    json!({"jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": params})
}

/// `many_questions`: asks in several rounds. In a stateless revision the second round has no question.
pub fn many_questions(given: &Map<String, Value>, talk: &mut dyn CallContext) -> Result<Value, CallStop> {
    let number = |name: &str, default: u64| given.get(name).and_then(Value::as_f64).map_or(default, |n| n as u64);
    let (rounds, together) = (number("rounds", 3), number("together", 1));
    let mut answers = Vec::new();
    for round in 1..=rounds {
        if round == 2 && talk.revision().is_stateless() {
            talk.pause()?;
        } else {
            answers.extend(talk.ask((1..=together).map(|place| small_question(round, place)).collect())?);
        }
    }
    let said: Vec<_> = answers.iter().map(|answer| answer["content"]["answer"].to_string()).collect();
    Ok(text_result(&format!("Asked in {rounds} rounds, and heard {}.", said.join(", "))))
}

/// Returns a form without a mode, which is equivalent to one with the mode `form`.
fn small_question(round: u64, place: u64) -> ServerQuestion {
    let fields = json!({"answer": {"type": "string", "title": "Answer", "default": "aye"}});
    let params = json!({
        "message": format!("Question {place} of round {round}: ready?"),
        "requestedSchema": {"type": "object", "properties": fields},
    });
    ServerQuestion { key: format!("round-{round}-{place}"), need: ClientNeed::Form, params: Some(params) }
}

/// `stubborn`: asks again after every answer.
pub fn stubborn(_: &Map<String, Value>, talk: &mut dyn CallContext) -> Result<Value, CallStop> {
    talk.ask_one(small_question(1, 1))?;
    Err(CallStop::Unanswered(vec![small_question(1, 1)]))
}

/// The prompt `pilot`, which asks before it expands.
pub fn pilot_prompt(talk: &mut dyn CallContext) -> Result<Value, CallStop> {
    let answer = talk.ask_one(small_question(1, 1))?;
    let text = format!("Please thank the pilot, who said {}.", answer["content"]["answer"]);
    Ok(json!({"messages": [{"role": "user", "content": content::text(text)}]}))
}

/// The resource `harbour://log`, which asks before it is read. Its contents must not be cached.
pub fn harbour_log(talk: &mut dyn CallContext) -> Result<Value, CallStop> {
    let answer = talk.ask_one(small_question(1, 1))?;
    let text = format!("The last entry says {}.", answer["content"]["answer"]);
    let contents = json!([{"uri": LOG_URI, "mimeType": "text/plain", "text": text}]);
    Ok(json!({"contents": contents, "ttlMs": 0, "cacheScope": "private"}))
}
