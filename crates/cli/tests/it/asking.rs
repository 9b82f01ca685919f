//! Forms on a real terminal: what a person sees, and what the server gets.

use wharf_testkit::pty::{Ended, Terminal};

use crate::scripted::chatty;
use crate::support::{ASKING, Pipe, demo, pipe_at_home, wharf};

const SEND: &str = "[c]ancel: ";

/// Everything a person sees of the form, having typed an email address, and otherwise Enter.
const SCREEN: &str = "
wharf asks you:
  │ Which berth shall it be?
Enter accepts the value in [brackets]. Commands: :skip omits a field, :decline declines, :cancel cancels.

1 of 10: Cargo (cargo)
  choose one, by number or value, optional
    1. none (No cargo)
    2. dry (Dry goods)
    3. wet (Liquids)
Cargo [skip]: 

2 of 10: Crew aboard (crew)
  choose any, by numbers or values separated by commas, at least 1 of them, optional
    1. cook (A cook)
    2. cat (A ship's cat)
Crew aboard [skip]: 

3 of 10: E-mail (email)
  │ Where to send the bill
  an email address, required
E-mail: ada@harbour.example

4 of 10: Flag (flag)
  choose one, by number or value, optional
    1. no (Norway)
    2. nl (The Netherlands)
Flag [no]: 

5 of 10: Length in metres (length)
  a number, from 2.5 to 400, optional
Length in metres [skip]: 

6 of 10: Nights (nights)
  a whole number, from 1 to 30, required
Nights [2]: 

7 of 10: Send a pilot (pilot)
  yes or no, optional
Send a pilot [yes]: 

8 of 10: Quay (quay)
  choose one, by number or value, optional
    1. north
    2. east
    3. west
Quay [east]: 

9 of 10: Services (services)
  choose any, by numbers or values separated by commas, from 0 to 2 of them, optional
    1. water
    2. power
    3. waste
Services [water]: 

10 of 10: Ship (ship)
  │ The name on the bow
  text, from 2 to 40 characters, required
Ship [Second Draft]: 

To be sent to wharf:
  1. Cargo (cargo): skipped
  2. Crew aboard (crew): skipped
  3. E-mail (email): ada@harbour.example
  4. Flag (flag): no
  5. Length in metres (length): skipped
  6. Nights (nights): 2
  7. Send a pilot (pilot): yes
  8. Quay (quay): east
  9. Services (services): water
  10. Ship (ship): Second Draft
Send? [Y]es / [e]dit / [d]ecline / [c]ancel: 
";

fn asked(tool: &str, revision: &str) -> Terminal {
    Terminal::start_piped(wharf(["call", tool, "--stdio", &demo(revision)]).env("NO_COLOR", "1"))
}

fn answered(revision: &str, answers: &[(&str, &str)]) -> Ended {
    let mut terminal = asked("book_berth", revision);
    for (prompt, line) in answers {
        terminal.answer(prompt, line);
    }
    terminal.end()
}

#[track_caller]
fn check(ended: &Ended, expected: &str) {
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), expected), "{}", ended.shown);
}

#[test]
fn enter_accepts_the_defaults() {
    for revision in ["2026-07-28", "2025-11-25"] {
        let ended = answered(
            revision,
            &[
                ("Cargo [skip]: ", ""),
                ("Crew aboard [skip]: ", ""),
                ("E-mail: ", "ada@harbour.example"),
                ("Flag [no]: ", ""),
                ("Length in metres [skip]: ", ""),
                ("Nights [2]: ", ""),
                ("Send a pilot [yes]: ", ""),
                ("Quay [east]: ", ""),
                ("Services [water]: ", ""),
                ("Ship [Second Draft]: ", ""),
                (SEND, ""),
            ],
        );
        assert_eq!(ended.shown, SCREEN, "{revision}");
        check(
            &ended,
            "Booked: {\"email\":\"ada@harbour.example\",\"flag\":\"no\",\"nights\":2,\"pilot\":true,\"quay\":\"east\",\
             \"services\":[\"water\"],\"ship\":\"Second Draft\"}\n",
        );
    }
}

#[test]
fn form_of_2025_06_18_has_fewer_kinds_and_defaults() {
    let answers = [
        ("1 of 7: Cargo (cargo)", ""),
        ("E-mail: ", "ada@harbour.example"),
        ("Length in metres [skip]: ", "12.50"),
        ("Nights: ", "2"),
        ("Send a pilot [yes]: ", "no"),
        ("Quay [skip]: ", "3"),
        ("Ship: ", "Ada"),
        (SEND, "yes"),
    ];
    let ended = answered("2025-06-18", &answers);
    let booked = "Booked: {\"email\":\"ada@harbour.example\",\"length\":12.5,\"nights\":2,\"pilot\":false,\
                  \"quay\":\"west\",\"ship\":\"Ada\"}\n";
    check(&ended, booked);
}

