//! `add` and `add-json`.

use serde_json::{Value, json};
use wharf_testkit::pty::Terminal;
use wharf_testkit::test_home::{PROJECT_CONFIG, TestHome, USER_CONFIG};

fn entry(home: &TestHome, file: &str, id: &str) -> Value {
    let text: Value = serde_json::from_str(&home.read(file)).unwrap();
    text["mcpServers"][id].clone()
}

/// Each form people know, and the entry it makes.
#[test]
fn every_add_form_makes_the_expected_entry() {
    for (args, expected) in [
        (&["https://h/mcp"][..], json!({"url": "https://h/mcp"})),
        (&["--url", "https://h/mcp"], json!({"url": "https://h/mcp"})),
        (&["-t", "http", "https://h/mcp"], json!({"url": "https://h/mcp", "type": "http"})),
        (&["--transport", "sse", "--url", "https://h/sse"], json!({"url": "https://h/sse", "type": "sse"})),
        (
            &["https://h/mcp", "-H", "X-Id: 7", "--header", "Y=8"],
            json!({"url": "https://h/mcp", "headers": {"X-Id": "7", "Y": "8"}}),
        ),
        (&["-H", "X-Id=7", "https://${HOST}/mcp"], json!({"url": "https://${HOST}/mcp", "headers": {"X-Id": "7"}})),
        (&["--", "npx", "-y", "p"], json!({"command": "npx", "args": ["-y", "p"]})),
        (&["--", "npx", "-y", "p", "--json"], json!({"command": "npx", "args": ["-y", "p", "--json"]})),
        (&["docker", "--", "run", "-e", "X", "i"], json!({"command": "docker", "args": ["run", "-e", "X", "i"]})),
        (
            &["-e", "A=1=2", "-e", "B", "--", "node", "x.js"],
            json!({"command": "node", "args": ["x.js"], "env": {"A": "1=2"}, "envVars": ["B"]}),
        ),
        (
            &["-t", "stdio", "--command", "uvx", "--arg", "g", "--arg", "-v", "--cwd", "/tmp"],
            json!({"command": "uvx", "args": ["g", "-v"], "cwd": "/tmp"}),
        ),
        (
            &[
                "a",
                "--trust",
                "--lazy",
                "--enabled=false",
                "--request-timeout-ms",
                "9000",
                "--include-tools",
                "a,b*",
                "--exclude-tools",
                "c",
                "--description",
                "d",
            ],
            json!({"command": "a", "trust": true, "lazy": true, "enabled": false, "timeout": 9000, "includeTools": ["a", "b*"], "excludeTools": ["c"], "description": "d"}),
        ),
        (&["a", "--enabled"], json!({"command": "a"})),
        (&["--enabled", "--", "a"], json!({"command": "a"})),
        (&["--enabled", "false", "--", "echo", "x"], json!({"command": "echo", "args": ["x"], "enabled": false})),
        (&["--enabled", "true", "--", "echo", "x"], json!({"command": "echo", "args": ["x"]})),
        (&["--enabled", "false", "https://h/mcp"], json!({"url": "https://h/mcp", "enabled": false})),
        (
            &["https://h/", "--oauth-client-id", "me", "--oauth-scope", "a b", "--oauth-token-url", "https://t/"],
            json!({"url": "https://h/", "oauth": {"client_id": "me", "scope": "a b", "token_url": "https://t/"}}),
        ),
    ] {
        let home = TestHome::new();
        let ran = home.run_ok(&[&["add", "x"], args].concat());
        assert_eq!(entry(&home, PROJECT_CONFIG, "x"), expected, "{args:?}");
        let told = format!(
            "Added x in .wharf/config.json (project)\n  scope: {} only; --scope global adds it for all directories\n  \
             undo: wharf remove x\n  next: wharf test x\n",
            home.path("project").display()
        );
        assert!(ran.stderr.ends_with(&told), "{}", ran.stderr);
        let listed = home.run_ok(&["list", "--json"]).json();
        assert_eq!(listed["items"][0]["approved"], true, "{args:?}: {listed}");
    }
}

