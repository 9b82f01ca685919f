//! One server as a row of a table, and the check every server goes through.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;
use wharf_client::{
    CallError, ConnectOptions, Connection, ConnectionCounters, Containment, GuardProgram, RequestOptions, connect,
};
use wharf_spec::{EnvValue, Environment, StdioSpec};
use wharf_testkit::oracle::{MARKER, marked_processes, poll_until};
use wharf_wire::{Content, RawJson, Revision, ToolResult, code};

const NOT_INSTALLED: &str = "run `cargo xtask test`, which installs what this needs";
/// `cargo xtask test` finds by it what a test left behind.
const RUN_MARKER: &str = "WHARF_TEST_RUN";
/// How long the kernel may take to show that a process is gone.
pub const SOON: Duration = Duration::from_secs(2);

/// A server, how to start it, and what is expected of it.
pub struct Peer {
    pub spec: StdioSpec,
    /// Where it lives: its home, its working directory, and whatever it is to write.
    pub home: Home,
    pub revision: Revision,
    /// Some of its tools, or all.
    pub tools: &'static [&'static str],
    /// Tool, arguments, and what the answer's text contains.
    pub calls: Vec<(&'static str, Value, &'static str)>,
    pub unknown: Unknown,
    /// Where to read, and what the text contains.
    pub resources: &'static [(&'static str, &'static str)],
    pub templates: &'static [&'static str],
    /// Prompt, arguments, and what the first message says.
    pub prompts: &'static [(&'static str, Arguments, &'static str)],
}

/// The arguments of a prompt.
type Arguments = &'static [(&'static str, &'static str)];

/// What a server does about a tool it does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    /// Answers that the tool failed.
    Answered,
    /// Refuses the request.
    Refused,
}

impl Peer {
    pub fn new(name: &str, program: impl Into<OsString>, revision: Revision) -> Self {
        let spec = StdioSpec { program: program.into(), ..StdioSpec::default() };
        let (home, unknown) = (Home::new(name), Unknown::Answered);
        Self { spec, home, revision, tools: &[], calls: vec![], unknown, resources: &[], templates: &[], prompts: &[] }
    }

    /// A package of the reference servers on npm.
    pub fn node(name: &str, package: &str, revision: Revision) -> Self {
        let script = installed(&format!("node_modules/@modelcontextprotocol/{package}/dist/index.js"));
        Self::new(name, "node", revision).arg(script)
    }

    /// The Python of one of our environments, before its arguments.
    pub fn python(name: &str, environment: &str, revision: Revision) -> Self {
        Self::new(name, installed(&format!("{environment}/bin/python")), revision)
    }

    /// One of the scripts in `servers`; a program with a slash is one we installed.
    pub fn script(name: &str, program: &str, script: &str, revision: Revision) -> Self {
        let program = if program.contains('/') { installed(program) } else { program.into() };
        Self::new(name, program, revision).arg(installed(&format!("servers/{script}")))
    }

    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.spec.args.push(argument.into());
        self
    }

    /// Its home as an argument.
    pub fn arg_home(self) -> Self {
        let home = self.home.path.clone();
        self.arg(home)
    }

    /// A variable that names a file in its home.
    pub fn env_home(mut self, name: &str, file: &str) -> Self {
        let file = self.home.path.join(file);
        self.spec.env.push((name.into(), EnvValue::Plain(file.into())));
        self
    }

    /// Starts it under the marker by which [`Self::close`] finds what is left.
    pub async fn open(&self, options: ConnectOptions) -> Connection {
        let mut spec = self.spec.clone();
        spec.env.push((MARKER.into(), EnvValue::Plain(self.home.marker().into())));
        spec.env.push((RUN_MARKER.into(), EnvValue::Inherit));
        let connection = match connect(&spec, options).await {
            Ok(connection) => connection,
            Err(error) => panic!("{error}\n{:?}\n{}", error.trace, error.stderr.join("\n")),
        };
        let facts = connection.facts();
        let found = (facts.revision, facts.process.map(|process| process.containment));
        assert_eq!(found, (self.revision, Some(Containment::Guard)), "{:?}", connection.trace());
        assert!(!marked_processes(&self.home.marker()).is_empty(), "the marker shows who is there");
        connection
    }

    /// Ends it; nothing of it may be left.
    pub async fn close(&self, connection: Connection) {
        connection.close().await;
        let error = connection.ping(RequestOptions::default()).await.unwrap_err();
        assert!(matches!(error, CallError::RetryableDisconnect(_)), "{error}");
        let marker = self.home.marker();
        let gone = poll_until(SOON, || marked_processes(&marker).is_empty());
        assert!(gone, "left behind: {:?}", marked_processes(&marker));
    }
}

/// Connects, lists, calls, reads and closes, with `more` before the end; nothing of the server may be left.
pub async fn check(peer: Peer, more: impl AsyncFnOnce(&Connection, &Path)) {
    let connection = peer.open(peer.home.options()).await;
    tools(&connection, &peer).await;
    resources(&connection, &peer).await;
    prompts(&connection, &peer).await;
    more(&connection, &peer.home.path).await;
    connection.ping(RequestOptions::default()).await.unwrap();
    assert_eq!(connection.counters(), nothing_odd(&connection));
    peer.close(connection).await;
}

/// What a connection has counted on which nothing went wrong.
pub fn nothing_odd(connection: &Connection) -> ConnectionCounters {
    let mut counters = ConnectionCounters::default();
    counters.notifications = connection.counters().notifications;
    counters
}

