//! Tools that request input from the client.
//!
//! Each is a function from the responses so far to the next step, shared by both eras: a stateless client receives the
//! requests and retries with the responses, a handshake-era client is asked during the call.

use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CreateMessageRequest,
    CreateMessageRequestParams, ElicitRequest, ElicitRequestParams, ElicitationSchema, InputRequest, InputRequests,
    InputRequiredResult, InputResponses, JsonObject, ListRootsRequest, ModelHint, ModelPreferences, ProtocolVersion,
    Role, SamplingMessage, SamplingMessageContentBlock, ServerRequest, Tool, ToolChoice,
};
use serde_json::{Value, json};

use crate::RmcpContext;

/// The client's responses, and the state it returned.
struct InputRound {
    responses: InputResponses,
    state: Option<String>,
}

/// The next step of a tool.
enum InputStep {
    Done(String),
    Ask(InputRequiredResult),
}

pub fn is_input_tool(tool: &str) -> bool {
    ["ask_form", "ask_url", "ask_twice", "ask_all", "ask_model", "show_roots", "shed"].contains(&tool)
}

pub fn is_stateless(context: &RmcpContext) -> bool {
    context.protocol_version().is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

pub async fn call(request: CallToolRequestParams, context: &RmcpContext) -> Result<CallToolResponse, ErrorData> {
    let tools = request.arguments.as_ref().and_then(|arguments| arguments.get("tools")) == Some(&Value::Bool(true));
    let responses = request.input_responses.unwrap_or_default();
    let mut round = InputRound { responses, state: request.request_state };
    loop {
        match step(&request.name, tools, &round) {
            InputStep::Done(text) => return Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into()),
            InputStep::Ask(questions) if is_stateless(context) => return Ok(questions.into()),
            InputStep::Ask(questions) => {
                match send_requests(questions.input_requests.unwrap_or_default(), context).await {
                    Ok(responses) => round = InputRound { responses, state: questions.request_state },
                    Err(refusal) => return Ok(CallToolResult::error(vec![ContentBlock::text(refusal)]).into()),
                }
            }
        }
    }
}

/// Sends the requests to a handshake-era client, one after the other.
async fn send_requests(questions: InputRequests, context: &RmcpContext) -> Result<InputResponses, String> {
    let mut responses = InputResponses::new();
    for (key, question) in questions {
        let request = match question {
            InputRequest::CreateMessage(request) => ServerRequest::CreateMessageRequest(request),
            InputRequest::Elicitation(request) => ServerRequest::ElicitRequest(request),
            InputRequest::ListRoots(request) => ServerRequest::ListRootsRequest(request),
            _ => return Err("a question of a new kind".to_owned()),
        };
        let answer = context.peer.send_request(request).await.map_err(|error| error.to_string())?;
        responses.insert(key, serde_json::to_value(answer).map_err(|error| error.to_string())?);
    }
    Ok(responses)
}

fn step(tool: &str, tools: bool, round: &InputRound) -> InputStep {
    match tool {
        "ask_form" => ask_once("form", form("Which ship, and where to?", form_schema()), round, Value::clone),
        "ask_url" => ask_once("page", page(), round, Value::clone),
        "show_roots" => ask_once("roots", roots(), round, |answer| answer["roots"].clone()),
        "ask_twice" => ask_twice(round),
        "ask_all" => ask_all(round),
        "shed" => ask_to_retry(round),
        _ => ask_model(tools, round),
    }
}

fn ask_once(key: &str, question: InputRequest, round: &InputRound, shown: impl Fn(&Value) -> Value) -> InputStep {
    match round.responses.get(key) {
        Some(answer) => InputStep::Done(shown(answer).to_string()),
        None => ask([(key, question)], None),
    }
}

/// Returns the submitted value, `nothing` if the user declined, and `None` if the request was not made.
pub fn submitted_value(responses: Option<&InputResponses>, field: &str) -> Option<String> {
    let answer = responses?.get(field)?;
    Some(answer["content"][field].as_str().unwrap_or("nothing").to_owned())
}

fn ask_twice(round: &InputRound) -> InputStep {
    let Some(name) = round.state.clone().or_else(|| submitted_value(Some(&round.responses), "name")) else {
        return ask([("name", field("name"))], None);
    };
    match submitted_value(Some(&round.responses), "port") {
        Some(port) => InputStep::Done(format!("{name} sails to {port}.")),
        None => ask([("port", field("port"))], Some(name)),
    }
}

fn ask_all(round: &InputRound) -> InputStep {
    if round.responses.is_empty() {
        return ask([("name", field("name")), ("model", sample(vec![question()], false)), ("roots", roots())], None);
    }
    InputStep::Done(json!(round.responses).to_string())
}

fn ask_to_retry(round: &InputRound) -> InputStep {
    match &round.state {
        Some(state) => InputStep::Done(state.clone()),
        None => InputStep::Ask(InputRequiredResult::from_request_state("later")),
    }
}

