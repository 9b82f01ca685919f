//! What a shell sees of it: help, versions, colours, completions, closed pipes.

use std::process::Stdio;

use crate::support::{demo, run, wharf};

#[test]
fn help_has_examples() {
    let commands = [
        "demo",
        "tools",
        "call",
        "resources",
        "templates",
        "read",
        "prompts",
        "prompt",
        "subscribe",
        "status",
        "test",
        "why",
        "stats",
        "demo-server",
        "completions",
    ];
    for command in commands {
        let ran = run([command, "--help"]);
        assert_eq!(ran.code, Some(0));
        assert!(ran.stdout.contains("Examples:\n  wharf "), "{ran:?}");
    }
    let ran = run(["--help"]);
    assert!(commands.iter().all(|command| ran.stdout.contains(command)) && !ran.stdout.contains("hold"), "{ran:?}");
}

#[test]
fn version_and_usage_errors() {
    assert_eq!(run(["--version"]).stdout, format!("wharf {}\n", env!("CARGO_PKG_VERSION")));
    assert_eq!(run(["no-such-command"]).code, Some(2));
    let ran = run(["demo-server", "--revision", "1999-01-01"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(ran.stderr.starts_with("error: "), "{ran:?}");
}

#[test]
fn completions_cover_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = run(["completions", shell]);
        assert_eq!(ran.code, Some(0), "{shell}");
        for word in ["demo-server", "subscribe", "answer", "allow-secrets", "root", "task", "uri", "tide"] {
            assert!(ran.stdout.contains(word), "{shell} does not know {word}");
        }
        // Not every shell is told of values.
        let knows_levels = ran.stdout.contains("emergency");
        assert!(knows_levels || ["elvish", "powershell"].contains(&shell), "{shell} knows no levels");
    }
}

#[test]
fn color_is_used_on_terminals_or_on_request() {
    let server = demo("2026-07-28");
    let tools = ["tools", "--stdio", &server];
    assert!(!run(tools).stdout.contains('\u{1b}'));
    assert!(run(tools.into_iter().chain(["--color", "always"])).stdout.contains("\u{1b}[36mecho\u{1b}[0m"));
}

#[test]
fn closed_pipe_is_not_an_error() {
    let server = demo("2026-07-28");
    for arguments in
        [&["tools", "--stdio", &server][..], &["tools", "--json", "--stdio", &server], &["completions", "bash"]]
    {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = wharf(arguments).stdout(Stdio::from(writer)).output().unwrap();
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]), "{arguments:?}");
    }
}
