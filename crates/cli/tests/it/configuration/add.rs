//! `add` and `add-json`.

use serde_json::{Value, json};

use super::world::{PROJECT, USER, World};
use crate::terminal::at_terminal;

fn entry(world: &World, file: &str, id: &str) -> Value {
    let text: Value = serde_json::from_str(&world.read(file)).unwrap();
    text["mcpServers"][id].clone()
}

/// Each form people know, and the entry it makes.
#[test]
fn every_form_makes_the_same_entries() {
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
        (
            &["https://h/", "--oauth-client-id", "me", "--oauth-scope", "a b", "--oauth-token-url", "https://t/"],
            json!({"url": "https://h/", "oauth": {"client_id": "me", "scope": "a b", "token_url": "https://t/"}}),
        ),
    ] {
        let world = World::new();
        let ran = world.fine(&[&["add", "x"], args].concat());
        assert_eq!(entry(&world, PROJECT, "x"), expected, "{args:?}");
        let told = "Added x in .wharf/config.json (project)\n  undo: wharf remove x\n  next: wharf test x\n";
        assert!(ran.stderr.ends_with(told), "{}", ran.stderr);
        let listed = world.fine(&["list", "--json"]).json();
        assert_eq!(listed["items"][0]["approved"], true, "{args:?}: {listed}");
    }
}

#[test]
fn what_is_wrong_is_told_and_nothing_is_written() {
    for (args, expected) in [
        (&["x"][..], "neither a URL nor a command was given"),
        (&["x y", "https://h/"], "an id has 1 to 64"),
        (&["x", "https://h/", "-e", "A=1"], "--env does not apply to this kind of server"),
        (&["x", "-H", "A=1", "--", "npx"], "--header does not apply to this kind of server"),
        (&["x", "-H", "hush", "https://h/"], "--header needs a name and a value"),
        (&["x", "--url", "ftp://hush/"], "the URL is not an http:// or https:// URL"),
        (&["x", "https://h/", "more"], "a server at a URL takes no arguments"),
        (&["x", "https://h/", "--oauth-token-url", "hush"], "--oauth-token-url is not an http:// or https:// URL"),
        (&["x", "-e", "=1", "--", "npx"], "--env needs a name"),
        (&["x", " "], "`command` is empty"),
    ] {
        let world = World::new();
        let ran = world.run(&[&["add"], args].concat());
        assert_eq!(ran.code, Some(2), "{args:?}: {ran:?}");
        assert!(ran.stderr.contains(expected) && !ran.stderr.contains("hush"), "{args:?}: {}", ran.stderr);
        assert!(!world.path(PROJECT).exists());
    }
}

#[test]
fn an_id_is_taken_once_and_a_replacement_can_be_undone() {
    let world = World::new();
    world.fine(&["add", "x", "--scope", "global", "https://one/"]);
    let ran = world.run(&["add", "x", "-s", "user", "https://two/"]);
    assert_eq!(ran.code, Some(2));
    let place = format!("{}:3:5", world.path(USER).display());
    assert!(ran.stderr.contains(&format!("server `x` already exists in {place}")), "{}", ran.stderr);
    let document = world.fine(&["add", "x", "-s", "global", "--replace", "--json", "https://two/"]).json();
    assert_eq!((&document["action"], &document["source"]), (&json!("replaced"), &json!("global")));
    assert_eq!(document["undo"], "wharf add-json x '{\"url\":\"https://one/\"}' --replace --scope global");
    world.fine(&["add-json", "x", "{\"url\":\"https://one/\"}", "--replace", "--scope", "global"]);
    assert_eq!(entry(&world, USER, "x"), json!({"url": "https://one/"}));
}

#[test]
fn another_layer_with_the_id_is_told() {
    let world = World::new();
    world.fine(&["add", "x", "https://project/"]);
    let ran = world.fine(&["add", "x", "--scope", "global", "https://global/"]);
    assert!(ran.stderr.contains("warning: the `x` of .wharf/config.json:3 is still in effect"), "{}", ran.stderr);
    let ran = world.fine(&["add", "x", "--replace", "https://other/"]);
    assert!(ran.stderr.contains("it replaces the `x` of ~/.config/wharf/config.json:3"), "{}", ran.stderr);
    let ran = world.fine(&["add", "y", "--scope", "local", "https://h/"]);
    assert!(ran.stderr.contains("scope `local` is not supported"), "{}", ran.stderr);
}

