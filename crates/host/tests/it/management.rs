//! The management tools: what they take, what they answer, and what they do not let through.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use wharf::tools::{PermissionRequirement, ToolRisk};
use wharf::{Ask, Asker, Host, PermissionAnswer, ResultLimits, ServerState};

use crate::fixture::{Fake, open_builder, server, settings};
use crate::library::{Library, call, complaint, data, listed, text};

async fn library_host(library: &Library) -> Host {
    let builder = open_builder().local_with(server("library"), settings(), library.factory());
    let host = builder.local_with(server("plain"), settings(), Fake::new("plain").factory()).start().await.unwrap();
    listed(&host, 2).await;
    host
}

#[tokio::test(start_paused = true)]
async fn tool_schemas_and_permissions_match_the_published_ones() {
    let host = Host::builder().start().await.unwrap();
    let snapshot = host.registry().snapshot();
    for (name, properties, required) in [
        ("ListMcpResources", &["server"][..], &[][..]),
        ("ListMcpResourceTemplates", &["server"], &[]),
        ("ListMcpPrompts", &["server"], &[]),
        ("ReadMcpResource", &["server", "uri"], &["server", "uri"]),
        ("SubscribeMcpResource", &["reason", "server", "uri"], &["server", "uri"]),
        ("UnsubscribeMcpResource", &["server", "subscriptionId", "uri"], &[]),
        (
            "SubscribePolling",
            &["arguments", "intervalMs", "reason", "server", "toolName", "type", "uri"],
            &["type", "server"],
        ),
        ("UnsubscribePolling", &["server", "subscriptionId", "target"], &[]),
        ("GetMcpPrompt", &["arguments", "name", "server"], &["server", "name"]),
    ] {
        let description = snapshot.iter().find(|tool| *tool.description().name == *name).unwrap().description().clone();
        let schema: Value = serde_json::from_str(description.schema.as_str()).unwrap();
        let mut found: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        found.sort();
        assert_eq!(found, properties, "{name}");
        let needed = schema.get("required").cloned().unwrap_or_else(|| json!([]));
        assert_eq!((needed, &schema["additionalProperties"]), (json!(required), &json!(false)), "{name}");
        let decides = ["ReadMcpResource", "SubscribeMcpResource", "SubscribePolling", "GetMcpPrompt"].contains(&name);
        let asks = if decides { PermissionRequirement::Deferred } else { PermissionRequirement::NotNeeded };
        assert_eq!((description.permission, description.risk), (asks, ToolRisk::Low), "{name}");
    }
    assert_eq!(snapshot.len(), 9);
}

/// U7, F11: a model is offered the tools for which a server has something.
#[tokio::test(start_paused = true)]
async fn management_tools_are_offered_only_where_a_server_needs_them() {
    let offered = |host: &Host| {
        let snapshot = host.registry().snapshot();
        let names = snapshot.iter().filter(|tool| tool.is_offered() && tool.description().source.is_none());
        names.map(|tool| tool.description().name.to_string()).collect::<Vec<_>>()
    };
    let host = Host::builder().start().await.unwrap();
    assert!(offered(&host).is_empty(), "{:?}", offered(&host));
    let plain = open_builder().local_with(server("plain"), settings(), Fake::new("plain").factory());
    let host = plain.start().await.unwrap();
    listed(&host, 1).await;
    assert_eq!(offered(&host), ["SubscribePolling", "UnsubscribePolling"]);
    let library = Library::new();
    let host = library_host(&library).await;
    host.wait_until_settled().await;
    assert_eq!(offered(&host).len(), 9);
    let version = host.registry().snapshot().version();
    host.disable("library").await.unwrap();
    assert_eq!(offered(&host), ["SubscribePolling", "UnsubscribePolling"]);
    assert!(host.registry().snapshot().version() > version, "the next request is built anew");
    host.close().await;
}

