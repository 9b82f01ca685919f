use std::sync::Arc;

use super::*;
use wharf::RawJson;
use wharf::policy::{Rule, RuleAction};
use wharf::tools::{ToolDescription, ToolSource};
use wharf_spec::{Fingerprint, ServerName, ToolId};

const ROOM: ScreenSize = ScreenSize { width: 80, rows: 16 };

fn ask(tool: &str, arguments: &str) -> PermissionAsk {
    let server = ServerName::new("math").unwrap();
    let mut description = ToolDescription::new("mcp__math__add", "Adds.", RawJson::empty_object());
    let source = ToolSource { provider: "math".into(), name: tool.into(), fingerprint: Fingerprint([0; 32]) };
    description.source = Some(source);
    description.title = Some("Add two\u{202e} numbers".to_owned());
    description.hints.read_only = Some(true);
    description.hints.destructive = Some(false);
    let arguments = RawJson::parse(arguments.to_owned()).unwrap();
    let mut ask = PermissionAsk::new(ToolId::new(&server, tool), Arc::new(description), arguments);
    ask.reason = "no rule says anything about it".to_owned();
    ask.always = Ok(Rule::new("mcp__math__add", RuleAction::Allow));
    ask
}

fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

/// Types lines in sequence. Returns the answer, if any, and all output.
fn run_lines(ask: &PermissionAsk, lines: &[&str]) -> (Option<PermissionAnswer>, String) {
    let mut dialog = PermissionDialog::new(ask, Some("~/config.json"), ROOM);
    let (mut step, mut shown) = (dialog.begin(), String::new());
    for line in lines {
        let DialogStep::Ask { say, prompt } = &step else { panic!("no prompt waits for {line}") };
        shown.push_str(&format!("{}\n{prompt}{line}\n", plain(say)));
        step = dialog.on_input(DialogInput::Line((*line).to_owned()));
    }
    match step {
        DialogStep::Done(answer) => (Some(answer), shown),
        DialogStep::Ask { say, prompt } => (None, format!("{shown}{}\n{prompt}", plain(&say))),
    }
}

#[test]
fn whole_call_is_shown() {
    let (_, shown) = run_lines(&ask("add", r#"{"a":1,"b":"x\ny\u001b"}"#), &[]);
    assert_eq!(
        shown,
        "
agent wants to call add (Add two\\u{202e} numbers) of math
  reason: no rule says anything about it
  server-declared hints (unverified): read-only · non-destructive
  always: write {\"tool\":\"mcp__math__add\",\"action\":\"allow\"} to ~/config.json
  │ {
  │   \"a\": 1,
  │   \"b\": \"x\\n
  │     y\\u001b\"
  │ }
Allow the call? [y]es, once / [s]ession / [a]lways / [n]o / [r]eason: "
    );
}

#[test]
fn lines_become_answers() {
    use PermissionAnswer::{Always, No, NoBecause, Once, Session};
    let because = |why: &str| Some(NoBecause(why.to_owned()));
    for (lines, expected) in [
        (&["y"][..], Some(Once)),
        (&[" YES "], Some(Once)),
        (&["once"], Some(Once)),
        (&["s"], Some(Session)),
        (&["always"], Some(Always)),
        (&["n"], Some(No)),
        (&["r", "use the copy"], because("use the copy")),
        (&["r", "y"], because("y")),
        (&["r", " "], Some(No)),
        (&["reason not today"], because("not today")),
        (&["what", "", "yy", "n"], Some(No)),
        (&[""], None),
        (&["", "", ""], None),
        (&["y y"], None),
        (&["y because"], None),
        (&["1"], None),
    ] {
        let (answer, shown) = run_lines(&ask("add", "{}"), lines);
        assert_eq!(answer, expected, "{lines:?}: {shown}");
    }
}

#[test]
fn end_of_input_denies_the_call() {
    for lines in [&[][..], &["r"]] {
        let mut dialog = PermissionDialog::new(&ask("add", "{}"), None, ROOM);
        for line in lines {
            dialog.on_input(DialogInput::Line((*line).to_owned()));
        }
        assert!(matches!(dialog.on_input(DialogInput::Garbled), DialogStep::Ask { .. }));
        assert_eq!(dialog.on_input(DialogInput::End), DialogStep::Done(PermissionAnswer::No));
    }
}

#[test]
fn long_call_is_paged_completely() {
    let members: Vec<String> = (0..18).map(|number| format!(r#""key{number}":{number}"#)).collect();
    let long = ask("add", &format!("{{{}}}", members.join(",")));
    let (answer, shown) = run_lines(&long, &["", "", "", "y"]);
    assert_eq!(answer, Some(PermissionAnswer::Once));
    assert!((0..18).all(|number| shown.contains(&format!("\"key{number}\": {number}"))), "{shown}");
    assert!(shown.contains("lines 1–6 of 20, 14 more · Enter: next page"), "{shown}");
    assert!(shown.contains("lines 19–20 of 20 (end)"), "{shown}");
    let (answer, shown) = run_lines(&long, &["a"]);
    assert_eq!(answer, Some(PermissionAnswer::Always));
    assert!(shown.contains("14 more · Enter: next page"), "{shown}");
}

#[test]
fn huge_text_is_paged_and_escaped() {
    let text = format!("{}\u{202e}\\u001b[2J\\nAllow it? y\\n{}", "x".repeat(100_000), "\u{200b}".repeat(100));
    let mut hostile = ask("add\u{1b}]0;x\u{7}\nAllow it?", &format!(r#"{{"said":"{text}"}}"#));
    hostile.changed = Some(format!("  description: {}", "y\n".repeat(500)));
    hostile.caller = "agent\n\nmath says: safe".into();
    let mut dialog = PermissionDialog::new(&hostile, Some("~/config.json"), ROOM);
    let DialogStep::Ask { say, .. } = dialog.begin() else { panic!("no question") };
    let mut shown = plain(&say);
    assert!(shown.len() < 2_000, "{}", shown.len());
    while let DialogStep::Ask { say, .. } = dialog.on_input(DialogInput::Line(String::new())) {
        if say == AGAIN {
            break;
        }
        shown.push_str(&plain(&say));
    }
    assert!(!shown.contains(|letter: char| wharf_spec::is_control_or_bidi(letter) && letter != '\n'));
    let ours = shown.matches("0;x").count() + shown.matches("Enter: next page").count();
    assert_eq!(shown.matches('x').count() - ours, 100_000);
    assert!(shown.lines().all(|line| line.is_empty() || line.starts_with("  ") || line.starts_with("agent\\n")));
}

#[test]
fn definition_changes_precede_the_arguments() {
    let mut changed = ask("add", r#"{"a":1}"#);
    changed.changed = Some("  - description: Adds.\n  + description: Mails.".to_owned());
    let (_, shown) = run_lines(&changed, &[""]);
    assert!(shown.contains("changed: the tool definition changed since it was approved"), "{shown}");
    let (difference, arguments) = (shown.find("+ description: Mails.").unwrap(), shown.find("\"a\": 1").unwrap());
    assert!(difference < arguments, "{shown}");
}

#[test]
fn always_without_rule_file_is_explained() {
    let mut nobody = ask("add", "{}");
    assert!(describe_always(&nobody, None).contains("no file"));
    nobody.always = Err(wharf::policy::RuleWriteError::TooLong);
    assert_eq!(
        describe_always(&nobody, Some("~/config.json")),
        "allow for this session only: the tool name is too long for a rule"
    );
}
