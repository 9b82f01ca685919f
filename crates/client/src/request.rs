//! Encoding of one request: its params, and the `_meta` required by the era and the caller.

use std::borrow::Cow;
use std::time::Duration;

use tracing::Span;
use tracing::field::{Empty, display};
use wharf_spec::UntrustedText;
use wharf_wire::{Era, JsonLimits, RawJson, Revision, object_members};

use crate::connection::Connection;
use crate::engine::{CallEffect, CallRequest, CancelPolicy, HeaderFields, PendingCall, ReservedCall};
use crate::error::CallError;
use crate::options::{CallTag, DeclaredClient, RequestOptions};
use crate::server_requests::ServerRequestHandler;
use crate::trace_context::TraceContext;

/// Follows the method's name if there are params.
const PARAMS_OPEN: &str = r#"","params":{"#;
/// Follows the method's name if the params start with `_meta`.
const META_OPEN: &str = r#"","params":{"_meta":{"#;

/// Longer than the lifetime of any connection.
const NO_TIMEOUT: Duration = Duration::from_secs(86_400 * 365);

/// A request to send. Its params are given as fragments of the text between the braces.
#[derive(Clone, Copy)]
pub(crate) struct OutgoingRequest<'a> {
    pub method: &'a str,
    pub members: &'a [&'a [u8]],
    /// Members after `members`, each after a comma, such as the responses of an input round.
    pub more: &'a str,
    pub effect: CallEffect,
    pub cancel_policy: CancelPolicy,
    /// The tool, prompt, resource or task named in the params, if any.
    pub name: Option<&'a str>,
    /// Arguments repeated in headers, by header name.
    pub header_params: &'a [(String, String)],
    /// The span of the call, which gets the id of each request.
    pub span: Option<&'a Span>,
}

impl<'a> OutgoingRequest<'a> {
    pub fn new(method: &'a str, members: &'a [&'a [u8]], effect: CallEffect) -> Self {
        let cancel_policy = CancelPolicy::Withdraw;
        Self { method, members, more: "", effect, cancel_policy, name: None, header_params: &[], span: None }
    }

    /// Sets the name of the request's target.
    pub fn with_name(self, name: &'a str) -> Self {
        Self { name: Some(name), ..self }
    }

    /// Opens the span of this call. Without a subscriber for it, it is empty and costs one comparison.
    pub fn open_span(&self, server: &str) -> Span {
        let tool = || self.name.filter(|_| self.method == "tools/call").map(|name| display(UntrustedText::new(name)));
        tracing::debug_span!("call", server, method = self.method, tool = tool(), id = Empty)
    }

    fn header_fields(&self) -> HeaderFields<'a> {
        HeaderFields { method: self.method, name: self.name, header_params: self.header_params }
    }
}

/// Returns the fixed part of every request between its method and its own members. Empty in the handshake era.
pub(crate) fn fixed_meta(revision: Revision, request_handler: &ServerRequestHandler) -> String {
    match revision.era() {
        Era::Stateless => format!("{META_OPEN}{}", crate::era::meta_members(revision, request_handler)),
        Era::Handshake => String::new(),
    }
}

/// Returns a tool's name, escaped for use inside JSON quotes. Fails if the arguments are not an object.
pub(crate) fn escape_tool_name<'a>(name: &'a str, arguments: &RawJson) -> Result<Cow<'a, str>, CallError> {
    if !arguments.is_object() {
        return Err(CallError::Invalid("tool arguments must be a JSON object".to_owned()));
    }
    if needs_no_escaping(name) {
        return Ok(Cow::Borrowed(name));
    }
    let quoted = serde_json::to_string(name).map_err(|error| CallError::Invalid(error.to_string()))?;
    Ok(Cow::Owned(quoted[1..quoted.len() - 1].to_owned()))
}

/// Returns the params of a tool call.
pub(crate) fn tool_members<'a>(name: &'a str, arguments: &'a RawJson) -> [&'a [u8]; 4] {
    [b"\"name\":\"", name.as_bytes(), b"\",\"arguments\":", arguments.as_bytes()]
}