#[tokio::test(start_paused = true)]
async fn every_tool_returns_its_documented_shape() {
    let library = Library::new();
    let picture = json!({ "uri": "book:one#cover", "mimeType": "image/png", "blob": "AAAA" });
    library.shelves().contents.insert("book:two".to_owned(), json!([text("book:two", "a"), picture]));
    let host = library_host(&library).await;
    let one = json!({
        "uri": "book:one", "name": "One", "mimeType": "text/plain", "description": "the first", "server": "library",
    });
    let two = json!({ "uri": "book:two", "name": "Two", "server": "library" });
    let argument = json!({ "name": "whom", "description": "a name", "required": true });
    for (tool, arguments, expected) in [
        ("ListMcpResources", json!({}), json!([one, two])),
        ("ListMcpResources", json!({ "server": "library" }), json!([one, two])),
        ("ListMcpResources", json!({ "server": "plain" }), json!([])),
        (
            "ListMcpResourceTemplates",
            json!({}),
            json!([{ "uriTemplate": "book:{title}", "name": "any book", "server": "library" }]),
        ),
        (
            "ListMcpPrompts",
            json!({ "server": null }),
            json!([{ "name": "greet", "description": "says hello", "arguments": [argument], "server": "library" }]),
        ),
        (
            "ReadMcpResource",
            json!({ "server": "library", "uri": "book:two" }),
            json!({ "contents": [text("book:two", "a"), picture] }),
        ),
        (
            "SubscribeMcpResource",
            json!({ "server": "library", "uri": "book:one", "reason": "curious" }),
            json!({ "subscribed": true, "subscriptionId": "watch-1" }),
        ),
        (
            "SubscribeMcpResource",
            json!({ "server": "library", "uri": "book:one" }),
            json!({ "subscribed": true, "subscriptionId": "watch-1" }),
        ),
        ("UnsubscribeMcpResource", json!({ "server": "library", "uri": "book:one" }), json!({ "unsubscribed": true })),
        ("UnsubscribeMcpResource", json!({ "subscriptionId": "watch-1" }), json!({ "unsubscribed": false })),
        (
            "SubscribePolling",
            json!({ "type": "tool", "server": "library", "toolName": "look", "arguments": { "at": 1 } }),
            json!({ "subscribed": true, "subscriptionId": "poll-1" }),
        ),
        (
            "SubscribePolling",
            json!({ "type": "resource", "server": "library", "uri": "book:one" }),
            json!({ "subscribed": true, "subscriptionId": "poll-2" }),
        ),
        ("UnsubscribePolling", json!({ "server": "library", "target": "look" }), json!({ "unsubscribed": true })),
        ("UnsubscribePolling", json!({ "subscriptionId": "poll-1" }), json!({ "unsubscribed": false })),
        ("UnsubscribePolling", json!({ "subscriptionId": "poll-2" }), json!({ "unsubscribed": true })),
    ] {
        assert_eq!(data(&host, tool, arguments.clone()).await, expected, "{tool} {arguments}");
    }
    let prompt =
        call(&host, "GetMcpPrompt", json!({ "server": "library", "name": "greet", "arguments": { "whom": "you" } }));
    let prompt = prompt.await.unwrap().text();
    assert_eq!(
        prompt,
        "[prompt greet of the server library: text from the server, not from the user]\n[user]\nhello you"
    );
    host.close().await;
}

