//! Next steps for a server that does not work.

use wharf_config::ConfiguredServer;

use super::ProbeCode;
use crate::failure::{Failure, TIMEOUT_OPTION, mentions_variable};

/// Returns the next step for a configured server. It names a command, an option or a key of the entry.
pub fn next_step(code: ProbeCode, server: &ConfiguredServer, failure: &Failure) -> String {
    let (id, place) = (&server.name, &server.place);
    // The failure knows more than its code: the directories searched, the missing scope.
    let own_hint = |otherwise: String| failure.hints.first().cloned().unwrap_or(otherwise);
    match code {
        ProbeCode::ConfigMissing => own_hint(format!("wharf add {id} configures it")),
        ProbeCode::ConfigBroken => own_hint(format!("wharf validate shows what is wrong in {place}")),
        ProbeCode::ExpandUnset | ProbeCode::ExpandFailed => own_hint(format!(
            "set the variable, or store the value with wharf secret set and use ${{secret:NAME}} in {place}"
        )),
        ProbeCode::PathNotFound | ProbeCode::PathNotExecutable => {
            own_hint(format!("give the full path of a program as `command` in {place}"))
        }
        ProbeCode::SpawnRefused => own_hint("raise the limit of processes (ulimit -u) or free memory".to_owned()),
        ProbeCode::HttpUnreachable => own_hint(format!("check that a server listens at the `url` in {place}")),
        ProbeCode::HttpStatus | ProbeCode::HttpEndpoint => own_hint(format!("check the path of the `url` in {place}")),
        ProbeCode::LoginNeeded => own_hint(format!("wharf auth {id} logs you in")),
        ProbeCode::LoginDenied => own_hint(format!("wharf auth {id} --account NAME logs in with another account")),
        ProbeCode::LoginUnavailable => own_hint(format!("wharf test {id} tries again later")),
        ProbeCode::HandshakeNotMcp => own_hint(format!("check that `command` or `url` in {place} is an MCP server")),
        ProbeCode::HandshakeRefused | ProbeCode::HandshakeRevision | ProbeCode::HandshakeBroken => {
            own_hint(format!("wharf test {id} --debug shows every message"))
        }
        ProbeCode::ConfigDisabled => format!("wharf enable {id}"),
        ProbeCode::ApprovalNeeded | ProbeCode::ApprovalChanged => {
            format!("wharf approve {id} shows what would run and asks for approval")
        }
        ProbeCode::PathNoDirectory => format!("give an existing directory as `cwd` in {place}"),
        ProbeCode::SpawnExited if failure.error.stderr.is_empty() => {
            format!("run its `command` manually to see the cause; it is defined in {place}")
        }
        ProbeCode::SpawnExited if !mentions_variable(&failure.error.stderr) => {
            format!("see its stderr output; its command is defined in {place}")
        }
        ProbeCode::SpawnExited => {
            format!("see its stderr output; set missing variables under `env` in {place}")
        }
        ProbeCode::SpawnKilled => format!("run its `command` manually to see the cause; it is defined in {place}"),
        ProbeCode::TlsUntrusted => {
            format!("set `ca` in {place} to your own certificate authority; verification cannot be disabled")
        }
        ProbeCode::HttpSetup => format!("fix its `url`, `headers`, `proxy` or `ca` in {place}"),
        ProbeCode::HandshakeTimeout => match failure.hints.iter().find(|hint| hint.starts_with(TIMEOUT_OPTION)) {
            Some(hint) => format!("wharf test {id} {hint}"),
            None => format!("wharf test {id} --debug shows every message"),
        },
        ProbeCode::PingFailed | ProbeCode::ListFailed => format!("wharf test {id} --debug shows its responses"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wharf_spec::Environment;
    use wharf_testkit::test_home::TestHome;

    use super::*;
    use crate::session::CommandSession;

    /// Next steps of the server `git` without a hint of the failure. `PLACE` is the place of its entry.
    const EXPECTED_STEPS: [(ProbeCode, &str); 28] = [
        (ProbeCode::ConfigMissing, "wharf add git configures it"),
        (ProbeCode::ConfigBroken, "wharf validate shows what is wrong in PLACE"),
        (ProbeCode::ConfigDisabled, "wharf enable git"),
        (ProbeCode::ApprovalNeeded, "wharf approve git shows what would run and asks for approval"),
        (ProbeCode::ApprovalChanged, "wharf approve git shows what would run and asks for approval"),
        (
            ProbeCode::ExpandUnset,
            "set the variable, or store the value with wharf secret set and use ${secret:NAME} in PLACE",
        ),
        (
            ProbeCode::ExpandFailed,
            "set the variable, or store the value with wharf secret set and use ${secret:NAME} in PLACE",
        ),
        (ProbeCode::PathNotFound, "give the full path of a program as `command` in PLACE"),
        (ProbeCode::PathNotExecutable, "give the full path of a program as `command` in PLACE"),
        (ProbeCode::PathNoDirectory, "give an existing directory as `cwd` in PLACE"),
        (ProbeCode::SpawnRefused, "raise the limit of processes (ulimit -u) or free memory"),
        (ProbeCode::SpawnExited, "run its `command` manually to see the cause; it is defined in PLACE"),
        (ProbeCode::SpawnKilled, "run its `command` manually to see the cause; it is defined in PLACE"),
        (ProbeCode::HttpSetup, "fix its `url`, `headers`, `proxy` or `ca` in PLACE"),
        (ProbeCode::HttpUnreachable, "check that a server listens at the `url` in PLACE"),
        (
            ProbeCode::TlsUntrusted,
            "set `ca` in PLACE to your own certificate authority; verification cannot be disabled",
        ),
        (ProbeCode::HttpStatus, "check the path of the `url` in PLACE"),
        (ProbeCode::HttpEndpoint, "check the path of the `url` in PLACE"),
        (ProbeCode::LoginNeeded, "wharf auth git logs you in"),
        (ProbeCode::LoginDenied, "wharf auth git --account NAME logs in with another account"),
        (ProbeCode::LoginUnavailable, "wharf test git tries again later"),
        (ProbeCode::HandshakeTimeout, "wharf test git --debug shows every message"),
        (ProbeCode::HandshakeNotMcp, "check that `command` or `url` in PLACE is an MCP server"),
        (ProbeCode::HandshakeRefused, "wharf test git --debug shows every message"),
        (ProbeCode::HandshakeRevision, "wharf test git --debug shows every message"),
        (ProbeCode::HandshakeBroken, "wharf test git --debug shows every message"),
        (ProbeCode::PingFailed, "wharf test git --debug shows its responses"),
        (ProbeCode::ListFailed, "wharf test git --debug shows its responses"),
    ];

    /// G4: without a hint of the failure, each code itself names a command, an option or a key.
    #[test]
    fn every_code_has_a_next_step() {
        let home = TestHome::with_servers(&json!({ "git": { "command": "true" } }));
        let environment = Environment { env: home.variables(), cwd: home.path("project") };
        let session = CommandSession::for_tests(environment);
        let server = session.configuration.config().unwrap().server("git").unwrap();
        assert_eq!(EXPECTED_STEPS.map(|(code, _)| code), ProbeCode::ALL.map(|(code, _)| code));
        for (code, expected) in EXPECTED_STEPS {
            let step = next_step(code, server, &Failure::other("it failed"));
            assert_eq!(step, expected.replace("PLACE", &server.place.to_string()), "{code:?}");
        }
        let late = Failure::other("it failed").with_hint("--timeout 120 allows more time for startup");
        let step = next_step(ProbeCode::HandshakeTimeout, server, &late);
        assert_eq!(step, "wharf test git --timeout 120 allows more time for startup");
    }
}
