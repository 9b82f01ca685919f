//! Current status of a server.

use std::time::SystemTime;

use wharf_client::{ConnectionCounters, Containment};
use wharf_spec::ServerName;
use wharf_wire::{Implementation, Revision, ServerCapabilities};

use crate::catalog::ListFreshness;
use crate::context::HostContext;
use crate::server::Server;
use crate::server_error::ServerError;
use crate::supervise::{Availability, ServerState};

/// Number of stderr lines included.
const MAX_STDERR_LINES: usize = 20;

/// Current status of a server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerStatus {
    /// The server's configured name.
    pub name: ServerName,
    /// `stdio`, `http`, `sse` or `in-process`.
    pub transport: &'static str,
    /// Current state.
    pub state: ServerState,
    /// Time of the last state change.
    pub since: SystemTime,
    /// The last error.
    pub last_error: Option<std::sync::Arc<ServerError>>,
    /// Time at which the server last became ready.
    pub last_connected_at: Option<SystemTime>,
    /// Number of times the server has become ready again.
    pub restarts: u32,
    /// The connection is repeatedly lost shortly after it becomes ready.
    pub flapping: bool,
    /// The server is started on first use.
    pub lazy: bool,
    /// The server's tools are allowed unless a rule says otherwise.
    pub trust: bool,
    /// Number of calls in progress.
    pub in_flight: usize,
    /// Negotiated properties, while connected.
    pub connected: Option<ConnectedStatus>,
    /// Counts of the server's catalog section.
    pub offers: Option<OfferStatus>,
    /// The last lines of stderr. Untrusted.
    pub stderr_tail: Vec<String>,
}

/// Negotiated properties of a connected server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ConnectedStatus {
    /// Protocol revision.
    pub revision: Revision,
    /// The server's capabilities.
    pub capabilities: ServerCapabilities,
    /// The server's own name and version. Untrusted.
    pub server_info: Option<Implementation>,
    /// The server's instructions for a model. Untrusted.
    pub instructions: Option<String>,
    /// ID of the server's process, if it has one.
    pub pid: Option<i32>,
    /// Mechanism that contains the server's processes.
    pub containment: Option<Containment>,
    /// Counters of protocol anomalies.
    pub counters: ConnectionCounters,
}

/// Counts of a server's catalog section.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OfferStatus {
    /// Tools that can be used.
    pub tools: usize,
    /// Tools that are withheld.
    pub withheld: usize,
    /// Resources.
    pub resources: usize,
    /// Resource templates.
    pub templates: usize,
    /// Prompts.
    pub prompts: usize,
    /// Origin of the section: listed live or read from the cache.
    pub freshness: ListFreshness,
}

pub(crate) fn server_status(context: &HostContext, server: &Server) -> ServerStatus {
    let snapshot = server.snapshot.borrow().clone();
    let settings = server.settings.load();
    let connection = match &snapshot.availability {
        Availability::Open(connection) => Some(connection),
        _ => None,
    };
    let stderr_tail = match connection {
        Some(connection) => connection.stderr_tail(MAX_STDERR_LINES),
        None => snapshot.last_error.as_ref().map(|error| error.stderr().to_vec()).unwrap_or_default(),
    };
    ServerStatus {
        name: server.name.clone(),
        transport: server.endpoint.transport(),
        state: snapshot.state,
        since: snapshot.since,
        last_error: snapshot.last_error.clone(),
        last_connected_at: snapshot.last_connected,
        restarts: snapshot.restarts,
        flapping: snapshot.flapping,
        lazy: settings.effective.lazy,
        trust: settings.effective.trust,
        in_flight: server.usage.in_flight(),
        connected: connection.map(connected_status),
        offers: offer_status(context, server),
        stderr_tail,
    }
}

fn connected_status(connection: &wharf_client::Connection) -> ConnectedStatus {
    let facts = connection.facts();
    ConnectedStatus {
        revision: facts.revision,
        capabilities: facts.capabilities.clone(),
        server_info: facts.server_info.clone(),
        instructions: facts.instructions.clone(),
        pid: facts.process.map(|process| process.pid),
        containment: facts.process.map(|process| process.containment),
        counters: connection.counters(),
    }
}

fn offer_status(context: &HostContext, server: &Server) -> Option<OfferStatus> {
    let catalog = context.publisher.peek();
    let section = catalog.section(server.name.as_str())?;
    Some(OfferStatus {
        tools: section.visible_tools().count(),
        withheld: section.tools.len() - section.visible_tools().count() + section.withheld.len(),
        resources: section.resources.len(),
        templates: section.templates.len(),
        prompts: section.prompts.len(),
        freshness: section.freshness,
    })
}
