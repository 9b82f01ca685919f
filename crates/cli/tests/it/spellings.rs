//! Words that people try: a tool without its server, `help`, `version`, the commands of other programs.

use serde_json::json;
use wharf_testkit::test_home::TestHome;

use crate::support::{WHARF, boom, run, shell, working};

/// U10.
#[test]
fn tool_with_one_server_needs_no_server() {
    let mut other = working();
    other["includeTools"] = json!(["add"]);
    let home = TestHome::with_servers(&json!({ "quay": working(), "pier": other, "boom": boom() }));
    // The second round reads cached catalogs, except that of the server that never started.
    for _ in 0..2 {
        for (words, expected) in [
            (&["call", "echo", "text=ahoy"][..], "ahoy\n"),
            (&["call", "echo(text: \"ahoy\")"], "ahoy\n"),
            (&["call", "echo", "--text", "ahoy"], "ahoy\n"),
        ] {
            let ran = home.run(words);
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), expected), "{words:?}: {ran:?}");
        }
        let ran = home.run(["call", "add", "a=1", "b=2"]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains("`quay.add`") && ran.stderr.contains("`pier.add`"), "{ran:?}");
        let ran = home.run(["call", "ecko", "text=ahoy"]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains("no server and no tool named `ecko`") && ran.stderr.contains("`echo`"), "{ran:?}");
    }
}

/// A server that never answers is not waited for once another has the tool.
#[test]
fn call_by_tool_name_does_not_wait_for_a_silent_server() {
    let home = TestHome::with_servers(&json!({ "quay": working(), "silent": shell("exec sleep 1000") }));
    let called = home.run_line("call echo text=hi --timeout 600");
    assert_eq!((called.code, called.stdout.trim()), (Some(0), "hi"), "{called:?}");
    assert!(called.stderr.contains("silent is not ready yet"), "{called:?}");
}

/// U10.
#[test]
fn cached_catalogs_start_only_the_owner_of_a_tool() {
    let home = TestHome::new();
    let mark = home.path("started");
    let mut marked = shell(&format!("echo x >> {}; exec {WHARF} demo-server --stdio", mark.display()));
    marked["excludeTools"] = json!(["echo"]);
    home.configure(&json!({ "quay": working(), "pier": marked }));
    assert_eq!(home.run(["tools"]).code, Some(0));
    let ran = home.run(["call", "echo", "text=ahoy"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "ahoy\n"), "{ran:?}");
    assert_eq!(std::fs::read_to_string(&mark).unwrap().lines().count(), 1);
}

/// U10.
#[test]
fn search_shows_the_best_matches_only() {
    let home = TestHome::with_servers(&json!({ "quay": working() }));
    let names = |args: &[&str]| -> Vec<String> {
        let document = home.run(["tools", "--json"].iter().chain(args)).json();
        let items = document["items"].as_array().unwrap().iter();
        items.map(|item| item["name"].as_str().unwrap().to_owned()).collect()
    };
    let all = names(&[]).len();
    for (words, best) in
        [("add two numbers", "add"), ("list the tools of the client", "show_roots"), ("read a file", "")]
    {
        let found = names(&["--search", words]);
        assert!(best.is_empty() || found.first().is_some_and(|name| name == best), "{words}: {found:?}");
        assert!(found.len() * 4 <= all, "{words}: {} of {all}: {found:?}", found.len());
    }
}

/// U10.
#[test]
fn unknown_tool_says_how_many_names_are_not_listed() {
    let home = TestHome::with_servers(&json!({ "quay": working() }));
    let ran = home.run(["call", "quay", "zzzzzz"]);
    assert!(ran.code == Some(2) && ran.stderr.contains(" and 12 more"), "{ran:?}");
}

