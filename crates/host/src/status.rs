//! What is known of a server now.

use std::time::SystemTime;

use wharf_client::{Containment, Counters};
use wharf_spec::ServerName;
use wharf_wire::{Implementation, Revision, ServerCapabilities};

use crate::catalog::Freshness;
use crate::context::Context;
use crate::server::Server;
use crate::supervise::{State, Way};
use crate::trouble::Trouble;

/// Lines of stderr that are part of it.
const STDERR_SHOWN: usize = 20;

/// What is known of a server now.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerStatus {
    /// What it is called here.
    pub name: ServerName,
    /// `stdio`, `http`, `sse` or `in-process`.
    pub transport: &'static str,
    /// Where it stands.
    pub state: State,
    /// Since when.
    pub since: SystemTime,
    /// What was last wrong with it.
    pub last_error: Option<std::sync::Arc<Trouble>>,
    /// When it last became ready.
    pub last_connected_at: Option<SystemTime>,
    /// How often it has become ready again.
    pub restarts: u32,
    /// It is lost again and again, shortly after it was ready.
    pub flapping: bool,
    /// Starts with its first use.
    pub lazy: bool,
    /// Its tools are allowed where no rule says otherwise.
    pub trust: bool,
    /// Calls under way.
    pub in_flight: usize,
    /// What was agreed with it, while it is connected.
    pub connected: Option<ConnectedStatus>,
    /// What it offers.
    pub offers: Option<OfferStatus>,
    /// The last lines it wrote to stderr: untrusted.
    pub stderr_tail: Vec<String>,
}

/// What was agreed with a server that is connected.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ConnectedStatus {
    /// The revision.
    pub revision: Revision,
    /// What it can do.
    pub capabilities: ServerCapabilities,
    /// What it calls itself: untrusted.
    pub server_info: Option<Implementation>,
    /// What it would like a model to know: untrusted.
    pub instructions: Option<String>,
    /// Its process, where it has one.
    pub pid: Option<i32>,
    /// What holds its processes together.
    pub containment: Option<Containment>,
    /// What went wrong quietly.
    pub counters: Counters,
}

/// How much a server offers.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OfferStatus {
    /// Tools that can be used.
    pub tools: usize,
    /// Tools that are withheld.
    pub withheld: usize,
    /// Resources.
    pub resources: usize,
    /// Templates of resources.
    pub templates: usize,
    /// Prompts.
    pub prompts: usize,
    /// Whether that was heard from the server just now, or is what it once said.
    pub freshness: Freshness,
}

pub(crate) fn status(context: &Context, server: &Server) -> ServerStatus {
    let standing = server.standing.borrow().clone();
    let kept = server.kept.load();
    let connection = match &standing.way {
        Way::Open(connection) => Some(connection),
        _ => None,
    };
    let stderr_tail = match connection {
        Some(connection) => connection.stderr_tail(STDERR_SHOWN),
        None => standing.trouble.as_ref().map(|trouble| trouble.stderr().to_vec()).unwrap_or_default(),
    };
    ServerStatus {
        name: server.name.clone(),
        transport: server.reach.transport(),
        state: standing.state,
        since: standing.since,
        last_error: standing.trouble.clone(),
        last_connected_at: standing.last_connected,
        restarts: standing.restarts,
        flapping: standing.flapping,
        lazy: kept.settings.lazy,
        trust: kept.settings.trust,
        in_flight: server.usage.in_flight(),
        connected: connection.map(connected),
        offers: offers(context, server),
        stderr_tail,
    }
}

fn connected(connection: &wharf_client::Connection) -> ConnectedStatus {
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

fn offers(context: &Context, server: &Server) -> Option<OfferStatus> {
    let catalog = context.shelf.peek();
    let section = catalog.section(server.name.as_str())?;
    Some(OfferStatus {
        tools: section.offered().count(),
        withheld: section.tools.len() - section.offered().count() + section.withheld.len(),
        resources: section.resources.len(),
        templates: section.templates.len(),
        prompts: section.prompts.len(),
        freshness: section.freshness,
    })
}