#[test]
fn invalid_add_is_reported_and_writes_nothing() {
    for (args, expected) in [
        (&["x"][..], "neither a URL nor a command was given"),
        (&["x y", "https://h/"], "an id has 1 to 64"),
        (&["x", "--enabled", "npx", "p"], "invalid value 'npx' for '--enabled [<BOOL>]'"),
        (&["x", "--enabled", "false"], "neither a URL nor a command was given"),
        (&["x", "https://h/", "-e", "A=1"], "--env does not apply to this kind of server"),
        (&["x", "-H", "A=1", "--", "npx"], "--header does not apply to this kind of server"),
        (&["x", "-H", "hush", "https://h/"], "--header needs a name and a value"),
        (&["x", "--url", "ftp://hush/"], "the URL is not an http:// or https:// URL"),
        (&["x", "https://h/", "more"], "a server at a URL takes no arguments"),
        (&["x", "https://h/", "--oauth-token-url", "hush"], "--oauth-token-url is not an http:// or https:// URL"),
        (&["x", "-e", "=1", "--", "npx"], "--env needs a name"),
        (&["x", " "], "`command` is empty"),
    ] {
        let home = TestHome::new();
        let ran = home.run([&["add"], args].concat());
        assert_eq!(ran.code, Some(2), "{args:?}: {ran:?}");
        assert!(ran.stderr.contains(expected) && !ran.stderr.contains("hush"), "{args:?}: {}", ran.stderr);
        assert!(!home.path(PROJECT_CONFIG).exists());
    }
}

#[test]
fn existing_id_needs_replace_which_can_be_undone() {
    let home = TestHome::new();
    home.run_ok(&["add", "x", "--scope", "global", "https://one/"]);
    let ran = home.run(["add", "x", "-s", "user", "https://two/"]);
    assert_eq!(ran.code, Some(2));
    let place = format!("{}:3:5", home.path(USER_CONFIG).display());
    assert!(ran.stderr.contains(&format!("server `x` already exists in {place}")), "{}", ran.stderr);
    let document = home.run_ok(&["add", "x", "-s", "global", "--replace", "--json", "https://two/"]).json();
    assert_eq!((&document["action"], &document["source"]), (&json!("replaced"), &json!("global")));
    assert_eq!(document["undo"], "wharf add-json x '{\"url\":\"https://one/\"}' --replace --scope global");
    home.run_ok(&["add-json", "x", "{\"url\":\"https://one/\"}", "--replace", "--scope", "global"]);
    assert_eq!(entry(&home, USER_CONFIG, "x"), json!({"url": "https://one/"}));
}

#[test]
fn same_id_in_another_layer_is_reported() {
    let home = TestHome::new();
    home.run_ok(&["add", "x", "https://project/"]);
    let ran = home.run_ok(&["add", "x", "--scope", "global", "https://global/"]);
    assert!(ran.stderr.contains("warning: the `x` of .wharf/config.json:3 is still in effect"), "{}", ran.stderr);
    let ran = home.run_ok(&["add", "x", "--replace", "https://other/"]);
    assert!(ran.stderr.contains("it replaces the `x` of ~/.config/wharf/config.json:3"), "{}", ran.stderr);
    let ran = home.run_ok(&["add", "y", "--scope", "local", "https://h/"]);
    assert!(ran.stderr.contains("scope `local` is not supported"), "{}", ran.stderr);
}

#[test]
fn literal_secret_in_project_file_is_warned_about() {
    for (args, warned) in [
        (&["-e", "TOKEN=hush", "--", "a"][..], Some("(env TOKEN)")),
        (&["a", "--api-key", "hush"], Some("(argument 2)")),
        (&["https://me:hush@h/", "-H", "Authorization: Bearer hush"], Some("(header Authorization, url)")),
        (&["-e", "TOKEN=${secret:t}", "-e", "MODE=fast", "--", "a"], None),
        (&["--scope", "global", "-e", "TOKEN=hush", "--", "a"], None),
    ] {
        let ran = TestHome::new().run_ok(&[&["add", "x"], args].concat());
        assert!(!ran.stderr.contains("hush"), "{}", ran.stderr);
        assert_eq!(ran.stderr.contains("holds a secret in clear text"), warned.is_some(), "{}", ran.stderr);
        assert!(warned.is_none_or(|warned| ran.stderr.contains(warned)), "{}", ran.stderr);
    }
}

