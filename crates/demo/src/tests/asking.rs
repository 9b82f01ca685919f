//! Tools that ask: by requests in the handshake revisions, in rounds in the stateless one.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::DemoTestClient;
use super::{HANDSHAKES, MODERN};

const FORMS: [&str; 3] = ["2025-06-18", "2025-11-25", MODERN];

fn all_capabilities() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}})
}

/// Creates a client with all capabilities of its revision.
fn capable_client(revision: &'static str) -> DemoTestClient {
    let mut capabilities = all_capabilities();
    if revision == "2025-06-18" {
        capabilities["elicitation"] = json!({});
    }
    DemoTestClient::new(revision, capabilities)
}

#[test]
fn form_content_is_returned_unchanged() {
    let content = json!({"ship": "Ångström \"2\"", "nights": 3, "pilot": false, "length": 12.5});
    for revision in FORMS {
        let client = capable_client(revision);
        let table = [
            (json!({"action": "accept", "content": content}), format!("Booked: {content}")),
            (json!({"action": "decline"}), "No berth was booked: the form was declined.".to_owned()),
            (json!({"action": "cancel"}), "No berth was booked: the form was cancelled.".to_owned()),
        ];
        for (answer, text) in table {
            let said = client.converse("book_berth", json!({}), |_| answer.clone());
            assert_eq!(said.text(), text, "{revision}");
            assert_eq!(said.reply["result"]["structuredContent"], answer, "{revision}");
            assert_eq!((said.asked.len(), said.rounds.len()), (1, usize::from(client.is_modern())));
            assert_eq!(said.asked[0]["method"], "elicitation/create");
        }
    }
}

#[test]
fn forms_have_the_fields_of_their_revision() {
    let defaults = |form: &Value| {
        let fields = form["properties"].as_object().unwrap().iter();
        let names: Vec<_> =
            fields.filter(|(_, field)| field.get("default").is_some()).map(|(name, _)| &**name).collect();
        names.join(" ")
    };
    for revision in FORMS {
        let said = capable_client(revision).converse("book_berth", json!({}), |_| json!({"action": "cancel"}));
        let params = &said.asked[0]["params"];
        let form = &params["requestedSchema"];
        let fields = &form["properties"];
        assert_eq!(form["required"], json!(["email", "nights", "ship"]));
        assert_eq!(fields["cargo"]["enumNames"].as_array().unwrap().len(), 3);
        let has_more = revision != "2025-06-18";
        assert_eq!(params["mode"] == "form", has_more);
        assert_eq!(fields["flag"]["oneOf"][0]["const"] == "no", has_more);
        assert_eq!(fields["services"]["items"]["enum"].is_array(), has_more);
        assert_eq!(fields["crew"]["items"]["anyOf"].is_array(), has_more);
        assert_eq!(defaults(form), if has_more { "flag nights pilot quay services ship" } else { "pilot" });
    }
}

#[test]
fn missing_client_capability_is_an_error() {
    let table = [
        ("book_berth", json!({}), json!({"elicitation": {"form": {}}})),
        ("many_questions", json!({}), json!({"elicitation": {"form": {}}})),
        ("open_harbour_page", json!({}), json!({"elicitation": {"url": {}}})),
        ("ask_model", json!({}), json!({"sampling": {}})),
        ("ask_model", json!({"tools": true}), json!({"sampling": {"tools": {}}})),
        ("show_roots", json!({}), json!({"roots": {}})),
        ("unload_ship", json!({"ask": true}), json!({"elicitation": {"form": {}}})),
    ];
    for (tool, arguments, needed) in table {
        let error = DemoTestClient::new(MODERN, json!({})).call(tool, arguments.clone())["error"].take();
        assert_eq!((&error["code"], &error["data"]["requiredCapabilities"]), (&json!(-32021), &needed), "{tool}");
        let result = DemoTestClient::new("2025-11-25", json!({})).call(tool, arguments)["result"].take();
        assert_eq!(result["isError"], true, "{tool}");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(&needed.to_string()), "{text}");
    }
    let half = DemoTestClient::new("2025-11-25", json!({"elicitation": {"url": {}}}));
    assert_eq!(half.call("book_berth", json!({}))["result"]["isError"], true);
    let error = DemoTestClient::new("2025-11-25", json!({})).call("open_harbour_page", json!({"via": "error"}));
    assert_eq!(error["result"]["isError"], true);
}

