//! What a server sent comes out byte for byte.

use wharf_testkit::faultd::{ODD_RESULT, ODD_SCHEMA};

use crate::support::{faultd, run};

/// The text after a key of the odd result, up to another.
fn span<'a>(from: &str, to: &str) -> &'a str {
    let begin = ODD_RESULT.find(from).unwrap() + from.len();
    &ODD_RESULT[begin..ODD_RESULT.find(to).unwrap()]
}

#[test]
fn results_are_preserved_verbatim() {
    for era in ["modern", "legacy", "2024-11-05"] {
        let ran = run(["call", "odd", "--json", "--stdio", &faultd(&format!("fidelity --era {era}"))]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let content = span("\"content\":", ",\"structuredContent\"");
        let data = span("\"structuredContent\":", ",\"alpha\"");
        assert!(content.contains("hologram") && data.contains("12345678901234567890123"));
        assert!(ran.stdout.contains(&format!("\"content\":{content}")), "{ran:?}");
        assert!(ran.stdout.contains(&format!("\"data\":{data}")), "{ran:?}");
        assert!(ran.json()["output"].as_str().unwrap().starts_with("[hologram: "), "{ran:?}");
    }
}

#[test]
fn schemas_are_preserved_verbatim() {
    let ran = run(["tools", "--json", "--stdio", &faultd("fidelity")]);
    assert!(ran.stdout.contains(&format!("\"inputSchema\":{ODD_SCHEMA}")), "{ran:?}");
}

#[test]
fn arguments_are_preserved_verbatim() {
    let trace = crate::support::home().join("fidelity.jsonl");
    let odd = r#"{"b":"\u0041", "a":12345678901234567890123}"#;
    run(["call", "odd", "--args", odd, "--trace", trace.to_str().unwrap(), "--stdio", &faultd("fidelity")]);
    let trace = std::fs::read_to_string(trace).unwrap();
    assert!(trace.contains(r#""arguments":{"b":"\u0041","a":12345678901234567890123}"#), "{trace}");
}
