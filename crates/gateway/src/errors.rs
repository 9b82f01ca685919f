//! Errors of the host as JSON-RPC errors, and as tool results where a model should see them.

use serde_json::{Value, json};
use wharf::wire::{RpcError, code};
use wharf::{CallError, Host, HostError, RawJson, ServerState};

/// Returns an error without data.
pub(crate) fn rpc_error(code: i64, message: impl Into<String>) -> RpcError {
    RpcError { code, message: message.into(), data: None }
}

/// Returns an error with data.
pub(crate) fn rpc_error_with(code: i64, message: impl Into<String>, data: &Value) -> RpcError {
    RpcError { code, message: message.into(), data: Some(RawJson::new_unchecked(data.to_string())) }
}

pub(crate) fn invalid_params(message: impl Into<String>) -> RpcError {
    rpc_error(code::INVALID_PARAMS, message)
}

pub(crate) fn unknown_method(method: &str) -> RpcError {
    rpc_error(code::METHOD_NOT_FOUND, format!("unknown method `{method}`"))
}

/// Returns the error of a request that the host could not complete.
pub(crate) fn host_error(error: &HostError) -> RpcError {
    match error {
        // The server's own answer is passed on.
        HostError::Call { error: CallError::ErrorResponse(error), .. } => error.clone(),
        HostError::Call { error: CallError::OutcomeUnknown(_), .. } => {
            rpc_error_with(code::INTERNAL, with_hint(error), &json!({"reason": "outcome_unknown"}))
        }
        _ => rpc_error(code::INTERNAL, with_hint(error)),
    }
}

/// Returns the result of a tool call that failed before or without an answer, so that the model learns why. `None` if
/// the failure is an error of the protocol.
pub(crate) fn tool_error(error: &HostError) -> Option<RawJson> {
    match error {
        HostError::Denied(_) | HostError::Unavailable { .. } | HostError::NotInTime { .. } => {}
        HostError::Call { error: CallError::ErrorResponse(_) | CallError::OutcomeUnknown(_), .. } => return None,
        HostError::Call { .. } => {}
        _ => return None,
    }
    Some(tool_error_text(&with_hint(error)))
}

/// Returns the result of a tool call that failed for this reason.
pub(crate) fn tool_error_text(text: &str) -> RawJson {
    let result = json!({"content": [{"type": "text", "text": text}], "isError": true});
    RawJson::new_unchecked(result.to_string())
}

/// Returns why a configured server offers no tools, if it is down or requires a login.
pub(crate) fn unavailability(host: &Host, server: &str) -> Option<HostError> {
    let status = host.status_of(server).ok()?;
    let is_down = match status.state {
        ServerState::Failed | ServerState::AuthRequired => true,
        ServerState::Connecting | ServerState::Reconnecting => status.last_error.is_some(),
        _ => false,
    };
    is_down.then_some(HostError::Unavailable {
        server: status.name,
        state: status.state,
        since: status.since,
        last_error: status.last_error,
    })
}

fn with_hint(error: &HostError) -> String {
    match error.hint() {
        // The refusal's own hint is part of its text.
        _ if matches!(error, HostError::Denied(refusal) if refusal.hint.is_some()) => error.to_string(),
        Some(hint) => format!("{error}\nhint: {hint}"),
        None => error.to_string(),
    }
}
