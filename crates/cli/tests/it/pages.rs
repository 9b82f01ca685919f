//! Pages a server wants opened: never without a yes, and exactly the one that was shown.

use std::path::PathBuf;
use std::process::Command;

use wharf_testkit::pty::Terminal;

use crate::scripted::reticent;
use crate::support::{Pipe, demo, home, quoted, run, wharf};

const OPEN: &str = "Open the URL in a browser? [y/N/c]: ";

/// A program that stands in for a browser and passes on what it is to open.
struct Browser {
    script: PathBuf,
    pipe: Pipe,
}

impl Browser {
    fn new(name: &str) -> Self {
        let script = home().join(format!("{name}.sh"));
        let pipe = Pipe::new(name);
        std::fs::write(&script, format!("printf '%s' \"$*\" > {}\n", quoted(&pipe.path))).unwrap();
        Self { script, pipe }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = wharf(arguments);
        command.env("NO_COLOR", "1").env("BROWSER", format!("sh {}", quoted(&self.script)));
        command
    }

    /// What was opened.
    #[track_caller]
    fn opened(&self) -> String {
        self.pipe.written()
    }
}

#[test]
fn browser_opens_exactly_the_shown_url() {
    let calls: [(&str, &[&str], &str); 3] = [
        ("2026-07-28", &["call", "open_harbour_page"], "y"),
        ("2025-11-25", &["call", "open_harbour_page", "via=question"], "y"),
        // With an Enter for whoever is asked when they are done: the server may have said so before.
        ("2025-11-25", &["call", "open_harbour_page", "via=error"], "y\n"),
    ];
    for (number, (revision, call, yes)) in calls.into_iter().enumerate() {
        let browser = Browser::new(&format!("browser-{number}"));
        let server = demo(revision);
        let mut terminal = Terminal::start_piped(&browser.command(&[call, &["--stdio", &server]].concat()));
        terminal.expect("wharf asks you to open a URL in your browser:");
        terminal.expect("Please fill in the ship's papers.");
        terminal.expect("URL:     https://harbour.example/papers?ship=second%20draft&paper=");
        terminal.expect("host:    harbour.example");
        terminal.answer(OPEN, yes);
        let opened = browser.opened();
        let ended = terminal.end();
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "The papers are in order.\n"), "{ended:?}");
        assert!(ended.shown.contains(&format!("URL:     {opened}\n")), "{opened}: {ended:?}");
    }
}

#[test]
fn declined_page_is_not_opened() {
    for (revision, line) in [("2026-07-28", ""), ("2025-11-25", "n"), ("2025-11-25", ":cancel")] {
        let browser = Browser::new("unused-browser");
        let mut terminal =
            Terminal::start_piped(&browser.command(&["call", "open_harbour_page", "--stdio", &demo(revision)]));
        terminal.answer(OPEN, line);
        let ended = terminal.end();
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "The harbour page was not opened.\n"), "{ended:?}");
        assert!(!ended.shown.contains("Opened in the browser") && browser.pipe.is_untouched(), "{ended:?}");
    }
    let server = demo("2025-11-25");
    let mut terminal = Terminal::start_piped(&wharf(["call", "open_harbour_page", "via=error", "--stdio", &server]));
    terminal.answer(OPEN, "n");
    let ended = terminal.end();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(5), ""), "{ended:?}");
    assert!(ended.shown.contains("wharf: server requested a visit to a web page, which was declined."), "{ended:?}");
}

#[test]
fn user_confirms_completion_of_the_page() {
    let browser = Browser::new("patient-browser");
    let server = reticent();
    let mut terminal = Terminal::start_piped(&browser.command(&["call", "sign_in", "--stdio", &server]));
    terminal.expect("URL:     https://sign.example/in\n");
    terminal.answer(OPEN, "yes");
    assert_eq!(browser.opened(), "https://sign.example/in");
    terminal.answer("Press Enter when you are done in the browser ", "");
    let ended = terminal.end();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "You may pass.\n"), "{ended:?}");
}

#[test]
fn page_is_not_opened_without_a_terminal() {
    for (revision, via, code) in
        [("2026-07-28", "question", 0), ("2025-11-25", "question", 0), ("2025-11-25", "error", 5)]
    {
        let via: &[&str] = if revision == "2025-11-25" { &[&format!("via={via}")] } else { &[] };
        let server = demo(revision);
        let call = [&["call", "open_harbour_page", "--stdio", &server][..], via].concat();
        let ran = run(&call);
        assert_eq!(ran.code, Some(code), "{ran:?}");
        assert!(ran.stderr.contains("run the command in a terminal to review the URL"), "{ran:?}");
        let ran = run(call.iter().chain(&["--answer", "ok=yes"]));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
        assert!(ran.stderr.contains("the server asks to open a URL, which --answer cannot accept"), "{ran:?}");
    }
}
