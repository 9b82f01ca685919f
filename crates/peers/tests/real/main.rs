//! Our client against real servers, unchanged from npm and PyPI, and against servers on other SDKs.
//!
//! `cargo xtask test` installs them and says where; a missing one is a failure and never skipped.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test reads its surroundings and panics on errors"
)]

mod asking;
mod caching;
mod catalog;
mod crew;
mod http;
mod models;
mod peer;
mod quay;
mod recorded;
mod reference;
mod rounds;
mod sampling;
mod table;
mod tasks;
mod undeclared;
mod watching;
mod working;

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use serde_json::json;
use wharf_client::{Connection, RequestOptions};
use wharf_wire::Revision;

use peer::{Peer, Unknown, ask, check, text};

const HANDSHAKE: Revision = Revision::V2025_11_25;
const STATELESS: Revision = Revision::V2026_07_28;

#[tokio::test]
async fn everything_server_interoperates() {
    let peer = Peer {
        tools: &["echo", "get-sum", "get-tiny-image", "trigger-long-running-operation"],
        calls: vec![("echo", json!({"message": "ahoy"}), "Echo: ahoy"), ("get-sum", json!({"a": 2, "b": 40}), "42")],
        resources: &[
            ("demo://resource/static/document/features.md", "# Everything Server"),
            ("demo://resource/dynamic/text/7", "Resource 7: This is a plaintext resource"),
        ],
        templates: &["demo://resource/dynamic/text/{resourceId}", "demo://resource/dynamic/blob/{resourceId}"],
        prompts: &[
            ("simple-prompt", &[], "This is a simple prompt without arguments."),
            ("args-prompt", &[("city", "Genoa")], "What's weather in Genoa?"),
        ],
        ..Peer::node("everything", "server-everything", HANDSHAKE).arg("stdio")
    };
    check(peer, async |connection, _| {
        progress_comes_in_order(connection).await;
        many_at_once(connection, |n| (json!({"message": n.to_string()}), format!("Echo: {n}"))).await;
    })
    .await;
}

#[tokio::test]
async fn filesystem_server_interoperates() {
    let peer = Peer {
        tools: &["read_text_file", "write_file", "list_directory", "list_allowed_directories"],
        calls: vec![("list_allowed_directories", json!({}), "filesystem")],
        ..Peer::node("filesystem", "server-filesystem", HANDSHAKE).arg_home()
    };
    check(peer, async |connection, home| {
        let (path, words) = (home.join("tide.txt"), "high at noon — low at six\n");
        let wrote = ask(connection, "write_file", &json!({"path": path, "content": words})).await;
        assert_eq!(text(&wrote), format!("Successfully wrote to {}", path.display()));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), words);
        assert_eq!(text(&ask(connection, "read_text_file", &json!({"path": path})).await), words);
        let outside = ask(connection, "read_text_file", &json!({"path": "/etc/passwd"})).await;
        assert!(outside.is_error && text(&outside).starts_with("Access denied"), "{}", text(&outside));
    })
    .await;
}

#[tokio::test]
async fn memory_server_interoperates() {
    let graph = json!({"entities": [{"name": "Quay", "entityType": "place", "observations": ["wet"]}]});
    let peer = Peer {
        tools: &["create_entities", "read_graph", "search_nodes"],
        calls: vec![("create_entities", graph, "\"Quay\""), ("read_graph", json!({}), "\"wet\"")],
        resources: &[("memory://knowledge-graph", "\"Quay\"")],
        ..Peer::node("memory", "server-memory", HANDSHAKE).env_home("MEMORY_FILE_PATH", "graph.jsonl")
    };
    check(peer, async |_, home| {
        assert!(std::fs::read_to_string(home.join("graph.jsonl")).unwrap().contains("Quay"));
    })
    .await;
}

#[tokio::test]
async fn time_server_interoperates() {
    let there = json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"});
    let peer = Peer {
        tools: &["get_current_time", "convert_time"],
        calls: vec![
            ("get_current_time", json!({"timezone": "UTC"}), "+00:00\""),
            ("convert_time", there, "T21:00:00+09:00"),
        ],
        ..Peer::python("time", "py1", HANDSHAKE).arg("-m").arg("mcp_server_time").arg("--local-timezone").arg("UTC")
    };
    check(peer, async |_, _| ()).await;
}

