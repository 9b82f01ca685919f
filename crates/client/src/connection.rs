//! The handle calls are made on.

use std::sync::Arc;

use wharf_wire::{
    Era, Implementation, PromptDefinition, PromptResult, Raw, ReadResult, Resource, ResourceTemplate, Revision,
    ServerCapabilities, ToolDefinition, ToolResult, View, members,
};

use crate::counters::Counters;
use crate::engine::{Answer, Call, Effect, Request, ResultKind, WhenDropped};
use crate::error::CallError;
use crate::flow::{ListKind, Listing, list};
use crate::guard::Containment;
use crate::limits::Limits;
use crate::options::CallOptions;
use crate::trace::ConnectTrace;
use crate::transport::stdio::Open;

/// A server that is ready. Cheap to clone; when the last clone is dropped the server is ended, without waiting.
/// [`Connection::close`] ends it politely.
#[derive(Clone)]
pub struct Connection {
    inner: Arc<Inner>,
}

struct Inner {
    open: Open,
    facts: ServerFacts,
    /// What every request carries between its method and its own members, up to the last member of `_meta` that is
    /// always there; empty in the handshake era.
    meta: String,
    trace: ConnectTrace,
    limits: Limits,
}

/// What is known of a server once it is ready.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerFacts {
    /// What it is called here.
    pub name: String,
    /// The revision agreed on.
    pub revision: Revision,
    /// What it offers; nothing else is asked of it.
    pub capabilities: ServerCapabilities,
    /// What it calls itself: untrusted.
    pub server_info: Option<Implementation>,
    /// What it would like a model to know: untrusted.
    pub instructions: Option<String>,
    /// Its process.
    pub pid: i32,
    /// What holds its processes together.
    pub containment: Containment,
}

const TOOLS: ListKind = ListKind { method: "tools/list", key: "tools", what: "tools" };
const RESOURCES: ListKind = ListKind { method: "resources/list", key: "resources", what: "resources" };
const TEMPLATES: ListKind =
    ListKind { method: "resources/templates/list", key: "resourceTemplates", what: "resource templates" };
const PROMPTS: ListKind = ListKind { method: "prompts/list", key: "prompts", what: "prompts" };

/// Follows the method's name where parameters come, and where those begin with `_meta`.
const PARAMS_OPEN: &str = r#"","params":{"#;
const META_OPEN: &str = r#"","params":{"_meta":{"#;

/// Methods that change nothing, so that they may be sent again. Whatever is not here may write.
const READS: [&str; 9] = [
    "ping",
    "server/discover",
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "prompts/list",
    "prompts/get",
    "completion/complete",
];

impl Connection {
    pub(crate) fn new(open: Open, facts: ServerFacts, trace: ConnectTrace, limits: Limits) -> Self {
        let meta = match facts.revision.era() {
            Era::Stateless => format!("{META_OPEN}{}", crate::era::meta_members(facts.revision)),
            Era::Handshake => String::new(),
        };
        Self { inner: Arc::new(Inner { open, facts, meta, trace, limits }) }
    }

    /// What is known of the server.
    pub fn facts(&self) -> &ServerFacts {
        &self.inner.facts
    }

    /// How the connection came about.
    pub fn trace(&self) -> &ConnectTrace {
        &self.inner.trace
    }

    /// What went wrong quietly so far.
    pub fn counters(&self) -> Counters {
        self.inner.open.engine.tally.snapshot()
    }

    /// The last lines the server wrote to stderr: untrusted text.
    pub fn stderr_tail(&self, lines: usize) -> Vec<String> {
        self.inner.open.stderr_tail(lines)
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    /// Calls a tool. A tool that reports failure has answered: see [`ToolResult::is_error`].
    ///
    /// Dropping the future withdraws the call.
    pub async fn call_tool(&self, name: &str, arguments: &Raw, options: CallOptions) -> Result<ToolResult, CallError> {
        self.view(self.call_tool_raw(name, arguments, options).await?)
    }

    /// Calls a tool and leaves its result as it came: for whoever forwards it.
    ///
    /// Dropping the future withdraws the call.
    pub async fn call_tool_raw(&self, name: &str, arguments: &Raw, options: CallOptions) -> Result<Answer, CallError> {
        self.gate("tools/call")?;
        if !arguments.is_object() {
            return Err(CallError::Invalid("the arguments of a tool are a JSON object".to_owned()));
        }
        let escaped;
        let name = if is_plain(name) {
            name
        } else {
            let quoted = serde_json::to_string(name).map_err(|error| CallError::Invalid(error.to_string()))?;
            escaped = quoted[1..quoted.len() - 1].to_owned();
            &escaped
        };
        let body = [b"\"name\":\"", name.as_bytes(), b"\",\"arguments\":", arguments.as_bytes()];
        self.send("tools/call", &body, options, Effect::MayWrite)?.await
    }

    /// Sends any method, raw in and raw out. What the server has not declared is not asked.
    ///
    /// Dropping the future withdraws the call.
    pub async fn request(
        &self,
        method: &str,
        params: Option<&Raw>,
        mut options: CallOptions,
    ) -> Result<Answer, CallError> {
        if !is_plain(method) || method.is_empty() {
            return Err(CallError::Invalid("a method name is plain ASCII".to_owned()));
        }
        self.gate(method)?;
        let effect = if READS.contains(&method) { Effect::Reads } else { Effect::MayWrite };
        let body = match params {
            Some(params) => self.members_without_meta(params, &mut options)?,
            None => String::new(),
        };
        let body: &[&[u8]] = if body.is_empty() { &[] } else { &[body.as_bytes()] };
        self.send(method, body, options, effect)?.await
    }

    /// Lists the tools. A malformed one is withheld and costs only itself.
    pub async fn list_tools(&self) -> Result<Listing<ToolDefinition>, CallError> {
        list(self, TOOLS).await
    }

    /// Lists the resources.
    pub async fn list_resources(&self) -> Result<Listing<Resource>, CallError> {
        list(self, RESOURCES).await
    }

    /// Lists the resource templates.
    pub async fn list_templates(&self) -> Result<Listing<ResourceTemplate>, CallError> {
        list(self, TEMPLATES).await
    }

    /// Lists the prompts.
    pub async fn list_prompts(&self) -> Result<Listing<PromptDefinition>, CallError> {
        list(self, PROMPTS).await
    }

    /// Reads a resource.
    pub async fn read_resource(&self, uri: &str, options: CallOptions) -> Result<ReadResult, CallError> {
        let params =
            Raw::of(&serde_json::json!({ "uri": uri })).map_err(|error| CallError::Invalid(error.to_string()))?;
        let answer = self.request("resources/read", Some(&params), options).await?;
        self.view(answer)
    }

    /// Expands a prompt. Arguments are strings.
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: &[(String, String)],
        options: CallOptions,
    ) -> Result<PromptResult, CallError> {
        let arguments: serde_json::Map<_, _> =
            arguments.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect();
        let params = serde_json::json!({ "name": name, "arguments": arguments });
        let params = Raw::of(&params).map_err(|error| CallError::Invalid(error.to_string()))?;
        let answer = self.request("prompts/get", Some(&params), options).await?;
        self.view(answer)
    }

