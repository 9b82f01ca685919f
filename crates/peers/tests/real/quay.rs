//! Our servers on other people's SDKs, in each era they speak, and a visit to one of them.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use wharf_client::{
    CallError, ClientServices, ConnectOptions, Connection, ConnectionCounters, Direction, NegotiationMode,
    RequestOptions, Tap, TappedMessage,
};
use wharf_wire::{Era, Revision, ToolResult};

use crate::http::web::Web;
use crate::peer::{self, Peer, nothing_odd, text};

/// What hangs for this long hangs for ever.
const LONG: Duration = Duration::from_secs(60);

/// On whose SDK a server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sdk {
    TypeScript2,
    TypeScript1,
    Python2,
    Python1,
    Rust3,
    /// The reference server of everything, unchanged.
    Everything,
}

/// How a server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Stdio,
    Streamable,
    /// HTTP+SSE (2024-11-05).
    Sse,
}

/// A server in one of the eras it speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Side {
    pub sdk: Sdk,
    pub era: Era,
    pub way: Way,
}

const fn stateless(sdk: Sdk) -> Side {
    Side { sdk, era: Era::Stateless, way: Way::Stdio }
}

const fn handshake(sdk: Sdk) -> Side {
    Side { sdk, era: Era::Handshake, way: Way::Stdio }
}

/// The servers that speak the stateless era.
pub const STATELESS: [Side; 3] = [stateless(Sdk::TypeScript2), stateless(Sdk::Python2), stateless(Sdk::Rust3)];
/// The servers that only speak the handshake era.
pub const OLD: [Side; 2] = [handshake(Sdk::TypeScript1), handshake(Sdk::Python1)];
/// The servers that speak both, spoken to in the handshake era.
pub const LENIENT: [Side; 3] = [handshake(Sdk::TypeScript2), handshake(Sdk::Python2), handshake(Sdk::Rust3)];
pub const EVERYTHING: Side = handshake(Sdk::Everything);

/// The reference server of everything, by every way to it.
pub fn everywhere() -> Vec<Side> {
    [Way::Stdio, Way::Streamable, Way::Sse].map(|way| EVERYTHING.by(way)).into()
}

/// Every side of our own servers, which offer the same tools, over stdio.
pub fn all() -> Vec<Side> {
    [&STATELESS[..], &OLD[..], &LENIENT[..]].concat()
}

/// Every side of our own servers over HTTP.
pub fn over_http() -> Vec<Side> {
    let streamable = all().into_iter().map(|side| side.by(Way::Streamable));
    let sse = [Sdk::TypeScript1, Sdk::Python1, Sdk::Python2].map(|sdk| handshake(sdk).by(Way::Sse));
    streamable.chain(sse).collect()
}

impl Side {
    pub fn is_stateless(self) -> bool {
        self.era == Era::Stateless
    }

    /// The same server, reached in this way.
    pub fn by(self, way: Way) -> Self {
        Self { way, ..self }
    }

    fn peer(self) -> Peer {
        let peer = self.program();
        match (self.sdk, self.way) {
            (Sdk::Everything, Way::Stdio) => peer.arg("stdio"),
            (Sdk::Everything, Way::Streamable) => peer.arg("streamableHttp"),
            (Sdk::Everything, Way::Sse) => peer.arg("sse"),
            (_, Way::Stdio) => peer,
            (_, Way::Streamable) => peer.arg("--http"),
            (_, Way::Sse) => peer.arg("--sse"),
        }
    }

    fn program(self) -> Peer {
        let revision = if self.is_stateless() { Revision::V2026_07_28 } else { Revision::V2025_11_25 };
        match self.sdk {
            Sdk::TypeScript2 => Peer::script("ts2", "node", "ts2.mjs", revision),
            Sdk::TypeScript1 => Peer::script("ts1", "node", "ts1.mjs", revision),
            Sdk::Python2 => Peer::script("py2", "py2/bin/python", "py2.py", revision),
            Sdk::Python1 => Peer::script("py1", "py1/bin/python", "py1.py", revision),
            Sdk::Rust3 => Peer::new("rmcp", env!("CARGO_BIN_EXE_rmcp-server"), revision),
            Sdk::Everything => Peer::node("everything", "server-everything", revision),
        }
    }

    /// Servers of both eras are told which by the opening; the others are left to be found out.
    fn negotiation(self) -> NegotiationMode {
        let lenient = LENIENT.contains(&self.by(Way::Stdio));
        if lenient { NegotiationMode::Handshake } else { NegotiationMode::Automatic }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} ({:?}, {:?})", self.sdk, self.era, self.way)
    }
}

