use super::*;
use wharf_wire::{JsonLimits, View as _};

const FORM: &str = r#"{"message":"Who are\nyou?\u001b[2J","requestedSchema":{"properties":{
    "name":{"type":"string","title":"Your name","description":"As on\nyour badge","minLength":1,"maxLength":9},
    "n":{"type":"integer","minimum":1,"maximum":20,"default":7},
    "c":{"oneOf":[{"const":"r","title":"Red"},{"const":"g"}],"default":"g"},
    "many":{"type":"array","items":{"enum":["x","y","z"]},"maxItems":2},
    "ok":{"type":"boolean"}},"required":["name","n"]}}"#;

fn form(text: &str) -> FormRequest {
    FormRequest::from_raw(RawJson::parse(text.to_owned()).unwrap(), &JsonLimits::default()).unwrap()
}

fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

/// Types lines in sequence. Returns the last step and all output.
fn run_lines(text: &str, lines: &[&str]) -> (DialogStep<ElicitationResponse>, String) {
    let form = form(text);
    let mut dialog = FormDialog::new("demo", &form);
    let mut step = dialog.begin();
    let mut shown = String::new();
    for line in lines {
        let DialogStep::Ask { say, prompt, .. } = &step else { panic!("no prompt waits for {line}") };
        shown.push_str(&format!("{}\n{prompt}{line}\n", plain(say)));
        step = dialog.on_input(DialogInput::Line((*line).to_owned()));
    }
    if let DialogStep::Ask { say, prompt, .. } = &step {
        shown.push_str(&format!("{}\n{prompt}", plain(say)));
    }
    (step, shown)
}

#[track_caller]
fn check(lines: &[&str], expected: &str) {
    let (step, shown) = run_lines(FORM, lines);
    let DialogStep::Done(answer) = step else { panic!("not done: {shown}") };
    assert_eq!(answer.to_raw().as_str(), expected, "{shown}");
}

/// Checks the output after the last line.
#[track_caller]
fn check_words(lines: &[&str], expected: &str) {
    let (step, shown) = run_lines(FORM, lines);
    let DialogStep::Ask { say, prompt, .. } = step else { panic!("done: {shown}") };
    assert_eq!(format!("{}\n{prompt}", plain(&say)), expected);
}

