//! Error responses in the format of the requested API.

use serde_json::{Value, json};

use super::format::ModelApiFormat;

/// The reason a request is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub status: u16,
    pub message: String,
    /// The invalid member of the body; OpenAI only.
    param: Option<String>,
    /// OpenAI's error code.
    code: Option<&'static str>,
}

impl Refusal {
    pub fn new(status: u16, message: impl Into<String>) -> Refusal {
        Refusal { status, message: message.into(), param: None, code: None }
    }

    /// Returns an error for an invalid request.
    pub fn invalid(message: impl Into<String>) -> Refusal {
        Refusal::new(400, message)
    }

    pub fn with_param(self, param: impl Into<String>) -> Refusal {
        Refusal { param: Some(param.into()), ..self }
    }

    pub fn with_code(self, code: &'static str) -> Refusal {
        Refusal { code: Some(code), ..self }
    }

    /// Returns a failure requested by the script.
    pub fn scripted(status: u16) -> Refusal {
        let code = match status {
            401 => Some("invalid_api_key"),
            429 => Some("rate_limit_exceeded"),
            _ => None,
        };
        Refusal { code, ..Refusal::new(status, format!("the script answers {status}")) }
    }

    pub fn body(&self, format: ModelApiFormat, request_id: &str) -> Value {
        let message = &self.message;
        if format == ModelApiFormat::Anthropic {
            let error = json!({ "type": anthropic_type(self.status), "message": message });
            return json!({ "type": "error", "error": error, "request_id": request_id });
        }
        let kind = openai_type(self.status);
        json!({ "error": { "message": message, "type": kind, "param": self.param, "code": self.code } })
    }
}

fn anthropic_type(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    }
}

fn openai_type(status: u16) -> &'static str {
    match status {
        429 => "requests",
        500.. => "server_error",
        _ => "invalid_request_error",
    }
}