async fn tools(connection: &Connection, peer: &Peer) {
    let list = connection.list_tools().await.unwrap();
    assert!(list.withheld.is_empty(), "{:?}", list.withheld);
    let names: Vec<&str> = list.items.iter().map(|tool| tool.name.as_str()).collect();
    assert!(peer.tools.iter().all(|tool| names.contains(tool)), "{names:?}");
    assert!(list.items.iter().all(|tool| tool.input_schema.as_ref().is_some_and(RawJson::is_object)));
    for (tool, arguments, expected) in &peer.calls {
        let result = ask(connection, tool, arguments).await;
        assert!(!result.is_error && text(&result).contains(expected), "{tool}: {}", text(&result));
    }
    let unknown = connection.call_tool("no-such-tool", &RawJson::empty_object(), RequestOptions::default()).await;
    match (&unknown, peer.unknown) {
        (Ok(result), Unknown::Answered) => assert!(result.is_error, "{}", text(result)),
        (Err(CallError::ErrorResponse(error)), Unknown::Refused) => assert_eq!(error.code, code::INVALID_PARAMS),
        _ => panic!("an unknown tool gave {unknown:?}"),
    }
}

async fn resources(connection: &Connection, peer: &Peer) {
    if peer.resources.is_empty() {
        assert!(!connection.facts().capabilities.resources);
        assert!(matches!(connection.list_resources().await, Err(CallError::Unsupported(_))));
        return;
    }
    let list = connection.list_resources().await.unwrap();
    assert!(list.withheld.is_empty(), "{:?}", list.withheld);
    let listed: Vec<&str> = list.items.iter().map(|resource| resource.uri.as_str()).collect();
    assert!(listed.contains(&peer.resources[0].0), "{listed:?}");
    for (uri, expected) in peer.resources {
        let read = connection.read_resource(uri, RequestOptions::default()).await.unwrap();
        let [contents] = &*read.contents else { panic!("{} contents", read.contents.len()) };
        assert_eq!(contents.uri, *uri);
        assert!(contents.text.as_ref().is_some_and(|text| text.contains(expected)), "{contents:?}");
    }
    if !peer.templates.is_empty() {
        let list = connection.list_templates().await.unwrap();
        let listed: Vec<&str> = list.items.iter().map(|template| template.uri_template.as_str()).collect();
        assert_eq!(listed, peer.templates);
    }
    let nowhere = connection.read_resource("nowhere://at/all", RequestOptions::default()).await.unwrap_err();
    assert!(nowhere.is_error_response(), "{nowhere}");
}

async fn prompts(connection: &Connection, peer: &Peer) {
    if peer.prompts.is_empty() {
        assert!(matches!(connection.list_prompts().await, Err(CallError::Unsupported(_))));
        return;
    }
    let list = connection.list_prompts().await.unwrap();
    for (name, arguments, expected) in peer.prompts {
        let prompt = list.items.iter().find(|prompt| prompt.name == *name).unwrap();
        assert!(arguments.iter().all(|(name, _)| prompt.arguments.iter().any(|argument| argument.name == *name)));
        let arguments: Vec<_> = arguments.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        let expanded = connection.get_prompt(name, &arguments, RequestOptions::default()).await.unwrap();
        let Content::Text { text, .. } = &expanded.messages[0].content else { panic!("{expanded:?}") };
        assert_eq!((expanded.messages[0].role.as_str(), text.as_str()), ("user", *expected));
    }
}

/// Calls a tool that answers.
pub async fn ask(connection: &Connection, tool: &str, arguments: &Value) -> ToolResult {
    connection.call_tool(tool, &raw(arguments), RequestOptions::default()).await.unwrap()
}

pub fn raw(value: &Value) -> RawJson {
    RawJson::from_value(value).unwrap()
}

/// The text blocks of an answer.
pub fn text(result: &ToolResult) -> String {
    let texts = result.content.iter().map(|block| match block {
        Content::Text { text, .. } => text.as_str(),
        _ => "",
    });
    texts.collect()
}

/// A folder of its own for each server, removed with it.
pub struct Home {
    pub path: PathBuf,
}

impl Home {
    fn new(name: &str) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = format!("real-{name}-{}-{number}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
        fs::create_dir_all(&path).unwrap();
        // Some servers compare paths and follow links first.
        Self { path: path.canonicalize().unwrap() }
    }

    pub fn marker(&self) -> String {
        self.path.file_name().unwrap().to_string_lossy().into_owned()
    }

    /// The test's own environment, but with this for a home.
    pub fn options(&self) -> ConnectOptions {
        let mut env: Vec<_> = std::env::vars_os().filter(|(name, _)| name != "HOME").collect();
        env.push(("HOME".into(), self.path.clone().into()));
        let mut options = ConnectOptions::default();
        options.name = self.marker();
        options.surroundings = Environment { env, cwd: self.path.clone() };
        // The harness owns `main`, so somebody else has to be the guard.
        options.guard = GuardProgram::At(env!("CARGO_BIN_EXE_bench-wharf").into());
        options
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// A file among what `cargo xtask peers` installs.
pub fn installed(file: &str) -> PathBuf {
    let beside = || Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("peers");
    let path = std::env::var_os("WHARF_PEERS").map_or_else(beside, PathBuf::from).join(file);
    assert!(path.exists(), "{NOT_INSTALLED}: no {}", path.display());
    path
}