#[test]
fn choices_accept_numbers_and_values_and_errors_reprompt() {
    for revision in ["2026-07-28", "2025-11-25"] {
        let ended = answered(
            revision,
            &[
                ("Cargo [skip]: ", "2"),
                ("Crew aboard [skip]: ", "1, cat"),
                ("E-mail: ", ""),
                ("this field is required. Use :decline or :cancel to answer without it\nE-mail: ", "nobody"),
                ("must be an email address\nE-mail: ", "ada@harbour.example"),
                ("Flag [no]: ", "the netherlands"),
                ("Length in metres [skip]: ", "2"),
                ("must be at least 2.5\nLength in metres [skip]: ", ":skip"),
                ("Nights [2]: ", "99"),
                ("must be at most 30\nNights [2]: ", "3"),
                ("Send a pilot [yes]: ", "n"),
                ("Quay [east]: ", "Rome"),
                ("`Rome` is not one of the options\nQuay [east]: ", "north"),
                ("Services [water]: ", "1,2,3"),
                ("allows at most 2 selected\nServices [water]: ", "power,3"),
                ("Ship [Second Draft]: ", "::Colon"),
                (SEND, "y"),
            ],
        );
        check(
            &ended,
            "Booked: {\"cargo\":\"dry\",\"crew\":[\"cook\",\"cat\"],\"email\":\"ada@harbour.example\",\"flag\":\"nl\",\
             \"nights\":3,\"pilot\":false,\"quay\":\"north\",\"services\":[\"power\",\"waste\"],\"ship\":\":Colon\"}\n",
        );
    }
}

#[test]
fn decline_cancel_and_eof_answer_the_form() {
    for revision in ASKING {
        let declined = "No berth was booked: the form was declined.\n";
        let cancelled = "No berth was booked: the form was cancelled.\n";
        for (line, expected) in [(":decline", declined), (":cancel", cancelled)] {
            check(&answered(revision, &[("Cargo [skip]: ", line)]), expected);
        }
        let mut terminal = asked("book_berth", revision);
        terminal.expect("Cargo [skip]: ");
        terminal.control('d');
        check(&terminal.end(), cancelled);
    }
}

#[test]
fn form_is_sent_only_after_review() {
    let mut terminal = asked("many_questions", "2025-06-18");
    terminal.answer("Answer [aye]: ", "nay");
    terminal.expect("To be sent to wharf:\n  1. Answer (answer): nay\n");
    terminal.answer(SEND, "what?");
    terminal.answer(SEND, "e 7");
    terminal.answer("unknown field", "e 1");
    terminal.answer("Answer [nay]: ", "aye");
    terminal.expect("  1. Answer (answer): aye\n");
    terminal.answer(SEND, "y");
    terminal.expect("Question 1 of round 2: ready?");
    terminal.answer("Answer [aye]: ", "two");
    terminal.answer(SEND, "d");
    terminal.answer("Answer [aye]: ", "three");
    terminal.answer(SEND, "");
    check(&terminal.end(), "Asked in 3 rounds, and heard \"aye\", null, \"three\".\n");
}

#[test]
fn typed_ahead_input_does_not_answer_a_question() {
    let mut terminal = asked("many_questions", "2025-11-25");
    terminal.line("typed ahead");
    for answer in ["one", "two", "three"] {
        terminal.answer("Answer [aye]: ", answer);
        terminal.answer(SEND, "");
    }
    check(&terminal.end(), "Asked in 3 rounds, and heard \"one\", \"two\", \"three\".\n");
}

#[test]
fn ctrl_c_ends_the_question_and_the_command() {
    for revision in ASKING {
        let mut terminal = asked("book_berth", revision);
        terminal.expect("Cargo [skip]: ");
        terminal.control('c');
        let ended = terminal.end();
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(130), ""), "{ended:?}");
        assert!(ended.shown.ends_with("\nerror: interrupted.\n"), "{ended:?}");
    }
}

#[test]
fn several_questions_are_asked_in_sequence() {
    for (revision, expected) in [
        ("2026-07-28", "Asked in 3 rounds, and heard \"one\", \"aye\".\n"),
        ("2025-11-25", "Asked in 3 rounds, and heard \"one\", \"aye\", \"aye\".\n"),
    ] {
        let mut terminal = asked("many_questions", revision);
        terminal.expect("Question 1 of round 1: ready?");
        terminal.answer("Answer [aye]: ", "one");
        terminal.answer(SEND, "");
        for _ in 1..expected.matches('"').count() / 2 {
            terminal.answer("Answer [aye]: ", "");
            terminal.answer(SEND, "");
        }
        check(&terminal.end(), expected);
    }
}

#[test]
fn progress_is_shown_on_a_terminal_and_cleared() {
    for (revision, shown) in [("2026-07-28", "50% step 1 of 2"), ("2024-11-05", "50%")] {
        let command = ["call", "slow", "seconds=0.4", "steps=2", "--stdio", &demo(revision)];
        let mut terminal = Terminal::start_piped(&wharf(command));
        terminal.expect(&format!("wharf · slow  ██████████░░░░░░░░░░ {shown}"));
        let ended = terminal.end();
        check(&ended, "Waited 0.4 s in 2 steps.\n");
        assert!(ended.rows.iter().all(String::is_empty), "{:?}", ended.rows);
    }
}

#[test]
fn output_is_deferred_during_a_question() {
    let (go, heard) = (pipe_at_home("chatty-go"), Pipe::new("chatty-heard"));
    let server = chatty(&go, &heard.path);
    let call = ["call", "sign_in", "--allow-secrets", "--log", "info", "--stdio", &server];
    let mut terminal = Terminal::start_piped(wharf(call).env("NO_COLOR", "1"));
    terminal.expect("Password: ");
    std::fs::write(go, "now\n").unwrap();
    assert_eq!(heard.written(), "heard\n");
    terminal.line("x");
    terminal.answer(SEND, "");
    let ended = terminal.end();
    check(&ended, "Pass.\n");
    let (before, after) = ended.shown.split_once("Password: \n").expect("nothing else on the line of the prompt");
    let told = "sh · info: impatient\n";
    assert!(!before.contains(told) && !before.contains("waiting"), "{ended:?}");
    let (asking, rest) = after.split_once(SEND).unwrap();
    assert!(!asking.contains(told) && !asking.contains("waiting") && rest.contains(told), "{ended:?}");
}
