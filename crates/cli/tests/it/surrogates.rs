//! Lone surrogates, as a server sends them that cuts inside an emoji (L2).

use serde_json::Value;
use wharf_testkit::test_home::TestHome;

use crate::scripted::cutting;

const CUT: &str = r"\ud83d";

#[test]
fn lone_surrogate_is_shown_as_a_replacement_character() {
    let home = TestHome::new();
    let output = home.run(["call", "sign_in", "--stdio", &cutting()]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "a tide \u{fffd}\n"), "{output:?}");
}

#[test]
fn lone_surrogate_is_verbatim_in_json() {
    let home = TestHome::new();
    let output = home.run(["call", "sign_in", "--json", "--stdio", &cutting()]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stdout.contains(&format!("a tide {CUT}\"")), "{output:?}");
}

#[test]
fn tool_with_a_lone_surrogate_is_listed() {
    let home = TestHome::new();
    let listed = home.run(["tools", "--stdio", &cutting()]);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    assert!(listed.stdout.contains("sign_in") && listed.stdout.contains("Cut \u{fffd}"), "{listed:?}");
    let json = home.run(["tools", "--json", "--stdio", &cutting()]);
    assert!(json.stdout.contains(&format!("\"description\":\"{CUT}\"")), "{json:?}");
    let document: Value = serde_json::from_str(&json.stdout.replace(CUT, "")).unwrap();
    assert_eq!(document["withheld"].as_array().map_or(0, Vec::len), 0, "{document}");
}