#[test]
fn url_elicitation_follows_the_revision() {
    for revision in ["2025-11-25", MODERN] {
        let client = capable_client(revision);
        let said = client.converse("open_harbour_page", json!({}), |_| json!({"action": "accept"}));
        let asked = &said.asked[0]["params"];
        assert_eq!(asked["mode"], "url");
        assert!(asked["url"].as_str().unwrap().starts_with("https://harbour.example/papers?"), "{asked}");
        assert_eq!(asked.get("elicitationId").is_some(), revision != MODERN);
        let done: Vec<_> = said.told.iter().map(|told| &told["params"]["elicitationId"]).collect();
        assert_eq!(done, if revision == MODERN { vec![] } else { vec![&asked["elicitationId"]] });
        assert_eq!(said.text(), "The papers are in order.");
        let said = client.converse("open_harbour_page", json!({}), |_| json!({"action": "decline"}));
        assert_eq!((said.text(), said.told.len()), ("The harbour page was not opened.", 0));
    }
}

#[test]
fn url_elicitation_error_completes_before_the_retry() {
    let client = capable_client("2025-11-25");
    for _ in 0..2 {
        let error = client.call("open_harbour_page", json!({"via": "error"}))["error"].take();
        assert_eq!(error["code"], -32042);
        let page = &error["data"]["elicitations"][0];
        assert_eq!(page["mode"], "url");
        let done = client.receive();
        assert_eq!(done["method"], "notifications/elicitation/complete");
        assert_eq!(done["params"]["elicitationId"], page["elicitationId"]);
        let reply = client.call("open_harbour_page", json!({"via": "error"}));
        assert_eq!(reply["result"]["content"][0]["text"], "The papers are in order.");
    }
}

#[test]
fn sampling_request_is_sent_with_or_without_tools() {
    let plain = |_: &Value| json!({"role": "assistant", "content": {"type": "text", "text": "Soon."}, "model": "m"});
    for revision in HANDSHAKES.into_iter().chain([MODERN]) {
        let said = capable_client(revision).converse("ask_model", json!({"question": "When?"}), plain);
        assert_eq!(said.text(), "Soon.");
        let params = &said.asked[0]["params"];
        assert_eq!(params["messages"][0]["content"]["text"], "When?");
        assert!(params["maxTokens"].is_u64() && params.get("tools").is_none());
    }
    let with_tool = |asked: &Value| {
        if asked["params"]["messages"].as_array().unwrap().len() > 1 {
            return plain(asked);
        }
        let uses = json!([{"type": "tool_use", "id": "u1", "name": "tide_table", "input": {}}]);
        json!({"role": "assistant", "content": uses, "model": "m", "stopReason": "toolUse"})
    };
    for revision in ["2025-11-25", MODERN] {
        let said = capable_client(revision).converse("ask_model", json!({"tools": true}), with_tool);
        assert_eq!((said.text(), said.asked.len()), ("Soon.", 2));
        assert_eq!(said.asked[0]["params"]["toolChoice"]["mode"], "auto");
        let result = &said.asked[1]["params"]["messages"][2]["content"][0];
        assert_eq!((&result["type"], &result["toolUseId"]), (&json!("tool_result"), &json!("u1")));
    }
}

#[test]
fn roots_are_returned() {
    for revision in HANDSHAKES.into_iter().chain([MODERN]) {
        let roots = json!({"roots": [{"uri": "file:///srv/a"}, {"uri": "file:///srv/b", "name": "B"}]});
        let said = capable_client(revision).converse("show_roots", json!({}), |_| roots.clone());
        assert_eq!(said.text(), "file:///srv/a\nfile:///srv/b");
        assert_eq!(said.asked[0]["method"], "roots/list");
    }
}

#[test]
fn questions_take_the_requested_number_of_rounds() {
    let aye = |_: &Value| json!({"action": "accept", "content": {"answer": "aye"}});
    for revision in FORMS {
        let client = capable_client(revision);
        for (rounds, together) in [(1, 1), (3, 1), (4, 3)] {
            let said = client.converse("many_questions", json!({"rounds": rounds, "together": together}), aye);
            let silent = if client.is_modern() && rounds > 1 { 1 } else { 0 };
            assert_eq!(said.asked.len(), (rounds - silent) * together, "{revision}");
            assert_eq!(said.text().matches("aye").count(), said.asked.len());
            assert_eq!(said.rounds.len(), if client.is_modern() { rounds } else { 0 });
            let without: Vec<_> = said.rounds.iter().filter(|round| round.get("inputRequests").is_none()).collect();
            assert_eq!(without.len(), silent);
            let states: BTreeSet<_> = said.rounds.iter().map(|round| round["requestState"].as_str().unwrap()).collect();
            assert_eq!(states.len(), said.rounds.len(), "every round has a state of its own");
        }
    }
}

