//! `--answer`: questions that are answered without asking anybody, and what happens where nobody is there.

use serde_json::json;
use wharf_testkit::pty::Terminal;
use wharf_testkit::test_home::CommandOutput;

use crate::scripted::secretive;
use crate::support::{ASKING, demo, run, wharf};

const NEEDED: [&str; 6] = ["--answer", "email=ada@harbour.example", "--answer", "nights=3", "--answer", "ship=Ada"];

fn book(revision: &str, more: &[&str]) -> CommandOutput {
    let server = demo(revision);
    run(["call", "book_berth", "--json", "--stdio", &server].iter().chain(more))
}

#[test]
fn answer_fields_are_matched_by_name() {
    for revision in ASKING {
        let more = ["--answer", "pilot=no", "--answer", "cargo=Liquids", "--answer", "length:=12.5"];
        let ran = book(revision, &[&NEEDED[..], &more].concat());
        let mut expected = json!({
            "email": "ada@harbour.example", "nights": 3, "ship": "Ada", "pilot": false, "cargo": "wet", "length": 12.5,
        });
        if revision > "2025-06-18" {
            (expected["flag"], expected["quay"], expected["services"]) = ("no".into(), "east".into(), json!(["water"]));
        }
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        assert_eq!(ran.json()["data"], json!({"action": "accept", "content": expected}), "{revision}");
    }
}

#[test]
fn answer_object_is_accepted_and_fields_override_it() {
    let object = r#"{"email":"ada@harbour.example","nights":1,"ship":"Ada","crew":["cat"],"services":[]}"#;
    for revision in ["2026-07-28", "2025-11-25"] {
        let content = book(revision, &["--answer", object, "--answer", "nights=7"]).json()["data"]["content"].take();
        assert_eq!((&content["nights"], &content["crew"]), (&json!(7), &json!(["cat"])));
        assert_eq!((&content["services"], &content["flag"]), (&json!([]), &json!("no")));
    }
}

#[test]
fn decline_and_cancel_can_be_given_as_answers() {
    for revision in ASKING {
        for word in ["decline", "cancel"] {
            let ran = book(revision, &["--answer", word]);
            assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
            assert_eq!(ran.json()["data"], json!({"action": word}), "{revision}");
        }
    }
}

#[test]
fn mismatched_answers_end_the_command_and_are_not_sent() {
    for revision in ASKING {
        for (more, message) in [
            (&NEEDED[..4], "the answer does not match the requested form: `ship` is required"),
            (&["--answer", "nights=many"], "the answer `nights` must be a whole number"),
            (&["--answer", "night=2"], "the form has no field `night`"),
            (&["--answer", "{"], "--answer is not a JSON object: "),
            (&["--answer", "yes"], "`yes` is not an argument"),
        ] {
            if revision > "2025-06-18" && more.len() == 4 {
                // Ships have a default name by now.
                continue;
            }
            let ran = book(revision, more);
            let error = ran.json()["error"].take();
            assert_eq!((ran.code, &error["kind"], &error["server"]), (Some(2), &json!("usage"), &json!("wharf")));
            assert!(error["message"].as_str().unwrap().starts_with(message), "{revision}: {error}");
            assert!(
                error["hints"][0].is_string() || message.starts_with("--answer") || message.contains("whole number")
            );
        }
    }
    let server = demo("2026-07-28");
    let ran = run(["call", "book_berth", "--answer", "nights=3", "--stdio", &server]);
    let expected = "error: wharf: the answer does not match the requested form: `email` is required.\n  hint: set each \
                    field with --answer name=value, or run the command in a terminal\n";
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(2), "", expected));
}

#[test]
fn form_is_declined_without_a_terminal() {
    for revision in ASKING {
        let ran = run(["call", "book_berth", "--stdio", &demo(revision)]);
        let told = "warning: wharf asks: Which berth shall it be?\n  declined: no terminal to prompt on. To answer, \
                    run the command in a terminal, or use --answer name=value.\n";
        let expected = (Some(0), "No berth was booked: the form was declined.\n", told);
        assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), expected);
    }
}

#[test]
fn prompts_and_resources_can_request_input() {
    let server = demo("2026-07-28");
    let ran = run(["prompt", "pilot", "--answer", "answer=ahoy", "--stdio", &server]);
    assert_eq!(ran.stdout, "user:\nPlease thank the pilot, who said \"ahoy\".\n", "{ran:?}");
    let ran = run(["read", "harbour://log", "--answer", "answer=ahoy", "--stdio", &server]);
    assert_eq!(ran.stdout, "The last entry says \"ahoy\".\n", "{ran:?}");
    for command in [["prompt", "pilot"], ["read", "harbour://log"]] {
        let ran = run(command.into_iter().chain(["--answer", "nothing=1", "--stdio", &server]));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
        assert!(ran.stderr.starts_with("error: wharf: the form has no field `nothing`.\n"), "{ran:?}");
    }
}

#[test]
fn several_questions_get_the_same_answer() {
    for (revision, expected) in [
        ("2026-07-28", "Asked in 3 rounds, and heard \"no\", \"no\", \"no\", \"no\".\n"),
        ("2025-11-25", "Asked in 3 rounds, and heard \"no\", \"no\", \"no\", \"no\", \"no\", \"no\".\n"),
    ] {
        let server = demo(revision);
        let ran = run(["call", "many_questions", "together=2", "--answer", "answer=no", "--stdio", &server]);
        assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), expected, ""));
    }
}

#[test]
fn endless_input_requests_are_abandoned() {
    let ran = run(["call", "stubborn", "--answer", "answer=no", "--stdio", &demo("2026-07-28")]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), ""), "{ran:?}");
    let told = "error: wharf: server requested input 8 times without returning a result.\n  hint: ";
    assert!(ran.stderr.starts_with(told), "{ran:?}");
}

#[test]
fn secret_fields_are_declined_unless_allowed() {
    let server = secretive();
    let call = ["call", "sign_in", "--stdio", &server];
    let ran = run(call);
    assert_eq!(ran.stdout, "{\"action\":\"decline\"}\n", "{ran:?}");
    assert!(ran.stderr.contains("asks for `Password` in a form, which looks like a secret"), "{ran:?}");
    let ran = run(call.into_iter().chain(["--answer", "password=open sesame"]));
    assert_eq!(ran.stdout, "{\"action\":\"accept\",\"content\":{\"password\":\"open sesame\"}}\n", "{ran:?}");

    let ended = Terminal::start_piped(wharf(call).env("NO_COLOR", "1")).end();
    assert_eq!(ended.stdout, "{\"action\":\"decline\"}\n", "{ended:?}");
    let allowed = call.into_iter().chain(["--allow-secrets"]);
    let mut terminal = Terminal::start_piped(wharf(allowed).env("NO_COLOR", "1"));
    terminal.answer("Password: ", "open sesame");
    terminal.answer("[c]ancel: ", "");
    let ended = terminal.end();
    assert_eq!(ended.stdout, "{\"action\":\"accept\",\"content\":{\"password\":\"open sesame\"}}\n", "{ended:?}");
    // Neither while it is typed nor in the review.
    assert!(ended.shown.contains("Password (password): ***") && !ended.shown.contains("sesame"), "{ended:?}");
}
