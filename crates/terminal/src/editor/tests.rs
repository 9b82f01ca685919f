//! Tests of the editor on a pseudo-terminal. The test binary runs itself there with [`child`] as the program.

use std::io::Read as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use anstream::ColorChoice;
use wharf_testkit::pty::{Key, Terminal};

use super::*;
use crate::console::OutputMode;

/// A completer without candidates.
struct NoCandidates;

impl LineCompleter for NoCandidates {
    fn candidates(&self, typed: &str) -> (usize, Vec<Candidate>) {
        (typed.len(), Vec::new())
    }
}

/// Prints the input and reacts to a few commands.
#[tokio::test]
#[ignore = "a program for the other tests"]
async fn child() {
    let before = rustix::termios::tcgetattr(std::io::stdin()).unwrap();
    let console =
        Arc::new(Console::new(OutputMode { json: false, debug: false, info: false, color: ColorChoice::Never }));
    let completions = Arc::new(NoCandidates);
    let history = std::env::var_os("HISTORY").map(PathBuf::from);
    let mut editor = InputEditor::start(EditorOptions { console: console.clone(), history, completions }).unwrap();
    let mut status = 0;
    loop {
        let typed = editor.next().await;
        console.print(format_args!("heard {typed:?}")).unwrap();
        let EditorInput::Line { text, .. } = typed else {
            editor.resume();
            continue;
        };
        let field = |echo| InputField { echo, check: None, choices: vec!["maybe".to_owned(), "maybe not".to_owned()] };
        match text.as_str() {
            "ask" => editor.set_question(Some(field(EchoMode::Shown))),
            "secret" => editor.set_question(Some(field(EchoMode::Hidden))),
            "number" => {
                let check: InputCheck =
                    Arc::new(|text| text.parse::<u8>().map(drop).map_err(|_| "no number".to_owned()));
                editor.set_question(Some(InputField { check: Some(check), ..field(EchoMode::Shown) }));
            }
            "later" => {
                console.print("typed ahead?").unwrap();
                editor.resume();
                let mut line = String::new();
                std::fs::File::open(std::env::var_os("CUE").unwrap()).unwrap().read_to_string(&mut line).unwrap();
                console.print("asked in the middle").unwrap();
                editor.set_question(Some(field(EchoMode::Shown)));
                continue;
            }
            "busy" => {
                status += 1;
                console.show_status(&format!("busy {status}"));
            }
            "flood" => (0..2_000).for_each(|number| console.log_line(format_args!("aside {number}"))),
            "quit" => break,
            _ => editor.set_question(None),
        }
        editor.resume();
    }
    drop(editor);
    let after = rustix::termios::tcgetattr(std::io::stdin()).unwrap();
    let is_same = format!("{before:?}") == format!("{after:?}");
    console.print(format_args!("over, {}\n", if is_same { "as it was" } else { "changed" })).unwrap();
}

fn start(variables: &[(&str, &Path)]) -> Terminal {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["editor::tests::child", "--exact", "--ignored", "--nocapture"]);
    command.envs(variables.iter().copied());
    let mut terminal = Terminal::start(&command);
    terminal.expect("\u{203a} ");
    terminal
}

/// Quits and checks that the terminal is restored.
#[track_caller]
fn quit(mut terminal: Terminal) -> Vec<String> {
    terminal.line("quit");
    let ended = terminal.end();
    assert!(ended.shown.contains("over, as it was"), "{}", ended.shown);
    ended.rows
}

#[track_caller]
fn ends_with(terminal: &mut Terminal, expected: &[&str]) {
    terminal.expect_screen(|rows| {
        let rows: Vec<&str> = rows.iter().map(String::as_str).filter(|row| !row.is_empty()).collect();
        rows.ends_with(expected)
    });
}

