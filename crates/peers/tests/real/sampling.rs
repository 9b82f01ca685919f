//! Servers that ask a model, offer it their tools, and ask which directories they may work in.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use wharf_client::{CallError, ClientServices, Direction, SamplingError};
use wharf_wire::SamplingRequest;

use crate::crew::{Hold, Model, message, value};
use crate::peer::text;
use crate::quay::{Sdk, Visit, all, each};

#[tokio::test]
async fn sampling_response_reaches_the_server() {
    let model = Model::noon();
    each(&all(), ClientServices::default().sampling(model.clone()), async |quay| {
        let seen = quay.call_json("ask_model", json!({})).await;
        assert_eq!(seen, message(&json!({"type": "text", "text": "noon"}), "endTurn"), "{}", quay.side);
        let [request]: [SamplingRequest; 1] = model.asked().try_into().unwrap();
        assert_eq!((request.system_prompt.as_deref(), request.max_tokens), (Some("Answer in one word."), 50));
        assert_eq!(value(&request.messages)[0]["content"]["text"], "When is high water?");
        assert_eq!(value(&request.raw)["modelPreferences"]["hints"], json!([{"name": "small"}]));
        assert!(request.tools.is_none());
    })
    .await;
}

#[tokio::test]
async fn sampling_with_tools_loops_until_the_answer() {
    let model = Model::new(|request| Ok(turn(request))).with_tools();
    each(&all(), ClientServices::default().sampling(model.clone()), async |quay| {
        let seen = quay.call_json("ask_model", json!({"tools": true})).await;
        assert_eq!(seen["content"], json!({"type": "text", "text": "noon"}), "{}", quay.side);
        let [first, second]: [SamplingRequest; 2] = model.asked().try_into().unwrap();
        for request in [&first, &second] {
            assert_eq!(value(request.tools.as_ref().unwrap())[0]["name"], "tide", "{}", quay.side);
            assert_eq!(value(&request.raw)["toolChoice"], json!({"mode": "auto"}), "{}", quay.side);
        }
        assert_eq!(value(&first.messages).as_array().unwrap().len(), 1);
        let [_, used, result]: [Value; 3] = serde_json::from_value(value(&second.messages)).unwrap();
        assert_eq!(used["role"], "assistant");
        assert_eq!(only(&used["content"])["input"], json!({"port": "riga"}), "{}", quay.side);
        let result = only(&result["content"]);
        assert_eq!((&result["type"], &result["toolUseId"]), (&json!("tool_result"), &json!("use-1")));
        assert_eq!(result["content"], json!([{"type": "text", "text": "at noon"}]), "{}", quay.side);
    })
    .await;
}

/// Calls the tool, and says what came of it once that is known.
fn turn(request: &SamplingRequest) -> Value {
    let used = request.messages.as_str().contains("tool_result");
    let call = json!([{"type": "tool_use", "id": "use-1", "name": "tide", "input": {"port": "riga"}}]);
    if used { message(&json!({"type": "text", "text": "noon"}), "endTurn") } else { message(&call, "toolUse") }
}

/// The one block of a content, which is a list of it or the block itself.
fn only(content: &Value) -> Value {
    match content {
        Value::Array(blocks) => {
            assert_eq!(blocks.len(), 1, "{content}");
            blocks[0].clone()
        }
        block => block.clone(),
    }
}

#[tokio::test]
async fn declined_or_failed_sampling_is_an_error() {
    let refusals = [(SamplingError::Declined, -1), (SamplingError::Failed("out of tea".to_owned()), -32603)];
    let (next, answers) = (AtomicUsize::new(0), refusals.clone());
    let model = Model::new(move |_| Err(answers[next.fetch_add(1, Ordering::Relaxed) % 2].0.clone()));
    each(&all(), ClientServices::default().sampling(model), async |quay| {
        for (_, code) in &refusals {
            no_words(quay, *code).await;
        }
        let told: Vec<Value> = quay.wire.errors(Direction::Sent).iter().map(|error| error["code"].clone()).collect();
        let expected = if quay.side.is_stateless() { vec![] } else { vec![json!(-1), json!(-32603)] };
        assert_eq!(told, expected, "{}", quay.side);
    })
    .await;
}

/// The call fails; in the handshake era it is the server that says so, which has been told the reason.
async fn no_words(quay: &Visit, code: i64) {
    let outcome = quay.try_call("ask_model", json!({})).await;
    match &outcome {
        Err(CallError::Declined(_)) => assert!(quay.side.is_stateless() && code == -1, "{outcome:?}"),
        Err(CallError::Protocol(why)) => assert!(quay.side.is_stateless() && why.contains("out of tea"), "{why}"),
        // The Python SDK 2 hands our refusal on.
        Err(CallError::ErrorResponse(error)) => assert_eq!((quay.side.sdk, error.code), (Sdk::Python2, code)),
        Ok(result) => assert!(result.is_error && !quay.side.is_stateless(), "{}", text(result)),
        Err(error) => panic!("{}: {error}", quay.side),
    }
}

#[tokio::test]
async fn current_roots_are_returned_on_each_request() {
    let hold = Hold::new("file:///tmp/hold");
    each(&all(), ClientServices::default().roots(hold.clone()), async |quay| {
        for uri in ["file:///tmp/hold", "file:///tmp/deck%20two"] {
            hold.exchange(uri);
            quay.connection.notify_roots_changed();
            let seen = quay.call_json("show_roots", json!({})).await;
            assert_eq!(seen, json!([{"uri": uri, "name": "hold"}]), "{}", quay.side);
        }
        let told = quay.wire.sent("notifications/roots/list_changed");
        assert_eq!(told, if quay.side.is_stateless() { 0 } else { 2 });
    })
    .await;
}