/// Returns the members of the params as text. Moves `_meta` and the members of an input round to the options.
pub(crate) fn members_without_meta(
    params: &RawJson,
    bounds: &JsonLimits,
    options: &mut RequestOptions,
) -> Result<String, CallError> {
    let invalid = |error: &dyn std::fmt::Display| CallError::Invalid(format!("invalid params: {error}"));
    let mut body = String::with_capacity(params.as_bytes().len());
    for (key, value) in object_members(params, bounds).map_err(|error| invalid(&error))? {
        if key == "_meta" {
            if options.meta.is_some() {
                return Err(invalid(&"`_meta` is given twice"));
            }
            options.meta = Some(value);
            continue;
        }
        if key == "inputResponses" || key == "requestState" {
            let round = options.input_round.get_or_insert_default();
            let member = if key == "requestState" { &mut round.state } else { &mut round.responses };
            if member.replace(value).is_some() {
                return Err(invalid(&format_args!("`{key}` is given twice")));
            }
            continue;
        }
        if !body.is_empty() {
            body.push(',');
        }
        let key = serde_json::to_string(&key).map_err(|error| invalid(&error))?;
        body.push_str(&key);
        body.push(':');
        body.push_str(value.as_str());
    }
    Ok(body)
}

impl Connection {
    /// Sends a request.
    pub(crate) fn send(
        &self,
        outgoing: OutgoingRequest<'_>,
        options: &RequestOptions,
    ) -> Result<PendingCall, CallError> {
        let limits = self.limits();
        // Validated before the call gets an id: an invalid request is not a call.
        let extra = options.meta.as_ref().map(|meta| extra_meta(meta, &limits.bounds)).transpose()?;
        let traced =
            self.inner().trace_context.as_ref().and_then(|trace| traced_meta(trace, extra.unwrap_or_default()));
        let extra = traced.as_deref().or(extra);
        let declared = options.client.as_deref().map(|client| self.forwarded_meta(client)).transpose()?;
        let reserved = self.inner().server.engine.reserve(CallRequest {
            timeout: options.timeout.unwrap_or(limits.call_timeout),
            timeout_max: options.total_timeout(limits),
            progress: options.progress.clone(),
            effect: outgoing.effect,
            cancel_policy: outgoing.cancel_policy,
            tag: options.tag,
        })?;
        if let Some(span) = outgoing.span {
            span.record("id", reserved.call_id());
        }
        self.send_reserved(
            reserved,
            outgoing,
            RequestMeta {
                declared: declared.as_deref(),
                extra: extra.unwrap_or_default(),
                with_progress: options.progress.is_some(),
            },
        )
    }

    /// Returns the fixed part of a request that is forwarded for another client. Empty in the handshake era, in which a
    /// connection has declared its client once and for all.
    fn forwarded_meta(&self, client: &DeclaredClient) -> Result<String, CallError> {
        for (name, member) in [("capabilities", &client.capabilities), ("info", &client.info)] {
            if member.as_ref().is_some_and(|member| !member.is_object()) {
                return Err(CallError::Invalid(format!("the client's {name} must be a JSON object")));
            }
        }
        let revision = self.facts().revision;
        Ok(match revision.era() {
            Era::Stateless => format!("{META_OPEN}{}", crate::era::forwarded_meta_members(revision, client)),
            Era::Handshake => String::new(),
        })
    }

    /// Sends a request without a timeout. Passes its id to `before` before sending.
    pub(crate) fn send_without_timeout(
        &self,
        outgoing: OutgoingRequest<'_>,
        tag: Option<CallTag>,
        before: impl FnOnce(u64),
    ) -> Result<PendingCall, CallError> {
        let reserved = self.inner().server.engine.reserve(CallRequest {
            timeout: NO_TIMEOUT,
            timeout_max: NO_TIMEOUT,
            progress: None,
            effect: outgoing.effect,
            cancel_policy: outgoing.cancel_policy,
            tag,
        })?;
        before(reserved.call_id());
        self.send_reserved(reserved, outgoing, RequestMeta::default())
    }