#[test]
fn lines_are_read_and_the_terminal_is_restored() {
    let mut terminal = start(&[]);
    terminal.line("one");
    terminal.expect(r#"heard Line { text: "one", began: After }"#);
    terminal.expect("\u{203a} ");
    terminal.keys("two\\\rthree\x1b\rfour\r");
    terminal.expect(r#"heard Line { text: "two\nthree\nfour", began: After }"#);
    terminal.expect("\u{203a} ");
    terminal.keys("\x1b[200~```\na\r\nb\x1b[201~");
    terminal.keys("\r```\r");
    terminal.expect(r#"heard Line { text: "```\na\nb\n```", began: After }"#);
    terminal.expect("\u{203a} ");
    terminal.keys("thrown away");
    terminal.control('c');
    terminal.expect("heard Interrupt");
    terminal.expect("\u{203a} ");
    terminal.control('d');
    terminal.expect("heard End");
    terminal.expect("\u{203a} ");
    quit(terminal);
}

#[test]
fn status_line_is_above_the_prompt_and_removed() {
    let mut terminal = start(&[]);
    terminal.line("busy");
    ends_with(&mut terminal, &["busy 1", "\u{203a}"]);
    terminal.keys("half");
    ends_with(&mut terminal, &["busy 1", "\u{203a} half"]);
    terminal.key(Key::Enter);
    ends_with(&mut terminal, &["\u{203a} half", r#"heard Line { text: "half", began: After }"#, "busy 1", "\u{203a}"]);
    terminal.keys("more");
    terminal.control('c');
    ends_with(&mut terminal, &["\u{203a} more^C", "heard Interrupt", "busy 1", "\u{203a}"]);
    terminal.line("busy");
    ends_with(&mut terminal, &["busy 2", "\u{203a}"]);
    let rows = quit(terminal);
    assert_eq!(rows.iter().filter(|row| row.starts_with("busy")).count(), 0, "{rows:?}");
}

#[test]
fn output_flood_does_not_disturb_the_line() {
    let mut terminal = start(&[]);
    terminal.line("flood");
    terminal.expect("aside 0");
    terminal.keys("typing");
    terminal.expect("(1,800 more lines)");
    ends_with(&mut terminal, &["(1,800 more lines)", "\u{203a} typing"]);
    terminal.control('c');
    terminal.expect("heard Interrupt");
    let rows = quit(terminal);
    assert_eq!(rows.iter().filter(|row| row.starts_with("aside")).count(), 200);
}

#[test]
fn questions_have_their_own_prompt() {
    let mut terminal = start(&[]);
    terminal.line("secret");
    ends_with(&mut terminal, &[r#"heard Line { text: "secret", began: After }"#, "?"]);
    terminal.keys("hush");
    ends_with(&mut terminal, &["? \u{2022}\u{2022}\u{2022}\u{2022}"]);
    terminal.key(Key::Up);
    terminal.line("h");
    terminal.expect(r#"heard Line { text: "hushh", began: After }"#);
    assert!(!terminal.shown_text().split("heard").nth(1).unwrap().contains("hush"));
    terminal.expect("\u{203a} ");
    terminal.line("number");
    terminal.expect("? ");
    terminal.keys("x");
    ends_with(&mut terminal, &["? x  no number"]);
    terminal.key(Key::Backspace);
    terminal.keys("7");
    ends_with(&mut terminal, &["? 7"]);
    terminal.key(Key::Enter);
    terminal.expect("\u{203a} ");
    terminal.line("ask");
    terminal.expect("? ");
    terminal.keys("m\t");
    ends_with(&mut terminal, &["? maybe"]);
    terminal.key(Key::Tab);
    ends_with(&mut terminal, &["maybe      maybe not", "? maybe"]);
    terminal.key(Key::Enter);
    terminal.expect(r#"heard Line { text: "maybe", began: After }"#);
    quit(terminal);
}

#[test]
fn line_begun_before_a_question_is_not_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let cue = folder.path().join("cue");
    rustix::fs::mknodat(rustix::fs::CWD, &cue, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let mut terminal = start(&[("CUE", &cue)]);
    terminal.line("later");
    terminal.expect("typed ahead?");
    terminal.keys("ye");
    ends_with(&mut terminal, &["\u{203a} ye"]);
    std::fs::write(&cue, "now").unwrap();
    ends_with(&mut terminal, &["asked in the middle", "? ye"]);
    terminal.line("s");
    terminal.expect(r#"heard Line { text: "yes", began: Before }"#);
    quit(terminal);
}

#[test]
fn history_excludes_answers() {
    let folder = tempfile::tempdir().unwrap();
    let history = folder.path().join("state/history");
    let mut terminal = start(&[("HISTORY", &history)]);
    for line in ["one", " unseen", "secret"] {
        terminal.line(line);
        terminal.expect("heard");
        terminal.expect(if line == "secret" { "? " } else { "\u{203a} " });
    }
    terminal.line("hush");
    terminal.expect("heard");
    terminal.expect("\u{203a} ");
    quit(terminal);
    assert_eq!(std::fs::read_to_string(&history).unwrap(), "\"one\"\n\"secret\"\n\"quit\"\n");
    let mut terminal = start(&[("HISTORY", &history)]);
    terminal.keys(&Key::Up.sequence().repeat(3));
    ends_with(&mut terminal, &["\u{203a} one"]);
    terminal.control('c');
    terminal.expect("heard Interrupt");
    terminal.expect("\u{203a} ");
    terminal.control('r');
    terminal.keys("cre");
    terminal.expect("secret");
    terminal.key(Key::Enter);
    terminal.expect(r#"heard Line { text: "secret""#);
    terminal.expect("? ");
    quit(terminal);
}

#[test]
fn type_ahead_is_not_an_answer_on_a_terminal() {
    let mut terminal = start(&[]);
    terminal.keys("ask\ry\r");
    terminal.expect("heard");
    terminal.expect("? ");
    terminal.line("real");
    terminal.expect(r#"heard Line { text: "real", began: After }"#);
    assert_eq!(terminal.shown_text().matches("heard").count(), 2, "{}", terminal.shown_text());
    quit(terminal);
}
