//! Messages of clients: their envelope, and the replies to malformed ones.

use std::borrow::Cow;
use std::sync::OnceLock;

use bytes::Bytes;
use memchr::{memchr, memchr2, memmem};
use serde_json::{Map, Value, json};
use wharf_wire::{Envelope, Fault, Id, JsonLimits, RawJson, code, object_members, scan, split_batch};

use crate::service::OutgoingMessage;

/// A message of a client. Only its envelope has been read.
#[derive(Debug, Clone)]
pub struct ClientMessage {
    text: Bytes,
    envelope: Envelope,
    kind: MessageKind,
    /// The members of the parameters, or the reason why they cannot be read. Filled on first use.
    params: OnceLock<Result<Vec<(String, RawJson)>, String>>,
}

/// The kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageKind {
    /// Expects a response.
    Request,
    /// Expects none.
    Notification,
    /// The response to a request of the server.
    Response,
    /// An array of messages (2025-03-26).
    Batch,
}

impl ClientMessage {
    /// Reads the envelope of a message.
    ///
    /// # Errors
    ///
    /// Returns the reply if the text is not a message.
    pub fn parse(text: Bytes) -> Result<Self, OutgoingMessage> {
        let text = on_one_line(text);
        let envelope = match scan(&text) {
            Ok(envelope) => envelope,
            Err(error) if error.fault == Fault::Batch && split_batch(&text).is_some() => {
                return Ok(Self::new(text, Envelope::default(), MessageKind::Batch));
            }
            Err(_) => return Err(explain(&text)),
        };
        if !has_version(&text) {
            return Err(explain(&text));
        }
        let kind = match (envelope.id, envelope.method) {
            (Some(_), Some(_)) => MessageKind::Request,
            (None, Some(_)) => MessageKind::Notification,
            _ if envelope.result.is_some() || envelope.error.is_some() => MessageKind::Response,
            _ => return Err(explain(&text)),
        };
        if envelope.method.is_some() && envelope.method(&text).is_none() {
            return Err(explain(&text));
        }
        if kind == MessageKind::Request && !matches!(envelope.id(&text), Some(Id::Integer(_) | Id::Text(_))) {
            return Err(error_reply(&Value::Null, code::INVALID_REQUEST, "`id` must be a string or an integer"));
        }
        let message = Self::new(text, envelope, kind);
        if kind == MessageKind::Request && !message.has_object_params() {
            return Err(error_reply(&message.id(), code::INVALID_PARAMS, "`params` must be an object"));
        }
        Ok(message)
    }

    fn new(text: Bytes, envelope: Envelope, kind: MessageKind) -> Self {
        Self { text, envelope, kind, params: OnceLock::new() }
    }

    /// Reports whether the parameters are an object or missing.
    pub fn has_object_params(&self) -> bool {
        self.envelope.params.is_none() || self.params().first() == Some(&b'{')
    }

    /// Returns the whole text.
    pub fn text(&self) -> &Bytes {
        &self.text
    }

    /// Returns the kind.
    pub fn kind(&self) -> MessageKind {
        self.kind
    }

    /// Returns the parts of the message.
    pub fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    /// Returns the method, or an empty string.
    pub fn method(&self) -> Cow<'_, str> {
        self.envelope.method(&self.text).unwrap_or_default()
    }

    /// Returns the raw parameters, if there are any.
    pub fn params(&self) -> &[u8] {
        self.envelope.params.map(|span| span.slice(&self.text)).unwrap_or_default()
    }

    /// Returns the members of the parameters, undecoded.
    ///
    /// # Errors
    ///
    /// Returns the reason if they are invalid JSON, too complex, or have a key twice.
    pub fn members(&self) -> Result<&[(String, RawJson)], &str> {
        let read = || {
            let Some(span) = self.envelope.params else { return Ok(Vec::new()) };
            let params = span.to_shared_raw(&self.text);
            let members = object_members(&params, &JsonLimits::default()).map_err(|error| error.to_string())?;
            Ok(members.into_iter().map(|(key, value)| (key.into_owned(), value)).collect())
        };
        self.params.get_or_init(read).as_deref().map_err(String::as_str)
    }

    /// Returns a member of the parameters, undecoded. `None` also if the parameters cannot be read.
    pub fn param(&self, name: &str) -> Option<RawJson> {
        self.members().ok()?.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
    }

    /// Returns the version that a stateless request declares in its `_meta`.
    pub fn declared_version(&self) -> Option<String> {
        const KEY: &str = "io.modelcontextprotocol/protocolVersion";
        // Requests of other revisions are not decoded. A backslash may hide the key.
        if memmem::find(self.params(), KEY.as_bytes()).is_none() && memchr(b'\\', self.params()).is_none() {
            return None;
        }
        let meta: Map<String, Value> = self.param("_meta")?.decode(&JsonLimits::default()).ok()?;
        meta.get(KEY)?.as_str().map(str::to_owned)
    }

    /// Returns the id for a reply: null if there is none.
    pub fn id(&self) -> Value {
        let raw = self.envelope.id.map(|span| span.slice(&self.text)).unwrap_or(b"null");
        serde_json::from_slice(raw).unwrap_or_default()
    }

    /// Reports whether the message, or one of a batch, expects a response.
    pub fn has_request(&self) -> bool {
        match self.kind {
            MessageKind::Batch => split_batch(&self.text).is_some_and(|items| {
                let is_request = |item: Bytes| Self::parse(item).is_ok_and(|item| item.kind == MessageKind::Request);
                items.into_iter().any(is_request)
            }),
            kind => kind == MessageKind::Request,
        }
    }
}

