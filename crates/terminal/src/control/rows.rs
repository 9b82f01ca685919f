//! Conversion of server rows to JSON values for the control socket, and back.

use std::sync::Arc;

use serde::Deserialize as _;
use serde_json::Value;
use wharf::ServerState;
use wharf_client::ProcessExit;
use wharf_wire::Implementation;

use crate::clock::parse_timestamp;
use crate::failure::{Failure, FailureKind, FailureReport};
use crate::managed_host::ManagedHost;
use crate::status::show::{document, item};
use crate::status::status_rows::{OfferCounts, StatusRow};

const TRANSPORTS: [&str; 3] = ["stdio", "http", "sse"];
const SOURCES: [&str; 5] = ["global", "project", "flag", "env", "code"];
const STATES: [ServerState; 9] = [
    ServerState::Disabled,
    ServerState::Unapproved,
    ServerState::Idle,
    ServerState::Disconnected,
    ServerState::Connecting,
    ServerState::AuthRequired,
    ServerState::Ready,
    ServerState::Reconnecting,
    ServerState::Failed,
];
/// Result of `mcp.list`: the document of `wharf status --json`.
pub fn list_result(managed_host: &ManagedHost<'_>) -> Result<Value, Failure> {
    serde_json::to_value(document(&managed_host.rows(), &[])).map_err(Failure::other)
}

/// Result of `mcp.get`: the item of `wharf status --json` plus further details of the server.
pub fn get_result(managed_host: &ManagedHost<'_>, id: &str) -> Result<Value, Failure> {
    let rows = managed_host.rows();
    let row = rows.iter().find(|row| row.id == id);
    let row = row.ok_or_else(|| Failure::usage(format_args!("no server named `{id}`")))?;
    let mut value = serde_json::to_value(item(row)).map_err(Failure::other)?;
    if let (Value::Object(members), Ok(status)) = (&mut value, managed_host.host.status_of(id)) {
        members.insert("lazy".to_owned(), status.lazy.into());
        members.insert("trust".to_owned(), status.trust.into());
        members.insert("flapping".to_owned(), status.flapping.into());
        members.insert("in_flight".to_owned(), status.in_flight.into());
        members.insert("stderr".to_owned(), status.stderr_tail.into());
    }
    Ok(value)
}

/// Parses the rows of an `mcp.list` result, or returns `None` if it is malformed.
pub fn parse_rows(listed: &Value) -> Option<Vec<StatusRow>> {
    listed.get("items")?.as_array()?.iter().map(parse_row).collect()
}

fn parse_row(item: &Value) -> Option<StatusRow> {
    let text = |key: &str| item.get(key).and_then(Value::as_str);
    let time = |key: &str| text(key).and_then(parse_timestamp);
    let word =
        |key: &str, known: &[&'static str]| known.iter().find(|word| text(key) == Some(word)).copied().unwrap_or("?");
    Some(StatusRow {
        id: text("id")?.to_owned(),
        transport: word("transport", &TRANSPORTS),
        source: word("source", &SOURCES),
        file: text("file")?.to_owned(),
        enabled: item.get("enabled")?.as_bool()?,
        state: STATES.into_iter().find(|state| text("state") == Some(state.as_str()))?,
        since: time("since"),
        counts: parse_counts(item),
        revision: text("revision").map(str::to_owned),
        server_info: item.get("server_info").and_then(|info| Implementation::deserialize(info).ok()),
        failure: item.get("last_error").and_then(parse_failure).map(Arc::new),
        last_connected_at: time("last_connected_at"),
        restarts: item.get("restarts").and_then(Value::as_u64).and_then(|count| u32::try_from(count).ok()).unwrap_or(0),
        notes: parse_strings(item.get("notes")),
    })
}

fn parse_counts(item: &Value) -> Option<OfferCounts> {
    let count = |key: &str| item.get(key)?.as_u64().and_then(|count| usize::try_from(count).ok());
    Some(OfferCounts { tools: count("tools")?, resources: count("resources")?, prompts: count("prompts")? })
}

/// Parses a serialized failure.
pub fn parse_failure(document: &Value) -> Option<Failure> {
    let text = |key: &str| document.get(key).and_then(Value::as_str).map(str::to_owned);
    let kind =
        FailureKind::ALL.into_iter().find(|kind| serde_json::to_value(kind).ok().as_ref() == document.get("kind"))?;
    let exit = |key: &str| document.get("exit")?.get(key)?.as_i64().and_then(|code| i32::try_from(code).ok());
    let error = FailureReport {
        message: text("message")?,
        server: text("server"),
        step: None,
        exit: exit("code").map(ProcessExit::Code).or_else(|| exit("signal").map(ProcessExit::Signal)),
        stderr: parse_strings(document.get("stderr")),
        ..FailureReport::default()
    };
    Some(Failure { kind, error: Box::new(error), hints: parse_strings(document.get("hints")) })
}

fn parse_strings(list: Option<&Value>) -> Vec<String> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    use crate::clock::unix_time;

    fn sample(state: ServerState) -> StatusRow {
        let mut failure =
            Failure::new(FailureKind::TimedOut, "it took too long").about_server("git").with_hint("--timeout SECONDS");
        failure.error.exit = Some(ProcessExit::Signal(9));
        failure.error.stderr.push("boom".to_owned());
        let (name, version) = ("Git".to_owned(), "1".to_owned());
        StatusRow {
            file: "team.json:3:7".to_owned(),
            since: Some(unix_time(1_785_196_799_999)),
            counts: Some(OfferCounts { tools: 3, resources: 2, prompts: 1 }),
            revision: Some("2026-07-28".to_owned()),
            server_info: Some(Implementation { name, version, title: None }),
            failure: Some(Arc::new(failure)),
            last_connected_at: Some(unix_time(951_782_400_007)),
            restarts: 4,
            notes: vec!["odd".to_owned()],
            ..StatusRow::new("git", "stdio", "flag", state)
        }
    }

    #[test]
    fn rows_round_trip_through_json() {
        let bare = |mut row: StatusRow| {
            (row.since, row.counts, row.revision, row.server_info, row.failure) = (None, None, None, None, None);
            row
        };
        for state in STATES {
            for row in [sample(state), bare(sample(state))] {
                let went = serde_json::to_value(document(&[row], &[])).unwrap();
                let back = parse_rows(&went).unwrap();
                assert_eq!(serde_json::to_value(document(&back, &[])).unwrap(), went);
            }
        }
    }

    #[test]
    fn malformed_rows_are_rejected() {
        for listed in [json!({}), json!({"items": 1}), json!({"items": [{"id": "x"}]}), json!({"items": [null]})] {
            assert!(parse_rows(&listed).is_none(), "{listed}");
        }
        assert!(parse_failure(&json!({"kind": "unheard_of", "message": "x"})).is_none());
    }
}
