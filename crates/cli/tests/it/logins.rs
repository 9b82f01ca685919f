//! Whose logins are whose, how they are shown, and what is said where one cannot be had or kept.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use wharf_testkit::authd::TokenBehaviour;
use wharf_testkit::test_home::{CommandOutput, SHARED_CONFIG, USER_CONFIG};

use crate::auth::{Scene, ended, sent_back, shown_address, visit};

impl Scene {
    /// Makes the user's configuration anew, with this entry.
    fn configure(&self, store: &str, docs: Value) {
        let servers = json!({ "docs": docs });
        self.home.write(USER_CONFIG, &json!({ "tokenStore": store, "mcpServers": servers }).to_string());
    }

    /// Writes what is kept, as somebody else would.
    fn keep(&self, text: &str) {
        std::fs::write(self.kept(), text).unwrap();
        std::fs::set_permissions(self.kept(), std::fs::Permissions::from_mode(0o600)).unwrap();
    }

    #[track_caller]
    fn check(&self, args: &[&str], code: i32, parts: &[&str]) -> CommandOutput {
        let ran = self.run(args);
        assert_eq!(ran.code, Some(code), "{args:?}: {ran:?}");
        for part in parts {
            assert!(ran.stderr.contains(part) || ran.stdout.contains(part), "{part:?} is missing: {ran:?}");
        }
        ran
    }
}

#[test]
fn project_server_has_separate_logins() {
    let scene = Scene::new();
    assert_eq!(scene.log_in(&["auth", "docs", "--yes"]).code, Some(0));
    let entry = json!({ "mcpServers": { "docs": { "url": scene.authd.server_url() } } });
    let file = scene.home.write(SHARED_CONFIG, &entry.to_string());
    let shown = scene.run(&["approve", "--json"]).json();
    let digest = shown["items"][0]["digest"].as_str().unwrap().to_owned();
    scene.check(&["approve", "docs", "--digest", &digest], 0, &[]);
    let token = "`headers` in its entry (or wharf add … --header 'Authorization=Bearer TOKEN')";
    scene.check(&["tools", "docs"], 4, &["wharf auth docs logs you in", token]);
    assert_eq!(scene.check(&["auth", "status", "docs", "--json"], 4, &[]).json()["ok"], false);
    assert_eq!(scene.log_in(&["auth", "docs", "--yes"]).code, Some(0));
    scene.check(&["tools", "docs"], 0, &[]);
    scene.check(&["logout", "docs"], 0, &["Logged out: "]);
    scene.check(&["tools", "docs"], 4, &[]);
    // The user's own was never touched.
    std::fs::remove_file(file).unwrap();
    scene.check(&["tools", "docs"], 0, &[]);
}

#[test]
fn login_of_a_file_entry_can_be_shown_and_removed() {
    let scene = Scene::new();
    let entry = json!({ "mcpServers": { "docs": { "url": scene.authd.server_url() } } });
    scene.home.write("project/other.json", &entry.to_string());
    scene.check(&["tools", "other.json:docs"], 4, &["other.json:docs logs you in"]);
    assert_eq!(scene.log_in(&["auth", "other.json:docs", "--yes"]).code, Some(0));
    scene.check(&["tools", "other.json:docs"], 0, &[]);
    scene.check(&["tools", "docs"], 4, &[]);
    scene.check(&["auth", "status", "other.json:docs"], 0, &["logged in", "file"]);
    std::fs::remove_file(scene.home.path("project/other.json")).unwrap();
    scene.check(&["auth", "status", "other.json:docs"], 0, &["logged in"]);
    scene.check(&["logout", "other.json:docs"], 0, &["Logged out: "]);
    scene.check(&["logout", "other.json:docs"], 2, &["no such file"]);
}

#[test]
fn next_steps_include_the_account() {
    let scene = Scene::new();
    scene.check(&["tools", "docs", "--account", "my work"], 4, &["wharf auth docs --account 'my work' logs you in"]);
    scene.check(&["auth", "status", "docs", "--account", "work"], 4, &["docs (work)", "none"]);
    scene.configure("file", json!({ "url": scene.authd.server_url(), "oauth": { "account": "work" } }));
    assert_eq!(scene.log_in(&["auth", "docs", "--account", "home", "--yes"]).code, Some(0));
    scene.check(&["tools", "docs"], 4, &["wharf auth docs --account work logs you in"]);
    scene.check(&["auth", "status", "docs"], 4, &["docs (home)", "docs (work)"]);
    scene.check(&["auth", "status"], 0, &["docs (home)", "docs (work)"]);
    scene.check(&["auth", "status", "docs", "--account", "home"], 0, &["docs (home)"]);
}

