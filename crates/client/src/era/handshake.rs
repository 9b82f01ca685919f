//! The revisions that start with `initialize` (2024-11-05 to 2025-11-25).

use std::sync::Arc;

use wharf_spec::UntrustedText;
use wharf_wire::{Era, InitializeResult, JsonDecodeError, JsonLimits, RawJson, Revision, View};

use super::CLIENT_INFO;
use crate::engine::{CallEffect, CallRequest, CancelPolicy, Engine, HeaderFields};
use crate::error::ConnectCause;
use crate::server_requests::ServerRequestHandler;

/// Returns the params of `initialize`, with the newest revision of this era.
pub(crate) fn initialize_params(request_handler: &ServerRequestHandler) -> String {
    let revision = Revision::LATEST_HANDSHAKE;
    let capabilities = request_handler.capabilities(revision);
    format!(r#"{{"protocolVersion":"{revision}","capabilities":{capabilities},"clientInfo":{CLIENT_INFO}}}"#)
}

/// Requests logs at the wanted level, if any. Does not wait for the response.
pub(crate) fn request_logs(engine: &Arc<Engine>, request_handler: &ServerRequestHandler) {
    let Some(level) = request_handler.log_level() else { return };
    let limit = request_handler.limits().call_timeout;
    let request = CallRequest {
        timeout: limit,
        timeout_max: limit,
        progress: None,
        effect: CallEffect::MayWrite,
        cancel_policy: CancelPolicy::Forget,
        tag: None,
    };
    let Ok(reserved) = engine.reserve(request) else { return };
    let id = reserved.id_text();
    let rest = format!(r#","method":"logging/setLevel","params":{{"level":"{level}"}}}}"#);
    let parts: [&[u8]; 4] = [b"{\"jsonrpc\":\"2.0\",\"id\":", id.text(), rest.as_bytes(), b"\n"];
    let fields = HeaderFields { method: "logging/setLevel", ..HeaderFields::default() };
    if let Ok(call) = engine.send(reserved, fields, &parts) {
        call.detach();
    }
}

/// Decodes the result of `initialize`. A server may choose an older revision, but not one of another era.
pub(crate) fn evaluate_initialize(
    result: RawJson,
    bounds: &JsonLimits,
) -> Result<(Revision, InitializeResult), ConnectCause> {
    let result = InitializeResult::from_raw(result, bounds).map_err(|error| match error {
        JsonDecodeError::TooComplex(bound) => {
            ConnectCause::Protocol(format!("initialize result is too complex: {bound}"))
        }
        JsonDecodeError::Shape(error) => {
            let error = UntrustedText::new(error.to_string());
            ConnectCause::Protocol(format!("invalid initialize result: {}", error.truncate(200)))
        }
    })?;
    match result.protocol_version.parse::<Revision>() {
        Ok(revision) if revision.era() == Era::Handshake => Ok((revision, result)),
        _ => Err(ConnectCause::NoCommonRevision(vec![result.protocol_version])),
    }
}
