//! Parsing of API error messages in their various formats.

use std::fmt;

use serde::Deserialize;
use serde_json::Value;
use wharf_json::JsonLimits;
use wharf_spec::{Redactor, UntrustedText};

/// Maximum characters of an error message.
const MAX_MESSAGE_CHARS: usize = 500;
/// Maximum characters of an error kind.
const MAX_KIND_CHARS: usize = 80;
const ERROR_BODY_LIMITS: JsonLimits = JsonLimits { depth: 32, nodes: 10_000 };

/// An error message of an API, escaped, bounded and without credentials.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApiErrorMessage {
    /// Error kind, such as `overloaded_error`.
    pub kind: Option<String>,
    /// Error text.
    pub text: String,
}

/// An error message as received, which may contain credentials.
#[derive(Debug, Default)]
pub(super) struct UnredactedError {
    kind: Option<String>,
    text: String,
}

/// Members of an error object. A code may be a number.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ErrorMembers {
    r#type: Option<Value>,
    code: Option<Value>,
    message: Option<Value>,
}

impl UnredactedError {
    /// Parses the body of an error response. Uses the whole body as the text if its format is unknown.
    pub fn from_body(body: &[u8]) -> Self {
        let value = ERROR_BODY_LIMITS.check(body).ok().and_then(|()| serde_json::from_slice::<Value>(body).ok());
        let complaint = value.as_ref().map(|value| Self::from_json(value.get("error").unwrap_or(value)));
        let complaint = complaint.filter(|complaint| complaint.kind.is_some() || !complaint.text.is_empty());
        complaint.unwrap_or_else(|| Self { kind: None, text: String::from_utf8_lossy(body).trim().to_owned() })
    }

    /// Parses an error: a string, or an object with a message and a code or a type.
    pub fn from_json(error: &Value) -> Self {
        if let Value::String(text) = error {
            return Self { kind: None, text: text.clone() };
        }
        let members = ErrorMembers::deserialize(error).unwrap_or_default();
        let text = |value: Option<Value>| value.as_ref().and_then(Value::as_str).map(str::to_owned);
        // The code is more specific than the type.
        let kind = text(members.code).or(text(members.r#type));
        Self { kind, text: text(members.message).unwrap_or_default() }
    }

    /// Returns the message redacted, escaped and bounded.
    pub fn redact(&self, redactor: &Redactor) -> ApiErrorMessage {
        let kind = self.kind.as_deref().map(|kind| redact_and_shorten(kind, MAX_KIND_CHARS, redactor));
        ApiErrorMessage { kind, text: redact_and_shorten(&self.text, MAX_MESSAGE_CHARS, redactor) }
    }
}

impl ApiErrorMessage {
    /// Reports whether the API is overloaded or temporarily failing.
    pub(super) fn is_overloaded(&self) -> bool {
        let known = ["overloaded_error", "api_error", "rate_limit_error", "rate_limit_exceeded", "server_error"];
        self.kind.as_deref().is_some_and(|kind| known.contains(&kind))
    }

    /// Reports whether a quota is exhausted that waiting does not restore.
    pub(super) fn is_quota_exhausted(&self) -> bool {
        self.kind.as_deref() == Some("insufficient_quota")
    }
}

impl fmt::Display for ApiErrorMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.kind, self.text.as_str()) {
            (Some(kind), "") => write!(f, "{kind}"),
            (Some(kind), text) => write!(f, "{text} ({kind})"),
            (None, "") => f.write_str("no error message"),
            (None, text) => f.write_str(text),
        }
    }
}

/// Redacts, escapes and truncates a text. Redacts first, because a truncated secret would not be recognized.
pub(super) fn redact_and_shorten(text: &str, limit: usize, redactor: &Redactor) -> String {
    UntrustedText::new(redactor.redact(text)).truncate(limit).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_error_formats_are_parsed() {
        for (body, expected) in [
            (
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                "Overloaded (overloaded_error)",
            ),
            (
                r#"{"error":{"message":"too long","type":"x","code":"context_length_exceeded"}}"#,
                "too long (context_length_exceeded)",
            ),
            (r#"{"error":{"code":400,"message":"no","type":"invalid_request_error"}}"#, "no (invalid_request_error)"),
            (r#"{"error":"model not found"}"#, "model not found"),
            (r#"{"message":"down","code":null}"#, "down"),
            ("<h1>502\u{1b}[2J</h1>", "<h1>502\\u{1b}[2J</h1>"),
            ("", "no error message"),
        ] {
            let message = UnredactedError::from_body(body.as_bytes()).redact(&Redactor::default());
            assert_eq!(message.to_string(), expected, "{body}");
        }
        let endless = format!(r#"{{"error":"{}"}}"#, "x".repeat(100_000));
        let message = UnredactedError::from_body(endless.as_bytes()).redact(&Redactor::default());
        assert_eq!(message.text.chars().count(), MAX_MESSAGE_CHARS + 1);
    }

    #[test]
    fn secrets_are_redacted_before_truncation() {
        let mut redactor = Redactor::default();
        redactor.add("sk-1234567890");
        let padding = "x".repeat(MAX_MESSAGE_CHARS - 5);
        for (error, expected) in [
            (json!("bad key sk-1234567890 given"), "bad key *** given".to_owned()),
            (json!({ "message": "no", "code": "sk-1234567890_refused" }), "no (***_refused)".to_owned()),
            (json!({ "message": format!("{padding}sk-1234567890") }), format!("{padding}***")),
        ] {
            assert_eq!(UnredactedError::from_json(&error).redact(&redactor).to_string(), expected);
        }
        let page = UnredactedError::from_body(b"<h1>sk-1234567890</h1>").redact(&redactor);
        assert_eq!(page.text, "<h1>***</h1>");
    }
}