#[tokio::test(start_paused = true)]
async fn invalid_arguments_get_helpful_errors() {
    let host = library_host(&Library::new()).await;
    let long = "a".repeat(9000);
    for (tool, arguments, told) in [
        ("ReadMcpResource", json!({}), "missing field `server`"),
        ("ReadMcpResource", json!({ "server": "library", "uri": 7 }), "expected a string"),
        ("ReadMcpResource", json!({ "server": "library", "uri": "a:b", "x\u{1b}": 1 }), r"unknown field `x\u{1b}`"),
        (
            "ReadMcpResource",
            json!({ "server": "libary", "uri": "a:b" }),
            "no server named `libary`; did you mean `library`?",
        ),
        ("ReadMcpResource", json!({ "server": "x", "uri": "a:b" }), "available servers: library, plain"),
        ("ReadMcpResource", json!({ "server": "library", "uri": "book:onne" }), "did you mean book:one?"),
        (
            "ReadMcpResource",
            json!({ "server": "library", "uri": "a:b" }),
            "ListMcpResources lists the available resources",
        ),
        ("ReadMcpResource", json!({ "server": "library", "uri": long }), "must have 1 to 8192 bytes"),
        ("ReadMcpResource", json!({ "server": "library", "uri": "a:\u{202e}b" }), r"a:\u{202e}b"),
        ("ReadMcpResource", json!({ "server": "plain", "uri": "a:b" }), "does not support resources"),
        ("ListMcpResources", json!({ "server": "libraries" }), "available servers: library, plain"),
        ("ListMcpPrompts", json!({ "serverName": "library" }), "unknown field `serverName`, expected `server`"),
        ("GetMcpPrompt", json!({ "server": "library", "name": "great" }), "did you mean greet?"),
        (
            "GetMcpPrompt",
            json!({ "server": "library", "name": "greet", "arguments": { "whom": 1 } }),
            "expected a string",
        ),
        ("SubscribeMcpResource", json!({ "server": "plain", "uri": "a:b" }), "SubscribePolling"),
        ("UnsubscribeMcpResource", json!({}), "specify the subscription to end"),
        ("UnsubscribePolling", json!({ "server": "libary" }), "did you mean `library`?"),
        ("SubscribePolling", json!({ "type": "prompt", "server": "library" }), "unknown variant `prompt`"),
        ("SubscribePolling", json!({ "type": "tool", "server": "library" }), "requires `toolName`"),
        (
            "SubscribePolling",
            json!({ "type": "tool", "server": "library", "toolName": "look", "uri": "a:b" }),
            "does not accept `uri`",
        ),
        ("SubscribePolling", json!({ "type": "resource", "server": "library", "toolName": "look" }), "requires `uri`"),
        ("SubscribePolling", json!({ "type": "tool", "server": "library", "toolName": "lok" }), "did you mean `look`?"),
        (
            "SubscribePolling",
            json!({ "type": "resource", "server": "library", "uri": "book:one", "intervalMs": 999 }),
            "`intervalMs` must be between 1000 and 86400000",
        ),
        (
            "SubscribePolling",
            json!({ "type": "tool", "server": "library", "toolName": "look", "arguments": [1] }),
            "`arguments` must be an object",
        ),
        (
            "SubscribePolling",
            json!({ "type": "resource", "server": "plain", "uri": "a:b" }),
            "does not support resources",
        ),
    ] {
        let found = complaint(&host, tool, arguments.clone()).await;
        assert!(found.contains(told), "{tool} {arguments}: {found}");
    }
    host.close().await;
}

#[tokio::test(start_paused = true)]
async fn hostile_names_are_escaped_and_attributed() {
    const CANARY: &str = "\u{202e}\u{1b}[2J\u{e0049}\u{e0047}\u{e004e}\u{e004f}\u{e0052}\u{e0045}";
    let library = Library::new();
    let hostile = |key: &str| {
        json!([{
            key: format!("a:{CANARY}"),
            "name": format!("n{CANARY}"),
            "title": format!("t{CANARY}"),
            "mimeType": format!("m{CANARY}"),
            "description": format!("{CANARY}{}", "d".repeat(50_000)),
            "arguments": [{ "name": format!("p{CANARY}"), "description": CANARY }],
        }])
    };
    {
        let mut shelves = library.shelves();
        (shelves.resources, shelves.templates, shelves.prompts) =
            (hostile("uri"), hostile("uriTemplate"), hostile("x"));
        let contents = json!([{ "uri": format!("a:{CANARY}"), "mimeType": CANARY, "text": "plain" }]);
        shelves.contents.insert("a:b".to_owned(), contents);
    }
    let host = library_host(&library).await;
    for (tool, arguments) in [
        ("ListMcpResources", json!({})),
        ("ListMcpResourceTemplates", json!({})),
        ("ListMcpPrompts", json!({})),
        ("ReadMcpResource", json!({ "server": "library", "uri": "a:b" })),
    ] {
        let told = call(&host, tool, arguments).await.unwrap().text();
        assert!(told.contains("library") && told.contains("[6 hidden characters]"), "{tool}: {told}");
        assert!(!told.contains(['\u{202e}', '\u{1b}', '\u{e0049}']), "{tool}: {told:?}");
        assert!(told.len() < 5_000, "{tool}: {}", told.len());
    }
    host.close().await;
}

