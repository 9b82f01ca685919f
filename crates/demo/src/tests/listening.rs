//! Notifications: log messages and changes; also prompts, resources and skills.

use serde_json::{Value, json};

use super::client::DemoTestClient;
use super::{HANDSHAKES, MODERN, revisions};

const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

#[test]
fn log_messages_are_sent_from_the_set_level() {
    let log = |client: &DemoTestClient, level: &str| {
        let id = client.start_call("log_something", json!({"level": level, "message": "fog"}));
        first_notification(client, id)
    };
    for revision in HANDSHAKES {
        let client = DemoTestClient::new(revision, json!({}));
        assert_eq!(log(&client, "debug"), None);
        assert_eq!(log(&client, "info").unwrap()["params"]["level"], "info");
        assert_eq!(client.request("logging/setLevel", json!({"level": "error"}))["result"], json!({}));
        assert_eq!(log(&client, "warning"), None);
        let entry = log(&client, "emergency").unwrap();
        assert_eq!(entry["method"], "notifications/message");
        assert_eq!(entry["params"]["data"]["message"], "fog");
        assert_eq!(client.request("logging/setLevel", json!({"level": "loud"}))["error"]["code"], -32602);
    }
}

#[test]
fn stateless_request_sets_its_own_log_level() {
    let client = DemoTestClient::new(MODERN, json!({}));
    let table = [(None, false), (Some("debug"), true), (Some("info"), true), (Some("notice"), false)];
    for (wanted, is_sent) in table {
        let mut params = json!({"name": "log_something", "arguments": {"level": "info", "message": "fog"}});
        if let Some(level) = wanted {
            params["_meta"] = json!({"io.modelcontextprotocol/logLevel": level});
        }
        let id = client.send("tools/call", params);
        assert_eq!(first_notification(&client, id).is_some(), is_sent, "{wanted:?}");
    }
    assert_eq!(client.request("logging/setLevel", json!({"level": "error"}))["error"]["code"], -32601);
}

/// Returns the notification before the reply to `id`, if there is one.
#[track_caller]
fn first_notification(client: &DemoTestClient, id: u64) -> Option<Value> {
    let first = client.receive();
    if first.get("id").is_some() {
        assert_eq!(first["id"], id, "{first}");
        return None;
    }
    assert_eq!(client.receive()["id"], id);
    Some(first)
}

const CHANGES: [(&str, &str, &str, &str); 4] = [
    ("hire_crane", "notifications/tools/list_changed", "tools", "crane"),
    ("dismiss_crane", "notifications/tools/list_changed", "tools", ""),
    ("learn_shanty", "notifications/prompts/list_changed", "prompts", "shanty"),
    ("lay_buoy", "notifications/resources/list_changed", "resources", "buoy"),
];

fn names(client: &DemoTestClient, kind: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut params = json!({});
    loop {
        let page = client.request(&format!("{kind}/list"), params)["result"].take();
        names.extend(page[kind].as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap().to_owned()));
        if page.get("nextCursor").is_none() {
            return names;
        }
        params = json!({"cursor": page["nextCursor"]});
    }
}

#[test]
fn handshake_clients_are_notified_of_list_changes() {
    for revision in HANDSHAKES {
        let client = DemoTestClient::new(revision, json!({}));
        for (tool, method, kind, name) in CHANGES {
            let id = client.start_call(tool, json!({}));
            assert_eq!(first_notification(&client, id).unwrap()["method"], method);
            let id = client.start_call(tool, json!({}));
            assert_eq!(first_notification(&client, id), None, "{tool} changes nothing the second time");
            let names = names(&client, kind);
            assert_eq!(names.iter().any(|known| known == name), !name.is_empty(), "{names:?}");
            assert!(name == "crane" || !names.iter().any(|known| known == "crane"), "{names:?}");
        }
    }
}

