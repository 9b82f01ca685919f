//! Next steps for a server that does not work.

use wharf_config::Configured;

use super::Code;
use crate::failure::Failure;

/// Returns the next step for a configured server.
pub fn next_step(code: Code, server: &Configured, failure: &Failure) -> String {
    let (id, place) = (&server.name, &server.place);
    match code {
        Code::ConfigDisabled => format!("wharf enable {id}"),
        Code::ApprovalNeeded | Code::ApprovalChanged => {
            format!("wharf approve {id} shows what it would run and asks you")
        }
        Code::PathNoDirectory => format!("give an existing directory as `cwd` in {place}"),
        Code::SpawnExited if failure.error.stderr.is_empty() => {
            format!("run its command by itself to see why; it stands in {place}")
        }
        Code::SpawnExited => {
            format!("what it wrote to stderr says what it lacks; variables for it go under `env` in {place}")
        }
        Code::SpawnKilled => format!("run its command by itself to see why; it stands in {place}"),
        Code::TlsUntrusted => {
            format!("name the certificates of your own authority as `ca` in {place}; nothing turns the check off")
        }
        Code::HttpSetup => format!("mend its `url`, `headers`, `proxy` or `ca` in {place}"),
        Code::HandshakeTimeout => format!("wharf test {id} --timeout 60 gives it longer; --debug shows what it says"),
        Code::PingFailed | Code::ListFailed => format!("wharf test {id} --debug shows what it answers"),
        _ => failure.hints.first().cloned().unwrap_or_else(|| format!("wharf test {id} --debug shows every message")),
    }
}