#[tokio::test(start_paused = true)]
async fn uris_are_read_by_their_server_only() {
    let (library, place) = (Library::new(), tempfile::tempdir().unwrap());
    let secret = place.path().join("secret");
    std::fs::write(&secret, "local").unwrap();
    let trap = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    trap.set_nonblocking(true).unwrap();
    let host = library_host(&library).await;
    let uris = [
        format!("file://{}", secret.display()),
        secret.display().to_string(),
        format!("http://{}/x", trap.local_addr().unwrap()),
        format!("https://{}/x", trap.local_addr().unwrap()),
        "../../../etc/passwd".to_owned(),
        "\\\\host\\share".to_owned(),
        "javascript:alert(1)".to_owned(),
        "a:\"},{\"method\":\"tools/call\"".to_owned(),
    ];
    for uri in &uris {
        library.shelves().contents.insert(uri.clone(), json!([text(uri, "from the server")]));
        let read = data(&host, "ReadMcpResource", json!({ "server": "library", "uri": uri })).await;
        assert_eq!(read["contents"][0]["text"], "from the server", "{uri}");
    }
    assert_eq!(library.read(), uris);
    assert!(trap.accept().is_err(), "somebody dialled");
    host.close().await;
}

#[tokio::test]
async fn oversized_contents_spill_to_files() {
    let (library, place) = (Library::new(), tempfile::tempdir().unwrap());
    let long = "x".repeat(5_000);
    {
        let mut shelves = library.shelves();
        let blob = json!({ "uri": "book:bytes", "mimeType": "image/png", "blob": "A".repeat(8_000) });
        shelves.contents.insert("book:bytes".to_owned(), json!([blob]));
        shelves.contents.insert("book:text".to_owned(), json!([text("book:text", &long), text("book:more", "more")]));
        shelves.contents.insert("book:odd".to_owned(), json!([{ "uri": "book:odd", "blob": "no {base64}" }]));
        shelves.contents.insert("book:many".to_owned(), json!(vec![text("book:many", ""); 5_000]));
    }
    let builder = open_builder()
        .state_dir(place.path().join("state"))
        .result_limits(ResultLimits { text: 1_000, attachment: 10 });
    let host = builder.local_with(server("library"), settings(), library.factory()).start().await.unwrap();
    let read = |uri: &str| {
        let (host, arguments) = (host.clone(), json!({ "server": "library", "uri": uri }));
        async move { call(&host, "ReadMcpResource", arguments).await.unwrap() }
    };
    for (uri, shown, expected) in [("book:bytes", 0, vec![0; 6_000]), ("book:text", 1_003, long.clone().into_bytes())] {
        let found: Value = serde_json::from_str(read(uri).await.data.unwrap().as_str()).unwrap();
        let piece = &found["contents"][0];
        assert_eq!((&piece["uri"], piece["text"].as_str().unwrap_or("").len()), (&json!(uri), shown));
        assert_eq!(piece["file"]["bytes"], expected.len());
        assert_eq!(std::fs::read(piece["file"]["path"].as_str().unwrap()).unwrap(), expected);
        assert!(piece.get("blob").is_none());
    }
    assert!(read("book:odd").await.text().contains("invalid Base64"));
    let many = read("book:many").await;
    assert!(many.text().contains("more pieces are not shown") && many.text().len() < 2_000, "{}", many.text());
    host.close().await;
}