#[test]
fn a_secret_in_a_projects_file_is_warned_about() {
    for (args, warned) in [
        (&["-e", "TOKEN=hush", "--", "a"][..], Some("(env TOKEN)")),
        (&["a", "--api-key", "hush"], Some("(argument 2)")),
        (&["https://me:hush@h/", "-H", "Authorization: Bearer hush"], Some("(header Authorization, url)")),
        (&["-e", "TOKEN=${secret:t}", "-e", "MODE=fast", "--", "a"], None),
        (&["--scope", "global", "-e", "TOKEN=hush", "--", "a"], None),
    ] {
        let ran = World::new().fine(&[&["add", "x"], args].concat());
        assert!(!ran.stderr.contains("hush"), "{}", ran.stderr);
        assert_eq!(ran.stderr.contains("holds a secret in clear text"), warned.is_some(), "{}", ran.stderr);
        assert!(warned.is_none_or(|warned| ran.stderr.contains(warned)), "{}", ran.stderr);
    }
}

#[test]
fn secrets_are_read_from_a_pipe_in_the_order_they_were_given() {
    let world = World::new();
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
    let ran = world.piped(&args, "one\ntwo${x}\nthree\n");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let written = entry(&world, USER, "x");
    assert_eq!(written["headers"], json!({"Y": "one", "X": "Bearer two$${x}"}));
    assert_eq!(written["oauth"]["client_secret"], "three");
    let ran = World::new().piped(&["add", "x", "-e", "A=-", "--", "a"], "");
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("the secret for A is empty"), "{}", ran.stderr);
}

#[test]
fn secrets_are_typed_unseen() {
    let world = World::new();
    let mut terminal = at_terminal(&world.command(&["add", "x", "-s", "global", "-e", "TOKEN=-", "--", "a"]));
    terminal.answer("Secret for TOKEN (not shown): ", "hush");
    let ended = terminal.end();
    assert_eq!(ended.code, Some(0), "{}", ended.shown);
    assert!(!ended.shown.contains("hush"), "{}", ended.shown);
    assert_eq!(entry(&world, USER, "x")["env"]["TOKEN"], "hush");
}

#[test]
fn json_is_checked_as_it_would_be_read() {
    let world = World::new();
    for (text, expected) in [
        ("{\"command\": hush}", "the entry is not valid JSON at line 1, column 13"),
        ("[]", "the entry is not a JSON object"),
        ("{\"type\": \"stdio\"}", "missing `command` in stdio server `x`"),
        ("{\"command\": \"a\", \"url\": \"http://h/\"}", "has both `command`"),
    ] {
        let ran = world.run(&["add-json", "x", text]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(expected) && !ran.stderr.contains("hush"), "{}", ran.stderr);
        assert!(!world.path(PROJECT).exists());
    }
    let ran = world.piped(&["add-json", "x", "-"], "{\"command\": \"a\", \"comand\": 1}");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("warning: unknown key `comand`; did you mean `command`?"), "{}", ran.stderr);
    assert_eq!(world.fine(&["list", "--json"]).json()["items"][0]["approved"], true);
}

#[test]
fn comments_survive() {
    let world = World::new();
    world.write(USER, "{\n  // mine\n  \"mcpServers\": {\n    \"a\": {\"command\": \"a\"} // kept\n  }\n}\n");
    world.fine(&["add", "b", "-s", "global", "https://h/"]);
    world.fine(&["remove", "a"]);
    let text = world.read(USER);
    assert!(text.contains("// mine") && text.contains("https://h/") && !text.contains("\"a\""), "{text}");
}

/// A server of the user's own starts elsewhere than where it was added: a relative program becomes absolute, and for
/// relative arguments the project's directory is offered.
#[test]
fn relative_paths_of_a_global_server_are_noticed() {
    let world = World::new();
    let words = ["add", "files", "--scope", "global", "--", "./server", "."];
    let ran = world.run(&words);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("will not find `.` there") && ran.stderr.contains("--cwd '${project}'"), "{ran:?}");
    let server = world.path("home/project/server").display().to_string();
    assert_eq!(entry(&world, USER, "files"), json!({"command": server, "args": ["."]}));
    let words = ["add", "files", "--scope", "global", "--replace", "--", "./server", "."];
    let mut terminal = at_terminal(&world.command(&words));
    terminal.answer("(needs one approval per project)? [y/N] ", "y");
    assert_eq!(terminal.end().code, Some(0));
    assert_eq!(entry(&world, USER, "files"), json!({"command": server, "args": ["."], "cwd": "${project}"}));
    // Adding it is the approval for the project it was added in.
    assert!(world.run(&["list"]).stdout.contains("enabled"), "{:?}", world.run(&["list"]));
}
