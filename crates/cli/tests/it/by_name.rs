//! Servers by the names they are configured under: selectors, rules, filters, and what is kept between two calls.

use serde_json::{Value, json};
use wharf_testkit::pty::Terminal;
use wharf_testkit::test_home::{CommandOutput, TestHome};

use crate::support::{WHARF, pipe_at_home, working};

/// A home with two servers, `quay` and `pier.x`'s namesake `quay__x`, and a rule.
fn two_servers() -> TestHome {
    let demo = json!({ "command": WHARF, "args": ["demo-server", "--revision", "2026-07-28"] });
    let mut filtered = demo.clone();
    filtered["excludeTools"] = json!(["crash", "slo*"]);
    configured(&json!({
        "mcpServers": { "quay": demo, "quay__x": filtered },
        "permissions": [{ "tool": "mcp__quay__crash", "action": "deny" }],
    }))
}

/// A home whose configuration is a file in the project that a variable names.
fn configured(config: &Value) -> TestHome {
    let home = TestHome::new();
    let file = home.write("project/config.json", &config.to_string());
    home.with_env("WHARF_CONFIG", file)
}

#[track_caller]
fn check(ran: &CommandOutput, code: i32, stdout: &str, stderr: &str) {
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), stdout), "{ran:?}");
    assert!(ran.stderr.starts_with(stderr) && ran.stderr.is_empty() == stderr.is_empty(), "{ran:?}");
}

#[test]
fn every_tool_selector_is_accepted() {
    let home = two_servers();
    for words in [
        &["quay", "echo"][..],
        &["quay.echo"],
        &["quay/echo"],
        &["quay:echo"],
        &["quay__echo"],
        &["mcp__quay__echo"],
        &["quay__x__echo"],
        &["quay", "mcp__quay__echo"],
        &["config.json:quay", "echo"],
    ] {
        let words: Vec<&str> = ["call"].iter().chain(words).copied().chain(["text=ahoy"]).collect();
        check(&home.run(&words), 0, "ahoy\n", "");
    }
    check(&home.run(["call", "quay.add(a: 1, b: 2)"]), 0, "3\n", "");
    check(&home.run(["call", "quai", "echo"]), 2, "", "error: no server named `quai`.\n  hint: did you mean `quay`");
    check(&home.run(["call", "quay"]), 2, "", "error: no tool of `quay` given.\n  hint: `wharf tools quay`");
    check(&home.run(["call", "no.json:quay", "echo"]), 2, "", "error: no such file: `no.json`.\n");
    let ran = home.run(["call", "quay", "echo", "text=a", "--header", "A=b"]);
    check(
        &ran,
        2,
        "",
        "error: --header, --transport, --proxy, --ca and --client-cert apply only to a server at a URL.\n",
    );
    let ran = home.run(["call", "quay", "echo", "text=a", "--env", "A=b"]);
    check(&ran, 2, "", "error: --env, --cwd and --inherit-env apply only to --stdio.\n");
}

#[test]
fn other_commands_accept_server_names() {
    let home = two_servers();
    let ran = home.run(["read", "quay", "demo://greeting"]);
    check(&ran, 0, "Ahoy! Welcome to the Wharf demo server.\n", "");
    assert!(home.run(["prompt", "quay", "welcome", "name=Ada"]).stdout.contains("Ada"));
    assert!(home.run(["templates", "quay"]).stdout.contains("\n  demo://dock/{berth}  "));
    for list in ["resources", "prompts"] {
        let both = home.run([list]);
        assert!(both.stdout.starts_with("quay  ") && both.stdout.contains("\n\nquay__x  "), "{both:?}");
    }
    check(
        &home.run(["read", "demo://greeting"]),
        2,
        "",
        "error: only `demo://greeting` was given; both a server and a URI",
    );
    let nowhere = configured(&json!({}));
    check(&nowhere.run(["tools"]), 2, "", "error: no servers are configured, and none was given.\n  hint: `wharf add");
    check(&nowhere.run(["call", "quay", "echo"]), 2, "", "error: no server named `quay`: no servers are configured.\n");
}

#[test]
fn rules_and_filters_apply() {
    let home = two_servers();
    let ran = home.run(["call", "quay", "crash"]);
    check(&ran, 5, "", "error: quay: ");
    assert!(ran.stderr.contains("mcp__quay__crash") && ran.stderr.contains("config.json:"), "{ran:?}");
    assert_eq!(home.run(["call", "quay", "crash", "--json"]).json()["error"]["kind"], "denied");
    let ran = home.run(["call", "quay__x", "crash"]);
    check(&ran, 2, "", "error: quay__x: no tool named `crash`.\n");
    assert!(ran.stderr.contains("2 of its tools are filtered out"), "{ran:?}");
    let document = home.run(["tools", "quay__x", "--json"]).json();
    let tools = document["items"].as_array().unwrap();
    assert!(!tools.iter().any(|tool| tool["name"] == "crash" || tool["name"] == "slow"), "{document}");
    let echo = tools.iter().find(|tool| tool["name"] == "echo").unwrap();
    assert!(echo["alias"].as_str().unwrap().starts_with("mcp_"), "{echo}");
    // The alias is one to call it by.
    check(&home.run(["call", "quay__x", echo["alias"].as_str().unwrap(), "text=a"]), 0, "a\n", "");
}

