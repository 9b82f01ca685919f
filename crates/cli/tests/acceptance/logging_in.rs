//! A protected server, from the prompt.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;
use wharf_testkit::authd::{Authd, Switches, visit};
use wharf_testkit::modeld::{Answer, Script};
use wharf_testkit::oracle::until;
use wharf_testkit::pty::PATIENCE;

use crate::berth::{Berth, all_allowed, answer, await_state};

#[test]
fn a_protected_server_is_logged_in_at_and_stays_so() {
    let authd = Authd::start(Switches::default()).unwrap();
    let berth = Berth::new(Script::default())
        .with("permissions", all_allowed())
        .servers(json!({"guarded": {"url": authd.server_url()}}));
    let opened = with_browser(&berth);
    let mut terminal = berth.repl(&[]);
    await_state(&mut terminal, "guarded", "auth_required");
    terminal.line("/mcp auth guarded");
    answer(&mut terminal, "Open it in your browser?", "y");
    assert!(until(PATIENCE, || std::fs::read_to_string(&opened).is_ok_and(|text| text.ends_with('\n'))));
    let page = std::fs::read_to_string(&opened).unwrap();
    let back = visit(page.trim()).unwrap().expect("a login page sends back");
    visit(&back).unwrap();
    await_state(&mut terminal, "guarded", "ready");
    let shown = berth.leave(terminal);
    for secret in authd.secrets() {
        assert!(!shown.contains(&secret), "a secret was shown");
    }
    let kept = berth.path("home/.config/wharf/mcp-auth.json");
    assert_eq!(kept.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    berth.model.then(Answer::text("Nobody asked."));
    let mut terminal = berth.repl(&[]);
    await_state(&mut terminal, "guarded", "ready");
    terminal.line("Did anybody ask?");
    terminal.expect("Nobody asked.");
    let shown = berth.leave(terminal);
    assert!(!shown.contains("Open it in your browser?"), "{shown}");
}

/// A browser that only notes where it was sent; gives where it does.
fn with_browser(berth: &Berth) -> std::path::PathBuf {
    let opened = berth.path("opened");
    let script = format!("#!/bin/sh\nprintf '%s\\n' \"$1\" > '{}'\n", opened.display());
    let browser = berth.write("bin/xdg-open", &script);
    std::fs::set_permissions(browser, std::fs::Permissions::from_mode(0o755)).unwrap();
    opened
}