/// Reports whether a message whose envelope has been read says that it is JSON-RPC 2.0.
fn has_version(text: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct VersionMember<'a> {
        #[serde(borrow)]
        jsonrpc: Option<Cow<'a, str>>,
    }
    // Most messages begin with it, and nothing else is read of them. The scanner refuses a second one.
    text.starts_with(br#"{"jsonrpc":"2.0","#)
        || serde_json::from_slice::<VersionMember<'_>>(text)
            .is_ok_and(|member| member.jsonrpc.as_deref() == Some("2.0"))
}

/// Replaces line breaks, which JSON has between tokens only, so that the text can be forwarded as one line.
pub(crate) fn on_one_line(text: Bytes) -> Bytes {
    if memchr2(b'\n', b'\r', &text).is_none() {
        return text;
    }
    let space = |byte: &u8| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte };
    text.iter().map(space).collect()
}

/// Returns the reply to a text whose envelope cannot be read.
fn explain(text: &[u8]) -> OutgoingMessage {
    let value: Value = match serde_json::from_slice(text) {
        Ok(value) => value,
        Err(error) => return error_reply(&Value::Null, code::PARSE, &format!("not JSON: {error}")),
    };
    let id = value.get("id").filter(|id| id.is_string() || id.is_i64() || id.is_u64()).cloned().unwrap_or_default();
    let complaint = match &value {
        Value::Object(fields) if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") => {
            "`jsonrpc` must be \"2.0\""
        }
        Value::Object(fields) if fields.get("method").is_some_and(|method| !method.is_string()) => {
            "`method` must be a string"
        }
        Value::Object(fields) if !fields.contains_key("method") => "`method` is missing",
        Value::Object(_) => "the message is ambiguous",
        _ => "a message is a JSON object",
    };
    error_reply(&id, code::INVALID_REQUEST, complaint)
}

/// Returns an error reply.
pub fn error_reply(id: &Value, code: i64, message: &str) -> OutgoingMessage {
    let text = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}).to_string();
    OutgoingMessage::error(text, code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &'static str, expected: &str) {
        let found = match ClientMessage::parse(Bytes::from_static(text.as_bytes())) {
            Ok(message) => format!("{:?} {}", message.kind(), message.method()),
            Err(reply) => reply.error_code.unwrap().to_string(),
        };
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn messages_are_classified() {
        check(r#"{"jsonrpc":"2.0","id":1,"method":"a"}"#, "Request a");
        check(r#"{"jsonrpc":"2.0","method":"a","params":[]}"#, "Notification a");
        check(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "Response ");
        check(r#"[{"jsonrpc":"2.0","id":1,"method":"a"}]"#, "Batch ");
        check(r#"{"jsonrpc":"2.0","id":1}"#, "-32600");
        check(r#"{"jsonrpc":"2.0","id":1,"method":42}"#, "-32600");
        check(r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#, "-32600");
        check(r#"{"jsonrpc":"2.0","id":1,"method":"a","params":3}"#, "-32602");
        check(r#"{"id":1,"method":"a"}"#, "-32600");
        check(r#"{"jsonrpc":"1.0","id":1,"method":"a"}"#, "-32600");
        check(r#"{"jsonrpc":2.0,"id":1,"method":"a"}"#, "-32600");
        check(r#"{"method":"a"}"#, "-32600");
        check(r#"{"method":"a","params":{"jsonrpc":"2.0"},"id":1}"#, "-32600");
        check(r#" {"id":1, "method":"a", "jsonrpc" : "2.0"}"#, "Request a");
        check(r#"{"id":1,"method":"a","jsonrpc":"\u0032.0"}"#, "Request a");
        check("[1,", "-32700");
        check("{", "-32700");
        check("42", "-32600");
    }

    #[test]
    fn version_is_found_in_every_spelling() {
        for key in ["io.modelcontextprotocol/protocolVersion", r"io.modelcontextprotocol\/protocolVersion"] {
            let text =
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"a","params":{{"_meta":{{"{key}":"2026-07-28"}}}}}}"#);
            let message = ClientMessage::parse(text.into()).unwrap();
            assert_eq!(message.declared_version().as_deref(), Some("2026-07-28"), "{key}");
        }
    }

    #[test]
    fn no_message_has_a_line_break() {
        let message =
            ClientMessage::parse(Bytes::from_static(b"{\n\"jsonrpc\":\"2.0\",\"id\":1,\r\n\"method\":\"a\"}")).unwrap();
        assert!(memchr2(b'\n', b'\r', message.text()).is_none());
        let forged = OutgoingMessage::response("{\"a\":1}\n{\"id\":2,\"result\":{}}\r");
        assert!(memchr2(b'\n', b'\r', &forged.text).is_none());
    }
}
