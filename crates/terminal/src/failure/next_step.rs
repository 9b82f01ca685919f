//! Next steps of failures: every failure names a command, an option or a key that changes it.

use wharf::tools::{CallRefusal, RefusalReason};

use super::{Failure, FailureKind};

impl FailureKind {
    /// All kinds.
    pub const ALL: [Self; 12] = [
        Self::Other,
        Self::Unsupported,
        Self::Usage,
        Self::Unreachable,
        Self::OffProtocol,
        Self::LoginNeeded,
        Self::Denied,
        Self::ToolError,
        Self::Refused,
        Self::TimedOut,
        Self::Interrupted,
        Self::OutputClosed,
    ];

    /// Returns the next step of a failure without a hint of its own. `server` is the name of a configured server.
    ///
    /// Returns `None` for a tool's own answer, and for an end that the user caused.
    fn general_hint(self, server: Option<&str>) -> Option<String> {
        const SHOW_STEPS: &str = "WHARF_DEBUG=1 shows every message and step";
        let of_server =
            |command: &str, effect: &str| server.map(|server| format!("`wharf {command} {server}` {effect}"));
        let hint = match self {
            Self::ToolError | Self::Interrupted | Self::OutputClosed => return None,
            Self::Other | Self::OffProtocol => None,
            Self::Unsupported => of_server("test", "shows what the server supports"),
            Self::Usage => Some("the same command with --help shows its arguments and examples".to_owned()),
            Self::Unreachable => of_server("why", "finds the step that fails"),
            Self::LoginNeeded => {
                of_server("auth", "logs you in").or_else(|| Some("`wharf auth URL` logs you in".to_owned()))
            }
            Self::Denied => {
                Some("`permissions` in your configuration decides; `wharf validate` checks the rules".to_owned())
            }
            Self::Refused => {
                server.map(|server| format!("`wharf tools {server} --schema` shows which arguments its tools take"))
            }
            Self::TimedOut => Some("--timeout SECONDS waits longer".to_owned()),
        };
        Some(hint.unwrap_or_else(|| SHOW_STEPS.to_owned()))
    }
}

impl Failure {
    /// Adds a general next step if the failure has no hint. `server` is the name of a configured server.
    #[must_use]
    pub fn with_next_step(self, server: Option<&str>) -> Self {
        match self.kind.general_hint(server) {
            Some(hint) if self.hints.is_empty() => self.with_hint(hint),
            _ => self,
        }
    }

    /// Creates the failure of a refused call.
    pub fn from_refusal(refusal: &CallRefusal) -> Self {
        let failure = Self::new(FailureKind::Denied, &refusal.reason);
        match (&refusal.hint, &refusal.reason) {
            (Some(hint), _) => failure.with_hint(hint),
            (None, RefusalReason::Denied { .. }) => failure.with_hint("change the rule in `permissions` of that file"),
            (None, RefusalReason::NobodyToAsk { .. }) => {
                failure.with_hint("add the rule to `permissions` in your configuration, or run `wharf` in a terminal")
            }
            (None, RefusalReason::SaidNo { .. } | RefusalReason::PermissionStale) => {
                failure.with_hint("run the same command again to be asked again")
            }
            (None, RefusalReason::NotApproved) => failure.with_hint("`wharf approve` shows what would run and asks"),
            (None, RefusalReason::DefinitionChanged) => {
                failure.with_hint("`wharf approve --tool SERVER.TOOL` shows the change and approves it")
            }
            (None, _) => failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the next steps of a kind, without a server and for the server `git`.
    fn expected_steps(kind: FailureKind) -> [&'static str; 2] {
        const DEBUG: &str = "WHARF_DEBUG=1 shows every message and step";
        const HELP: &str = "the same command with --help shows its arguments and examples";
        const RULES: &str = "`permissions` in your configuration decides; `wharf validate` checks the rules";
        const LONGER: &str = "--timeout SECONDS waits longer";
        match kind {
            FailureKind::ToolError | FailureKind::Interrupted | FailureKind::OutputClosed => ["", ""],
            FailureKind::Other | FailureKind::OffProtocol => [DEBUG, DEBUG],
            FailureKind::Unsupported => [DEBUG, "`wharf test git` shows what the server supports"],
            FailureKind::Usage => [HELP, HELP],
            FailureKind::Unreachable => [DEBUG, "`wharf why git` finds the step that fails"],
            FailureKind::LoginNeeded => ["`wharf auth URL` logs you in", "`wharf auth git` logs you in"],
            FailureKind::Denied => [RULES, RULES],
            FailureKind::Refused => [DEBUG, "`wharf tools git --schema` shows which arguments its tools take"],
            FailureKind::TimedOut => [LONGER, LONGER],
        }
    }

    /// G4.
    #[test]
    fn every_failure_kind_has_a_next_step() {
        for kind in FailureKind::ALL {
            for (server, expected) in std::iter::zip([None, Some("git")], expected_steps(kind)) {
                let hints = Failure::new(kind, "it failed").with_next_step(server).hints;
                assert_eq!(hints.join(" and "), expected, "{kind:?}");
            }
        }
        let own = Failure::other("it failed").with_hint("its own").with_next_step(Some("git"));
        assert_eq!(own.hints, ["its own"]);
    }

    #[test]
    fn every_refusal_has_a_next_step() {
        let rule = || "mcp__git".to_owned();
        for reason in [
            RefusalReason::Denied { rule: rule() },
            RefusalReason::NobodyToAsk { rule: rule() },
            RefusalReason::SaidNo { because: None },
            RefusalReason::DefinitionChanged,
            RefusalReason::PermissionStale,
            RefusalReason::NotApproved,
            RefusalReason::Other("another".to_owned()),
        ] {
            let failure = Failure::from_refusal(&CallRefusal::new(reason.clone())).with_next_step(None);
            let hint = &failure.hints[0];
            let parts = ["`wharf ", "`permissions`", "the same command"];
            assert!(parts.iter().any(|part| hint.contains(part)), "{reason:?}: {hint}");
        }
    }
}
