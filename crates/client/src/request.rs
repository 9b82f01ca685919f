//! One request as bytes: its parameters, and the `_meta` that era and caller ask for.

use std::borrow::Cow;
use std::time::Duration;

use wharf_wire::{Bounds, Era, Raw, Revision, members};

use crate::connection::Connection;
use crate::desk::Desk;
use crate::engine::{Call, Effect, Request, Reserved, Subject, WhenDropped};
use crate::error::CallError;
use crate::options::CallOptions;

/// Follows the method's name where parameters come, and where those begin with `_meta`.
const PARAMS_OPEN: &str = r#"","params":{"#;
const META_OPEN: &str = r#"","params":{"_meta":{"#;

/// Longer than any connection lives.
const FOR_EVER: Duration = Duration::from_secs(86_400 * 365);

/// A request to be sent: its parameters are given as pieces of the text between the braces.
#[derive(Clone, Copy)]
pub(crate) struct Outgoing<'a> {
    pub method: &'a str,
    pub members: &'a [&'a [u8]],
    pub effect: Effect,
    pub when_dropped: WhenDropped,
    /// The tool, prompt, resource or task the members name, where they name one.
    pub name: Option<&'a str>,
    /// Arguments that are repeated beside the message, by the names they have there.
    pub mirrored: &'a [(String, String)],
}

impl<'a> Outgoing<'a> {
    pub fn new(method: &'a str, members: &'a [&'a [u8]], effect: Effect) -> Self {
        Self { method, members, effect, when_dropped: WhenDropped::Withdraw, name: None, mirrored: &[] }
    }

    /// Names what the members name.
    pub fn naming(self, name: &'a str) -> Self {
        Self { name: Some(name), ..self }
    }

    fn subject(&self) -> Subject<'a> {
        Subject { method: self.method, name: self.name, mirrored: self.mirrored }
    }
}

/// What every request carries between its method and its own members; nothing in the handshake era.
pub(crate) fn constant_meta(revision: Revision, desk: &Desk) -> String {
    match revision.era() {
        Era::Stateless => format!("{META_OPEN}{}", crate::era::meta_members(revision, desk)),
        Era::Handshake => String::new(),
    }
}

/// A tool's name as it stands between quotes.
pub(crate) fn tool_name<'a>(name: &'a str, arguments: &Raw) -> Result<Cow<'a, str>, CallError> {
    if !arguments.is_object() {
        return Err(CallError::Invalid("the arguments of a tool are a JSON object".to_owned()));
    }
    if is_plain(name) {
        return Ok(Cow::Borrowed(name));
    }
    let quoted = serde_json::to_string(name).map_err(|error| CallError::Invalid(error.to_string()))?;
    Ok(Cow::Owned(quoted[1..quoted.len() - 1].to_owned()))
}

/// The parameters of a tool call.
pub(crate) fn tool_members<'a>(name: &'a str, arguments: &'a Raw) -> [&'a [u8]; 4] {
    [b"\"name\":\"", name.as_bytes(), b"\",\"arguments\":", arguments.as_bytes()]
}

/// The members of the parameters as text. A `_meta` among them joins the one of the options.
pub(crate) fn members_without_meta(
    params: &Raw,
    bounds: &Bounds,
    options: &mut CallOptions,
) -> Result<String, CallError> {
    let invalid = |error: &dyn std::fmt::Display| CallError::Invalid(format!("the parameters: {error}"));
    let mut body = String::with_capacity(params.as_bytes().len());
    for (key, value) in members(params, bounds).map_err(|error| invalid(&error))? {
        if key == "_meta" {
            if options.meta.is_some() {
                return Err(invalid(&"`_meta` is given twice"));
            }
            options.meta = Some(value);
            continue;
        }
        if !body.is_empty() {
            body.push(',');
        }
        let key = serde_json::to_string(&key).map_err(|error| invalid(&error))?;
        body.push_str(&key);
        body.push(':');
        body.push_str(value.get());
    }
    Ok(body)
}

