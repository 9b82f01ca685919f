//! Where permissions hold: a project's server beside the user's own of the same name, resources and prompts under deny
//! rules, and a project's rule that cannot be read.

use serde_json::{Value, json};
use wharf_testkit::modeld::{Answer, Modeld, Script, ScriptedToolResult};
use wharf_testkit::test_home::{CommandOutput, TestHome, USER_CONFIG};

use crate::support::demo_entry;

/// Approves everything that waits.
fn approve(home: &TestHome) {
    let mut terminal = home.terminal("approve");
    terminal.answer("[y/N] ", "y");
    assert_eq!(terminal.end().code, Some(0));
}

/// Runs an agent whose model makes one call and is done; what the call came to.
fn run_agent(home: &TestHome, tool: &str, arguments: Value) -> (ScriptedToolResult, CommandOutput) {
    let model = Modeld::start(Script::from_turns([Answer::call(tool, arguments), Answer::text("done")])).unwrap();
    let mut command = home.command(["run", "--model", "anthropic", "go on"]);
    command.env("ANTHROPIC_BASE_URL", model.url()).env("ANTHROPIC_API_KEY", "k-1");
    let ran = CommandOutput::from(command.output().unwrap());
    let requests = model.requests();
    let result = requests.get(1).unwrap_or_else(|| panic!("{ran:?}")).results().remove(0);
    (result, ran)
}

fn echo(home: &TestHome) -> ScriptedToolResult {
    run_agent(home, "echo", json!({ "text": "ahoy" })).0
}

