//! The era without a handshake (2026-07-28): every request identifies the client in its `_meta`.

use wharf_wire::{LogLevel, RawJson, Revision};

use super::CLIENT_INFO;
use crate::options::DeclaredClient;
use crate::server_requests::ServerRequestHandler;

/// Returns the `_meta` members of every request (2026-07-28, basic/index), without the braces.
pub(crate) fn meta_members(revision: Revision, request_handler: &ServerRequestHandler) -> String {
    let capabilities = request_handler.capabilities(revision);
    let level = request_handler.services().log_level.filter(|_| request_handler.services().logs.is_some());
    format_members(revision, &capabilities, CLIENT_INFO, level)
}

/// Returns the `_meta` members of a request that is forwarded for another client.
pub(crate) fn forwarded_meta_members(revision: Revision, client: &DeclaredClient) -> String {
    let text = |member: &Option<RawJson>, default: &'static str| -> String {
        member.as_ref().map_or_else(|| default.to_owned(), |member| member.as_str().to_owned())
    };
    format_members(revision, &text(&client.capabilities, "{}"), &text(&client.info, CLIENT_INFO), client.log_level)
}

fn format_members(revision: Revision, capabilities: &str, info: &str, level: Option<LogLevel>) -> String {
    let level = level.map(|level| format!(r#","io.modelcontextprotocol/logLevel":"{level}""#)).unwrap_or_default();
    format!(
        r#""io.modelcontextprotocol/protocolVersion":"{revision}","io.modelcontextprotocol/clientCapabilities":{capabilities},"io.modelcontextprotocol/clientInfo":{info}{level}"#
    )
}

/// Returns the params of `server/discover`, which is also the probe for this era.
pub(crate) fn discover_params(revision: Revision, request_handler: &ServerRequestHandler) -> String {
    format!(r#"{{"_meta":{{{}}}}}"#, meta_members(revision, request_handler))
}