#[test]
fn prompts_and_resources_can_request_input() {
    let table = [
        ("prompts/get", json!({"name": "pilot"}), "/messages/0/content/text", -32602),
        ("resources/read", json!({"uri": "harbour://log"}), "/contents/0/text", -32002),
    ];
    for (method, params, place, code) in table {
        let client = capable_client(MODERN);
        let result = client.request(method, params.clone())["result"].take();
        assert_eq!(result["resultType"], "input_required");
        let key = result["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
        let mut retry = params.clone();
        retry["requestState"] = result["requestState"].clone();
        retry["inputResponses"] = json!({key: {"action": "accept", "content": {"answer": "aye"}}});
        let result = client.request(method, retry)["result"].take();
        assert_eq!(result["resultType"], "complete");
        assert!(result.pointer(place).unwrap().as_str().unwrap().contains("\"aye\""), "{result}");
        let error = DemoTestClient::new(MODERN, json!({})).request(method, params.clone())["error"].take();
        assert_eq!(error["code"], -32021);
        assert_eq!(capable_client("2025-11-25").request(method, params)["error"]["code"], code);
    }
}

#[test]
fn stubborn_tool_always_requests_more_input() {
    let client = capable_client(MODERN);
    let mut params = json!({"name": "stubborn"});
    for _ in 0..20 {
        let result = client.request("tools/call", params.clone())["result"].take();
        assert_eq!(result["resultType"], "input_required");
        let key = result["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
        params["requestState"] = result["requestState"].clone();
        params["inputResponses"] = json!({key: {"action": "accept", "content": {"answer": "no"}}});
    }
}

#[test]
fn request_state_is_valid_for_one_retry_of_its_call() {
    let begin = |client: &DemoTestClient| {
        let result = client.call("book_berth", json!({}))["result"].take();
        result["requestState"].as_str().unwrap().to_owned()
    };
    let retry = |client: &DemoTestClient, tool: &str, state: Value, answers: Value| {
        let params = json!({"name": tool, "arguments": {}, "requestState": state, "inputResponses": answers});
        client.request("tools/call", params)["error"]["code"].clone()
    };
    let client = capable_client(MODERN);
    let answers = || json!({"berth": {"action": "decline"}});
    let state = begin(&client);
    assert_eq!(retry(&client, "book_berth", json!(state), answers()), Value::Null);
    assert_eq!(retry(&client, "book_berth", json!(state), answers()), -32602, "used before");
    let changes: [fn(&str) -> String; 3] = [
        |state| state.trim().to_owned(),
        |state| state.replace("\\u0041", "A"),
        |state| state.replace("e\u{301}", "é"),
    ];
    for change in changes {
        let changed = change(&begin(&client));
        assert_eq!(retry(&client, "book_berth", json!(changed), answers()), -32602);
    }
    assert_eq!(retry(&client, "many_questions", json!(begin(&client)), answers()), -32602, "another call");
    assert_eq!(retry(&client, "book_berth", json!(begin(&client)), json!({"other": {}})), -32602, "never asked");
    let params = json!({"name": "environment", "requestState": begin(&client)});
    assert_eq!(client.request("tools/call", params)["error"]["code"], -32602, "a call that asks nothing");
    let params = json!({"name": "book_berth", "inputResponses": answers()});
    assert_eq!(client.request("tools/call", params)["error"]["code"], -32602, "no state");
}

#[test]
fn client_errors_are_reported_stray_responses_ignored() {
    let client = capable_client("2025-11-25");
    let id = client.start_call("show_roots", json!({}));
    let asked = client.receive();
    client.respond(&json!({"id": "question-999"}), json!({}));
    client.respond(&json!({"id": 7}), json!({}));
    client.harness.assert_silent();
    let error = json!({"code": -1, "message": "not today"});
    client.harness.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "error": error}));
    let reply = client.receive();
    assert_eq!((&reply["id"], &reply["result"]["isError"]), (&json!(id), &json!(true)));
    assert!(reply["result"]["content"][0]["text"].as_str().unwrap().contains("not today"), "{reply}");
    client.respond(&asked, json!({"roots": []}));
    client.harness.assert_silent();
}

#[test]
fn waiting_call_ends_on_cancel_or_close() {
    for by_closing in [false, true] {
        let client = capable_client("2025-11-25");
        let idle = Arc::strong_count(&client.harness.out);
        let id = client.start_call("book_berth", json!({}));
        let asked = client.receive();
        if by_closing {
            client.harness.server.close();
        } else {
            client.notify("notifications/cancelled", json!({"requestId": id}));
        }
        let withdrawn = client.receive();
        assert_eq!(withdrawn["method"], "notifications/cancelled");
        assert_eq!(withdrawn["params"]["requestId"], asked["id"]);
        // The thread drops its references to the outbox when it ends.
        let begun = Instant::now();
        while Arc::strong_count(&client.harness.out) != idle {
            assert!(begun.elapsed() < Duration::from_secs(5), "the call goes on");
            std::thread::yield_now();
        }
        client.harness.assert_silent();
    }
}
