//! Combines the configuration and the host's state into one row per server.

use std::sync::Arc;
use std::time::SystemTime;

use wharf::{Host, ServerStatus, State, Trouble};
use wharf_config::{Config, Configured, Reach};
use wharf_spec::{ActivationState, HttpForm, ServerEntry, Surroundings};
use wharf_wire::Implementation;

use crate::configured::problems_of;
use crate::failure::{Failure, Kind};
use crate::session::Session;

/// Inputs of the rows.
pub struct Gathered<'a> {
    pub session: &'a Session,
    pub config: &'a Config,
    pub host: &'a Host,
    pub entries: &'a [ServerEntry],
    /// Reasons why enabled servers cannot be resolved.
    pub failures: &'a [(String, Arc<Failure>)],
    /// Servers to show; empty for all.
    pub ids: &'a [String],
}

/// State of one server, as shown.
pub struct Row {
    pub id: String,
    pub transport: &'static str,
    pub source: &'static str,
    pub file: String,
    pub enabled: bool,
    pub state: State,
    pub since: Option<SystemTime>,
    pub counts: Option<Counts>,
    pub revision: Option<String>,
    pub server_info: Option<Implementation>,
    pub failure: Option<Arc<Failure>>,
    pub last_connected_at: Option<SystemTime>,
    pub restarts: u32,
    /// Other problems, escaped.
    pub notes: Vec<String>,
}

/// Numbers of offered items.
pub struct Counts {
    pub tools: usize,
    pub resources: usize,
    pub prompts: usize,
}

/// Returns a row for each server, and for each project entry that awaits approval.
pub fn gather(parts: &Gathered<'_>) -> Vec<Row> {
    let waits = |server: &&Configured| server.admission() == ActivationState::Unapproved;
    let beside = parts.config.beside.iter().filter(waits);
    let is_wanted =
        |server: &&Configured| parts.ids.is_empty() || parts.ids.iter().any(|id| server.name.as_str() == id);
    let mut all: Vec<&Configured> = parts.config.servers.iter().chain(beside).filter(is_wanted).collect();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all.into_iter().map(|server| row(parts, server)).collect()
}

fn row(parts: &Gathered<'_>, server: &Configured) -> Row {
    let mut row = Row {
        id: server.name.to_string(),
        transport: transport(server),
        source: server.layer.source(),
        file: server.place.to_string(),
        enabled: server.enabled,
        state: State::Failed,
        since: None,
        counts: None,
        revision: None,
        server_info: None,
        failure: None,
        last_connected_at: None,
        restarts: 0,
        notes: Vec::new(),
    };
    if let Err(problems) = &server.described {
        row.failure = Some(Arc::new(problems_of(&row.id, problems)));
        return row;
    }
    match server.admission() {
        ActivationState::Disabled => row.state = State::Disabled,
        ActivationState::Unapproved => row.state = State::Unapproved,
        ActivationState::Enabled => match parts.host.status_of(server.name.as_str()) {
            Ok(status) => known(&mut row, parts, &status),
            Err(_) => absent(&mut row, parts),
        },
    }
    row
}

/// Fills in the failure of a server that the host does not have. Without a failure, its secrets are still being
/// resolved.
fn absent(row: &mut Row, parts: &Gathered<'_>) {
    match parts.failures.iter().find(|(id, _)| *id == row.id) {
        Some((_, why)) => row.failure = Some(Arc::clone(why)),
        None => row.state = State::Connecting,
    }
}

/// Returns the transport as a word.
fn transport(server: &Configured) -> &'static str {
    match server.described.as_ref().map(|described| &described.reach) {
        Ok(Reach::Stdio(_)) => "stdio",
        Ok(Reach::Http(http)) if http.form == HttpForm::Sse => "sse",
        Ok(Reach::Http(_)) => "http",
        Err(_) => "?",
    }
}

/// Fills in the host's state of the server.
fn known(row: &mut Row, parts: &Gathered<'_>, status: &ServerStatus) {
    row.state = status.state;
    row.since = Some(status.since);
    row.last_connected_at = status.last_connected_at;
    row.restarts = status.restarts;
    row.counts = status.offers.as_ref().map(|offers| Counts {
        tools: offers.tools,
        resources: offers.resources,
        prompts: offers.prompts,
    });
    if let Some(connected) = &status.connected {
        row.revision = Some(connected.revision.to_string());
        row.server_info.clone_from(&connected.server_info);
    }
    if status.state == State::Ready {
        if let Some(section) = parts.host.catalog().section(&row.id) {
            let told = |(list, why): &(_, String)| format!("the list of {list} cannot be had: {why}");
            row.notes.extend(section.failures.iter().map(told));
        }
    } else {
        let entry = parts.entries.iter().find(|entry| entry.name == status.name);
        let around = &parts.session.surroundings;
        row.failure = status.last_error.as_ref().map(|trouble| Arc::new(failure(trouble, &row.id, entry, around)));
    }
}

/// Converts the last error of a server to a failure.
fn failure(trouble: &Trouble, id: &str, entry: Option<&ServerEntry>, around: &Surroundings) -> Failure {
    let failure = match (trouble, entry) {
        (Trouble::NotConnected(error), Some(entry)) => {
            return Failure::connecting(id, &entry.spec, around, &**error);
        }
        (Trouble::Lost(gone), _) => {
            let mut failure = Failure::of(Kind::Unreachable, gone);
            (failure.error.exit, failure.error.stderr) = (gone.exit, gone.stderr.clone());
            failure
        }
        _ => Failure::of(Kind::Unreachable, trouble),
    };
    failure.about(id)
}

/// Returns the worst kind of failure among the servers that should be available.
pub fn worst(rows: &[Row], are_named: bool) -> Option<Kind> {
    let should_be = |row: &&Row| !matches!(row.state, State::Ready | State::Idle | State::Disabled | State::Unapproved);
    let wrong = rows.iter().filter(should_be).map(|row| row.failure.as_ref().map_or(Kind::Unreachable, |why| why.kind));
    let unapproved = rows.iter().filter(|row| are_named && row.state == State::Unapproved).map(|_| Kind::Denied);
    worst_of(wrong.chain(unapproved))
}

/// Returns the worst of these kinds.
pub fn worst_of(kinds: impl IntoIterator<Item = Kind>) -> Option<Kind> {
    let rank = |kind: &Kind| match kind.code() {
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
    fn the_worst_counts() {
        for (kinds, expected) in [
            (&[][..], None),
            (&[Kind::Usage, Kind::LoginNeeded], Some(Kind::LoginNeeded)),
            (&[Kind::TimedOut, Kind::Unreachable, Kind::Usage], Some(Kind::Unreachable)),
            (&[Kind::Denied, Kind::TimedOut], Some(Kind::TimedOut)),
        ] {
            assert_eq!(worst_of(kinds.iter().copied()), expected);
        }
    }
}
