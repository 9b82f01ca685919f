//! `subscribe`.

use std::io::{BufRead as _, BufReader};

use serde_json::{Value, json};
use wharf_testkit::test_home::CommandOutput;

use crate::scripted::mortal;
use crate::signals::send;
use crate::support::{REVISIONS, demo, run, tidal, wharf};

#[test]
fn changes_are_reported_in_every_revision() {
    for revision in REVISIONS {
        let server = tidal(revision);
        let arguments = ["subscribe", "--tools", "--uri", "harbour://tide", "--stdio", &server];
        let mut child = wharf(arguments).spawn().unwrap();
        let mut talk = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        talk.read_line(&mut line).unwrap();
        assert_eq!(line, "wharf: watching tools, harbour://tide\n", "{revision}");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut events: Vec<String> = lines.by_ref().take(4).map(Result::unwrap).collect();
        for line in &mut events {
            let event = line.split_off(9);
            assert!(line.bytes().all(|byte| byte.is_ascii_digit() || byte == b':' || byte == b' '), "{line}");
            *line = event;
        }
        events.sort();
        assert_eq!(events[0], "wharf · harbour://tide changed", "{revision}");
        assert_eq!(events[3], "wharf · tools changed", "{revision}");
        send("INT", child.id());
        lines.for_each(drop);
        let mut rest = String::new();
        while talk.read_line(&mut rest).unwrap() > 0 {}
        assert_eq!((child.wait().unwrap().code(), rest.as_str()), (Some(130), "error: interrupted.\n"), "{revision}");
    }
}

#[test]
fn json_events_are_lines_and_count_limits_them() {
    for revision in REVISIONS {
        let server = tidal(revision);
        let ran = run(["subscribe", "--uri", "harbour://tide", "--count", "2", "--json", "--stdio", &server]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), "wharf: watching harbour://tide\n"), "{revision}");
        let events: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let expected = json!({"schema": 1, "server": "wharf", "event": "resource", "uri": "harbour://tide"});
        assert_eq!(events, [expected.clone(), expected], "{revision}");
        let ran = run(["subscribe", "--tools", "--count", "1", "--json", "--stdio", &server]);
        assert_eq!(ran.json(), json!({"schema": 1, "server": "wharf", "event": "tools", "uri": null}), "{revision}");
    }
}

#[test]
fn default_subscription_covers_everything() {
    for revision in REVISIONS {
        let ran = run(["subscribe", "--count", "3", "--stdio", &tidal(revision)]);
        assert_eq!((ran.code, ran.stdout.lines().count()), (Some(0), 3), "{ran:?}");
        let watched = ran.stderr.lines().next().unwrap();
        assert!(watched.starts_with("wharf: watching tools, prompts, resources, "), "{ran:?}");
        assert!(watched.contains("demo://greeting") && watched.contains("harbour://tide"), "{ran:?}");
    }
}

#[test]
fn refused_subscriptions_are_reported() {
    for revision in REVISIONS {
        let server = tidal(revision);
        let uris = ["--uri", "harbour://tide", "--uri", "harbour://\u{1b}[2J", "--count", "1"];
        let ran = run(["subscribe"].into_iter().chain(uris).chain(["--stdio", &server]));
        let told =
            "wharf: watching harbour://tide\nwarning: wharf does not support subscriptions to harbour://\\u{1b}[2J\n";
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), told), "{revision}");
        let ran = run(["subscribe", "--uri", "harbour://nowhere", "--stdio", &server]);
        assert!(ran.code != Some(0) && ran.stdout.is_empty() && ran.stderr.starts_with("error: wharf: "), "{ran:?}");
    }
    let ran = run(["subscribe", "--uri", "harbour://nowhere", "--stdio", &demo("2026-07-28")]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.stderr.starts_with("error: wharf: the server does not support subscriptions to harbour://nowhere.\n"),
        "{ran:?}"
    );
    let ran = run(["subscribe", "--tools", "--stdio", &mortal()]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
    assert!(ran.stderr.contains("server does not support notifications for any of these changes"), "{ran:?}");
}

#[test]
fn server_exit_ends_the_subscription() {
    let ran = CommandOutput::from(wharf(["subscribe", "--uri", "x://rope", "--stdio", &mortal()]).output().unwrap());
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), ""), "{ran:?}");
    for part in [
        "watching x://rope\n",
        "connection lost: server exited with code 4.",
        "  │ out of rope\n",
        "  hint: run the command again",
    ] {
        assert!(ran.stderr.contains(part), "{part:?} is missing in {ran:?}");
    }
}