#[test]
fn whole_dialog_matches_the_transcript() {
    let (_, shown) = run_lines(FORM, &["Ada", "", "1", "1,3", "y"]);
    assert_eq!(
        shown,
        "\ndemo asks you:
  │ Who are
  │ you?\\u{1b}[2J
Enter accepts the value in [brackets]. Commands: :skip omits a field, :decline declines, :cancel cancels.

1 of 5: Your name (name)
  │ As on
  │ your badge
  text, from 1 to 9 characters, required
Your name: Ada

2 of 5: n
  a whole number, from 1 to 20, required
n [7]: \n
3 of 5: c
  choose one, by number or value, optional
    1. r (Red)
    2. g
c [g]: 1

4 of 5: many
  choose any, by numbers or values separated by commas, at most 2 of them, optional
    1. x
    2. y
    3. z
many [skip]: 1,3

5 of 5: ok
  yes or no, optional
ok [skip]: y

To be sent to demo:
  1. Your name (name): Ada
  2. n: 7
  3. c: r
  4. many: x, z
  5. ok: yes
Send? [Y]es / [e]dit / [d]ecline / [c]ancel: "
    );
}

#[test]
fn lines_become_content() {
    check(&["Ada", "", "", "", "", ""], r#"{"action":"accept","content":{"name":"Ada","n":7,"c":"g"}}"#);
    check(
        &["Ada", "20", "red", ":empty", "n", "yes"],
        r#"{"action":"accept","content":{"name":"Ada","n":20,"c":"r","many":[],"ok":false}}"#,
    );
    check(&["::-)", "", "", "", ":skip", "y"], r#"{"action":"accept","content":{"name":":-)","n":7,"c":"g"}}"#);
}

#[test]
fn decline_and_cancel_work_at_every_step() {
    check(&[":decline"], r#"{"action":"decline"}"#);
    check(&["Ada", "1", ":cancel"], r#"{"action":"cancel"}"#);
    for (line, action) in [("d", "decline"), ("No", "decline"), (":decline", "decline"), ("c", "cancel")] {
        check(&["Ada", "", "", "", "", line], &format!(r#"{{"action":"{action}"}}"#));
    }
    let form = form(FORM);
    assert_eq!(
        FormDialog::new("demo", &form).on_input(DialogInput::End),
        DialogStep::Done(ElicitationResponse::Cancel)
    );
}

#[test]
fn invalid_value_is_explained_and_asked_again() {
    check_words(&[""], "  this field is required. Use :decline or :cancel to answer without it\nYour name: ");
    check_words(&["0123456789"], "  must have at most 9 characters\nYour name: ");
    check_words(&["Ada", "21"], "  must be at most 20\nn [7]: ");
    check_words(&["Ada", "many"], "  must be a whole number\nn [7]: ");
    check_words(&["Ada", "1", "bl\u{1b}ue"], "  `bl\\u{1b}ue` is not one of the options\nc [g]: ");
    check_words(&["Ada", ":skip"], "  this field is required. Use :decline or :cancel to answer without it\nn [7]: ");
    check_words(&["Ada", "1", ":skip"], "  this field cannot be skipped: its default value would be sent\nc [g]: ");
    check_words(&[":empty"], "  must not be empty\nYour name: ");
    let orders =
        "  commands are :skip, :empty, :decline and :cancel. Type :: for a value that begins with a colon\nYour name: ";
    check_words(&[":quit"], orders);
    check(&["", "Ada", "x", "2", "", "", "", "y"], r#"{"action":"accept","content":{"name":"Ada","n":2,"c":"g"}}"#);
    let form = form(FORM);
    let DialogStep::Ask { say, .. } = FormDialog::new("demo", &form).on_input(DialogInput::Garbled) else {
        panic!("done")
    };
    assert_eq!(say, "  not valid UTF-8, please type it again");
}

#[test]
fn fields_can_be_edited_in_review() {
    let filled = ["Ada", "", "", "1", "y"];
    let with = |more: &[&'static str]| [&filled[..], more].concat();
    check(
        &with(&["e 2", "9", ""]),
        r#"{"action":"accept","content":{"name":"Ada","n":9,"c":"g","many":["x"],"ok":true}}"#,
    );
    check(
        &with(&["e many", ":skip", "edit Your name", "Bob", "y"]),
        r#"{"action":"accept","content":{"name":"Bob","n":7,"c":"g","ok":true}}"#,
    );
    check(
        &with(&["e", "", "3", "", "", ":skip", "y"]),
        r#"{"action":"accept","content":{"name":"Ada","n":3,"c":"g","many":["x"]}}"#,
    );
    for line in ["e 6", "e 0", "e nobody"] {
        let again = "  unknown field. Use its number, for example `e 2`\nSend? [Y]es / [e]dit / [d]ecline / [c]ancel: ";
        check_words(&with(&[line]), again);
    }
    let again = "  answer y, e, d or c. `e 2` edits the second field\nSend? [Y]es / [e]dit / [d]ecline / [c]ancel: ";
    check_words(&with(&["maybe"]), again);
}

#[test]
fn form_without_fields_asks_for_confirmation() {
    let (step, shown) = run_lines(r#"{"message":"Go on?","requestedSchema":{"properties":{}}}"#, &["y"]);
    assert_eq!(step, DialogStep::Done(ElicitationResponse::Accept(Some(RawJson::empty_object()))));
    assert!(shown.contains("demo asks only for a confirmation.\nAgree? [y]es"), "{shown}");
}

#[test]
fn empty_line_does_not_confirm_a_form_without_fields() {
    let text = r#"{"message":"Delete everything?","requestedSchema":{"properties":{}}}"#;
    for (lines, action) in [(&["y"][..], Some("accept")), (&[""], None), (&["e"], None), (&["", "d"], Some("decline"))]
    {
        let (step, shown) = run_lines(text, lines);
        let answered = match &step {
            DialogStep::Done(answer) => Some(answer.to_raw().as_str().contains(action.unwrap_or("nothing"))),
            DialogStep::Ask { .. } => None,
        };
        assert_eq!(answered, action.map(|_| true), "{lines:?}: {shown}");
    }
}

#[test]
fn numeric_values_are_chosen_by_value_only() {
    let text = r#"{"message":"m","requestedSchema":{"properties":{"size":{"enum":["2","1"]}}}}"#;
    let (step, shown) = run_lines(text, &["1", ""]);
    let DialogStep::Done(answer) = step else { panic!("{shown}") };
    assert_eq!(answer.to_raw().as_str(), r#"{"action":"accept","content":{"size":"1"}}"#);
    assert!(shown.contains("choose one, by value, optional\n    - 2\n    - 1\n"), "{shown}");
}

#[test]
fn server_text_stays_in_the_gutter() {
    let long = "x".repeat(20_000);
    let message = format!("a\\nSend? [Y]es\\r\\nb{}{long}", "\\n".repeat(60));
    let text = format!(
        r#"{{"message":"{message}","requestedSchema":{{"properties":{{"a\nb\u202e":{{"type":"string","title":"t\n\u001b]0;x","default":"d\n{long}"}}}}}}}}"#
    );
    let (_, shown) = run_lines(&text, &[""]);
    assert!(!shown.contains(|letter: char| letter.is_control() && letter != '\n'), "{shown}");
    assert!(shown.contains("  │ Send? [Y]es\n") && shown.contains("(message truncated)"), "{shown}");
    assert!(shown.contains("1 of 1: t\\n\\u{1b}]0;x (a\\nb\\u{202e})\n"), "{shown}");
    assert!(shown.len() < 5_000, "{}", shown.len());
}