/// U10.
#[test]
fn completion_has_tools_arguments_and_clients() {
    let home = TestHome::with_servers(&json!({ "quay": working() }));
    assert_eq!(home.run(["tools"]).code, Some(0));
    let names = |words: &[&str]| home.run(["complete-names", "--"].iter().chain(words)).stdout;
    let call = names(&["call"]);
    assert!(call.contains("quay\n") && call.contains("quay.echo\n"), "{call}");
    assert!(names(&["call", "quay"]).contains("echo\n"));
    assert_eq!(names(&["call", "quay.echo"]), "text=\n");
    assert_eq!(names(&["call", "quay", "echo"]), "text=\n");
    assert_eq!(names(&["call", "quay", "echo", "text=a"]), "");
    assert_eq!(names(&["call", "quay", "echo", "text", "="]), "");
    for words in [["run", "--allow"], ["approve", "--tool"]] {
        let tools = names(&words);
        assert!(tools.contains("quay.echo\n") && !tools.contains("quay\n"), "{words:?}: {tools}");
    }
    let clients = names(&["import"]);
    assert!(clients.contains("cursor\n") && clients.contains("vs-code\n"), "{clients}");
}

/// U10.
#[test]
fn log_items_name_their_source() {
    let home = TestHome::with_servers(&json!({ "boom": boom() }));
    assert_eq!(home.run(["tools"]).code, Some(3));
    let document = home.run(["logs", "boom", "--json"]).json();
    let items = document["items"].as_array().unwrap();
    let source = |text: &str| {
        items.iter().find(|item| item["text"].as_str().unwrap().contains(text)).map(|item| &item["source"])
    };
    assert_eq!(source("missing API key"), Some(&json!("server")), "{document}");
    assert_eq!(source("exited"), Some(&json!("wharf")), "{document}");
}

/// U8.
#[test]
fn help_and_version_are_words() {
    for (word, option) in
        [(&["help"][..], &["--help"][..]), (&["help", "call"], &["call", "--help"]), (&["version"], &["--version"])]
    {
        let (by_word, by_option) = (run(word), run(option));
        assert_eq!((by_word.code, &by_word.stdout), (Some(0), &by_option.stdout), "{word:?}");
    }
}

/// U8.
#[test]
fn names_of_other_programs_are_suggested_by_meaning() {
    for (word, expected) in [
        ("doctor", "'why', 'status', 'validate'"),
        ("search", "'tools --search'"),
        ("gateway", "'serve'"),
        ("install", "'add', 'import'"),
    ] {
        let ran = run([word]);
        assert!(ran.code == Some(2) && ran.stderr.contains(expected), "{word}: {ran:?}");
    }
}

/// F11.
#[test]
fn tool_names_setting_is_used_in_lists() {
    let home = TestHome::new();
    let config = json!({ "toolNames": "<server>::<tool>", "mcpServers": { "quay": working() } });
    home.write(wharf_testkit::test_home::USER_CONFIG, &config.to_string());
    let ran = home.run(["tools"]);
    assert!(ran.code == Some(0) && ran.stdout.contains("\n  quay::echo "), "{ran:?}");
    let usual = TestHome::with_servers(&json!({ "quay": working() }));
    assert!(usual.run(["tools"]).stdout.contains("\n  echo "));
}

/// A server whose tool returns 9 MiB.
const LARGE: &str = r#"
import json, sys
tool = {"name": "large", "inputSchema": {"type": "object"}}
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, answer = message["method"], {"jsonrpc": "2.0", "id": message["id"]}
    if method == "initialize":
        answer["result"] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                            "serverInfo": {"name": "large", "version": "1"}}
    elif method == "tools/list":
        answer["result"] = {"tools": [tool]}
    elif method == "tools/call":
        answer["result"] = {"content": [{"type": "text", "text": "a" * (9 << 20)}]}
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    print(json.dumps(answer), flush=True)
"#;

/// F11.
#[test]
fn message_limit_is_raised_by_a_key() {
    let usual = json!({ "command": "python3", "args": ["-c", LARGE] });
    let mut raised = usual.clone();
    raised["maxMessageBytes"] = json!(32 << 20);
    let home = TestHome::with_servers(&json!({ "usual": usual, "raised": raised }));
    let ran = home.run(["call", "usual.large"]);
    assert_ne!(ran.code, Some(0), "{:?}", ran.stderr);
    let ran = home.run(["call", "raised.large"]);
    assert_eq!((ran.code, ran.stdout.len()), (Some(0), (9 << 20) + 1), "{:?}", ran.stderr);
}