impl Connection {
    /// Sends a request, with `more` members after its own.
    pub(crate) fn send(&self, outgoing: Outgoing<'_>, more: &str, options: &CallOptions) -> Result<Call, CallError> {
        let limits = self.limits();
        // Before the call has an id: what cannot be sent was never made.
        let extra = options.meta.as_ref().map(|meta| extra_meta(meta, &limits.bounds)).transpose()?;
        let reserved = self.inner().open.engine.reserve(Request {
            timeout: options.timeout.unwrap_or(limits.call),
            timeout_max: options.total(limits),
            progress: options.progress.clone(),
            effect: outgoing.effect,
            when_dropped: outgoing.when_dropped,
        })?;
        self.send_reserved(
            reserved,
            outgoing,
            more,
            Meta { extra: extra.unwrap_or_default(), with_progress: options.progress.is_some() },
        )
    }

    /// Sends a request that is answered when it is over, however long that takes. Says its id before it leaves.
    pub(crate) fn send_endless(&self, outgoing: Outgoing<'_>, before: impl FnOnce(u64)) -> Result<Call, CallError> {
        let reserved = self.inner().open.engine.reserve(Request {
            timeout: FOR_EVER,
            timeout_max: FOR_EVER,
            progress: None,
            effect: outgoing.effect,
            when_dropped: outgoing.when_dropped,
        })?;
        before(reserved.number());
        self.send_reserved(reserved, outgoing, "", Meta::default())
    }

    fn send_reserved(
        &self,
        reserved: Reserved,
        outgoing: Outgoing<'_>,
        more: &str,
        Meta { extra, with_progress }: Meta<'_>,
    ) -> Result<Call, CallError> {
        let (members, engine) = (outgoing.members, &self.inner().open.engine);
        let id = reserved.id();
        let mut parts = Parts::new();
        parts.push(b"{\"jsonrpc\":\"2.0\",\"id\":");
        parts.push(id.text());
        parts.push(b",\"method\":\"");
        parts.push(outgoing.method.as_bytes());
        let always = self.inner().meta.as_bytes();
        if !always.is_empty() || with_progress || !extra.is_empty() {
            let mut comma = !always.is_empty();
            parts.push(if comma { always } else { META_OPEN.as_bytes() });
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
            return engine.send(reserved, outgoing.subject(), parts.as_slice());
        }
        members.iter().for_each(|part| parts.push(part));
        parts.push(more.as_bytes());
        parts.push(b"}}\n");
        engine.send(reserved, outgoing.subject(), parts.as_slice())
    }
}

/// What this one request has in its `_meta`, beside what every request has there.
#[derive(Default, Clone, Copy)]
struct Meta<'a> {
    extra: &'a [u8],
    with_progress: bool,
}

/// The members of a caller's `_meta`, without the braces. What the protocol itself puts there cannot be overridden.
fn extra_meta<'a>(meta: &'a Raw, bounds: &Bounds) -> Result<&'a [u8], CallError> {
    let invalid = |what: String| CallError::Invalid(format!("`_meta`: {what}"));
    for (key, _) in members(meta, bounds).map_err(|error| invalid(error.to_string()))? {
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

/// Whether a text can stand between quotes as it is.
pub(crate) fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'))
}

/// A tool call with everything has eighteen.
const MOST_PARTS: usize = 20;

/// The pieces of one request, gathered without copying them.
struct Parts<'a> {
    parts: [&'a [u8]; MOST_PARTS],
    used: usize,
}

impl<'a> Parts<'a> {
    fn new() -> Self {
        Self { parts: [b""; MOST_PARTS], used: 0 }
    }

    fn push(&mut self, part: &'a [u8]) {
        self.parts[self.used] = part;
        self.used += 1;
    }

    fn as_slice(&self) -> &[&'a [u8]] {
        &self.parts[..self.used]
    }
}
