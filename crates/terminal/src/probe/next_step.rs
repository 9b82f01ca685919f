//! Next steps for a server that does not work.

use wharf_config::ConfiguredServer;

use super::ProbeCode;
use crate::failure::Failure;

/// Returns the next step for a configured server.
pub fn next_step(code: ProbeCode, server: &ConfiguredServer, failure: &Failure) -> String {
    let (id, place) = (&server.name, &server.place);
    match code {
        ProbeCode::ConfigDisabled => format!("wharf enable {id}"),
        ProbeCode::ApprovalNeeded | ProbeCode::ApprovalChanged => {
            format!("wharf approve {id} shows what would run and asks for approval")
        }
        ProbeCode::PathNoDirectory => format!("give an existing directory as `cwd` in {place}"),
        ProbeCode::SpawnExited if failure.error.stderr.is_empty() => {
            format!("run its command manually to see the cause; it is defined in {place}")
        }
        ProbeCode::SpawnExited => {
            format!("see its stderr output; set missing variables under `env` in {place}")
        }
        ProbeCode::SpawnKilled => format!("run its command manually to see the cause; it is defined in {place}"),
        ProbeCode::TlsUntrusted => {
            format!("set `ca` in {place} to your own certificate authority; verification cannot be disabled")
        }
        ProbeCode::HttpSetup => format!("fix its `url`, `headers`, `proxy` or `ca` in {place}"),
        ProbeCode::HandshakeTimeout => {
            format!("wharf test {id} --timeout 60 waits longer; --debug shows the messages")
        }
        ProbeCode::PingFailed | ProbeCode::ListFailed => format!("wharf test {id} --debug shows its responses"),
        _ => failure.hints.first().cloned().unwrap_or_else(|| format!("wharf test {id} --debug shows every message")),
    }
}
