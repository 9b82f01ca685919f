//! Tests of whole commands as typed.

use wharf::ServerState;
use wharf_agent::TurnBlock;

use super::command_fixture::{HARBOUR, harbour, with_host};
use super::{CommandContext, ReplAction, input_kind, is_command, run_line};
use crate::input_queue::InputKind;
use wharf_terminal::failure::{FailureKind, render_failure};

/// Runs a command and formats its action, or its failure with hints.
async fn outcome_of(line: &str, context: &CommandContext<'_>) -> String {
    match run_line(line, context).await {
        Ok(action) => format!("{action:?}"),
        Err(failure) => anstream::adapter::strip_str(&render_failure(&failure)).to_string(),
    }
}

#[test]
fn commands_return_actions_or_failures() {
    with_host(HARBOUR, harbour, async |context| {
        for (line, expected) in [
            ("mcp", "Nothing"),
            ("mcp harbour", "Nothing"),
            ("mcp show off", "Nothing"),
            ("mcp debug harbour", "Nothing"),
            ("mcp list-tools", "Nothing"),
            ("mcp stats", "Nothing"),
            ("mcp reload", "Reload"),
            ("tools harbour", "Nothing"),
            ("prompts", "Nothing"),
            ("resources", "Nothing"),
            ("permissions", "Nothing"),
            ("help", "Nothing"),
            ("clear", "Clear"),
            ("resume last", "Resume(None)"),
            ("resume abc", "Resume(Some(\"abc\"))"),
            ("cancel", "Cancel"),
            ("exit", "Exit"),
            ("mcp harbor", "error: unknown server or command `harbor`.\n  hint: did you mean `harbour`?"),
            ("mcp conect harbour", "error: unknown server or command `conect`.\n  hint: did you mean `connect`"),
            ("mcp connect harbor", "error: no server named `harbor`.\n  hint: did you mean `harbour`?"),
            ("mcp connect off", "error: off: disabled.\n  hint: wharf enable off"),
            (
                "mcp auth harbour",
                "error: harbour: local (stdio) servers have no login; /mcp auth applies to HTTP servers only.",
            ),
            ("tools off", "error: the following required arguments were not provided: <SERVER.TOOL>."),
            ("prompt harbour welcom name=Ada", "error: harbour: no prompt named `welcom`.\n  hint: did you mean"),
            ("prompt harbour welcome", "error: harbour: the prompt `welcome` needs `name`.\n  hint: arguments: `name`"),
        ] {
            let outcome = outcome_of(line, context).await;
            assert!(outcome.starts_with(expected), "{line}: {outcome}");
        }
    });
}

#[test]
fn conversation_commands_are_queued() {
    for (line, expected) in [
        ("prompt harbour welcome name=Ada", Some(InputKind::Message)),
        ("clear", Some(InputKind::Change)),
        ("resume last", Some(InputKind::Change)),
        ("resume", None),
        ("clear --help", None),
        ("prompt", None),
        ("cancel", None),
        ("mcp", None),
    ] {
        assert_eq!(input_kind(line), expected, "{line}");
    }
}

#[test]
fn known_commands_are_recognized() {
    for (text, expected) in [
        ("/mcp", true),
        ("/quit", true),
        ("/mcp list-tools x", true),
        ("/srv,/home", false),
        ("/", false),
        ("mcp", false),
    ] {
        assert_eq!(is_command(text), expected, "{text}");
    }
}

#[test]
fn prompt_is_sent_to_the_agent() {
    with_host(HARBOUR, harbour, async |context| {
        let ReplAction::SendMessage(blocks) = run_line("prompt harbour welcome name='Ada L.'", context).await.unwrap()
        else {
            panic!("nothing is said");
        };
        let head = "The user has chosen the prompt `welcome` of the server `harbour`, in that server's words:";
        assert_eq!(blocks, [TurnBlock::Text(format!("{head}\nWelcome Ada L.."))]);
    });
}

#[test]
fn server_is_connected_and_enabled_for_the_session() {
    with_host(HARBOUR, harbour, async |context| {
        let state = || context.managed_host.host.status_of("harbour").unwrap().state;
        for (line, expected) in [
            ("mcp disconnect harbour", ServerState::Disconnected),
            ("mcp connect harbour", ServerState::Ready),
            ("mcp reconnect harbour", ServerState::Ready),
            ("mcp disable harbour", ServerState::Disabled),
            ("mcp enable harbour", ServerState::Ready),
        ] {
            assert_eq!(run_line(line, context).await.unwrap(), ReplAction::Nothing, "{line}");
            if expected == ServerState::Ready {
                context.managed_host.host.wait_until_ready("harbour").await.unwrap();
            }
            assert_eq!(state(), expected, "{line}");
        }
    });
}

#[test]
fn disabled_server_can_be_enabled_for_the_session() {
    const OFF: &str = r#"{"mcpServers": {"off": {"command": "/nowhere/at/all", "enabled": false}}}"#;
    with_host(OFF, wharf::Host::builder, async |context| {
        let failure = run_line("mcp connect off", context).await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Usage);
        assert_eq!(run_line("mcp enable off", context).await.unwrap(), ReplAction::Nothing);
        context.managed_host.host.wait_until_settled().await;
        let rows = context.managed_host.rows();
        assert!(rows[0].enabled && rows[0].state != ServerState::Disabled, "{:?}", rows[0].state);
        let failure = run_line("mcp connect off", context).await.unwrap_err();
        assert!(failure.hints.iter().any(|hint| hint.starts_with("see /mcp debug off")), "{failure:?}");
    });
}
