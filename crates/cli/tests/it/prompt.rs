//! `prompt`.

use crate::support::{REVISIONS, demo, run};

#[test]
fn prompt_expands_in_every_revision() {
    for revision in REVISIONS {
        let ran = run(["prompt", "welcome", "name=Ada", "--stdio", &demo(revision)]);
        let expected = "user:\nPlease welcome Ada aboard, in two friendly sentences with a nautical air.\n";
        assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), expected, ""));
    }
}

#[test]
fn json_output_has_the_documented_shape() {
    let document = run(["prompt", "review", "code=x", "--json", "--stdio", &demo("2026-07-28")]).json();
    assert_eq!(
        (&document["schema"], &document["server"], &document["prompt"]),
        (&1.into(), &"wharf".into(), &"review".into())
    );
    assert_eq!(document["messages"][0]["role"], "user");
    assert!(document["description"].is_string());
}

#[test]
fn argument_errors_are_specific() {
    let server = demo("2026-07-28");
    for (words, message) in [
        (["prompt", "review", "language=Rust"], "error: wharf: the prompt `review` needs `code`.\n"),
        (["prompt", "reviw", "code=x"], "error: wharf: no prompt named `reviw`.\n  hint: did you mean `review`?\n"),
        (["prompt", "review", "code:=1"], "error: `code` must be a string: prompts accept no other type.\n"),
    ] {
        let ran = run(words.into_iter().chain(["--stdio", &server]));
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.starts_with(message), "{ran:?}");
    }
}