#[test]
fn unknown_server_is_an_error_unless_a_login_exists() {
    let scene = Scene::new();
    for args in [&["auth", "status", "notthere"][..], &["logout", "notthere"], &["logout", "notthere", "--all"]] {
        scene.check(args, 2, &["no server named `notthere`", "`docs`"]);
    }
    scene.check(&["auth", "status", "local"], 2, &["`wharf auth` applies to HTTP servers only"]);
    assert_eq!(scene.log_in(&["auth", "docs", "--yes"]).code, Some(0));
    let servers = json!({ "other": { "url": scene.authd.server_url() } });
    scene.home.write(USER_CONFIG, &json!({ "tokenStore": "file", "mcpServers": servers }).to_string());
    scene.check(&["auth", "status", "docs"], 0, &["logged in"]);
    assert_eq!(scene.check(&["auth", "status", "docs", "--json"], 0, &[]).json()["ok"], true);
    scene.check(&["logout", "docs"], 0, &["Logged out: docs"]);
    scene.check(&["logout", "docs"], 2, &["no server named `docs`"]);
}

#[test]
fn failed_browser_start_leaves_the_url_usable() {
    let scene = Scene::new();
    let browser = scene.home.write("bin/xdg-open", "#!/bin/sh\nexit 3\n");
    std::fs::set_permissions(browser, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut child = scene.home.command(["auth", "docs", "--yes"]).spawn().unwrap();
    let mut talk = BufReader::new(child.stderr.take().unwrap());
    let page = shown_address(&mut talk);
    let said = |line: std::io::Result<String>| line.unwrap().contains("could not start a browser");
    assert!((&mut talk).lines().any(said), "nothing was said");
    visit(&sent_back(&page));
    let ran = ended(child, talk);
    assert!(ran.code == Some(0) && ran.stderr.contains("Logged in: docs"), "{ran:?}");
}

#[test]
fn missing_keyring_still_lists_logins() {
    let scene = Scene::new();
    scene.configure("keyring", json!({ "url": scene.authd.server_url() }));
    scene.keep(r#"{"version":1,"servers":{"docs":{"accounts":{"":{"in_keyring":true}}}}}"#);
    let bin = scene.home.path("bin");
    let mut status = scene.home.command(["auth", "status"]);
    let ran = CommandOutput::from(status.env("PATH", bin).output().unwrap());
    assert!(
        ran.code == Some(0) && ran.stderr.contains("the keyring cannot be used: no system keyring found"),
        "{ran:?}"
    );
    assert!(ran.stdout.contains("docs") && ran.stdout.contains("keyring"), "{ran:?}");
}

#[test]
fn unreadable_logins_are_reported_and_recoverable() {
    let scene = Scene::new();
    scene.keep(r#"{"version":1,"servers":{"docs":{"accounts":{"":{"current":5}}}}}"#);
    scene.check(&["logout", "docs"], 0, &["Logged out: docs", "could not be read"]);
    scene.check(&["logout", "docs"], 0, &["No login stored for docs"]);
    scene.keep("no JSON");
    scene.check(
        &["auth", "status"],
        1,
        &["is damaged", "`wharf auth SERVER` moves the damaged file aside and logs in again"],
    );
    scene.check(&["logout", "docs"], 1, &["is damaged", "moves the damaged file aside and logs in again"]);
    assert_eq!(scene.log_in(&["auth", "docs", "--yes"]).code, Some(0));
    let aside = scene.kept().with_file_name("mcp-auth.json.damaged-1");
    assert_eq!(std::fs::read_to_string(aside).unwrap(), "no JSON");
}

#[test]
fn unwritable_login_store_is_reported() {
    let scene = Scene::new();
    std::fs::create_dir(scene.kept()).unwrap();
    let login = scene.check(&["auth", "docs", "--yes"], 1, &["mcp-auth.json"]);
    assert!(!login.stderr.contains("Logged in"), "{login:?}");
}

#[test]
fn unavailable_authorization_server_is_not_a_server_exit() {
    let scene = Scene::new();
    assert_eq!(scene.log_in(&["auth", "docs", "--yes"]).code, Some(0));
    scene.authd.change_switches(|switches| switches.refresh = TokenBehaviour::ServerError);
    scene.authd.expire_access_tokens();
    let why = scene.check(&["why", "docs"], 3, &["login.unavailable", "retry later"]);
    assert!(!why.stdout.contains("spawn"), "{why:?}");
    scene.check(&["tools", "docs"], 3, &["the authorization server is unreachable"]);
}

#[test]
fn missing_scope_is_named_in_the_hint() {
    let scene = Scene::new();
    assert_eq!(scene.log_in(&["auth", "docs", "--account", "work", "--yes"]).code, Some(0));
    scene.authd.require_scope("mcp:write");
    let expected = "wharf auth docs --account work --scope mcp:write requests the missing scope";
    scene.check(&["call", "docs", "echo", "text=hi", "--account", "work"], 4, &[expected]);
}
