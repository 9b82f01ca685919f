//! The pseudo-terminal, with the system's own shell and programs on it.

use std::process::Command;

use wharf_testkit::pty::{Key, Layout, StdoutTarget, Terminal};

const WIDE: Layout = Layout { rows: 5, columns: 120, stdout: StdoutTarget::Terminal };

#[test]
fn what_is_typed_is_echoed_and_answered() {
    let mut terminal = Terminal::start(&Command::new("/bin/cat"));
    terminal.line("Ahoy");
    assert_eq!(terminal.expect("hoy\n"), "Ahoy\n");
    assert_eq!(terminal.expect("hoy\n"), "Ahoy\n");
    terminal.keys("x");
    terminal.key(Key::Backspace);
    terminal.line("y");
    terminal.expect_screen(|rows| rows[..4] == ["Ahoy", "Ahoy", "y", "y"]);
    terminal.control('d');
    let ended = terminal.end();
    assert_eq!(ended.code, Some(0));
    assert!(ended.shown.starts_with("Ahoy\nAhoy\n"), "{ended:?}");
    assert_eq!(ended.rows.len(), 24);
}

#[test]
fn all_three_streams_are_the_terminal_and_it_has_a_size() {
    let mut terminal = shell("test -t 0 && test -t 1 && test -t 2 && stty size; echo $TERM $HOME.", WIDE);
    terminal.expect("5 120\nxterm-256color .\n");
    assert_eq!(terminal.end().code, Some(0));
}

#[test]
fn standard_output_can_be_kept_apart() {
    let terminal =
        shell("seq 20000; test -t 1 || echo talk >&2; exit 3", Layout { stdout: StdoutTarget::Pipe, ..WIDE });
    let ended = terminal.end();
    assert_eq!((ended.code, ended.shown.as_str()), (Some(3), "talk\n"));
    assert!(ended.stdout.ends_with("19999\n20000\n"));
}

#[test]
fn control_c_is_a_signal() {
    let mut terminal = shell("trap 'echo caught; exit 7' INT; echo ready; while :; do sleep 0.05; done", WIDE);
    terminal.expect("ready");
    terminal.control('c');
    terminal.expect("caught");
    assert_eq!(terminal.end().code, Some(7));
}

#[test]
fn a_new_size_is_told() {
    let mut terminal = shell("trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.05; done", WIDE);
    terminal.expect("ready");
    terminal.resize(7, 33);
    terminal.expect("7 33");
    assert_eq!(terminal.screen().len(), 7);
}

#[test]
fn escapes_are_drawn_and_kept_but_not_expected() {
    let mut terminal = shell(r"printf '\033[31mred\033[0m wine\nlost\033[1;1H\033[2Kwhite\n'; read line", WIDE);
    terminal.expect("red wine\n");
    terminal.expect_screen(|rows| rows[..2] == ["white", "lost"]);
    assert_eq!(terminal.view().cursor_position(), (1, 0));
    terminal.line("");
    let ended = terminal.end();
    assert!(ended.bytes.windows(8).any(|bytes| bytes == b"\x1b[31mred"), "{ended:?}");
}

#[test]
fn what_has_left_the_screen_can_be_scrolled_to() {
    let ended = shell("seq 1 12", WIDE).end();
    let numbers: Vec<String> = (1..=12).map(|number| number.to_string()).collect();
    assert_eq!(ended.rows[..12], numbers[..]);
}

#[test]
fn a_line_that_was_broken_is_put_together_again() {
    let long = "ahoy ".repeat(50) + "there";
    let ended = shell(&format!("printf '{long}\\n\\nshort\\n'"), WIDE).end();
    assert!(ended.rows[1].starts_with("ahoy") && ended.rows[2].ends_with("there"), "{:?}", ended.rows);
    assert_eq!(ended.text, format!("{long}\n\nshort"));
}

#[test]
fn dropping_it_ends_the_program() {
    let terminal = Terminal::start(&Command::new("/bin/cat"));
    let process = format!("/proc/{}", terminal.pid());
    assert!(std::fs::exists(&process).unwrap());
    drop(terminal);
    assert!(!std::fs::exists(&process).unwrap());
}

#[test]
#[should_panic(expected = "`never` was not shown before the program ended; screen:\nsomething else")]
fn what_does_not_come_is_said_with_what_did() {
    shell("echo something else", WIDE).expect("never");
}

fn shell(script: &str, layout: Layout) -> Terminal {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]).env("PATH", "/usr/bin:/bin");
    Terminal::start_with(&command, layout)
}