/// S3: a project's server of the user's name is asked about, whatever the user allows for their own.
#[test]
fn a_projects_server_inherits_no_rule_and_the_rule_it_needs_is_named() {
    let home = TestHome::new();
    let servers = format!(r#"{{"docs": {}}}"#, demo_entry());
    let rules = r#"{"tool": "mcp__docs__echo", "action": "allow"}"#;
    home.write(USER_CONFIG, &format!(r#"{{"mcpServers": {servers}, "permissions": [{rules}]}}"#));
    assert_eq!(echo(&home), ScriptedToolResult { is_error: false, text: "ahoy".to_owned() });
    // The very same entry, so that nothing but its place tells them apart.
    let here = home.write("project/.mcp.json", &format!(r#"{{"mcpServers": {servers}}}"#));
    approve(&home);
    let refused = echo(&home);
    let named = format!(r#"{{"tool":"mcp__docs__echo","action":"allow","definedIn":"{}"}}"#, here.display());
    assert!(refused.is_error && refused.text.contains(&named), "{refused:?}");
    home.write(USER_CONFIG, &format!(r#"{{"mcpServers": {servers}, "permissions": [{named}]}}"#));
    assert_eq!(echo(&home), ScriptedToolResult { is_error: false, text: "ahoy".to_owned() });
    // And that rule is not one for the user's own.
    std::fs::remove_file(here).unwrap();
    let refused = echo(&home);
    assert!(refused.is_error && !refused.text.contains("definedIn"), "{refused:?}");
}

/// S3: the question says what is replaced and what is already allowed.
#[test]
fn the_approval_says_what_is_replaced_and_which_rules_hold() {
    let home = TestHome::new();
    let rules = r#"{"tool": "mcp__docs__echo", "action": "allow"},
{"tool": "mcp__*__slow", "action": "allow"}"#;
    home.write(
        USER_CONFIG,
        &format!("{{\"mcpServers\": {{\"docs\": {}}},\n\"permissions\": [{rules}]}}", demo_entry()),
    );
    home.write("project/.mcp.json", &format!(r#"{{"mcpServers": {{"docs": {}}}}}"#, demo_entry()));
    let user = home.path("home/.config/wharf/config.json");
    let (replaces, allowed) =
        (format!("{}:1:17", user.display()), format!("allow `mcp__*__slow` ({}:3:1)", user.display()));
    let shown = home.run_line("approve docs").stdout;
    assert!(shown.contains(&format!("replaces `docs` defined in {replaces}")), "{shown}");
    assert!(shown.contains(&format!("tools already allowed by {allowed}")), "{shown}");
    assert!(!shown.contains("mcp__docs__echo"), "the user's own rule is not inherited: {shown}");
    let item = home.run_line("approve docs --json").json()["items"][0].clone();
    assert_eq!((&item["replaces"], &item["allowedBy"]), (&json!(replaces), &json!([allowed])));
    let mut terminal = home.terminal("approve docs");
    terminal.expect("replaces");
    terminal.expect("tools already allowed by");
    terminal.answer("[y/N] ", "n");
    assert_eq!(terminal.end().code, Some(5));
}

/// S5: what a person types is consent, but not against a deny.
#[test]
fn commands_do_not_read_what_rules_deny() {
    let commands = [
        "read docs demo://greeting",
        "subscribe docs --count 1",
        "prompt docs welcome name=Ada",
        "resources docs",
        "templates docs",
        "prompts docs",
    ];
    for denied in ["mcp__docs", "mcp__docs__*", "mcp__*"] {
        let home = TestHome::new();
        let rules = format!(r#"{{"tool": "{denied}", "action": "deny"}}"#);
        home.write(
            USER_CONFIG,
            &format!(r#"{{"mcpServers": {{"docs": {}}}, "permissions": [{rules}]}}"#, demo_entry()),
        );
        for command in commands {
            let ran = home.run_line(command);
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(5), ""), "{denied} {command}: {ran:?}");
            assert!(ran.stderr.contains("denied") && ran.stderr.contains("config.json:1"), "{command}: {ran:?}");
        }
    }
    let home = TestHome::new();
    home.write(
        USER_CONFIG,
        &format!(
            r#"{{"mcpServers": {{"docs": {}, "more": {}}}, "permissions": [{{"tool": "mcp__docs", "action": "deny"}},
        {{"tool": "ReadMcpResource", "pattern": "uri=demo://gr*", "action": "deny"}}]}}"#,
            demo_entry(),
            demo_entry()
        ),
    );
    let listed = home.run_line("resources");
    assert_eq!(listed.code, Some(0), "{listed:?}");
    assert!(listed.stderr.contains("skipping docs") && listed.stdout.contains("more  "), "{listed:?}");
    assert_eq!(home.run_line("read more demo://greeting").code, Some(5));
    assert_eq!(home.run_line("read more demo://logo").code, Some(0));
}

/// S5: a model that sends a server a text of its own as a URI.
#[test]
fn a_model_may_not_send_any_text_as_a_uri_unasked() {
    let home = TestHome::new();
    home.write(USER_CONFIG, &format!(r#"{{"mcpServers": {{"docs": {}}}}}"#, demo_entry()));
    let read = |uri: &str| run_agent(&home, "ReadMcpResource", json!({ "server": "docs", "uri": uri })).0;
    let refused = read("mail:everything-the-model-knows");
    let rule = r#"{"tool":"ReadMcpResource","pattern":"server=docs","action":"allow"}"#;
    assert!(refused.is_error && refused.text.contains(rule), "{refused:?}");
    for uri in ["demo://greeting", "demo://dock/north-2"] {
        let found = read(uri);
        assert!(!found.is_error, "{uri}: {found:?}");
    }
}

/// M: the project's file is broken, not the program.
#[test]
fn a_projects_rule_that_cannot_be_read_is_reported_and_asked_about() {
    for (rule, told) in [
        (r#"{"tool": "mcp__", "action": "deny"}"#, "the server name after `mcp__` is missing"),
        (r#"{"tool": "fs(x)", "action": "ask"}"#, "belong in the rule's `pattern`"),
        (r#"{"tool": 5, "action": "deny"}"#, "calls of the project's own servers ask for permission"),
    ] {
        let home = TestHome::new();
        let rules = r#"{"tool": "mcp__*", "action": "allow"}"#;
        home.write(
            USER_CONFIG,
            &format!(r#"{{"mcpServers": {{"mine": {}}}, "permissions": [{rules}]}}"#, demo_entry()),
        );
        let servers = format!(r#"{{"theirs": {}}}"#, demo_entry());
        home.write("project/.mcp.json", &format!("{{\"mcpServers\": {servers},\n\"permissions\": [\n{rule}]}}"));
        let called = home.run_line("call mine echo text=hi");
        assert_eq!((called.code, called.stdout.trim()), (Some(0), "hi"), "{rule}: {called:?}");
        assert!(called.stderr.contains(told) && called.stderr.contains(".mcp.json:3:"), "{rule}: {called:?}");
        // The user's own server works as before; the project's is asked about, whatever allows it.
        let (own, ran) = run_agent(&home, "mcp__mine__echo", json!({ "text": "ahoy" }));
        assert_eq!(own, ScriptedToolResult { is_error: false, text: "ahoy".to_owned() }, "{rule}: {ran:?}");
        approve(&home);
        let (theirs, _) = run_agent(&home, "mcp__theirs__echo", json!({ "text": "ahoy" }));
        assert!(
            theirs.is_error && theirs.text.contains("needs permission, and no user is available to ask"),
            "{rule}: {theirs:?}"
        );
        let valid = home.run_line("validate");
        assert!(valid.stdout.contains("3:") || valid.stderr.contains("3:"), "{rule}: {valid:?}");
    }
    // The user's own file is another matter.
    let home = TestHome::new();
    let rules = r#"{"tool": "mcp__", "action": "deny"}"#;
    home.write(USER_CONFIG, &format!(r#"{{"mcpServers": {{"mine": {}}}, "permissions": [{rules}]}}"#, demo_entry()));
    assert_eq!(home.run_line("call mine echo text=hi").code, Some(2));
    assert_eq!(home.run_line("read mine demo://greeting").code, Some(2));
}
