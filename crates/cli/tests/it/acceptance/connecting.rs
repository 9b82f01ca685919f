//! Servers of every kind are found, called and let go of.

use serde_json::{Value, json};
use wharf_testkit::modeld::{Answer, Say, Script, When};
use wharf_testkit::oracle::poll_until;
use wharf_testkit::pty::PATIENCE;
use wharf_testkit::repl::wait_for_state;

use super::agent_home::{AgentHome, all_allowed, answer, demo};
use super::others::{Web, npm, overheard, pypi};
use crate::support::fault_server;

#[test]
fn npm_server_is_connected_and_called() {
    let home = AgentHome::new(
        Script::default().when(When::ToolResult("high at noon".into()), Answer::text("The tide is **high** at noon.")),
    );
    let chart = home.write("project/tide.txt", "high at noon\n");
    home.model.push_answer(Answer::call("read_text_file", json!({"path": chart})));
    let project = home.path("project").display().to_string();
    let entry = home.marked(npm("server-filesystem", &[&project]));
    home.write("project/.mcp.json", &json!({"mcpServers": {"files": entry}}).to_string());
    let home = home.with("permissions", all_allowed());
    let mut terminal = home.repl(&[]);
    answer(&mut terminal, "Approve files?", "y");
    terminal.expect("added files");
    let table = wait_for_state(&mut terminal, "files", "ready");
    let row = table.row("files");
    assert_eq!((row.transport, row.source), ("stdio", "project"));
    terminal.line("When is the tide high?");
    terminal.expect("files.read_text_file");
    terminal.expect("The tide is high at noon.");
    home.tells(2, &[Ok("high at noon")]);
    home.leave(terminal);
}

#[test]
fn http_server_is_connected_and_called() {
    let web = Web::start("--http");
    let home = adding(&web.url, "http");
    let mut terminal = home.repl(&[]);
    let table = wait_for_state(&mut terminal, "quay", "ready");
    assert_eq!(table.row("quay").transport, "http");
    terminal.line("What is the sum?");
    terminal.expect("It is 42.");
    home.leave(terminal);
    // The last word ends the session.
    let ended = web.has_said("DELETE /mcp");
    let (_, named) = ended.split_once(": ").unwrap();
    let requests = web.all_said("POST /mcp");
    let after = requests.iter().skip_while(|line| line.ends_with("no session"));
    let others: Vec<&String> = after.clone().filter(|line| !line.ends_with(named)).collect();
    assert!(named.starts_with("2025-") && named.ends_with(", session"), "{ended}");
    assert!(after.count() >= 3 && others.is_empty(), "each after the handshake names both: {requests:?}");
}

/// `mcp-server-time` has tools and nothing else: nothing else is asked of it, and it is told what it may ask of us.
#[test]
fn only_declared_capabilities_are_requested() {
    let home = AgentHome::new(Script::from_turns([Answer::text("I know.")]));
    let copy = home.path("sent.jsonl");
    let time = home.marked(pypi("mcp_server_time", &["--local-timezone", "UTC"]));
    let home = home.servers(json!({"time": overheard(time, &copy)}));
    let mut terminal = home.repl(&[]);
    wait_for_state(&mut terminal, "time", "ready");
    terminal.line("/resources time");
    terminal.line("/prompts time");
    terminal.line("What do you know?");
    terminal.expect("I know.");
    home.leave(terminal);
    let sent = std::fs::read_to_string(copy).unwrap();
    let messages: Vec<Value> = sent.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let methods: Vec<&str> = messages.iter().filter_map(|message| message["method"].as_str()).collect();
    let handshake = methods.iter().position(|method| *method == "initialize").unwrap();
    assert_eq!(methods[handshake + 1], "notifications/initialized", "{methods:?}");
    assert!(methods.contains(&"tools/list"), "{methods:?}");
    let unasked = |method: &&&str| {
        ["resources", "prompts", "completion", "logging"].iter().any(|other| method.starts_with(other))
    };
    assert_eq!(methods.iter().filter(unasked).count(), 0, "{methods:?}");
    let offered = &messages[handshake]["params"]["capabilities"];
    assert!(["roots", "sampling", "elicitation"].iter().all(|name| offered[name].is_object()), "{offered}");
}

#[test]
fn sse_server_is_connected_and_called() {
    let web = Web::start("--sse");
    let home = adding(&web.url, "sse");
    let mut terminal = home.repl(&[]);
    let table = wait_for_state(&mut terminal, "quay", "ready");
    assert_eq!(table.row("quay").transport, "sse");
    terminal.line("What is the sum?");
    terminal.expect("It is 42.");
    web.has_said("POST /messages");
    home.leave(terminal);
}

/// A model that adds by a server at an address.
fn adding(url: &str, way: &str) -> AgentHome {
    let script = Script::from_turns([Answer::call("add", json!({"a": 2, "b": 40}))])
        .when(When::ToolResult("42".into()), Answer::text("It is 42."));
    AgentHome::new(script).servers(json!({"quay": {"type": way, "url": url}})).with("permissions", all_allowed())
}