    /// Asks whether the server is there: by `ping`, or in the stateless era by discovering it once more.
    pub async fn ping(&self, options: CallOptions) -> Result<(), CallError> {
        let method = match self.inner.facts.revision.era() {
            Era::Handshake => "ping",
            Era::Stateless => "server/discover",
        };
        self.request(method, None, options).await.map(|_| ())
    }

    /// Ends the server: withdraws what is in flight, closes its input, waits, terminates, kills; returns when nothing of
    /// it is left. Dropped while it waits, the server goes on ending.
    pub async fn close(&self) {
        self.inner.open.close().await;
    }

    fn view<T: View>(&self, answer: Answer) -> Result<T, CallError> {
        if answer.kind == ResultKind::InputRequired {
            return Err(CallError::Protocol("it asks for input that was not offered".to_owned()));
        }
        Ok(T::view(answer.result, &self.inner.limits.bounds)?)
    }

    /// Never asks a server for what it did not declare.
    fn gate(&self, method: &str) -> Result<(), CallError> {
        let offered = &self.inner.facts.capabilities;
        let stateless = self.inner.facts.revision.era() == Era::Stateless;
        let (ok, what) = match method.split('/').next().unwrap_or_default() {
            "tools" => (offered.tools, "tools"),
            "resources" if method.ends_with("subscribe") => {
                (offered.resources_subscribe && !stateless, "resource subscriptions")
            }
            "resources" => (offered.resources, "resources"),
            "prompts" => (offered.prompts, "prompts"),
            "completion" => (offered.completions, "completion"),
            "logging" => (offered.logging && !stateless, "logging"),
            "ping" => (!stateless, "ping"),
            "initialize" | "notifications" => (false, "what only the connection itself sends"),
            _ => (true, ""),
        };
        if ok { Ok(()) } else { Err(CallError::Unsupported(what)) }
    }

    /// The members of the parameters as text. A `_meta` among them joins the one of the options.
    fn members_without_meta(&self, params: &Raw, options: &mut CallOptions) -> Result<String, CallError> {
        let invalid = |error: &dyn std::fmt::Display| CallError::Invalid(format!("the parameters: {error}"));
        let mut body = String::with_capacity(params.as_bytes().len());
        for (key, value) in members(params, &self.inner.limits.bounds).map_err(|error| invalid(&error))? {
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

    /// Sends a request whose parameters have these members, with the `_meta` that era and options ask for.
    fn send(&self, method: &str, members: &[&[u8]], options: CallOptions, effect: Effect) -> Result<Call, CallError> {
        let extra = options.meta.as_ref().map(|meta| self.extra_meta(meta)).transpose()?.unwrap_or_default();
        let with_progress = options.progress.is_some();
        let limits = &self.inner.limits;
        let timeout = options.timeout.unwrap_or(limits.call);
        let reserved = self.inner.open.engine.reserve(Request {
            timeout,
            timeout_max: options.timeout_max.unwrap_or_else(|| limits.call_max.max(timeout)),
            progress: options.progress,
            effect,
            when_dropped: WhenDropped::Withdraw,
        })?;
        let id = reserved.id();
        let mut parts = Parts::new();
        parts.push(b"{\"jsonrpc\":\"2.0\",\"id\":");
        parts.push(id.text());
        parts.push(b",\"method\":\"");
        parts.push(method.as_bytes());
        let always = self.inner.meta.as_bytes();
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
            return self.inner.open.engine.send(reserved, parts.as_slice());
        }
        members.iter().for_each(|part| parts.push(part));
        parts.push(b"}}\n");
        self.inner.open.engine.send(reserved, parts.as_slice())
    }

    /// The members of a caller's `_meta`, without the braces. What the protocol itself puts there cannot be overridden.
    fn extra_meta<'a>(&self, meta: &'a Raw) -> Result<&'a [u8], CallError> {
        let invalid = |what: String| CallError::Invalid(format!("`_meta`: {what}"));
        for (key, _) in members(meta, &self.inner.limits.bounds).map_err(|error| invalid(error.to_string()))? {
            let ours = key == "progressToken"
                || ["protocolVersion", "clientCapabilities", "clientInfo"]
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
}

/// Whether a text can stand between quotes as it is.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'))
}

/// A tool call with everything has sixteen.
const MOST_PARTS: usize = 18;

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
