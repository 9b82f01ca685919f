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
    let mut command = home.command(["run", "--settle", "60", "--model", "anthropic", "go on"]);
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
fn project_server_inherits_no_rule_and_hint_names_one() {
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
fn approval_prompt_shows_replaced_entry_and_rules() {
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
fn commands_respect_deny_rules() {
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
fn model_needs_permission_for_unlisted_uris() {
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
fn invalid_project_rule_is_reported_and_calls_ask() {
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
}

/// The user's own rules are not guessed at: a command that connects stops, and says where the rule is.
#[test]
fn invalid_user_rule_stops_every_command_that_connects() {
    let home = TestHome::new();
    let rules = r#"{"tool": "mcp__", "action": "deny"}"#;
    home.write(USER_CONFIG, &format!(r#"{{"mcpServers": {{"mine": {}}}, "permissions": [{rules}]}}"#, demo_entry()));
    let told = "the server name after `mcp__` is missing";
    for command in [
        "call mine echo text=hi",
        "read mine demo://greeting",
        "prompt mine welcome name=Ada",
        "subscribe mine --count 1",
        "tools mine",
        "resources mine",
        "templates mine",
        "prompts mine",
        "status",
        "list --probe",
    ] {
        let ran = home.run_line(command);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{command}: {ran:?}");
        assert!(ran.stderr.contains(told) && ran.stderr.contains("wharf validate"), "{command}: {ran:?}");
    }
    for command in ["test mine --json", "why mine --json"] {
        let ran = home.run_line(command);
        let document = ran.json();
        assert_eq!((ran.code, &document["code"]), (Some(2), &json!("config.broken")), "{command}: {document}");
        let failed: Vec<_> = document["steps"].as_array().unwrap().iter().filter(|step| step["ok"] == false).collect();
        assert_eq!(failed.len(), 1, "{command}: {document}");
        assert_eq!(failed[0]["name"], "config");
        assert!(failed[0]["detail"].as_str().unwrap().contains(told), "{command}: {document}");
    }
}

fn run_in(home: &TestHome, directory: &str, words: &[&str]) -> CommandOutput {
    let mut command = home.command(words);
    CommandOutput::from(command.current_dir(home.path(directory)).output().unwrap())
}

/// U4: in a subdirectory of a repository, its servers are the same, under the same approval.
#[test]
fn project_servers_are_found_from_subdirectories_of_the_repository() {
    let home = TestHome::new();
    home.write("project/.git/HEAD", "ref: refs/heads/main");
    home.write("project/src/deep/lib.rs", "");
    home.write("project/.mcp.json", &format!(r#"{{"mcpServers": {{"docs": {}}}}}"#, demo_entry()));
    let state = |directory: &str| run_in(&home, directory, &["list", "--json"]).json()["items"][0]["state"].clone();
    assert_eq!(state("project/src/deep"), "unapproved");
    assert_eq!(run_in(&home, "project/src/deep", &["call", "docs.echo", "text=x"]).code, Some(5));
    approve(&home);
    assert_eq!((state("project"), state("project/src/deep")), (json!("enabled"), json!("enabled")));
    let ran = run_in(&home, "project/src/deep", &["call", "docs.echo", "text=ahoy"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "ahoy\n"), "{ran:?}");
    // A change of the file takes the approval back everywhere.
    home.write("project/.mcp.json", r#"{"mcpServers": {"docs": {"command": "other"}}}"#);
    assert_eq!(state("project/src/deep"), "changed");
}

/// U4: `add` in a subdirectory writes to the repository's root, and says where the server holds.
#[test]
fn add_in_a_subdirectory_writes_to_the_repository_root() {
    let home = TestHome::new();
    home.write("project/.git", "gitdir: elsewhere");
    home.write("project/src/lib.rs", "");
    let ran = run_in(&home, "project/src", &["add", "x", "--", "a"]);
    let told = format!("scope: {} and its subdirectories; --scope global", home.path("project").display());
    assert!(ran.stderr.contains(&told), "{}", ran.stderr);
    assert!(home.path("project/.wharf/config.json").exists() && !home.path("project/src/.wharf").exists());
    let listed = home.run_ok(&["list", "--json"]).json();
    assert_eq!((&listed["items"][0]["id"], &listed["items"][0]["state"]), (&json!("x"), &json!("enabled")));
}

/// U4: the home directory's own files are the user's, not a project's.
#[test]
fn home_directory_is_not_searched_from_below() {
    let home = TestHome::new();
    for file in ["home/.git/HEAD", "home/.wharf/config.json", ".mcp.json", ".git/HEAD"] {
        home.write(file, r#"{"mcpServers": {"x": {"command": "a"}}}"#);
    }
    home.write("home/notes/todo", "");
    let listed = run_in(&home, "home/notes", &["list", "--json"]).json();
    assert_eq!(listed["items"], json!([]));
}

/// F10: a probe of one scope starts no server of another.
#[test]
fn probe_of_a_scope_starts_only_its_servers() {
    let home = TestHome::new();
    let mine =
        home.write_program("home/mine", &format!("#!/bin/sh\ntouch {}\nsleep 60\n", home.path("started").display()));
    home.configure(&json!({ "mine": { "command": mine } }));
    home.write("project/.mcp.json", &format!(r#"{{"mcpServers": {{"docs": {}}}}}"#, demo_entry()));
    approve(&home);
    let ran = home.run_ok(&["list", "--probe", "--scope", "project"]);
    assert!(ran.stdout.contains("  docs  stdio      project  ✓ ready"), "{ran:?}");
    assert!(!home.path("started").exists() && !ran.stdout.contains("mine"), "{ran:?}");
    let document = home.run_ok(&["list", "--probe", "--scope", "project", "--json"]).json();
    let item = &document["items"][0];
    assert_eq!((&item["id"], &item["state"], &item["source"]), (&json!("docs"), &json!("ready"), &json!("project")));
    let ran = home.run(["list", "--probe", "--json", "--timeout", "100ms", "--scope", "global"]);
    assert_eq!(ran.code, Some(7), "{ran:?}");
    let document = ran.json();
    assert_eq!((&document["ok"], &document["items"][0]["id"]), (&json!(false), &json!("mine")));
    assert_eq!(document["items"].as_array().unwrap().len(), 1);
}
