//! Cases over HTTP that need more than connect, call, read, call, close.

use super::*;
use crate::expect_http::eventually;
use crate::fixture::Fixture;
use wharf_client::{Event, Subscription, TransportCache, connect_http};
use wharf_wire::Interest;

macro_rules! opened_at {
    ($server:expr, $cell:expr) => {
        match connect_http(&$server.spec(), $cell.options()).await {
            Ok(connection) => connection,
            Err(error) => return vec![explain(&error)],
        }
    };
}

mod changes;
mod dropping;
mod listening;
mod old_form;
mod pool;
mod restarting;
mod rounds;
mod streams;

const BOTH: &[&str] = &["modern", "legacy"];
const MODERN: &[&str] = &["modern"];
const LEGACY: &[&str] = &["legacy"];
const OLDEST: &[&str] = &["2024-11-05"];

/// Cases that the table of faults does not have, each with its form and the eras it is for.
pub const OWN: &[(&str, Form, &[&str], &str)] = &[
    ("H07-watched", Form::Http, LEGACY, "forgets the session, and with it that somebody is listening"),
    ("H32", Form::Http, BOTH, "is restarted under calls in flight"),
    ("H38-parallel", Form::Http, MODERN, "sends sixteen calls back at once, each with a state of its own"),
    ("H42-drop", Form::Http, BOTH, "calls whose futures are dropped, at once and later"),
    ("H42-close", Form::Http, BOTH, "the connection is closed as soon as it is open"),
    ("pool", Form::Http, BOTH, "100 calls in a row, answers as JSON"),
    ("pool-sse", Form::Http, BOTH, "100 calls in a row, answers as event streams"),
    ("verdicts", Form::Http, LEGACY, "what it spoke the last time is remembered, and is no longer so"),
    ("L07-many", Form::Sse, OLDEST, "the stream drops with sixteen calls in flight"),
    ("automatic", Form::Sse, OLDEST, "a server of the old form, which nobody said it is"),
];

pub fn find(case: &str) -> Option<Special> {
    Some(match case {
        "H07-watched" => |cell| Box::pin(listening::forgotten(cell)),
        "H20-duplicates" => |cell| Box::pin(streams::duplicates(cell)),
        "H21-twice" => |cell| Box::pin(streams::twice(cell)),
        "H22" => |cell| Box::pin(streams::odd_progress(cell)),
        "H23" => |cell| Box::pin(streams::unwanted_requests(cell)),
        "H32" => |cell| Box::pin(restarting::restarted(cell)),
        "H34" => |cell| Box::pin(listening::drops(cell)),
        "H34-news" => |cell| Box::pin(listening::drops_with_news(cell)),
        "H35-silent" => |cell| Box::pin(listening::unacknowledged(cell)),
        "H35-early" => |cell| Box::pin(listening::too_early(cell)),
        "H35-smaller" => |cell| Box::pin(listening::smaller(cell)),
        "H36-result" | "H36-cancelled" | "H36-both" | "H36-closed" => |cell| Box::pin(listening::ends(cell)),
        "H37" => |cell| Box::pin(changes::other_era(cell)),
        "H38-inputs" => |cell| Box::pin(rounds::inputs(cell)),
        "H38-endless" => |cell| Box::pin(rounds::endless(cell)),
        "H38-parallel" => |cell| Box::pin(rounds::parallel(cell)),
        "H39" | "H39-race" => |cell| Box::pin(changes::outdated(cell)),
        "H40" | "H40-always" => |cell| Box::pin(changes::lost_cursor(cell)),
        "H42-drop" => |cell| Box::pin(dropping::dropped(cell)),
        "H42-close" => |cell| Box::pin(dropping::closed_at_once(cell)),
        "pool" | "pool-sse" => |cell| Box::pin(pool::in_a_row(cell)),
        "verdicts" => |cell| Box::pin(changes::remembered(cell)),
        "L07-many" => |cell| Box::pin(old_form::many_in_flight(cell)),
        "automatic" => |cell| Box::pin(old_form::automatic(cell)),
        _ => return None,
    })
}

/// How many lines of this kind the server has written.
fn count(cell: &Cell, kind: &str) -> usize {
    cell.ledger().lines.iter().filter(|line| line.starts_with(kind)).count()
}

/// The last sign of health: a call that works.
async fn works(problems: &mut Problems, connection: &Connection) {
    let outcome = call_tool(connection, "echo").await;
    demand(problems, outcome.is_ok(), || format!("the next call: {}", call_word(&outcome)));
}

/// Waits until the server has written this many lines of a kind, letting everything else go on meanwhile.
async fn written(cell: &Cell, kind: &str, lines: usize) {
    while count(cell, kind) < lines {
        tokio::task::yield_now().await;
    }
}

/// The calls that the server has begun to carry out, by their ids.
fn begun(cell: &Cell, tool: &str) -> Vec<String> {
    let prefix = format!("call {tool} id:");
    cell.ledger().lines.iter().filter_map(|line| line.strip_prefix(&prefix).map(str::to_owned)).collect()
}