    fn send_reserved(
        &self,
        reserved: ReservedCall,
        outgoing: OutgoingRequest<'_>,
        RequestMeta { declared, extra, with_progress }: RequestMeta<'_>,
    ) -> Result<PendingCall, CallError> {
        let (members, engine) = (outgoing.members, &self.inner().server.engine);
        let id = reserved.id_text();
        let mut parts = RequestParts::new();
        parts.push(b"{\"jsonrpc\":\"2.0\",\"id\":");
        parts.push(id.text());
        parts.push(b",\"method\":\"");
        parts.push(outgoing.method.as_bytes());
        let fixed = declared.unwrap_or(&self.inner().meta).as_bytes();
        if !fixed.is_empty() || with_progress || !extra.is_empty() {
            let mut comma = !fixed.is_empty();
            parts.push(if comma { fixed } else { META_OPEN.as_bytes() });
            if with_progress {
                parts.push(if comma { b",\"progressToken\":" } else { b"\"progressToken\":" });
                parts.push(id.text());
                comma = true;
            }
            if !extra.is_empty() {
                parts.push(if comma { b"," } else { b"" });
                parts.push(extra);
            }
            parts.push(if members.is_empty() { b"}" } else { b"}," });
        } else if !members.is_empty() {
            parts.push(PARAMS_OPEN.as_bytes());
        } else {
            parts.push(b"\"}\n");
            return engine.send(reserved, outgoing.header_fields(), parts.as_slice());
        }
        members.iter().for_each(|part| parts.push(part));
        parts.push(outgoing.more.as_bytes());
        parts.push(b"}}\n");
        engine.send(reserved, outgoing.header_fields(), parts.as_slice())
    }
}

/// The `_meta` members specific to one request.
#[derive(Default, Clone, Copy)]
struct RequestMeta<'a> {
    /// The fixed part, if it declares another client.
    declared: Option<&'a str>,
    extra: &'a [u8],
    with_progress: bool,
}

/// Returns the members of a caller's `_meta`, without the braces. Members set by the connection are rejected.
fn extra_meta<'a>(meta: &'a RawJson, bounds: &JsonLimits) -> Result<&'a [u8], CallError> {
    let invalid = |what: String| CallError::Invalid(format!("`_meta`: {what}"));
    for (key, _) in object_members(meta, bounds).map_err(|error| invalid(error.to_string()))? {
        let ours = key == "progressToken"
            || ["protocolVersion", "clientCapabilities", "clientInfo", "logLevel"]
                .iter()
                .any(|name| key.strip_prefix("io.modelcontextprotocol/") == Some(name));
        if ours {
            return Err(invalid(format!("`{key}` is set by the connection")));
        }
    }
    let text = meta.as_bytes().trim_ascii();
    let inside = text.strip_prefix(b"{").and_then(|text| text.strip_suffix(b"}"));
    Ok(inside.unwrap_or_default().trim_ascii())
}

/// Returns the members of a caller's `_meta` with the trace context, unless the caller gives one.
fn traced_meta(trace: &TraceContext, extra: &[u8]) -> Option<Vec<u8>> {
    if memchr::memmem::find(extra, b"\"traceparent\"").is_some() {
        return None;
    }
    let mut members = trace.meta_members().into_bytes();
    if !extra.is_empty() {
        members.push(b',');
        members.extend_from_slice(extra);
    }
    Some(members)
}

/// Reports whether a text can be put between JSON quotes unescaped.
pub(crate) fn needs_no_escaping(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'))
}

/// A tool call with all parts has sixteen.
const MAX_PARTS: usize = 20;

/// The parts of one request, collected without copying.
struct RequestParts<'a> {
    parts: [&'a [u8]; MAX_PARTS],
    used: usize,
}

impl<'a> RequestParts<'a> {
    fn new() -> Self {
        Self { parts: [b""; MAX_PARTS], used: 0 }
    }

    fn push(&mut self, part: &'a [u8]) {
        self.parts[self.used] = part;
        self.used += 1;
    }

    fn as_slice(&self) -> &[&'a [u8]] {
        &self.parts[..self.used]
    }
}
