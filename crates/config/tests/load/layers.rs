//! What replaces what.

use wharf_config::{Layer, ServerApproval};
use wharf_spec::{ActivationState, ServerSpec};

use crate::support::{ConfigHome, file_name, told};

fn server(program: &str) -> String {
    format!(r#"{{"mcpServers": {{"one": {{"command": "{program}"}}}}}}"#)
}

/// The layers that take effect without anybody's approval, low to high.
#[test]
fn higher_layer_replaces_the_whole_entry() {
    let mut home = ConfigHome::new();
    home.write(
        "home/.mcp.json",
        r#"{"mcpServers": {"one": {"command": "a", "args": ["kept?"]}, "two": {"command": "b"}}}"#,
    );
    let program = |home: &ConfigHome| match home.resolve("one").unwrap().spec {
        ServerSpec::Stdio(stdio) => (stdio.program.into_string().unwrap(), stdio.args.len()),
        ServerSpec::Http(_) => panic!("no program"),
    };
    assert_eq!(program(&home), ("a".to_owned(), 1));
    home.write("home/config.json", &server("b"));
    assert_eq!(program(&home), ("b".to_owned(), 0));
    let flag = home.write("elsewhere/flag.yaml", "mcpServers: {one: {command: c}}\n");
    home.places.flags = vec![flag];
    assert_eq!(program(&home), ("c".to_owned(), 0));
    let flag = home.write("elsewhere/flag.toml", "[mcpServers.one]\ncommand = 'd'\n");
    home.places.flags.push(flag);
    assert_eq!(program(&home), ("d".to_owned(), 0));
    for (variable, expected) in [
        (r#"[{"name": "one", "command": "e"}]"#, "e"),
        (r#"{"one": {"command": "f"}}"#, "f"),
        (r#"{"mcpServers": {"one": {"command": "g"}}}"#, "g"),
    ] {
        home.places.variable = Some(variable.to_owned());
        assert_eq!(program(&home), (expected.to_owned(), 0));
    }
    let config = home.load();
    assert!(config.problems.is_empty(), "{:?}", config.problems);
    assert_eq!(config.servers.len(), 2);
    let beside: Vec<_> = config.beside.iter().map(|server| (server.layer, file_name(&server.place.file))).collect();
    assert_eq!(
        beside,
        [
            (Layer::Home, ".mcp.json"),
            (Layer::User, "config.json"),
            (Layer::Flag, "flag.yaml"),
            (Layer::Flag, "flag.toml")
        ]
        .map(|(layer, name)| (layer, name.to_owned()))
    );
    home.places.only_flags = true;
    home.places.variable = None;
    assert_eq!(home.load().servers.len(), 1);
}

#[test]
fn unapproved_project_entry_replaces_nothing() {
    let home = ConfigHome::new();
    home.write("home/config.json", &server("mine"));
    home.write("project/.mcp.json", &server("theirs"));
    home.write("project/.wharf/config.json", r#"{"mcpServers": {"new": {"command": "x"}}}"#);
    let config = home.load();
    assert_eq!(config.server("one").unwrap().layer, Layer::User);
    assert_eq!(config.server("one").unwrap().activation(), ActivationState::Enabled);
    let [theirs] = &config.beside[..] else { panic!("{:?}", config.beside) };
    assert_eq!((theirs.layer, theirs.approval), (Layer::ProjectShared, ServerApproval::Needed));
    assert_eq!(config.server("new").unwrap().activation(), ActivationState::Unapproved);
}

#[test]
fn disabling_entry_needs_no_approval() {
    let home = ConfigHome::new();
    home.write("home/config.json", &server("mine"));
    home.write("project/.mcp.json", r#"{"mcpServers": {"one": {"enabled": false}, "none": {"disabled": true}}}"#);
    let config = home.load();
    assert_eq!(config.server("one").unwrap().activation(), ActivationState::Disabled);
    assert_eq!(told(&config.problems), ["nothing_to_switch_off 1:44 none"]);
}

#[test]
fn whole_file_can_be_disabled() {
    let home = ConfigHome::new();
    home.write("home/.mcp.json", &server("lower"));
    let off =
        r#"{"version": 1, "mcp": {"enabled": false, "servers": {"one": {"command": "x"}, "two": {"command": "y"}}}}"#;
    home.write("home/config.json", off);
    let config = home.load();
    assert_eq!(config.server("one").unwrap().layer, Layer::Home);
    assert!(!config.server("two").unwrap().enabled);
}

#[test]
fn shared_file_in_home_directory_belongs_to_the_user() {
    let mut home = ConfigHome::new();
    home.write("home/.mcp.json", &server("mine"));
    home.places.project = home.path("home");
    assert_eq!(home.load().server("one").unwrap().approval, ServerApproval::NotNeeded);
}

#[test]
fn only_explicitly_named_files_must_exist() {
    let mut home = ConfigHome::new();
    assert!(home.load().problems.is_empty());
    home.places.user_was_named = true;
    home.places.flags = vec![home.path("none.json")];
    assert_eq!(told(&home.load().problems), ["missing_file 1:1", "missing_file 1:1"]);
}

#[test]
fn settings_are_user_only_and_rules_accumulate() {
    let home = ConfigHome::new();
    let text = r#"{"healthCheckMs": 5000, "toolNames": "<tool>@<server>", "model": "m",
        "permissions": [{"tool": "mcp__a__*", "action": "allow"}], "providers": {"x": {"format": "chat", "baseUrl": "u"}},
        "reconnect": {"attempts": 2}, "version": 1,
        "mcp": {"globalSettings": {"timeout": 7000}, "servers": {"one": {"command": "a"}, "two": {"command": "a", "timeout": 9000}}}}"#;
    home.write("home/config.json", text);
    home.write(
        "project/.mcp.json",
        r#"{"healthCheckMs": 1, "permissions": [{"tool": "*", "action": "deny"}], "mcpServers": {}}"#,
    );
    let config = home.load();
    assert_eq!(config.settings.tool_names.as_deref(), Some("<tool>@<server>"));
    let rules: Vec<_> = config.settings.rules.iter().map(|rule| (rule.action.as_str(), rule.from_project)).collect();
    assert_eq!(rules, [("allow", false), ("deny", true)]);
    assert_eq!(told(&config.problems), ["not_a_projects 1:2"]);
    let one = home.resolve("one").unwrap().settings;
    let millis = |time: Option<std::time::Duration>| time.map(|time| time.as_millis());
    assert_eq!((millis(one.health_check), millis(one.timeout)), (Some(5000), Some(7000)));
    assert_eq!(millis(home.resolve("two").unwrap().settings.timeout), Some(9000));
}