/// A server that is connected, and everything that passes.
pub struct Visit {
    pub side: Side,
    pub connection: Connection,
    pub wire: Arc<Wire>,
    /// Its server, where that is a program of the test's own.
    pub web: Option<Web>,
    /// What may have gone wrong quietly without being a fault of ours.
    pub excused: Mutex<ConnectionCounters>,
}

/// Visits one after the other with these services.
pub async fn each(sides: &[Side], services: ClientServices, work: impl AsyncFn(&Visit)) {
    for side in sides {
        visit(*side, |options| options.services = services.clone(), &work).await;
    }
}

/// Connects, works, and closes; nothing odd may have happened and nothing of the server may be left.
pub async fn visit(side: Side, adjust: impl FnOnce(&mut ConnectOptions), work: impl AsyncFnOnce(&Visit)) {
    let (peer, wire) = (side.peer(), Arc::new(Wire::default()));
    let mut options = peer.home.options();
    options.negotiation = side.negotiation();
    options.tap = Some(Arc::clone(&wire) as Arc<dyn Tap>);
    adjust(&mut options);
    let (connection, web) = match side.way {
        Way::Stdio => (peer.open(options).await, None),
        Way::Streamable | Way::Sse => {
            let web = Web::start(&peer, side).await;
            (web.open(&peer, options).await, Some(web))
        }
    };
    let visit = Visit { side, connection, wire, web, excused: Mutex::default() };
    let done = tokio::time::timeout(LONG, work(&visit)).await;
    assert!(done.is_ok(), "{side}: nothing came for {LONG:?}");
    let mut expected = visit.excused.into_inner().unwrap();
    expected.notifications = nothing_odd(&visit.connection).notifications;
    assert_eq!(visit.connection.counters(), expected, "{side}");
    match visit.web {
        None => peer.close(visit.connection).await,
        Some(web) => web.close(&peer, visit.connection).await,
    }
}

impl Visit {
    /// The server over HTTP.
    pub fn web(&self) -> &Web {
        self.web.as_ref().expect("a visit over HTTP")
    }

    pub async fn try_call(&self, tool: &str, arguments: Value) -> Result<ToolResult, CallError> {
        self.connection.call_tool(tool, &peer::raw(&arguments), RequestOptions::default()).await
    }

    /// Calls a tool that answers and does not fail.
    pub async fn call(&self, tool: &str, arguments: Value) -> String {
        match self.try_call(tool, arguments).await {
            Ok(result) if !result.is_error => text(&result),
            other => panic!("{}: {tool} gave {other:?}", self.side),
        }
    }

    /// Calls a tool that answers with JSON.
    pub async fn call_json(&self, tool: &str, arguments: Value) -> Value {
        let text = self.call(tool, arguments).await;
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {tool}: {error}: {text}", self.side))
    }
}

/// Every message of a connection, in order.
pub struct Wire {
    messages: watch::Sender<Vec<(Direction, Value)>>,
}

impl Default for Wire {
    fn default() -> Self {
        Self { messages: watch::Sender::new(Vec::new()) }
    }
}

impl Tap for Wire {
    fn message(&self, passing: &TappedMessage<'_>) {
        let message = serde_json::from_slice(passing.bytes).unwrap_or_default();
        self.messages.send_modify(|messages| messages.push((passing.direction, message)));
    }
}

impl Wire {
    /// The requests and notifications of that method, and their parameters.
    pub fn all(&self, direction: Direction, method: &str) -> Vec<Value> {
        let messages = self.messages.borrow();
        let wanted = messages.iter().filter(|(way, message)| *way == direction && message["method"] == method);
        wanted.map(|(_, message)| message["params"].clone()).collect()
    }

    pub fn sent(&self, method: &str) -> usize {
        self.all(Direction::Sent, method).len()
    }

    pub fn received(&self, method: &str) -> usize {
        self.all(Direction::Received, method).len()
    }

    /// What was answered, in either direction, with an error.
    pub fn errors(&self, direction: Direction) -> Vec<Value> {
        let messages = self.messages.borrow();
        let errors = messages.iter().filter(|(way, message)| *way == direction && message.get("error").is_some());
        errors.map(|(_, message)| message["error"].clone()).collect()
    }

    /// Waits until enough has passed.
    pub async fn until(&self, enough: impl Fn(&Self) -> bool) {
        let mut passing = self.messages.subscribe();
        while !enough(self) {
            passing.changed().await.expect("the connection holds the other end");
        }
    }
}
