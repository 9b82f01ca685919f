//! Cases that need more than connect, call, call, close.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use wharf_client::{
    CallError, Connection, Containment, Direction, DisconnectCause, GuardProgram, RequestOptions, Tap, TappedMessage,
    TimeoutKind, connect,
};
use wharf_testkit::http_cases::Form;
use wharf_testkit::{faultd, oracle};
use wharf_wire::RawJson;

use crate::cell::Cell;
use crate::exercise::{call_tool, call_word, connect_word, explain};

macro_rules! opened {
    ($cell:expr) => {
        match open($cell).await {
            Ok(connection) => connection,
            Err(problems) => return problems,
        }
    };
}

mod calls;
mod deaf;
mod ending;
pub mod http;
mod listing;
mod local;
mod starting;

pub use local::ON_PURPOSE;

type Problems = Vec<String>;
pub type Special = for<'a> fn(&'a Cell) -> Pin<Box<dyn Future<Output = Problems> + 'a>>;

/// Cases the table of faults does not have, because their fault is not the server's.
pub const OWN: &[(&str, &str)] = &[
    ("S01", "cannot be started: missing, not executable, no such directory, too many arguments"),
    ("S10-read", "a probe that was read and ignored: initialize follows long before the probe times out"),
    ("S11-unread", "a probe that was not read yet: initialize does not follow"),
    ("S12-drop", "a call whose future is dropped"),
    ("S13-progress", "progress for ever: restarts one clock and not the other"),
    ("S38-full", "ignores SIGTERM, with graces at full length"),
    ("S43-many", "crashes 100 times"),
    ("S48-descriptors", "the host is out of descriptors"),
    ("deaf-large", "does not read, and a call larger than the pipe times out"),
    ("deaf-stall", "does not read for so long that it is given up"),
    ("deaf-queue", "does not read, and more than the queue holds is to be sent"),
    ("progress-order", "progress in order and ahead of the result"),
    ("guard-killed", "the guard itself is killed"),
    ("group", "no guard: a process group holds the server"),
    ("dropped", "the connection is dropped and not closed"),
    ("runtime-dropped", "the runtime is dropped under a connection"),
    ("gating", "what a server has not declared is not asked"),
    ("no-server", "a program that is no server: one that echoes, one that talks and leaves"),
    ("P01", "in this process: a handler panics"),
    ("P02", "in this process: a handler blocks its thread"),
    ("P03", "in this process: the server ends, or is closed, with calls in flight"),
    ("P04", "in this process: a handler answers after its call was withdrawn"),
    ("P05", "in this process: a tool that calls itself through the host"),
    ("P06", "in this process: a huge result"),
    ("P07", "in this process: more calls than are carried out at once"),
    ("P08", "in this process: a handler leaves a task running"),
    ("meta", "a caller's _meta travels beside the protocol's own"),
];

pub fn find(cell: &Cell) -> Option<Special> {
    match cell.form {
        Form::Stdio => over_stdio(&cell.case),
        Form::Http | Form::Sse => http::find(&cell.case),
    }
}

fn over_stdio(case: &str) -> Option<Special> {
    Some(match case {
        "S01" => |_| Box::pin(starting::cannot_start()),
        "S10-read" => |cell| Box::pin(starting::ignored_probe(cell)),
        "S11-unread" => |cell| Box::pin(starting::unread_probe(cell)),
        "S12-drop" => |cell| Box::pin(calls::dropped_call(cell)),
        "S13-progress" => |cell| Box::pin(calls::endless_progress(cell)),
        "S28" => |cell| Box::pin(calls::disorder(cell)),
        "S38-full" => |cell| Box::pin(ending::full_graces(cell)),
        "S43-many" => |cell| Box::pin(ending::many_crashes(cell)),
        "S48-descriptors" => |cell| Box::pin(starting::out_of_descriptors(cell)),
        "deaf-large" => |cell| Box::pin(deaf::deaf_large(cell)),
        "deaf-stall" => |cell| Box::pin(deaf::deaf_stall(cell)),
        "deaf-queue" => |cell| Box::pin(deaf::deaf_queue(cell)),
        "progress-order" => |cell| Box::pin(calls::progress_order(cell)),
        "guard-killed" => |cell| Box::pin(ending::guard_killed(cell)),
        "group" => |cell| Box::pin(ending::group(cell)),
        "dropped" => |cell| Box::pin(ending::dropped(cell)),
        "runtime-dropped" => |cell| Box::pin(ending::runtime_dropped(cell)),
        "gating" => |cell| Box::pin(calls::gating(cell)),
        "no-server" => |cell| Box::pin(starting::no_server(cell)),
        "P01" => |cell| Box::pin(local::panics(cell)),
        "P02" => |cell| Box::pin(local::blocks(cell)),
        "P03" => |cell| Box::pin(local::ends(cell)),
        "P04" => |cell| Box::pin(local::late(cell)),
        "P05" => |cell| Box::pin(local::calls_itself(cell)),
        "P06" => |cell| Box::pin(local::huge(cell)),
        "P07" => |cell| Box::pin(local::crowd(cell)),
        "P08" => |cell| Box::pin(local::leaks(cell)),
        "meta" => |cell| Box::pin(calls::meta(cell)),
        "bad-tool" => |cell| Box::pin(listing::bad_tool(cell)),
        "fidelity" => |cell| Box::pin(listing::fidelity(cell)),
        "cursor-repeat" | "pages-endless" => |cell| Box::pin(listing::endless_list(cell)),
        "cursor-empty" => |cell| Box::pin(listing::empty_cursor(cell)),
        "env" => |cell| Box::pin(starting::environment(cell)),
        _ => return None,
    })
}

/// The cell with another fault under it.
fn with_fault(cell: &Cell, fault: &str) -> Cell {
    Cell { case: fault.to_owned(), ..cell.clone() }
}

async fn open(cell: &Cell) -> Result<Connection, Problems> {
    connect(&cell.spec(), cell.options()).await.map_err(|error| vec![explain(&error)])
}

fn demand(problems: &mut Problems, holds: bool, otherwise: impl FnOnce() -> String) {
    if !holds {
        problems.push(otherwise());
    }
}

fn json(text: impl Into<String>) -> RawJson {
    RawJson::parse(text.into()).unwrap()
}