#[test]
fn handshake_clients_are_notified_of_subscribed_resources() {
    for revision in HANDSHAKES {
        let client = DemoTestClient::new(revision, json!({}));
        let tide = json!({"uri": "harbour://tide"});
        let raise = || first_notification(&client, client.start_call("raise_tide", json!({})));
        assert_eq!(raise(), None);
        assert_eq!(client.request("resources/subscribe", tide.clone())["result"], json!({}));
        let updated = raise().unwrap();
        assert_eq!((&updated["method"], &updated["params"]), (&json!("notifications/resources/updated"), &tide));
        let read = client.request("resources/read", tide.clone());
        assert_eq!(read["result"]["contents"][0]["text"], "The tide stands at 20 cm.");
        assert_eq!(client.request("resources/unsubscribe", tide)["result"], json!({}));
        assert_eq!(raise(), None);
        let unknown = client.request("resources/subscribe", json!({"uri": "harbour://moon"}));
        assert_eq!(unknown["error"]["code"], -32002);
        let listen = client.request("subscriptions/listen", json!({"notifications": {}}));
        assert_eq!(listen["error"]["code"], -32601);
    }
}

/// Opens a listen. Returns its id and the acknowledged events.
fn listen(client: &DemoTestClient, notifications: Value) -> (u64, Value) {
    let id = client.send("subscriptions/listen", json!({"notifications": notifications}));
    let acknowledged = client.receive();
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(acknowledged["params"]["_meta"][SUBSCRIPTION_ID], id);
    (id, acknowledged["params"]["notifications"].clone())
}

#[test]
fn listen_streams_receive_only_requested_changes() {
    let client = DemoTestClient::new(MODERN, json!({}));
    let lists = json!({"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true});
    let (of_lists, honoured) = listen(&client, lists.clone());
    assert_eq!(honoured, lists);
    let wanted = json!({
        "toolsListChanged": false,
        "resourceSubscriptions": ["harbour://tide", "harbour://moon"],
        "taskIds": ["task-1"],
    });
    let (of_tide, honoured) = listen(&client, wanted);
    assert_eq!(honoured, json!({"resourceSubscriptions": ["harbour://tide"]}));
    for (tool, method, _, _) in CHANGES {
        let told = first_notification(&client, client.start_call(tool, json!({}))).unwrap();
        assert_eq!((&told["method"], &told["params"]["_meta"][SUBSCRIPTION_ID]), (&json!(method), &json!(of_lists)));
    }
    let raise = || first_notification(&client, client.start_call("raise_tide", json!({})));
    let told = raise().unwrap();
    assert_eq!(told["params"], json!({"uri": "harbour://tide", "_meta": {SUBSCRIPTION_ID: of_tide}}));
    client.notify("notifications/cancelled", json!({"requestId": of_tide}));
    assert_eq!(raise(), None);
    assert_eq!(client.request("subscriptions/listen", json!({}))["error"]["code"], -32602);
    assert_eq!(client.request("resources/subscribe", json!({"uri": "harbour://tide"}))["error"]["code"], -32601);
}

#[test]
fn listen_streams_end_by_result_cancel_or_error() {
    let client = DemoTestClient::new(MODERN, json!({}));
    for how in ["result", "cancelled", "error"] {
        let ids = [listen(&client, json!({"toolsListChanged": true})).0, listen(&client, json!({})).0];
        let call = client.start_call("end_subscriptions", json!({"how": how}));
        for id in ids {
            let end = client.receive();
            match how {
                "result" => {
                    assert_eq!((&end["id"], &end["result"]["resultType"]), (&json!(id), &json!("complete")));
                    assert_eq!(end["result"]["_meta"][SUBSCRIPTION_ID], id);
                }
                "cancelled" => assert_eq!(
                    (&end["method"], &end["params"]["requestId"]),
                    (&json!("notifications/cancelled"), &json!(id))
                ),
                _ => assert_eq!((&end["id"], &end["error"]["code"]), (&json!(id), &json!(-32000))),
            }
        }
        let reply = client.receive();
        assert_eq!(
            (&reply["id"], &reply["result"]["content"][0]["text"]),
            (&json!(call), &json!("Ended 2 subscriptions."))
        );
        assert_eq!(first_notification(&client, client.start_call("hire_crane", json!({}))), None);
        client.call("dismiss_crane", json!({}));
    }
}

#[test]
fn listen_id_is_in_use() {
    let client = DemoTestClient::new(MODERN, json!({}));
    let (id, _) = listen(&client, json!({}));
    client.harness.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/list", "params": {}}));
    assert_eq!(client.receive()["error"]["code"], -32600);
}

#[test]
fn changing_lists_have_short_ttl() {
    let client = DemoTestClient::new(MODERN, json!({}));
    let table = [
        ("tools/list", json!({}), 5_000),
        ("prompts/list", json!({}), 5_000),
        ("resources/list", json!({}), 5_000),
        ("resources/templates/list", json!({}), 3_600_000),
        ("resources/read", json!({"uri": "harbour://tide"}), 1_000),
        ("skills/list", json!({}), 3_600_000),
        ("skills/get", json!({"uri": "skill://mooring/SKILL.md"}), 3_600_000),
    ];
    for (method, params, ttl) in table {
        let result = client.request(method, params)["result"].take();
        assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(ttl), &json!("public")), "{method}");
    }
}

