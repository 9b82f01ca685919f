//! Questions on a real terminal. The process that sits at it is this test binary again, told by its environment what
//! to ask.

use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anstream::ColorChoice;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wharf_spec::Surroundings;
use wharf_wire::{Bounds, ElicitAnswer, Elicitation, Raw, View as _};

use super::{Asking, Opener, ask};
use crate::console::{Console, Manner};
use crate::signals::FirstSignal;

#[path = "../../tests/it/terminal.rs"]
mod terminal;

use terminal::{Ended, Terminal};

const REQUEST: &str = "WHARF_TEST_REQUEST";
/// Waits for somebody to type before it asks.
const HASTY: &str = "WHARF_TEST_HASTY";
/// Lets the form ask for secrets.
const SECRETS: &str = "WHARF_TEST_SECRETS";
const FORM: &str = r#"{"message":"Who are you?","requestedSchema":{"properties":{
    "name":{"type":"string","default":"Ada"},
    "color":{"enum":["red","green"]},
    "many":{"type":"array","items":{"enum":["x","y","z"]}}},"required":["color"]}}"#;

/// The side that asks; not a test of its own.
#[test]
#[ignore = "run by the others, on a terminal"]
fn asks() {
    let Ok(request) = std::env::var(REQUEST) else { return };
    let request = Elicitation::view(Raw::parse(request).unwrap(), &Bounds::default()).unwrap();
    let around = Surroundings { env: std::env::vars_os().collect(), cwd: "/".into() };
    let console = Console::new(Manner { json: false, debug: false, color: ColorChoice::Never });
    let (opener, allow_secrets) = (Opener::of(&around), around.var(SECRETS).is_some());
    let asking = Asking { console: &console, server: "demo", opener: &opener, allow_secrets };
    if around.var(HASTY).is_some() {
        console.say("type");
        poll(&mut [PollFd::new(&std::io::stdin(), PollFlags::IN)], None).unwrap();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let signal = FirstSignal::listen().unwrap();
        tokio::select! {
            () = signal.wait() => println!("\ninterrupted"),
            answer = ask(&asking, &request) => println!("\nanswer {}", answer.to_raw().get()),
        }
    });
}

fn command(request: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "question::tests::asks", "--ignored", "--nocapture"]);
    command.env_clear().env("PATH", "/usr/bin:/bin").env(REQUEST, request);
    command
}

fn asked(request: &str) -> Terminal {
    Terminal::run(&command(request))
}

#[track_caller]
fn check(terminal: Terminal, expected: &ElicitAnswer) -> Ended {
    let ended = terminal.end();
    let answer = ended.stdout.lines().find_map(|line| line.strip_prefix("answer "));
    assert_eq!(answer, Some(expected.to_raw().get()), "{ended:?}");
    ended
}

fn accepted(content: &'static str) -> ElicitAnswer {
    ElicitAnswer::Accept(Some(Raw::parse(content).unwrap()))
}

const SEND: &str = "[c]ancel: ";