#[test]
fn calls_are_recorded_in_the_audit_log() {
    let home = two_servers();
    home.run(["call", "quay", "add", "a=1", "b=2"]);
    home.run(["call", "quay", "fail"]);
    home.run(["call", "quay", "crash"]);
    let audit = home.read("home/.local/state/wharf/audit.jsonl");
    let entries: Vec<Value> =
        audit.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["entry"].take()).collect();
    let told: Vec<(&str, &str)> = entries
        .iter()
        .map(|entry| {
            let outcome = entry["verdict"].as_str().unwrap_or(if entry["success"] == true { "fine" } else { "failed" });
            (entry["tool"].as_str().unwrap(), outcome)
        })
        .collect();
    assert_eq!(told, [("add", "allow"), ("add", "fine"), ("fail", "allow"), ("fail", "failed"), ("crash", "deny")]);
    assert!(entries.iter().all(|entry| entry["caller"] == "person"), "{audit}");
}

#[test]
fn unwritable_state_directory_is_only_a_warning() {
    let home = two_servers();
    home.write("home/.local/state", "a file");
    let ran = home.run(["call", "quay", "echo", "text=a"]);
    check(&ran, 0, "a\n", "warning: cannot write to ");
    let home = two_servers();
    home.write("home/.local/state/wharf/audit.key", "not a key");
    let ran = home.run(["call", "quay", "echo", "text=a"]);
    check(&ran, 0, "a\n", "warning: cannot write to ");
}

#[test]
fn help_starts_the_server_once() {
    let script = r#"echo started >> "$HOME/started"; exec "$0" demo-server"#;
    let server = json!({ "command": "/bin/sh", "args": ["-c", script, WHARF] });
    let home = configured(&json!({ "mcpServers": { "quay": server } }));
    let help = "Usage: wharf call quay add [ARGUMENT]...\n\nArguments:\n  a  (number, required)";
    for _ in 0..2 {
        let ran = home.run(["call", "quay", "add", "--help"]);
        assert!(ran.code == Some(0) && ran.stdout.contains(help), "{ran:?}");
        assert!(ran.stdout.contains("\nExamples:\n  wharf call quay add a=1 b=1\n"), "{ran:?}");
    }
    assert_eq!(home.read("home/started"), "started\n");
    let ran = home.run(["call", "quay", "ad", "--help"]);
    check(&ran, 2, "", "error: quay: no tool named `ad`.\n  hint: did you mean `add`?");
}

#[test]
fn best_match_is_listed_first() {
    let home = two_servers();
    let document = home.run(["tools", "--search", "echo", "--json"]).json();
    let found: Vec<_> =
        document["items"].as_array().unwrap().iter().map(|item| (&item["server"], &item["name"])).collect();
    assert_eq!(found[..2], [(&json!("quay"), &json!("echo")), (&json!("quay__x"), &json!("echo"))], "{document}");
    let ran = home.run(["tools", "quay", "--search", "reporting progress", "--schema"]);
    let first: Vec<&str> = ran.stdout.lines().nth(1).unwrap().split_whitespace().take(3).collect();
    assert_eq!(first, ["slow", "Waits", "for"], "{ran:?}");
    assert!(ran.stdout.contains("\n      seconds  ("), "{ran:?}");
    check(&home.run(["tools", "--search", "zebra"]), 0, "", "no tool matches these keywords\n");
}

/// F12: the order of the JSON document is the ranking over all servers.
#[test]
fn json_search_keeps_the_ranking_over_servers() {
    let home = configured(&json!({ "mcpServers": { "one": working(), "two": working() } }));
    let document = home.run(["tools", "--search", "reporting progress", "--json"]).json();
    let items = document["items"].as_array().unwrap();
    assert_eq!(items.len(), 2, "{document}");
    assert_eq!((&items[0]["name"], &items[1]["name"]), (&json!("slow"), &json!("slow")), "{document}");
    assert_ne!(items[0]["server"], items[1]["server"]);
}

#[test]
fn slow_start_is_shown_on_a_terminal() {
    let pipe = pipe_at_home("slow-start");
    let script = format!(r#"read -r _ < {}; exec "$0" demo-server"#, pipe.display());
    let server = json!({ "command": "/bin/sh", "args": ["-c", script, WHARF] });
    let home = configured(&json!({ "mcpServers": { "quay": server } }));
    for words in [&["call", "quay", "echo", "text=ahoy"][..], &["tools", "quay"]] {
        let mut terminal = Terminal::start_piped(&home.command(words));
        terminal.expect(" quay · starting, 0 s");
        std::fs::write(&pipe, "go\n").unwrap();
        let ended = terminal.end();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.stdout.contains("ahoy") || ended.stdout.starts_with("quay  "), "{ended:?}");
        assert!(ended.rows.iter().all(String::is_empty), "{ended:?}");
    }
}