#[test]
fn each_revision_declares_its_capabilities() {
    for revision in revisions() {
        let client = DemoTestClient::new(revision, json!({}));
        let introduction = if client.is_modern() {
            client.request("server/discover", json!({}))["result"].take()
        } else {
            let harness = super::DemoServerHarness::new(None);
            harness.request("initialize", json!({"protocolVersion": revision}))["result"].take()
        };
        let capabilities = &introduction["capabilities"];
        assert_eq!(capabilities["resources"], json!({"listChanged": true, "subscribe": true}));
        assert!(capabilities["logging"].is_object());
        assert_eq!(capabilities["tasks"]["requests"]["tools"]["call"].is_object(), revision == "2025-11-25");
        for extension in ["tasks", "skills"] {
            let extension = &capabilities["extensions"][format!("io.modelcontextprotocol/{extension}")];
            assert_eq!(extension.is_object(), revision == MODERN);
        }
        let server = if client.is_modern() {
            &introduction["_meta"]["io.modelcontextprotocol/serverInfo"]
        } else {
            &introduction["serverInfo"]
        };
        let icons: Vec<_> = server["icons"].as_array().into_iter().flatten().collect();
        let is_data = |icon: &&&Value| icon["src"].as_str().unwrap().starts_with("data:image/png;base64,");
        let expected = if revision >= "2025-11-25" { (2, 1) } else { (0, 0) };
        assert_eq!((icons.len(), icons.iter().filter(is_data).count()), expected, "{revision}");
    }
}

#[test]
fn skills_are_available_in_the_latest_revision_only() {
    let file = json!({"uri": "skill://mooring/references/KNOTS.md"});
    let client = DemoTestClient::new(MODERN, json!({}));
    let skills = client.request("skills/list", json!({}))["result"]["skills"].take();
    assert_eq!(skills.as_array().unwrap().len(), 2);
    let skill = client.request("skills/get", json!({"uri": skills[1]["uri"]}))["result"]["skill"].take();
    assert_eq!(skill, skills[1]);
    let text = client.request("resources/read", file.clone())["result"]["contents"][0]["text"].take();
    assert_eq!(skills[0]["resources"][1]["size"], text.as_str().unwrap().len());
    for revision in HANDSHAKES {
        let client = DemoTestClient::new(revision, json!({}));
        assert_eq!(client.request("skills/list", json!({}))["error"]["code"], -32601);
        assert_eq!(client.request("resources/read", file.clone())["error"]["code"], -32002);
    }
}
