//! `read`.

use serde_json::json;

use crate::support::{REVISIONS, assert_harmless, demo, run};

#[test]
fn resource_is_read_in_every_revision() {
    for revision in REVISIONS {
        let ran = run(["read", "demo://greeting", "--stdio", &demo(revision)]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Ahoy! Welcome to the Wharf demo server.\n"));
        let ran = run(["read", "demo://nothing", "--stdio", &demo(revision)]);
        assert_eq!(ran.code, Some(6));
        assert!(ran.stderr.starts_with("error: wharf: server returned an error: unknown resource"), "{ran:?}");
    }
}

#[test]
fn json_output_has_the_documented_shape() {
    let document = run(["read", "demo://dock/north-2", "--json", "--stdio", &demo("2026-07-28")]).json();
    let text = "At berth north-2 lies the ferry Hourly.";
    let expected = json!({
        "schema": 1, "ok": true, "server": "wharf", "uri": "demo://dock/north-2",
        "contents": [{"uri": "demo://dock/north-2", "mimeType": "text/plain", "text": text}],
    });
    assert_eq!(document, expected);
}

#[test]
fn binary_content_is_a_reference_and_errors_are_escaped() {
    let server = demo("2025-11-25");
    assert_eq!(
        run(["read", "demo://logo", "--stdio", &server]).stdout,
        "[binary: demo://logo, image/png, 120 bytes]\n"
    );
    let ran = run(["read", "demo://\u{1b}[2J\u{2066}", "--stdio", &server]);
    assert_harmless(&ran.stderr);
    assert!(ran.stderr.contains("\\u{1b}[2J\\u{2066}"), "{ran:?}");
}
