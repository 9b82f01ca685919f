//! A protected server, from the prompt.

use std::hash::{BuildHasher as _, RandomState};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::json;
use wharf_testkit::authd::{AuthSwitches, Authd, visit};
use wharf_testkit::modeld::{Answer, Script};
use wharf_testkit::oracle::poll_until;
use wharf_testkit::pty::PATIENCE;
use wharf_testkit::repl::wait_for_state;

use super::agent_home::{AgentHome, all_allowed, answer};

#[test]
fn login_to_protected_server_survives_restart() {
    let authd = Authd::start(AuthSwitches::default()).unwrap();
    let home = AgentHome::new(Script::default())
        .with("permissions", all_allowed())
        .servers(json!({"guarded": {"url": authd.server_url()}}));
    let opened = with_browser(&home);
    let mut terminal = home.repl(&[]);
    // It is asked about by itself; what is typed before that can be seen counts for nothing.
    answer(&mut terminal, "Open the login page in your browser?", "y");
    log_in(&opened);
    wait_for_state(&mut terminal, "guarded", "ready");
    let shown = home.leave(terminal);
    for secret in authd.secrets() {
        assert!(!shown.contains(&secret), "a secret was shown");
    }
    let kept = home.path("home/.config/wharf/mcp-auth.json");
    assert_eq!(kept.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    home.model.push_answer(Answer::text("Nobody asked."));
    let mut terminal = home.repl(&[]);
    wait_for_state(&mut terminal, "guarded", "ready");
    terminal.line("Did anybody ask?");
    terminal.expect("Nobody asked.");
    let shown = home.leave(terminal);
    assert!(!shown.contains("Open the login page in your browser?"), "{shown}");
}

/// Whether it is asked about by itself or by `/mcp auth`, of a server that was there at first or came later.
#[test]
fn login_uses_the_configured_callback_port() {
    let authd = Authd::start(AuthSwitches::default()).unwrap();
    for by_hand in [false, true] {
        let port = unused_port();
        let guarded = json!({"url": authd.server_url(), "oauth": {"callback_port": port}});
        let home = AgentHome::new(Script::default()).servers(json!({}));
        let opened = with_browser(&home);
        let mut terminal = home.repl(&[]);
        terminal.expect("no servers");
        let home = home.servers(json!({"guarded": guarded}));
        terminal.expect("added guarded");
        if by_hand {
            answer(&mut terminal, "Open the login page in your browser?", "n");
            wait_for_state(&mut terminal, "guarded", "auth_required");
            terminal.line("/mcp auth guarded");
        }
        answer(&mut terminal, "Open the login page in your browser?", "y");
        let back = log_in(&opened);
        assert!(back.starts_with(&format!("http://127.0.0.1:{port}/callback?")), "{back}");
        wait_for_state(&mut terminal, "guarded", "ready");
        home.leave(terminal);
    }
}

/// A port that is free, and stays so until it is used: the system hands out higher ones only.
fn unused_port() -> u16 {
    let start = RandomState::new().hash_one("port") % 10_000;
    let mut ports = (20_000..30_000).cycle().skip(start as usize).take(10_000);
    ports.find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok()).expect("one of them is free")
}

/// Waits for the browser, and logs in at the page it was sent to; gives where that leads back to.
#[track_caller]
fn log_in(opened: &Path) -> String {
    assert!(poll_until(PATIENCE, || std::fs::read_to_string(opened).is_ok_and(|text| text.ends_with('\n'))));
    let page = std::fs::read_to_string(opened).unwrap();
    let back = visit(page.trim()).unwrap().expect("a login page sends back");
    visit(&back).unwrap();
    back
}

/// A browser that only notes where it was sent; gives where it does.
fn with_browser(home: &AgentHome) -> PathBuf {
    let opened = home.path("opened");
    let script = format!("#!/bin/sh\nprintf '%s\\n' \"$1\" > '{}'\n", opened.display());
    home.write_program("bin/xdg-open", &script);
    opened
}
