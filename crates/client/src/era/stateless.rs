//! The era without a handshake (2026-07-28): every request says who sends it, in its `_meta`.

use wharf_wire::Revision;

use super::{CLIENT_CAPABILITIES, CLIENT_INFO};

/// The members of `_meta` that every request carries (2026-07-28, basic/index), without the braces.
pub(crate) fn meta_members(revision: Revision) -> String {
    format!(
        r#""io.modelcontextprotocol/protocolVersion":"{revision}","io.modelcontextprotocol/clientCapabilities":{CLIENT_CAPABILITIES},"io.modelcontextprotocol/clientInfo":{CLIENT_INFO}"#
    )
}

/// The parameters of `server/discover`, which is also the probe for this era.
pub(crate) fn discover_params(revision: Revision) -> String {
    format!(r#"{{"_meta":{{{}}}}}"#, meta_members(revision))
}