#[test]
fn several_servers_run_at_once() {
    let calls = Answer::call("mcp__demo__echo", json!({"text": "ahoy"}))
        .with_block(Say::call(
            "convert_time",
            json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}),
        ))
        .with_block(Say::call("mcp__quay__add", json!({"a": 2, "b": 40})));
    let script =
        Script::from_turns([calls]).when(When::ToolResult("ahoy".into()), Answer::text("All three have answered."));
    let web = Web::start("--http");
    let home = AgentHome::new(script).with("permissions", all_allowed());
    let (demo, time) = (home.marked(demo()), home.marked(pypi("mcp_server_time", &["--local-timezone", "UTC"])));
    let home = home.servers(json!({"demo": demo, "time": time, "quay": {"url": web.url}}));
    let mut terminal = home.repl(&[]);
    for server in ["demo", "time", "quay"] {
        wait_for_state(&mut terminal, server, "ready");
    }
    terminal.line("Ask all of them.");
    terminal.expect("All three have answered.");
    home.tells(2, &[Ok("ahoy"), Ok("T21:00:00+09:00"), Ok("42")]);
    home.leave(terminal);
}

#[test]
fn failing_servers_do_not_affect_the_others() {
    let script = Script::from_turns([Answer::call("echo", json!({"text": "ahoy"}))])
        .when(When::ToolResult("ahoy".into()), Answer::text("The others work."));
    let home = AgentHome::new(script).with("permissions", all_allowed());
    let demo = home.marked(demo());
    let dying = home.marked(json!({"command": "/bin/sh", "args": ["-c", "echo going down >&2; exit 3"]}));
    let nothing = json!({"args": ["neither command nor url"]});
    let home = home.servers(json!({
        "demo": demo, "dying": dying, "lost": {"command": "/nowhere/at/all"}, "bare": nothing,
    }));
    let mut terminal = home.repl(&[]);
    terminal.expect_screen(|rows| ["dying", "lost", "bare"].iter().all(|server| is_announced(rows, server)));
    wait_for_state(&mut terminal, "lost", "failed");
    wait_for_state(&mut terminal, "demo", "ready");
    terminal.line("Who works?");
    terminal.expect("The others work.");
    let shown = home.leave(terminal);
    assert_eq!(shown.matches("MCP server `lost` unavailable").count(), 1, "it is told once:\n{shown}");
    assert!(!shown.contains("panicked"), "{shown}");
}

fn is_announced(rows: &[String], server: &str) -> bool {
    rows.iter().any(|row| row.contains(&format!("MCP server `{server}` unavailable")))
}

#[test]
fn ctrl_c_leaves_no_processes() {
    let home = AgentHome::new(Script::default());
    let entries = (0..3).map(|number| (format!("demo{number}"), home.marked(demo())));
    let stubborn =
        home.marked(json!({"command": "/bin/sh", "args": ["-c", "trap '' INT TERM; while :; do read line; done"]}));
    let servers: serde_json::Map<_, _> = entries.chain([("stubborn".to_owned(), stubborn)]).collect();
    let home = home.servers(servers.into());
    let mut terminal = home.repl(&[]);
    wait_for_state(&mut terminal, "demo2", "ready");
    let count = |part: &str| home.processes().iter().filter(|line| line.contains(part)).count();
    let all_run = poll_until(PATIENCE, || count("trap ''") == 1 && count("demo-server") == 3);
    assert!(all_run, "{:?}", home.processes());
    terminal.control('c');
    terminal.expect("press Ctrl-C again to exit");
    terminal.control('c');
    let ended = terminal.end();
    assert_eq!(ended.code, Some(0), "{}", ended.shown);
    home.has_nobody_left();
}

#[test]
fn paged_lists_are_read_completely() {
    let home = AgentHome::new(Script::from_turns([Answer::text("Many pages.")]));
    let entry = home.marked(json!({"command": fault_server(), "args": ["stdio", "ok", "--pages", "5"]}));
    let home = home.servers(json!({"paged": entry}));
    let mut terminal = home.repl(&[]);
    wait_for_state(&mut terminal, "paged", "ready");
    terminal.line("What tools do you have?");
    terminal.expect("Many pages.");
    let request = home.request(1);
    let names: Vec<&str> = request.tool_names().into_iter().filter(|name| name.starts_with("mcp__paged__")).collect();
    assert_eq!(names.len(), 10, "six tools, and one on each further page: {names:?}");
    home.leave(terminal);
}

#[test]
fn hanging_call_times_out() {
    let script = Script::from_turns([Answer::call("slow", json!({"ms": 600_000}))])
        .when(When::ToolResult("".into()), Answer::text("I go on without it."));
    let home = AgentHome::new(script).with("permissions", all_allowed());
    let mut entry = home.marked(json!({"command": fault_server(), "args": ["stdio", "ok"]}));
    entry["toolTimeouts"] = json!({"slow": 500});
    let home = home.servers(json!({"slow": entry}));
    let mut terminal = home.repl(&[]);
    wait_for_state(&mut terminal, "slow", "ready");
    terminal.line("Take your time.");
    terminal.expect("I go on without it.");
    home.tells(2, &[Err("no response within 500 ms")]);
    home.leave(terminal);
}
