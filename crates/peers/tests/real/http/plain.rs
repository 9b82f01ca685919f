//! What every server can do: say what it is, list what it has, answer, and refuse.

use serde_json::json;
use wharf_client::{ClientServices, RequestOptions};
use wharf_wire::Content;

use crate::many_at_once;
use crate::peer::raw;
use crate::quay::{Visit, each, over_http};

#[tokio::test]
async fn tools_resources_and_prompts_are_listed_and_used() {
    each(&over_http(), ClientServices::default(), async |quay| {
        assert_eq!(quay.connection.facts().instructions.as_deref(), Some("Ask the harbour master."));
        tools(quay).await;
        resources(quay).await;
        prompts(quay).await;
        quay.connection.ping(RequestOptions::default()).await.unwrap();
    })
    .await;
}

async fn tools(quay: &Visit) {
    let tools = quay.connection.list_tools().await.unwrap();
    assert!(tools.withheld.is_empty(), "{}: {:?}", quay.side, tools.withheld);
    for name in ["echo", "add", "slow", "ask_form", "touch", "grow"] {
        assert!(tools.items.iter().any(|tool| tool.name == name), "{}: {name}", quay.side);
    }
    assert_eq!(quay.call("echo", json!({"text": "ahoy ⚓ \"\\\r\n\n"})).await, "ahoy ⚓ \"\\\r\n\n", "{}", quay.side);
    assert_eq!(quay.call("add", json!({"a": 2, "b": 40})).await, "42", "{}", quay.side);
}

async fn resources(quay: &Visit) {
    let resources = quay.connection.list_resources().await.unwrap().items;
    assert!(resources.iter().any(|resource| resource.uri == "note://hello"), "{}", quay.side);
    let read = quay.connection.read_resource("note://hello", RequestOptions::default()).await.unwrap();
    assert_eq!(read.contents[0].text.as_deref(), Some("Hello from the quay."), "{}", quay.side);
    let nowhere = quay.connection.read_resource("nowhere://at/all", RequestOptions::default()).await.unwrap_err();
    assert!(nowhere.is_error_response(), "{}: {nowhere}", quay.side);
}

async fn prompts(quay: &Visit) {
    let prompts = quay.connection.list_prompts().await.unwrap().items;
    assert!(prompts.iter().any(|prompt| prompt.name == "greet"), "{}", quay.side);
    let arguments = [("name".to_owned(), "Ada".to_owned())];
    let greeting = quay.connection.get_prompt("greet", &arguments, RequestOptions::default()).await.unwrap();
    let Content::Text { text, .. } = &greeting.messages[0].content else { panic!("{}: {greeting:?}", quay.side) };
    assert_eq!(text, "Please greet Ada.", "{}", quay.side);
}

#[tokio::test]
async fn invalid_calls_are_refused_and_server_stays_usable() {
    each(&over_http(), ClientServices::default(), async |quay| {
        for (tool, arguments) in [("no-such-tool", json!({})), ("add", json!({"a": "two"}))] {
            let outcome = quay.connection.call_tool(tool, &raw(&arguments), RequestOptions::default()).await;
            match &outcome {
                Ok(result) => assert!(result.is_error, "{}: {tool}: {outcome:?}", quay.side),
                Err(error) => assert!(error.is_error_response(), "{}: {tool}: {error}", quay.side),
            }
        }
        assert_eq!(quay.call("echo", json!({"text": "ahoy"})).await, "ahoy", "{}", quay.side);
    })
    .await;
}

#[tokio::test]
async fn one_megabyte_is_echoed() {
    let text = "high water at noon; ".repeat((1 << 20) / 20 + 1);
    each(&over_http(), ClientServices::default(), async |quay| {
        let back = quay.call("echo", json!({ "text": text })).await;
        assert!(back == text, "{}: {} bytes came back", quay.side, back.len());
    })
    .await;
}

#[tokio::test]
async fn concurrent_calls_get_their_own_results() {
    each(&over_http(), ClientServices::default(), async |quay| {
        many_at_once(&quay.connection, |n| (json!({"text": n.to_string()}), n.to_string())).await;
    })
    .await;
}
