//! Calls that become tasks.

use serde_json::Value;
use wharf_testkit::pty::Terminal;

use crate::support::{REVISIONS, demo, home, run, wharf};

const SHORT: [&str; 3] = ["call", "unload_ship", "interval_ms=10"];
const UNLOADED: &str = "Unloaded 3 containers, signed for by \"nobody\".\n";

/// The methods of the requests in a trace, as they were sent.
fn sent(trace: &str) -> Vec<String> {
    let text = std::fs::read_to_string(trace).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let sent = lines.filter(|line| line["direction"] == "sent");
    sent.filter_map(|line| line["message"]["method"].as_str().map(str::to_owned)).collect()
}

#[test]
fn call_completes_with_or_without_a_task() {
    for revision in REVISIONS {
        let ran = run(SHORT.into_iter().chain(["--stdio", &demo(revision)]));
        assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), UNLOADED, ""), "{revision}");
    }
}

#[test]
fn task_is_followed_to_completion() {
    for revision in ["2026-07-28", "2025-11-25"] {
        let trace = home().join(format!("task-{revision}.jsonl"));
        let trace = trace.to_str().unwrap();
        let more = ["--task", "--debug", "--trace", trace, "--stdio", &demo(revision)];
        let ran = run(SHORT.into_iter().chain(more));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), UNLOADED), "{ran:?}");
        assert!(ran.stderr.contains("wharf · unload_ship  task working: The work has begun."), "{ran:?}");
        assert!(!sent(trace).contains(&"tasks/cancel".to_owned()), "{:?}", sent(trace));
        assert!(sent(trace).iter().any(|method| method == "tasks/result" || method == "subscriptions/listen"));
    }
    for revision in ["2025-06-18", "2024-11-05"] {
        let ran = run(SHORT.into_iter().chain(["--task", "--stdio", &demo(revision)]));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
        assert!(ran.stderr.starts_with("error: wharf: server does not support tasks.\n"), "{ran:?}");
    }
}

#[test]
fn task_only_tool_needs_no_flag() {
    let ran = run(["call", "survey_hull", "--stdio", &demo("2025-11-25")]);
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), "The hull is sound.\n", ""));
}

#[test]
fn task_can_request_input() {
    for revision in ["2026-07-28", "2025-11-25"] {
        let asking = ["ask=true", "--task", "--stdio", &demo(revision)];
        let ran = run(SHORT.into_iter().chain(asking).chain(["--answer", "name=Ada"]));
        assert_eq!(ran.stdout, "Unloaded 3 containers, signed for by \"Ada\".\n", "{ran:?}");
        let mut terminal = Terminal::start_piped(&wharf(SHORT.into_iter().chain(asking)));
        terminal.expect("Who signs for the cargo?");
        terminal.answer("Name: ", "Bob");
        terminal.answer("[c]ancel: ", "");
        let ended = terminal.end();
        assert_eq!(ended.stdout, "Unloaded 3 containers, signed for by \"Bob\".\n", "{ended:?}");
        let ran = run(SHORT.into_iter().chain(asking).chain(["--answer", "decline"]));
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (Some(6), "Nobody signed, so the ship stays as it is.\n"),
            "{ran:?}"
        );
    }
}

#[test]
fn ctrl_c_cancels_the_task_before_exit() {
    for revision in ["2026-07-28", "2025-11-25"] {
        let trace = home().join(format!("cancel-{revision}.jsonl"));
        let trace = trace.to_str().unwrap();
        let long = ["call", "unload_ship", "containers=1000", "interval_ms=1000", "--task", "--trace", trace];
        let mut terminal = Terminal::start_piped(&wharf(long.into_iter().chain(["--stdio", &demo(revision)])));
        terminal.expect("wharf · unload_ship  task working: ");
        terminal.control('c');
        let ended = terminal.end();
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(130), ""), "{ended:?}");
        let text = std::fs::read_to_string(trace).unwrap();
        let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let cancel = lines.find(|line| line["message"]["method"] == "tasks/cancel").unwrap();
        let id = &cancel["message"]["id"];
        assert!(lines.any(|line| line["message"]["id"] == *id && line["message"]["result"].is_object()), "{text}");
    }
}