#[tokio::test]
async fn git_server_interoperates() {
    let peer = Peer {
        tools: &["git_status", "git_log", "git_commit", "git_add"],
        ..Peer::python("git", "py1", HANDSHAKE).arg("-m").arg("mcp_server_git")
    };
    check(peer, async |connection, home| {
        let repository = home.join("repository");
        commit_something(&repository);
        let log = ask(connection, "git_log", &json!({"repo_path": repository, "max_count": 1})).await;
        assert!(text(&log).contains("chart the harbour"), "{}", text(&log));
        let status = ask(connection, "git_status", &json!({"repo_path": repository})).await;
        assert!(text(&status).contains("nothing to commit"), "{}", text(&status));
        let none = ask(connection, "git_status", &json!({"repo_path": home.join("nowhere")})).await;
        assert!(none.is_error);
    })
    .await;
}

#[tokio::test]
async fn typescript_sdk_2_server_interoperates() {
    let peer = sdk(Peer::script("ts2", "node", "ts2.mjs", STATELESS));
    check(peer, async |connection, _| many_at_once(connection, echoed).await).await;
}

#[tokio::test]
async fn python_sdk_2_server_interoperates() {
    let peer = Peer::script("py2", "py2/bin/python", "py2.py", STATELESS);
    // It reports what the specification would have it refuse.
    let peer = Peer { unknown: Unknown::Answered, ..sdk(peer) };
    check(peer, async |connection, _| many_at_once(connection, echoed).await).await;
}

#[tokio::test]
async fn rust_sdk_3_server_interoperates() {
    let peer = sdk(Peer::new("rmcp", env!("CARGO_BIN_EXE_rmcp-server"), STATELESS));
    check(peer, async |connection, _| many_at_once(connection, echoed).await).await;
}

/// Our own small server, the same on every SDK.
fn sdk(peer: Peer) -> Peer {
    Peer {
        tools: &["echo", "add"],
        calls: vec![
            ("echo", json!({"text": "ahoy ⚓ \"\\\n"}), "ahoy ⚓ \"\\\n"),
            ("add", json!({"a": 2, "b": 40}), "42"),
        ],
        unknown: Unknown::Refused,
        resources: &[("note://hello", "Hello from the quay.")],
        prompts: &[("greet", &[("name", "Ada")], "Please greet Ada.")],
        ..peer
    }
}

fn echoed(n: usize) -> (serde_json::Value, String) {
    (json!({"text": n.to_string()}), n.to_string())
}

async fn progress_comes_in_order(connection: &Connection) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let options =
        RequestOptions::default().progress(move |step| sink.lock().unwrap().push((step.progress, step.total)));
    let arguments = peer::raw(&json!({"duration": 0.4, "steps": 4}));
    let result = connection.call_tool("trigger-long-running-operation", &arguments, options).await.unwrap();
    assert!(text(&result).starts_with("Long running operation completed."), "{}", text(&result));
    assert_eq!(*seen.lock().unwrap(), [1.0, 2.0, 3.0, 4.0].map(|step| (step, Some(4.0))));
}

/// Thirty-two calls of `echo` in flight, each with an answer of its own.
async fn many_at_once(connection: &Connection, nth: impl Fn(usize) -> (serde_json::Value, String)) {
    let calls: Vec<_> = (0..32)
        .map(|n| {
            let ((arguments, expected), connection) = (nth(n), connection.clone());
            tokio::spawn(async move { (text(&ask(&connection, "echo", &arguments).await), expected) })
        })
        .collect();
    for call in calls {
        let (answer, expected) = call.await.unwrap();
        assert_eq!(answer, expected);
    }
}

fn commit_something(repository: &Path) {
    std::fs::create_dir(repository).unwrap();
    std::fs::write(repository.join("chart"), "here be shallows\n").unwrap();
    let steps: [&[&str]; 3] = [&["init", "--quiet"], &["add", "."], &["commit", "--quiet", "-m", "chart the harbour"]];
    for step in steps {
        let mut git = Command::new("git");
        git.args(step).current_dir(repository).env("HOME", repository).env("GIT_CONFIG_NOSYSTEM", "1");
        for who in ["AUTHOR", "COMMITTER"] {
            git.env(format!("GIT_{who}_NAME"), "Ada").env(format!("GIT_{who}_EMAIL"), "ada@example.org");
        }
        assert!(git.status().unwrap().success(), "git {step:?}");
    }
}