#[test]
fn secrets_are_read_from_stdin_in_order() {
    let home = TestHome::new();
    let args = [
        "add",
        "x",
        "https://h/",
        "-H",
        "Y: -",
        "-H",
        "X: Bearer -",
        "--oauth-client-secret",
        "-",
        "--scope",
        "global",
    ];
    let ran = home.run_with_input(&args, "one\ntwo${x}\nthree\n");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let written = entry(&home, USER_CONFIG, "x");
    assert_eq!(written["headers"], json!({"Y": "one", "X": "Bearer two$${x}"}));
    assert_eq!(written["oauth"]["client_secret"], "three");
    let ran = TestHome::new().run_with_input(&["add", "x", "-e", "A=-", "--", "a"], "");
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("the secret for A is empty"), "{}", ran.stderr);
}

#[test]
fn typed_secret_is_not_echoed() {
    let home = TestHome::new();
    let mut terminal = Terminal::start_piped(&home.command(["add", "x", "-s", "global", "-e", "TOKEN=-", "--", "a"]));
    terminal.answer("Secret for TOKEN (not shown): ", "hush");
    let ended = terminal.end();
    assert_eq!(ended.code, Some(0), "{}", ended.shown);
    assert!(!ended.shown.contains("hush"), "{}", ended.shown);
    assert_eq!(entry(&home, USER_CONFIG, "x")["env"]["TOKEN"], "hush");
}

#[test]
fn json_entry_is_validated() {
    let home = TestHome::new();
    for (text, expected) in [
        ("{\"command\": hush}", "the entry is not valid JSON at line 1, column 13"),
        ("[]", "the entry is not a JSON object"),
        ("{\"type\": \"stdio\"}", "missing `command` in stdio server `x`"),
        ("{\"command\": \"a\", \"url\": \"http://h/\"}", "has both `command`"),
    ] {
        let ran = home.run(["add-json", "x", text]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(expected) && !ran.stderr.contains("hush"), "{}", ran.stderr);
        assert!(!home.path(PROJECT_CONFIG).exists());
    }
    let ran = home.run_with_input(&["add-json", "x", "-"], "{\"command\": \"a\", \"comand\": 1}");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("warning: unknown key `comand`; did you mean `command`?"), "{}", ran.stderr);
    assert_eq!(home.run_ok(&["list", "--json"]).json()["items"][0]["approved"], true);
}

#[test]
fn comments_are_preserved() {
    let home = TestHome::new();
    home.write(USER_CONFIG, "{\n  // mine\n  \"mcpServers\": {\n    \"a\": {\"command\": \"a\"} // kept\n  }\n}\n");
    home.run_ok(&["add", "b", "-s", "global", "https://h/"]);
    home.run_ok(&["remove", "a"]);
    let text = home.read(USER_CONFIG);
    assert!(text.contains("// mine") && text.contains("https://h/") && !text.contains("\"a\""), "{text}");
}

/// A server of the user's own starts elsewhere than where it was added: a relative program becomes absolute, and for
/// relative arguments the project's directory is offered.
#[test]
fn relative_paths_of_global_server_are_resolved_or_warned() {
    let home = TestHome::new();
    let words = ["add", "files", "--scope", "global", "--", "./server", "."];
    let ran = home.run(words);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("will not find `.` there") && ran.stderr.contains("--cwd '${project}'"), "{ran:?}");
    let server = home.path("project/server").display().to_string();
    assert_eq!(entry(&home, USER_CONFIG, "files"), json!({"command": server, "args": ["."]}));
    let words = ["add", "files", "--scope", "global", "--replace", "--", "./server", "."];
    let mut terminal = Terminal::start_piped(&home.command(words));
    terminal.answer("(needs one approval per project)? [y/N] ", "y");
    assert_eq!(terminal.end().code, Some(0));
    assert_eq!(entry(&home, USER_CONFIG, "files"), json!({"command": server, "args": ["."], "cwd": "${project}"}));
    // Adding it is the approval for the project it was added in.
    assert!(home.run(["list"]).stdout.contains("enabled"), "{:?}", home.run(["list"]));
}
