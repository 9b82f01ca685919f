//! Combines the configuration and the host's state into one row per server.

use std::sync::Arc;
use std::time::SystemTime;

use wharf::{Host, ServerState, ServerStatus};
use wharf_config::{Config, ConfiguredServer, TransportDefinition};
use wharf_spec::{ActivationState, HttpTransport, ServerEntry};
use wharf_wire::Implementation;

use crate::config_context::server_problems_failure;
use crate::failure::{Failure, FailureKind};
use crate::session::CommandSession;

/// Inputs of the rows.
pub struct StatusInputs<'a> {
    pub session: &'a CommandSession,
    pub config: &'a Config,
    pub host: &'a Host,
    pub entries: &'a [ServerEntry],
    /// Reasons why enabled servers cannot be resolved.
    pub failures: &'a [(String, Arc<Failure>)],
    /// Servers to show; empty for all.
    pub ids: &'a [String],
}

/// State of one server, as shown.
pub struct StatusRow {
    pub id: String,
    pub transport: &'static str,
    pub source: &'static str,
    pub file: String,
    pub enabled: bool,
    pub state: ServerState,
    pub since: Option<SystemTime>,
    pub counts: Option<OfferCounts>,
    pub revision: Option<String>,
    pub server_info: Option<Implementation>,
    pub failure: Option<Arc<Failure>>,
    pub last_connected_at: Option<SystemTime>,
    pub restarts: u32,
    /// Other problems, escaped.
    pub notes: Vec<String>,
}

impl StatusRow {
    /// Creates the row of an enabled server of which only the state is known.
    pub fn new(id: &str, transport: &'static str, source: &'static str, state: ServerState) -> Self {
        Self {
            id: id.to_owned(),
            transport,
            source,
            file: String::new(),
            enabled: true,
            state,
            since: None,
            counts: None,
            revision: None,
            server_info: None,
            failure: None,
            last_connected_at: None,
            restarts: 0,
            notes: Vec::new(),
        }
    }
}

/// Numbers of offered items.
pub struct OfferCounts {
    pub tools: usize,
    pub resources: usize,
    pub prompts: usize,
}

/// Returns a row for each server, and for each project entry that awaits approval.
pub fn status_rows(parts: &StatusInputs<'_>) -> Vec<StatusRow> {
    let waits = |server: &&ConfiguredServer| server.activation() == ActivationState::Unapproved;
    let beside = parts.config.beside.iter().filter(waits);
    let is_wanted =
        |server: &&ConfiguredServer| parts.ids.is_empty() || parts.ids.iter().any(|id| server.name.as_str() == id);
    let mut all: Vec<&ConfiguredServer> = parts.config.servers.iter().chain(beside).filter(is_wanted).collect();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all.into_iter().map(|server| status_row(parts, server)).collect()
}

fn status_row(parts: &StatusInputs<'_>, server: &ConfiguredServer) -> StatusRow {
    let transport = transport_word(server).unwrap_or("?");
    let mut row = StatusRow::new(server.name.as_str(), transport, server.layer.source(), ServerState::Failed);
    (row.file, row.enabled) = (server.place.to_string(), server.enabled);
    if let Err(problems) = &server.described {
        row.failure = Some(Arc::new(server_problems_failure(&row.id, problems)));
        return row;
    }
    match server.activation() {
        ActivationState::Disabled => row.state = ServerState::Disabled,
        ActivationState::Unapproved => row.state = ServerState::Unapproved,
        ActivationState::Enabled => match parts.host.status_of(server.name.as_str()) {
            Ok(status) => fill_from_host(&mut row, parts, &status),
            Err(_) => fill_unresolved(&mut row, parts),
        },
    }
    row
}

/// Fills in the failure of a server that the host does not have. Without a failure, its secrets are still being
/// resolved.
fn fill_unresolved(row: &mut StatusRow, parts: &StatusInputs<'_>) {
    match parts.failures.iter().find(|(id, _)| *id == row.id) {
        Some((_, why)) => row.failure = Some(Arc::clone(why)),
        None => row.state = ServerState::Connecting,
    }
}

/// Returns the transport. For an invalid entry, derives it from the keys present.
pub fn transport_word(server: &ConfiguredServer) -> Option<&'static str> {
    match server.described.as_ref().map(|described| &described.reach) {
        Ok(TransportDefinition::Stdio(_)) => Some("stdio"),
        Ok(TransportDefinition::Http(http)) if http.form == HttpTransport::Sse => Some("sse"),
        Ok(TransportDefinition::Http(_)) => Some("http"),
        Err(_) if server.written.contains_key("command") => Some("stdio"),
        Err(_) if server.written.contains_key("url") || server.written.contains_key("httpUrl") => Some("http"),
        Err(_) => None,
    }
}

/// Fills in the host's state of the server.
fn fill_from_host(row: &mut StatusRow, parts: &StatusInputs<'_>, status: &ServerStatus) {
    row.state = status.state;
    row.since = Some(status.since);
    row.last_connected_at = status.last_connected_at;
    row.restarts = status.restarts;
    row.counts = status.offers.as_ref().map(|offers| OfferCounts {
        tools: offers.tools,
        resources: offers.resources,
        prompts: offers.prompts,
    });
    if let Some(connected) = &status.connected {
        row.revision = Some(connected.revision.to_string());
        row.server_info.clone_from(&connected.server_info);
    }
    if status.state == ServerState::Ready {
        if let Some(section) = parts.host.catalog().section(&row.id) {
            let describe = |(list, why): &(_, String)| format!("cannot list {list}: {why}");
            row.notes.extend(section.failures.iter().map(describe));
        }
    } else {
        let entry = parts.entries.iter().find(|entry| entry.name == status.name);
        let (spec, environment) = (entry.map(|entry| &entry.spec), &parts.session.environment);
        let failure = |error: &Arc<_>| Arc::new(Failure::from_server_error(&row.id, spec, environment, error));
        row.failure = status.last_error.as_ref().map(failure);
    }
}

/// Returns the worst kind of failure among the servers that should be available.
pub fn worst_kind_of_rows(rows: &[StatusRow], are_named: bool) -> Option<FailureKind> {
    let should_be = |row: &&StatusRow| {
        !matches!(row.state, ServerState::Ready | ServerState::Idle | ServerState::Disabled | ServerState::Unapproved)
    };
    let wrong =
        rows.iter().filter(should_be).map(|row| row.failure.as_ref().map_or(FailureKind::Unreachable, |why| why.kind));
    let unapproved =
        rows.iter().filter(|row| are_named && row.state == ServerState::Unapproved).map(|_| FailureKind::Denied);
    worst_kind(wrong.chain(unapproved))
}

/// Returns the worst of these kinds.
pub fn worst_kind(kinds: impl IntoIterator<Item = FailureKind>) -> Option<FailureKind> {
    let rank = |kind: &FailureKind| match kind.code() {
        3 => 4,
        7 => 3,
        4 => 2,
        2 => 1,
        _ => 0,
    };
    kinds.into_iter().max_by_key(rank)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worst_failure_kind_is_returned() {
        for (kinds, expected) in [
            (&[][..], None),
            (&[FailureKind::Usage, FailureKind::LoginNeeded], Some(FailureKind::LoginNeeded)),
            (&[FailureKind::TimedOut, FailureKind::Unreachable, FailureKind::Usage], Some(FailureKind::Unreachable)),
            (&[FailureKind::Denied, FailureKind::TimedOut], Some(FailureKind::TimedOut)),
        ] {
            assert_eq!(worst_kind(kinds.iter().copied()), expected);
        }
    }
}