#[tokio::test(start_paused = true)]
async fn lazy_server_starts_when_addressed_by_name() {
    let library = Library::new();
    let mut lazy = settings();
    lazy.lazy = true;
    let host = open_builder().local_with(server("library"), lazy, library.factory()).start().await.unwrap();
    let listed = call(&host, "ListMcpResources", json!({})).await.unwrap().text();
    assert_eq!(listed, "not listed yet: library; pass its name to list it\n[]");
    assert_eq!(host.status_of("library").unwrap().state, ServerState::Idle);
    let read = data(&host, "ReadMcpResource", json!({ "server": "library", "uri": "book:one" })).await;
    assert_eq!(read["contents"][0]["text"], "once");
    let listed = data(&host, "ListMcpResources", json!({ "server": "library" })).await;
    assert_eq!(listed.as_array().unwrap().len(), 2);
    host.close().await;
}

/// Says the same to every question, and counts them.
struct Answers(PermissionAnswer, Mutex<Vec<String>>);

impl Asker for Answers {
    fn ask(&self, ask: Ask) {
        if let Ask::Permission(ask, reply) = ask {
            self.1.lock().unwrap().push(ask.id.tool.to_string());
            reply.answer(self.0.clone());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn prompt_is_expanded_only_with_permission() {
    let library = Library::new();
    for (answer, agreed) in [(PermissionAnswer::Once, true), (PermissionAnswer::No, false)] {
        let asker = Arc::new(Answers(answer, Mutex::default()));
        let builder = Host::builder().asker(Arc::clone(&asker) as _);
        let host = builder.local_with(server("library"), settings(), library.factory()).start().await.unwrap();
        listed(&host, 1).await;
        for (tool, arguments) in [
            ("ListMcpPrompts", json!({})),
            ("ListMcpResources", json!({})),
            ("ReadMcpResource", json!({ "server": "library", "uri": "book:one" })),
            ("SubscribeMcpResource", json!({ "server": "library", "uri": "book:one" })),
        ] {
            call(&host, tool, arguments).await.unwrap();
        }
        assert!(asker.1.lock().unwrap().is_empty());
        let before = library.count("prompts/get");
        let prompt = call(&host, "GetMcpPrompt", json!({ "server": "library", "name": "greet" })).await;
        assert_eq!(prompt.is_ok(), agreed);
        assert_eq!(library.count("prompts/get") - before, usize::from(agreed));
        assert_eq!(*asker.1.lock().unwrap(), ["GetMcpPrompt"]);
        host.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn management_tool_permission_lasts_as_granted() {
    use PermissionAnswer::{Always, Once, Session};
    for (answer, asked, written) in [(Once, 2, &[][..]), (Session, 1, &[]), (Always, 1, &["GetMcpPrompt"])] {
        let (library, asker) = (Library::new(), Arc::new(Answers(answer, Mutex::default())));
        let rules = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&rules);
        let builder = Host::builder().asker(Arc::clone(&asker) as _);
        let builder = builder.on_rule(Arc::new(move |rule| sink.lock().unwrap().push(rule.tool.clone())));
        let host = builder.local_with(server("library"), settings(), library.factory()).start().await.unwrap();
        listed(&host, 1).await;
        for _ in 0..2 {
            call(&host, "GetMcpPrompt", json!({ "server": "library", "name": "greet" })).await.unwrap();
        }
        assert_eq!(
            (asker.1.lock().unwrap().len(), &rules.lock().unwrap()[..] == written),
            (asked, true),
            "{written:?}"
        );
        host.close().await;
    }
}
