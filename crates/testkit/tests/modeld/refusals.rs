//! What the real APIs refuse.

use serde_json::{Value, json};
use wharf_testkit::modeld::{Answer, ModelApiFormat, Modeld, Script};

use crate::client::{ask, conversation, receive, saying, send, tool};
use crate::start;

/// Asks with one thing wrong; the refusal must say this, in the shape of its API.
fn check(format: ModelApiFormat, request: &Value, expected: &str) {
    let modeld = start([Answer::text("fine")]);
    let reply = ask(&modeld, format, request);
    assert_eq!(reply.status, 400, "{expected}: {reply:?}");
    let body = reply.json();
    assert!(reply.message().contains(expected), "{expected}: {body}");
    assert_eq!(body["error"]["type"], "invalid_request_error");
    assert_eq!(body["type"] == "error", format == ModelApiFormat::Anthropic);
    assert_eq!(modeld.refusals(), [reply.message()]);
}

#[test]
fn tools_need_a_valid_name_and_object_schema() {
    let object = json!({ "type": "object" });
    let long = "x".repeat(129);
    for format in ModelApiFormat::ALL {
        let is_anthropic = format == ModelApiFormat::Anthropic;
        let choose = |theirs, others| if is_anthropic { theirs } else { others };
        for (name, schema, expected) in [
            ("a.b", object.clone(), choose("should match pattern", "does not match pattern")),
            (long.as_str(), object.clone(), choose("{1,128}", "string too long")),
            ("a", json!({}), choose("input_schema.type: Field required", "got 'type: \"None\"'")),
            ("a", json!({ "type": "string" }), choose("Input should be 'object'", "got 'type: \"string\"'")),
            ("a", json!({ "type": "object", "anyOf": [] }), "at the top level"),
        ] {
            let mut request = saying(format, "hi");
            request["tools"] = json!([tool(format, name, &schema)]);
            check(format, &request, expected);
        }
    }
}

#[test]
fn strict_tools_need_closed_schemas() {
    let properties = json!({ "a": { "type": "string" } });
    for (schema, expected) in [
        (json!({ "type": "object", "properties": properties }), "'additionalProperties' is required"),
        (json!({ "type": "object", "properties": properties, "additionalProperties": false }), "Missing 'a'"),
    ] {
        let mut request = saying(ModelApiFormat::Responses, "hi");
        request["tools"] = json!([tool(ModelApiFormat::Responses, "t", &schema)]);
        request["tools"][0]["strict"] = json!(true);
        check(ModelApiFormat::Responses, &request, expected);
    }
}

#[test]
fn anthropic_validates_messages() {
    let user = |content: Value| json!({ "role": "user", "content": content });
    let model = |content: Value| json!({ "role": "assistant", "content": content });
    let call = json!({ "type": "tool_use", "id": "t1", "name": "x", "input": {} });
    let result = json!({ "type": "tool_result", "tool_use_id": "t1", "content": "r" });
    let text = json!({ "type": "text", "text": "t" });
    let picture =
        |kind: &str| json!({ "type": "image", "source": { "type": "base64", "media_type": kind, "data": "aGk=" } });
    for (messages, expected) in [
        (json!([]), "at least one message is required"),
        (json!([model(json!("a"))]), "first message must use the \"user\" role"),
        (json!([user(json!("a")), user(json!("b"))]), "multiple \"user\" roles in a row"),
        (json!([{ "role": "system", "content": "a" }]), "Unexpected role \"system\""),
        (json!([user(json!("a")), model(json!("b"))]), "must end with a user message"),
        (json!([user(json!([]))]), "must have non-empty content"),
        (json!([user(json!([{ "type": "text", "text": "" }]))]), "text content blocks must be non-empty"),
        (json!([user(json!("a")), model(json!([call])), user(json!("b"))]), "without `tool_result` blocks"),
        (json!([user(json!("a")), model(json!([call])), user(json!([text, result]))]), "immediately after: t1"),
        (json!([user(json!([result]))]), "unexpected `tool_use_id`"),
        (json!([user(json!([picture("image/tiff")]))]), "media_type: Input should be"),
        (json!([user(json!("a")), model(json!([picture("image/png")])), user(json!("b"))]), "not permitted"),
    ] {
        check(ModelApiFormat::Anthropic, &conversation(ModelApiFormat::Anthropic, &messages), expected);
    }
    check(
        ModelApiFormat::Anthropic,
        &json!({ "model": "m", "messages": [user(json!("a"))] }),
        "max_tokens: Field required",
    );
}

#[test]
fn chat_completions_validates_messages() {
    let user = json!({ "role": "user", "content": "a" });
    let call = json!({ "id": "c1", "type": "function", "function": { "name": "x", "arguments": "{}" } });
    let model = json!({ "role": "assistant", "content": null, "tool_calls": [call] });
    let result = |content: Value| json!({ "role": "tool", "tool_call_id": "c1", "content": content });
    let picture = json!([{ "type": "image_url", "image_url": { "url": "data:image/png;base64,aGk=" } }]);
    let mut object = model.clone();
    object["tool_calls"][0]["function"]["arguments"] = json!({});
    for (messages, expected) in [
        (json!([user, model]), "did not have response messages: c1"),
        (json!([user, model, user]), "must be followed by tool messages"),
        (json!([user, result(json!("r"))]), "must be a response to a preceeding message"),
        (json!([user, model, result(json!("r")), result(json!("r"))]), "must be a response to a preceeding message"),
        (json!([user, model, result(picture)]), "Image URLs are only allowed for messages with role 'user'"),
        (json!([user, object, result(json!("r"))]), "function.arguments"),
        (json!([{ "role": "user", "content": null }]), "got null"),
        (json!([{ "role": "model", "content": "a" }]), "Invalid value: 'model'"),
    ] {
        check(ModelApiFormat::ChatCompletions, &conversation(ModelApiFormat::ChatCompletions, &messages), expected);
    }
}

