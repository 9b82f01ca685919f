//! `tools`, `resources`, `templates`, `prompts`.

use serde_json::{Value, json};

use crate::support::{REVISIONS, assert_harmless, demo, faultd, run};

#[test]
fn tools_are_listed_in_every_revision() {
    for (revision, count) in REVISIONS.into_iter().zip([24, 23, 21, 19, 19]) {
        let ran = run(["tools", "--stdio", &demo(revision)]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        let mut lines = ran.stdout.lines();
        let version = env!("CARGO_PKG_VERSION");
        let head = format!("wharf  wharf-demo {version} · {revision} · {count} tools");
        assert_eq!(lines.next(), Some(head.as_str()));
        let rows: Vec<Vec<&str>> = lines.map(|line| line.trim().splitn(2, "  ").map(str::trim).collect()).collect();
        assert_eq!(rows.len(), count, "{}", ran.stdout);
        for row in [
            ["echo", "Repeats a text."],
            ["slow", "Waits for a while, reporting progress. Can be cancelled."],
            ["crash", "Ends this server's process without an answer, to show what happens then."],
        ] {
            assert!(rows.contains(&row.to_vec()), "{}", ran.stdout);
        }
        let asks = rows.iter().any(|row| row[0] == "book_berth");
        assert_eq!(asks, revision >= "2025-06-18", "{}", ran.stdout);
    }
}

#[test]
fn resources_templates_and_prompts_are_listed() {
    for (command, rows) in [
        ("resources", "  demo://greeting  A friendly word.\n  demo://logo      An anchor, as a small PNG image.\n"),
        ("templates", "  demo://dock/{berth}  Which ship lies at a berth of the dock, such as north-1.\n"),
        (
            "prompts",
            "  welcome name=             Asks the model to welcome somebody aboard.\n  review code= [language=]  ",
        ),
    ] {
        for revision in REVISIONS {
            let ran = run([command, "--stdio", &demo(revision)]);
            assert_eq!(ran.code, Some(0), "{ran:?}");
            assert!(ran.stdout.contains(rows), "{ran:?}");
        }
    }
}

#[test]
fn tools_json_has_the_documented_shape() {
    let document = run(["tools", "--json", "--stdio", &demo("2026-07-28")]).json();
    assert_eq!(document["schema"], 1);
    assert_eq!((&document["withheld"], &document["errors"]), (&json!([]), &json!([])));
    let named = |name: &str| document["items"].as_array().unwrap().iter().find(|item| item["name"] == name).unwrap();
    let add = named("add");
    let keys: Vec<&str> = add.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = ["alias", "annotations", "description", "inputSchema", "name", "outputSchema", "server", "title"];
    assert_eq!(keys, expected);
    assert_eq!(
        (&add["server"], &add["name"], &add["alias"]),
        (&json!("wharf"), &json!("add"), &json!("mcp__wharf__add"))
    );
    assert_eq!(add["inputSchema"]["required"], json!(["a", "b"]));
    assert_eq!(add["outputSchema"]["required"], json!(["sum"]));
    assert_eq!(add["annotations"]["readOnlyHint"], true);
    assert_eq!(named("echo")["outputSchema"], Value::Null);
}

#[test]
fn other_list_json_has_the_documented_shape() {
    for (command, keys, first) in [
        ("resources", "annotations description mimeType name server size title uri", ("uri", "demo://greeting")),
        ("templates", "annotations description mimeType name server title uriTemplate", ("name", "berth")),
        ("prompts", "arguments description name server title", ("name", "welcome")),
    ] {
        let document = run([command, "--json", "--stdio", &demo("2025-06-18")]).json();
        let item = document["items"][0].as_object().unwrap();
        assert_eq!(item.keys().map(String::as_str).collect::<Vec<_>>().join(" "), keys);
        assert_eq!(item[first.0], first.1);
    }
}

#[test]
fn failing_server_does_not_affect_other_lists() {
    let (north, west) = (demo("2026-07-28"), demo("2024-11-05"));
    let servers = ["tools", "--stdio", &north, "--stdio", "no-such-server", "--stdio", &west];
    let ran = run(servers);
    assert_eq!(ran.code, Some(3));
    assert!(ran.stdout.contains("wharf  wharf-demo") && ran.stdout.contains("\n\nwharf-2  wharf-demo"), "{ran:?}");
    assert!(ran.stderr.contains("error: no-such-server: command `no-such-server` not found in PATH."), "{ran:?}");
    let document = run(servers.into_iter().chain(["--json"])).json();
    assert_eq!(document["items"].as_array().unwrap().len(), 43);
    assert_eq!(document["items"][40]["server"], "wharf-2");
    assert_eq!(
        (&document["errors"][0]["kind"], &document["errors"][0]["server"]),
        (&json!("unreachable"), &json!("no-such-server"))
    );
}

#[test]
fn malformed_tools_are_withheld_individually() {
    let ran = run(["tools", "--json", "--stdio", &faultd("bad-tool")]);
    let document = ran.json();
    assert_eq!(ran.code, Some(0));
    assert!(!document["items"].as_array().unwrap().is_empty());
    let withheld = document["withheld"].as_array().unwrap();
    assert_eq!(withheld.len(), 3, "{document}");
    assert_eq!((&withheld[0]["server"], &withheld[0]["position"]), (&json!("faultd"), &json!(1)));
    assert!(withheld[1]["reason"].as_str().unwrap().contains("missing field `name`"), "{document}");
    assert_eq!(ran.stderr.matches("warning: faultd: tool").count(), 3, "{ran:?}");
}

/// A server that introduces itself, offers nothing and understands nothing else.
const OFFERS_NOTHING: &str = r#"sh -c 'while read -r line; do
    id=${line#*\"id\":}
    printf "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{}}}\n" "${id%%,*}"
    done'"#;

#[test]
fn missing_capability_is_not_requested() {
    let ran = run(["prompts", "--stdio", OFFERS_NOTHING]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "sh  2026-07-28 · offers no prompts\n"), "{ran:?}");
    let ran = run(["prompt", "any", "--stdio", OFFERS_NOTHING]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.starts_with("error: sh: server does not support prompts."), "{ran:?}");
}

#[test]
fn control_characters_in_server_name_are_escaped() {
    let server = format!("{} --name '\u{1b}]0;title\u{7}\u{202e}evil'", demo("2026-07-28"));
    let ran = run(["tools", "--stdio", &server]);
    assert_harmless(&ran.stdout);
    assert!(ran.stdout.contains(r"\u{1b}]0;title\u{7}\u{202e}evil"), "{ran:?}");
}
