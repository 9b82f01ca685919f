//! `secret`, and that nothing shows one.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;
use wharf_testkit::pty::Terminal;
use wharf_testkit::test_home::{SHARED_CONFIG, TestHome, USER_CONFIG};

const KEPT: &str = "home/.config/wharf/secrets.json";

#[test]
fn secret_is_stored_listed_and_removed() {
    let home = TestHome::new();
    let ran = home.run_with_input(&["secret", "set", "github"], "hush\n");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""));
    let told =
        "Stored github in ~/.config/wharf/secrets.json, which only you can read\n  next: write ${secret:github} where";
    assert!(ran.stderr.starts_with(told) && !ran.stderr.contains("hush"), "{}", ran.stderr);
    assert_eq!(std::fs::metadata(home.path(KEPT)).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(home.run_ok(&["secret", "list"]).stdout, "github\n");
    assert_eq!(
        home.run_ok(&["secret", "list", "--json"]).json(),
        json!({"schema": 1, "ok": true, "items": [{"name": "github"}]})
    );
    let ran = home.run(["secret", "remove", "gihub"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("no secret named `gihub`") && ran.stderr.contains("did you mean `github`"), "{ran:?}");
    home.run_ok(&["secret", "remove", "github"]);
    assert_eq!(home.run_ok(&["secret", "list"]).stdout, "");
    assert_eq!(home.run_with_input(&["secret", "set", "a b"], "x").code, Some(2));
}

#[test]
fn typed_secret_is_not_echoed() {
    let home = TestHome::new();
    let mut terminal = Terminal::start_piped(&home.command(["secret", "set", "github"]));
    terminal.answer("Secret for github (not shown): ", "hush");
    let ended = terminal.end();
    assert_eq!(ended.code, Some(0), "{}", ended.shown);
    assert!(!ended.shown.contains("hush"), "{}", ended.shown);
    assert!(home.read(KEPT).contains("hush"));
}

/// Sixty secrets, in every place one may stand, are shown by nothing that is not told to.
#[test]
fn planted_secrets_are_never_shown_by_listings() {
    let (home, planted) = planted();
    assert_eq!(planted, 60);
    let mut commands: Vec<Vec<&str>> = vec![vec!["list"], vec!["validate"], vec!["list", "--scope", "project"]];
    commands.extend(["s0", "s1", "s2", "h0", "h1", "h2", "bad", "odd"].map(|id| vec!["get", id]));
    for command in commands {
        for json in [false, true] {
            let args: Vec<&str> = command.iter().copied().chain(json.then_some("--json")).collect();
            let ran = home.run(&args);
            check_unseen(&format!("{args:?}"), &format!("{}{}", ran.stdout, ran.stderr));
        }
    }
    let revealed = home.run_ok(&["list", "--json", "--reveal"]).stdout;
    let missing: Vec<usize> = (0..60).filter(|n| !revealed.contains(&format!("PLANTED{n:04}"))).collect();
    assert!(missing.is_empty(), "{missing:?}: {revealed}");
}

/// The same where servers are started and dialled: they repeat what they were given, and end.
#[test]
fn planted_secrets_are_never_shown_by_running_servers() {
    let (home, _) = planted();
    let trace = home.path("trace.jsonl");
    let trace = trace.to_str().unwrap();
    let mut commands = vec![
        vec!["status"],
        vec!["status", "--json"],
        vec!["status", "--brief", "--debug"],
        vec!["list", "--probe"],
        vec!["tools"],
        vec!["tools", "--debug", "--trace", trace],
        vec!["tools", "--json"],
        vec!["logs"],
        vec!["logs", "--json"],
        vec!["stats"],
    ];
    for id in ["s0", "h0", "bad", "odd"] {
        commands.extend([
            vec!["why", id],
            vec!["why", id, "--json"],
            vec!["test", id, "--debug"],
            vec!["call", id, "x"],
        ]);
        commands.extend([vec!["resources", id], vec!["call", id, "x", "--json"], vec!["read", id, "a:b"]]);
    }
    for args in commands {
        let ran = home.run(&args);
        check_unseen(&format!("{args:?}"), &format!("{}{}", ran.stdout, ran.stderr));
    }
    let logged = home.run_ok(&["logs", "s0"]).stdout;
    assert!(logged.contains("--api-key ***") && logged.contains("exited with code 3"), "{logged}");
    check_unseen(trace, &home.read("trace.jsonl"));
    for name in walk(&home.path("home/.local/state")) {
        check_unseen(&name.display().to_string(), &String::from_utf8_lossy(&std::fs::read(&name).unwrap()));
    }
}

#[track_caller]
fn check_unseen(what: &str, shown: &str) {
    let leaks: Vec<&str> = shown.split("PLANTED").skip(1).map(|rest| &rest[..4]).collect();
    assert!(leaks.is_empty(), "{what}: {leaks:?} in {shown}");
}

/// Every file below a directory.
fn walk(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

/// A home with secrets in it, and how many.
fn planted() -> (TestHome, usize) {
    let mut count = 0;
    let mut secret = || {
        count += 1;
        format!("PLANTED{:04}", count - 1)
    };
    let mut servers = Vec::new();
    for n in 0..3 {
        let entry = json!({
            "command": "sh",
            "args": ["-c", "printf '%s ' \"$@\" >&2; env >&2; exit 3", "x", "--api-key", secret(), format!("--token={}", secret()), "-H", format!("X-Id: {}", secret()),
                format!("https://me:{}@h/?k={}", secret(), secret()), "-e", format!("DB_PASSWORD={}", secret()),
                format!("postgres://u:{}@h/db", secret())],
            "env": {"A": secret(), "B": format!("x${{HOME}}{}", secret()), "C": format!("${{NONE:-{}}}", secret())},
        });
        servers.push((format!("s{n}"), entry));
    }
    for n in 0..3 {
        let entry = json!({
            "url": format!("http://{}@127.0.0.1:9/mcp?key={}#{}", secret(), secret(), secret()),
            "headers": {"Authorization": format!("Bearer {}", secret()), "X-Custom": secret()},
            "oauth": {"client_id": "me", "client_secret": secret()},
            "proxy": format!("http://p:{}@127.0.0.1:9/", secret()),
        });
        servers.push((format!("h{n}"), entry));
    }
    let bad = json!({"command": ["npx", secret()], "args": secret(), "env": {"A": [secret()]}, "url": secret()});
    servers.push(("bad".to_owned(), bad));
    let odd = json!({"command": "a", "heders": {"X": secret()}, "inner": [{"deep": secret()}], "password": secret(),
        "env": {"T": secret()}, "toolTimeouts": {"a": 1000}});
    servers.push(("odd".to_owned(), odd));
    let home = TestHome::new();
    let text = json!({"mcpServers": servers.iter().cloned().collect::<serde_json::Map<_, _>>()}).to_string();
    home.write(USER_CONFIG, &text);
    let shared = json!({"mcpServers": {"s0": {"command": "b", "env": {"A": secret()}}}});
    home.write(SHARED_CONFIG, &shared.to_string());
    (home, count)
}
