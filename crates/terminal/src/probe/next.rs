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
            format!("wharf approve {id} shows what it would run and asks you")
        }
        ProbeCode::PathNoDirectory => format!("give an existing directory as `cwd` in {place}"),
        ProbeCode::SpawnExited if failure.error.stderr.is_empty() => {
            format!("run its command by itself to see why; it stands in {place}")
        }
        ProbeCode::SpawnExited => {
            format!("what it wrote to stderr says what it lacks; variables for it go under `env` in {place}")
        }
        ProbeCode::SpawnKilled => format!("run its command by itself to see why; it stands in {place}"),
        ProbeCode::TlsUntrusted => {
            format!("name the certificates of your own authority as `ca` in {place}; nothing turns the check off")
        }
        ProbeCode::HttpSetup => format!("mend its `url`, `headers`, `proxy` or `ca` in {place}"),
        ProbeCode::HandshakeTimeout => {
            format!("wharf test {id} --timeout 60 gives it longer; --debug shows what it says")
        }
        ProbeCode::PingFailed | ProbeCode::ListFailed => format!("wharf test {id} --debug shows what it answers"),
        _ => failure.hints.first().cloned().unwrap_or_else(|| format!("wharf test {id} --debug shows every message")),
    }
}