#[test]
fn defaults_numbers_and_lists() {
    let mut terminal = asked(FORM);
    terminal.expect("demo asks you:");
    terminal.expect("Who are you?");
    terminal.answer("name [Ada]: ", "");
    terminal.answer("color: ", "2");
    terminal.answer("many [leave out]: ", "3,1");
    terminal.answer(SEND, "");
    check(terminal, &accepted(r#"{"name":"Ada","color":"green","many":["z","x"]}"#));
}

#[test]
fn values_a_mistake_and_a_correction() {
    let mut terminal = asked(FORM);
    terminal.answer("name [Ada]: ", "Zoë");
    terminal.answer("color: ", "blue");
    terminal.expect("`blue` is not among the options");
    terminal.answer("color: ", "red");
    terminal.answer("many [leave out]: ", "");
    terminal.expect("  1. name: Zoë");
    terminal.answer(SEND, "e 2");
    terminal.answer("color [red]: ", "green");
    terminal.expect("  2. color: green");
    terminal.answer(SEND, "y");
    check(terminal, &accepted(r#"{"name":"Zoë","color":"green"}"#));
}

#[test]
fn no_and_never_mind() {
    let mut terminal = asked(FORM);
    terminal.answer("name [Ada]: ", ":decline");
    check(terminal, &ElicitAnswer::Decline);
    let mut terminal = asked(FORM);
    terminal.answer("name [Ada]: ", ":cancel");
    check(terminal, &ElicitAnswer::Cancel);
    let mut terminal = asked(FORM);
    terminal.expect("name [Ada]: ");
    terminal.control('d');
    check(terminal, &ElicitAnswer::Cancel);
}

#[test]
fn what_was_typed_before_the_question_answers_nothing() {
    let url = r#"{"mode":"url","message":"Sign in","url":"https://a.example/"}"#;
    let mut terminal = Terminal::run(command(url).env("BROWSER", "/no/such/browser").env(HASTY, "1"));
    terminal.answer("type", "y");
    terminal.answer("[y/N/c]: ", "n");
    check(terminal, &ElicitAnswer::Decline);
}

#[test]
fn ctrl_c_abandons_the_question_and_leaves_a_clean_line() {
    let mut terminal = asked(FORM);
    terminal.expect("name [Ada]: ");
    terminal.control('c');
    let ended = terminal.end();
    assert!(ended.stdout.contains("\ninterrupted\n"), "{ended:?}");
    assert!(ended.shown.ends_with("name [Ada]: ^C\r\n"), "{ended:?}");
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn secrets_are_refused_unless_they_are_allowed() {
    let form = r#"{"message":"m","requestedSchema":{"properties":{"x":{"type":"string","title":"VPN pаssword"}}}}"#;
    let ended = check(asked(form), &ElicitAnswer::Decline);
    assert!(ended.shown.contains("demo asks for `VPN pаssword`, which looks like a secret"), "{ended:?}");
    let mut terminal = Terminal::run(command(form).env(SECRETS, "1"));
    terminal.answer("VPN pаssword [leave out]: ", "hunter2");
    terminal.answer(SEND, "y");
    check(terminal, &accepted(r#"{"x":"hunter2"}"#));
}

#[test]
fn without_a_terminal_the_answer_is_no() {
    let link = r#"{"mode":"url","message":"m","url":"https://a.example/"}"#;
    for (request, hint) in [(FORM, "--answer name=value"), (link, "run it in a terminal")] {
        let output = command(request).stdin(Stdio::null()).output().unwrap();
        let (stdout, stderr) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert!(stdout.contains("\nanswer {\"action\":\"decline\"}\n"), "{stdout}");
        assert!(stderr.contains("demo asks: ") && stderr.contains(hint), "{stderr}");
    }
}

/// A browser that tells its arguments, one to a line, through a pipe.
struct Browser {
    directory: PathBuf,
    told: File,
}

impl Browser {
    fn new() -> Self {
        let directory = std::env::temp_dir().join(format!("wharf-question-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let pipe = directory.join("told");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        std::fs::write(directory.join("browser"), "printf '%s\\n' \"$#\" \"$@\" > \"${0%/*}/told\"\n").unwrap();
        // Held open for writing too, so that neither side waits for the other to open it.
        Self { told: File::options().read(true).write(true).open(pipe).unwrap(), directory }
    }

    /// What to call it: read by a shell it is not executed, which a file just written may refuse.
    fn command(&self) -> String {
        format!("/bin/sh {}", self.directory.join("browser").display())
    }

    fn arguments(&mut self) -> String {
        let patience = Timespec { tv_sec: 30, tv_nsec: 0 };
        assert_eq!(poll(&mut [PollFd::new(&self.told, PollFlags::IN)], Some(&patience)).unwrap(), 1, "never opened");
        let mut bytes = [0; 4096];
        let count = self.told.read(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..count]).into_owned()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

#[test]
fn an_address_opens_after_a_yes_and_as_one_argument() {
    let mut browser = Browser::new();
    let url = r#"{"mode":"url","message":"Sign in","url":"https://good.com@evil.example/$(x)?a&b;c"}"#;
    let mut terminal = Terminal::run(command(url).env("BROWSER", browser.command()));
    terminal.expect("demo asks you to open an address in your browser:");
    terminal.expect("address: https://good.com@evil.example/$(x)?a&b;c");
    terminal.expect("host:    evil.example");
    terminal.expect("warning: what stands before the @ is not where it leads");
    terminal.answer("[y/N/c]: ", "y");
    assert_eq!(browser.arguments(), "1\nhttps://good.com@evil.example/$(x)?a&b;c\n");
    check(terminal, &ElicitAnswer::Accept(None));
}

#[test]
fn an_address_stays_closed_otherwise() {
    let url = r#"{"mode":"url","message":"Sign in","url":"https://a.example/"}"#;
    for (line, answer) in [("", ElicitAnswer::Decline), ("n", ElicitAnswer::Decline), ("c", ElicitAnswer::Cancel)] {
        let mut terminal = Terminal::run(command(url).env("BROWSER", "/no/such/browser"));
        terminal.answer("[y/N/c]: ", line);
        // Had it been opened, it would have said so, one way or the other.
        let ended = check(terminal, &answer);
        assert!(!ended.shown.contains("browser.") && !ended.shown.contains("no browser"), "{ended:?}");
    }
    let mut terminal = Terminal::run(command(url).env("BROWSER", "/no/such/browser").env("PATH", "/no/such/path"));
    terminal.answer("[y/N/c]: ", "y");
    let ended = check(terminal, &ElicitAnswer::Accept(None));
    assert!(ended.shown.contains("warning: no browser could be started"), "{ended:?}");
    let refused = r#"{"mode":"url","message":"Sign in","url":"http://a.example/"}"#;
    let ended = check(asked(refused), &ElicitAnswer::Decline);
    assert!(ended.shown.contains("which is refused: it is not encrypted"), "{ended:?}");
}
