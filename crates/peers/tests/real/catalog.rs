//! What servers list: pages put together, icons, hints, templates, and arguments completed while they are typed.

use serde_json::{Value, json};
use wharf_client::{CallError, ClientServices, RequestOptions};
use wharf_wire::{JsonLimits, RawJson, Reference};

use crate::quay::{EVERYTHING, Sdk, Side, Visit, all, each};

#[tokio::test]
async fn lists_are_read_page_by_page() {
    each(&all(), ClientServices::default(), async |quay| {
        assert_eq!(quay.connection.facts().instructions.as_deref(), Some("Ask the harbour master."));
        let tools = quay.connection.list_tools().await.unwrap();
        assert!(tools.withheld.is_empty(), "{}: {:?}", quay.side, tools.withheld);
        let mut names: Vec<&str> = tools.items.iter().map(|tool| tool.name.as_str()).collect();
        let (listed, pages) = (names.len(), quay.wire.sent("tools/list"));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), listed, "{}: {names:?}", quay.side);
        let expected = if pages_tools(quay.side) { listed.div_ceil(5) } else { 1 };
        assert_eq!(pages, expected, "{}", quay.side);
        let resources = quay.connection.list_resources().await.unwrap().items.len();
        let pages = if quay.side.sdk == Sdk::Rust3 { resources } else { 1 };
        assert_eq!(quay.wire.sent("resources/list"), pages, "{}", quay.side);
        let echo = tools.items.iter().find(|tool| tool.name == "echo").unwrap();
        let hints = ![Sdk::Python1, Sdk::Python2].contains(&quay.side.sdk);
        assert_eq!(echo.annotations.read_only_hint, hints.then_some(true), "{}", quay.side);
    })
    .await;
}

fn pages_tools(side: Side) -> bool {
    [Sdk::Python1, Sdk::Rust3].contains(&side.sdk)
}

#[tokio::test]
async fn icons_are_kept_and_templates_expanded() {
    each(&all(), ClientServices::default(), async |quay| {
        let tools = quay.connection.list_tools().await.unwrap().items;
        let prompts = quay.connection.list_prompts().await.unwrap().items;
        let resources = quay.connection.list_resources().await.unwrap().items;
        let tool = has_icons(&tools.iter().find(|tool| tool.name == "echo").unwrap().raw);
        let prompt = has_icons(&prompts.iter().find(|prompt| prompt.name == "greet").unwrap().raw);
        let resource = has_icons(&resources.iter().find(|resource| resource.uri == "note://hello").unwrap().raw);
        let (on_tools, on_resources) = (quay.side.sdk != Sdk::TypeScript1, quay.side.sdk != Sdk::Python1);
        assert_eq!((tool, prompt, resource), (on_tools, on_tools, on_resources), "{}", quay.side);
        templates(quay).await;
    })
    .await;
}

/// Whether the entry still has the icons that the server listed. Wharf does not interpret them.
fn has_icons(owner: &RawJson) -> bool {
    let entry: Value = owner.decode(&JsonLimits::default()).unwrap();
    entry["icons"][0]["mimeType"] == "image/svg+xml"
}

async fn templates(quay: &Visit) {
    let templates = quay.connection.list_templates().await.unwrap().items;
    assert_eq!(templates.len(), 1);
    assert_eq!(templates[0].uri_template, "port://{name}");
    let read = quay.connection.read_resource("port://riga", RequestOptions::default()).await.unwrap();
    assert_eq!(read.contents[0].text.as_deref(), Some("The port of riga."), "{}", quay.side);
    let missing = quay.connection.read_resource("nowhere://x", RequestOptions::default()).await;
    let old = quay.side.sdk == Sdk::Python1 || quay.side.sdk == Sdk::Rust3 && !quay.side.is_stateless();
    let code = if old { -32002 } else { -32602 };
    assert!(
        matches!(&missing, Err(CallError::ErrorResponse(error)) if error.code == code),
        "{}: {missing:?}",
        quay.side
    );
}

#[tokio::test]
async fn arguments_of_prompts_and_templates_are_completed() {
    each(&all(), ClientServices::default(), async |quay| {
        let cases: [(_, &str, &[&str]); 4] = [
            (Reference::Prompt("greet"), "a", &["Ada", "Alan"]),
            (Reference::Prompt("greet"), "x", &[]),
            (Reference::Template("port://{name}"), "g", &["genoa", "ghent"]),
            (Reference::Template("port://{name}"), "", &["genoa", "ghent", "riga"]),
        ];
        for (reference, typed, expected) in cases {
            let completion = quay.connection.complete_argument(reference, "name", typed, &[]).await.unwrap();
            assert_eq!(completion.values, expected, "{}: {typed}", quay.side);
            assert!(!completion.has_more, "{}", quay.side);
        }
    })
    .await;
}

#[tokio::test]
async fn completion_uses_earlier_arguments() {
    each(&[EVERYTHING], ClientServices::default(), async |quay| {
        let prompt = || Reference::Prompt("completable-prompt");
        let first = quay.connection.complete_argument(prompt(), "department", "S", &[]).await.unwrap();
        assert_eq!(first.values, ["Sales", "Support"]);
        for (department, expected) in [("Sales", "David"), ("Support", "John")] {
            let known = [("department".to_owned(), department.to_owned())];
            let second = quay.connection.complete_argument(prompt(), "name", &expected[..1], &known).await.unwrap();
            assert_eq!(second.values, [expected]);
        }
        let unknown = quay.connection.complete_argument(prompt(), "name", "D", &[]).await.unwrap();
        assert!(unknown.values.is_empty());
        assert_eq!(quay.call("get-sum", json!({"a": 1, "b": 2})).await, "The sum of 1 and 2 is 3.");
    })
    .await;
}