#[test]
fn responses_validates_items() {
    let said = |role: &str, kind: &str| json!([{ "role": role, "content": [{ "type": kind, "text": "a" }] }]);
    for (items, expected) in [
        (json!([]), "Invalid value for 'input'"),
        (said("user", "text"), "Invalid value: 'text'"),
        (said("assistant", "input_text"), "Invalid value: 'input_text'"),
        (said("tool", "input_text"), "Invalid value: 'tool'"),
        (json!([{ "type": "function_call", "call_id": "c", "name": "x", "arguments": {} }]), "input[0].arguments"),
        (json!([{ "role": "assistant", "content": [{ "type": "input_image", "image_url": "x" }] }]), "input_image"),
    ] {
        check(ModelApiFormat::Responses, &conversation(ModelApiFormat::Responses, &items), expected);
    }
}

#[test]
fn thinking_parameters_must_match_the_model_generation() {
    let budget = json!({ "thinking": { "type": "enabled", "budget_tokens": 1024 } });
    let adaptive = json!({ "thinking": { "type": "adaptive" } });
    let effort = json!({ "output_config": { "effort": "low" } });
    let fine = |model: &str, asked: &Value| {
        let modeld = start([Answer::text("fine")]);
        assert_eq!(ask(&modeld, ModelApiFormat::Anthropic, &thinking(model, asked)).status, 200, "{model} {asked}");
    };
    for model in ["claude-sonnet-5", "claude-opus-4-7", "claude-mythos-preview"] {
        check(
            ModelApiFormat::Anthropic,
            &thinking(model, &budget),
            "\"thinking.type.enabled\" is not supported for this model",
        );
        [&adaptive, &effort].into_iter().for_each(|asked| fine(model, asked));
    }
    for model in ["claude-3-7-sonnet-20250219", "claude-sonnet-4-20250514", "claude-haiku-4-5"] {
        check(ModelApiFormat::Anthropic, &thinking(model, &adaptive), "adaptive thinking is not supported");
        check(ModelApiFormat::Anthropic, &thinking(model, &effort), "does not support the effort parameter");
        fine(model, &budget);
    }
    for model in ["claude-opus-4-6", "small"] {
        [&budget, &adaptive, &effort].into_iter().for_each(|asked| fine(model, asked));
    }
    for (asked, expected) in [
        (json!({ "thinking": { "type": "enabled" } }), "budget_tokens: Field required"),
        (json!({ "thinking": { "type": "enabled", "budget_tokens": 1023 } }), "greater than or equal to 1024"),
        (json!({ "thinking": { "type": "enabled", "budget_tokens": 4096 } }), "`max_tokens` must be greater"),
        (json!({ "thinking": { "type": "much" } }), "thinking.type: Input should be"),
        (json!({ "output_config": { "effort": "some" } }), "effort: Input should be"),
    ] {
        check(ModelApiFormat::Anthropic, &thinking("small", &asked), expected);
    }
    let mut forced = thinking("small", &budget);
    forced["tool_choice"] = json!({ "type": "any" });
    check(ModelApiFormat::Anthropic, &forced, "Thinking may not be enabled");
}

/// A request to a model with one member more.
fn thinking(model: &str, asked: &Value) -> Value {
    let mut request = saying(ModelApiFormat::Anthropic, "hi");
    request["model"] = json!(model);
    let members = asked.as_object().unwrap().clone();
    request.as_object_mut().unwrap().extend(members);
    request
}

#[test]
fn non_reasoning_model_rejects_reasoning_parameters() {
    let thought = json!([{ "type": "reasoning", "id": "rs_1", "summary": [] }, { "role": "user", "content": "hi" }]);
    for (member, value, expected) in [
        ("include", json!(["reasoning.encrypted_content"]), "Encrypted content is not supported with this model."),
        ("reasoning", json!({ "effort": "low" }), "'reasoning.effort' is not supported"),
        ("input", thought, "Reasoning input items can only be provided"),
    ] {
        let mut request = saying(ModelApiFormat::Responses, "hi");
        (request["model"], request[member]) = (json!("gpt-4.1"), value);
        check(ModelApiFormat::Responses, &request, expected);
    }
}

#[test]
fn api_key_is_required_unless_keyless() {
    for format in ModelApiFormat::ALL {
        for (keyless, expected) in [(false, 401), (true, 200)] {
            let script = Script { keyless, ..Script::from_turns([Answer::text("fine")]) };
            let modeld = Modeld::start(script).unwrap();
            let headers = [("anthropic-version", "2023-06-01")];
            let body = saying(format, "hi").to_string();
            assert_eq!(receive(send(&modeld.url(), format.path(), &headers, &body)).unwrap().status, expected);
        }
    }
}