/// Runs the tools that the model calls, and returns its final message. The state is the conversation.
fn ask_model(tools: bool, round: &InputRound) -> InputStep {
    let kept = round.state.as_deref().and_then(|state| serde_json::from_str(state).ok());
    let mut messages: Vec<SamplingMessage> = kept.unwrap_or_else(|| vec![question()]);
    if let Some(answer) = round.responses.get("model") {
        let said: Option<SamplingMessage> = serde_json::from_value(answer.clone()).ok();
        let blocks = said.iter().flat_map(|message| message.content.iter());
        let uses: Vec<_> = blocks.filter_map(SamplingMessageContentBlock::as_tool_use).cloned().collect();
        if uses.is_empty() {
            return InputStep::Done(answer.to_string());
        }
        let noon = |id: &String| SamplingMessageContentBlock::tool_result(id, vec![ContentBlock::text("at noon")]);
        let results = uses.iter().map(|call| noon(&call.id)).collect();
        let uses = uses.into_iter().map(SamplingMessageContentBlock::ToolUse).collect();
        messages.push(SamplingMessage::new_multiple(Role::Assistant, uses));
        messages.push(SamplingMessage::new_multiple(Role::User, results));
    }
    let state = json!(messages).to_string();
    ask([("model", sample(messages, tools))], Some(state))
}

fn ask<const N: usize>(questions: [(&str, InputRequest); N], state: Option<String>) -> InputStep {
    let questions = questions.into_iter().map(|(key, question)| (key.to_owned(), question)).collect();
    InputStep::Ask(InputRequiredResult::new(Some(questions), state))
}

/// Requests a name before a prompt or a resource. The SDK rejects this for handshake-era clients.
pub fn request_name() -> InputRequiredResult {
    InputRequiredResult::from_input_requests(InputRequests::from([("name".to_owned(), field("name"))]))
}

fn question() -> SamplingMessage {
    SamplingMessage::user_text("When is high water?")
}

fn sample(messages: Vec<SamplingMessage>, tools: bool) -> InputRequest {
    let preferences = ModelPreferences::new().with_hints(vec![ModelHint::new("small")]).with_cost_priority(0.5);
    let params = CreateMessageRequestParams::new(messages, 50)
        .with_system_prompt("Answer in one word.")
        .with_model_preferences(preferences);
    let tide = || Tool::new("tide", "Says when.", object(json!({"type": "object", "properties": {}})));
    let params = if tools { params.with_tools(vec![tide()]).with_tool_choice(ToolChoice::auto()) } else { params };
    InputRequest::CreateMessage(CreateMessageRequest::new(params))
}

fn roots() -> InputRequest {
    InputRequest::ListRoots(ListRootsRequest::default())
}

/// Requests a visit to a URL. The SDK sends an elicitation id in both eras, though only one defines it.
fn page() -> InputRequest {
    let (message, url) = ("Pay the harbour dues.".to_owned(), "https://example.org/dues?ship=7".to_owned());
    let elicitation_id = "dues-7".to_owned();
    let params = ElicitRequestParams::UrlElicitationParams { meta: None, message, url, elicitation_id };
    InputRequest::Elicitation(ElicitRequest::new(params))
}

/// Requests one field.
pub fn field(name: &str) -> InputRequest {
    let schema = json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]});
    form(&format!("Which {name}?"), schema)
}

fn form(message: &str, schema: Value) -> InputRequest {
    let requested_schema = ElicitationSchema::from_json_schema(object(schema)).expect("the SDK knows all we use");
    let params =
        ElicitRequestParams::FormElicitationParams { meta: None, message: message.to_owned(), requested_schema };
    InputRequest::Elicitation(ElicitRequest::new(params))
}

fn form_schema() -> Value {
    let tides = json!([{"const": "high", "title": "High water"}, {"const": "low", "title": "Low water"}]);
    let hands = json!([{"const": "cook", "title": "A cook"}, {"const": "pilot", "title": "A pilot"}]);
    json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string", "title": "Ship", "minLength": 1, "maxLength": 40},
        "email": {"type": "string", "format": "email", "default": "master@example.org"},
        "arrival": {"type": "string", "format": "date"},
        "berth": {"type": "integer", "minimum": 1, "maximum": 12, "default": 3},
        "draught": {"type": "number", "minimum": 0.5, "default": 2.5},
        "insured": {"type": "boolean", "default": true},
        "flag": {"type": "string", "enum": ["it", "nl", "lv"], "default": "nl"},
        "tide": {"type": "string", "oneOf": tides, "default": "high"},
        "cargo": {"type": "array", "items": {"type": "string", "enum": ["salt", "rope", "tea"]}, "default": ["salt"]},
        "crew": {"type": "array", "items": {"anyOf": hands}, "minItems": 1},
    }})
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}
