//! Resources and prompts under rules: what a deny covers, and which URIs a model may send unasked.

use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use wharf::policy::{Rule, RuleAction, SourcedRule};
use wharf::spec::{ServerOrigin, ServerSettings};
use wharf::tools::ToolCaller;
use wharf::{CallOptions, Event, Host, HostBuilder, HostError, PermissionAnswer, RawJson};

use crate::fixture::{server, settings};
use crate::library::{Library, call, complaint, data, listed, next, notes};
use crate::permission::{At, Person, rule};

/// A URI that the library neither lists nor has a template for.
const STRANGE: &str = "mail:everything-the-model-knows";

async fn start(builder: HostBuilder, library: &Library, settings: ServerSettings) -> Host {
    let host = builder.local_with(server("library"), settings, library.factory()).start().await.unwrap();
    host.wait_until_settled().await;
    listed(&host, 1).await;
    host
}

fn read(uri: &str) -> Value {
    json!({ "server": "library", "uri": uri })
}

fn poll(uri: &str) -> Value {
    json!({ "type": "resource", "server": "library", "uri": uri })
}

/// The ways of a model to send a URI.
fn ways(uri: &str) -> [(&'static str, Value); 3] {
    [("ReadMcpResource", read(uri)), ("SubscribeMcpResource", read(uri)), ("SubscribePolling", poll(uri))]
}

/// Everything the library was asked beyond what it lists by itself.
fn asked(library: &Library) -> usize {
    ["resources/read", "resources/subscribe", "prompts/get", "completion/complete", "tools/call"]
        .into_iter()
        .map(|method| library.count(method))
        .sum()
}

#[tokio::test(start_paused = true)]
async fn server_deny_covers_resources_and_prompts() {
    for denied in ["mcp__library", "mcp__library__*", "mcp__*", "*"] {
        let library = Library::new();
        let rules = [rule(denied, RuleAction::Deny), rule("ReadMcpResource", RuleAction::Allow)];
        let host = start(Host::builder().rules(rules), &library, settings()).await;
        let before = asked(&library);
        let of_library = json!({ "server": "library" });
        let prompt = json!({ "server": "library", "name": "greet", "arguments": { "whom": "you" } });
        let lists = ["ListMcpResources", "ListMcpResourceTemplates", "ListMcpPrompts"];
        let named = lists.map(|tool| (tool, of_library.clone()));
        let uris = ["book:one", STRANGE].into_iter().flat_map(ways);
        for (tool, arguments) in named.into_iter().chain(uris).chain([("GetMcpPrompt", prompt)]) {
            let told = complaint(&host, tool, arguments.clone()).await;
            assert!(told.contains("denied") && told.contains("config.json:1"), "{denied} {tool} {arguments}: {told}");
        }
        if denied != "*" {
            for tool in lists {
                let outcome = call(&host, tool, json!({})).await.unwrap();
                assert!(!outcome.text().contains("library"), "{denied} {tool}: {}", outcome.text());
            }
        }
        for method in ["resources/read", "resources/subscribe", "resources/list", "prompts/get", "prompts/list"] {
            let params = RawJson::parse(json!({ "uri": "book:one", "name": "greet" }).to_string()).unwrap();
            // A person is refused as well.
            let options = CallOptions::default().caller(ToolCaller::person());
            let raw = host.request(&server("library"), method, Some(&params), options).await;
            assert!(matches!(raw, Err(HostError::Denied(_))), "{denied} {method}: {raw:?}");
        }
        let person = host.permit_read(&server("library"), "book:one", &ToolCaller::person()).await;
        assert!(matches!(person, Err(HostError::Denied(_))), "{denied}: {person:?}");
        assert_eq!(asked(&library), before, "{denied}");
        host.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn unlisted_uri_needs_permission() {
    for (tool, arguments) in ways(STRANGE) {
        let library = Library::new();
        let host = start(Host::builder(), &library, settings()).await;
        let told = complaint(&host, tool, arguments.clone()).await;
        let rule = json!({ "tool": tool, "pattern": "server=library", "action": "allow" });
        assert!(told.contains("needs permission, and no user is available to ask"), "{told}");
        assert!(told.contains("lists neither this URI nor a matching template"), "{told}");
        let named = told.split_once("the rule ").unwrap().1.split_once(" would allow it").unwrap().0;
        assert_eq!(serde_json::from_str::<Value>(named).unwrap(), rule, "{told}");
        assert_eq!(asked(&library), 0, "{tool}");
        host.close().await;

        // The rule that the refusal names is the one that helps.
        let allow: Rule = serde_json::from_value(rule).unwrap();
        let allow = SourcedRule { rule: allow, ..crate::permission::rule("x", RuleAction::Allow) };
        library.shelves().contents.insert(STRANGE.to_owned(), json!([]));
        let host = start(Host::builder().rules([allow]), &library, settings()).await;
        call(&host, tool, arguments).await.unwrap();
        host.close().await;
    }
    let library = Library::new();
    let host = start(Host::builder(), &library, settings()).await;
    let params = RawJson::parse(json!({ "uri": STRANGE }).to_string()).unwrap();
    let raw = host.request(&server("library"), "resources/read", Some(&params), CallOptions::default()).await;
    assert!(matches!(raw, Err(HostError::Denied(_))), "{raw:?}");
    assert_eq!(asked(&library), 0);
    // A person who types it has consented.
    host.permit_read(&server("library"), STRANGE, &ToolCaller::person()).await.unwrap();
    host.close().await;
}

#[tokio::test(start_paused = true)]
async fn listed_or_templated_uri_needs_no_permission() {
    let library = Library::new();
    library.shelves().contents.insert("book:three".to_owned(), json!([]));
    let host = start(Host::builder(), &library, settings()).await;
    for uri in ["book:one", "book:three"] {
        for (tool, arguments) in ways(uri) {
            call(&host, tool, arguments).await.unwrap();
        }
    }
    // A template that would fit anything allows nothing.
    library.shelves().templates = json!([{ "uriTemplate": "{+uri}", "name": "anything" }]);
    host.reconnect("library").await.unwrap();
    host.wait_until_settled().await;
    assert!(
        complaint(&host, "ReadMcpResource", read(STRANGE))
            .await
            .contains("needs permission, and no user is available to ask")
    );
    host.close().await;
}

#[tokio::test(start_paused = true)]
async fn prompt_shows_full_uri_and_answer_holds_for_one_server() {
    let (library, person) = (Library::new(), Person::saying(&[PermissionAnswer::Always, PermissionAnswer::No]));
    library.shelves().contents.insert(STRANGE.to_owned(), json!([]));
    let written = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&written);
    let builder = Host::builder().asker(Arc::new(At(Arc::clone(&person))));
    let builder = builder.on_rule(Arc::new(move |rule| sink.lock().unwrap().push(rule.clone())));
    let other = Library::new();
    let builder = builder.local_with(server("other"), settings(), other.factory());
    let mut project = settings();
    project.origin = ServerOrigin::File(Path::new("/p/.mcp.json").into());
    let host = start(builder, &library, project).await;
    for _ in 0..2 {
        call(&host, "ReadMcpResource", read(STRANGE)).await.unwrap();
    }
    let told = complaint(&host, "ReadMcpResource", json!({ "server": "other", "uri": STRANGE })).await;
    assert!(told.contains("denied by the user"), "{told}");
    {
        let questions = person.asked.lock().unwrap();
        assert_eq!(questions.len(), 2);
        assert_eq!((questions[0].id.server.as_str(), &*questions[0].id.tool), ("library", "ReadMcpResource"));
        assert!(questions[0].arguments.as_str().contains(STRANGE), "{}", questions[0].arguments.as_str());
        assert!(questions[0].reason.contains("lists neither"), "{}", questions[0].reason);
    }
    let rule = serde_json::to_value(&written.lock().unwrap()[0]).unwrap();
    let expected = json!({
        "tool": "ReadMcpResource", "pattern": "server=library", "action": "allow", "definedIn": "/p/.mcp.json",
    });
    assert_eq!(rule, expected);
    assert_eq!(library.read(), [STRANGE, STRANGE]);
    host.close().await;
}

#[tokio::test(start_paused = true)]
async fn later_deny_ends_polling_and_notes() {
    let library = Library::new();
    let host = start(Host::builder(), &library, settings()).await;
    call(&host, "SubscribeMcpResource", read("book:one")).await.unwrap();
    let mut events = host.events();
    data(&host, "SubscribePolling", poll("book:one")).await;
    let polled = |event: Event| match event {
        Event::Polled { outcome, .. } => Some(outcome),
        _ => None,
    };
    next(&mut events, polled).await.unwrap();
    notes(&host);
    host.set_rules(vec![rule("mcp__library", RuleAction::Deny)]).unwrap();
    let why = next(&mut events, polled).await.unwrap_err();
    assert!(why.contains("denied"), "{why}");
    assert_eq!(library.read().len(), 1);
    notes(&host);
    library.notify("notifications/resources/updated", json!({ "uri": "book:one" }));
    // What the server says next is heard after that.
    let mut changes = host.catalog_changes();
    changes.mark_unchanged();
    library.shelves().tools = json!([]);
    library.notify("notifications/tools/list_changed", json!({}));
    changes.changed().await.unwrap();
    assert_eq!(notes(&host), Vec::<String>::new());
    // What has begun can still be ended.
    let ended = data(&host, "UnsubscribeMcpResource", json!({ "server": "library" })).await;
    assert_eq!(ended, json!({ "unsubscribed": true }));
    host.close().await;
}
