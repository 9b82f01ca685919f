//! The eras that begin with `initialize` (2024-11-05 to 2025-11-25).

use wharf_spec::Untrusted;
use wharf_wire::{Bounds, DecodeError, Era, InitializeResult, Raw, Revision, View};

use super::CLIENT_INFO;
use crate::desk::Desk;
use crate::error::ConnectCause;

/// The parameters of `initialize`: the newest revision this era has.
pub(crate) fn initialize_params(desk: &Desk) -> String {
    let revision = Revision::LATEST_HANDSHAKE;
    let capabilities = desk.capabilities(revision);
    format!(r#"{{"protocolVersion":"{revision}","capabilities":{capabilities},"clientInfo":{CLIENT_INFO}}}"#)
}

/// Reads the answer to `initialize`. A server may choose an older revision, but not one of another era.
pub(crate) fn judge_initialize(result: Raw, bounds: &Bounds) -> Result<(Revision, InitializeResult), ConnectCause> {
    let result = InitializeResult::view(result, bounds).map_err(|error| match error {
        DecodeError::TooComplex(bound) => {
            ConnectCause::Protocol(format!("the answer to initialize is too complex: {bound}"))
        }
        DecodeError::Shape(error) => {
            let error = Untrusted::new(error.to_string());
            ConnectCause::Protocol(format!("the answer to initialize cannot be read: {}", error.shortened(200)))
        }
    })?;
    match result.protocol_version.parse::<Revision>() {
        Ok(revision) if revision.era() == Era::Handshake => Ok((revision, result)),
        _ => Err(ConnectCause::NoCommonRevision(vec![result.protocol_version])),
    }
}
