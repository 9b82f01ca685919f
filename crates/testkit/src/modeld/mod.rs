//! A model API on loopback that says what a script tells it to, in the three wire formats there are.
//!
//! It runs on threads of this process and ends when the [`Modeld`] is dropped; [`run`] puts it into a process of its
//! own. What it is sent is checked as strictly as the real APIs do, refused in their words, and recorded before it is
//! answered. Of models it knows which requests they take, by their names; which answer comes next is the [`Script`]'s
//! business alone.

mod checks;
mod format;
mod gates;
mod http;
mod latest;
mod ledger;
mod process;
mod refusal;
mod script;
mod seal;
mod serving;
mod turn;
mod wire;

use std::future::Future;
use std::io;
use std::sync::Arc;

pub use crate::request::Fields;
pub use format::Format;
pub use latest::ToolResult;
pub use ledger::Recorded;
pub use process::run;
pub use script::{Answer, Fail, Hold, Pace, Rule, Say, Script, Stop, Usage, When};

use crate::below::Endpoint;
use crate::pty::PATIENCE;
use serving::Shared;

/// A model API that is being served.
pub struct Modeld {
    shared: Arc<Shared>,
    /// Dropped to end every connection.
    endpoint: Endpoint,
}

impl Modeld {
    /// Starts it on `127.0.0.1` and a port of the system's choice.
    pub fn start(script: Script) -> io::Result<Modeld> {
        let shared = Arc::new(Shared::new(script));
        let theirs = Arc::clone(&shared);
        let endpoint = Endpoint::start(move |guest| serving::attend(&theirs, guest))?;
        Ok(Modeld { shared, endpoint })
    }

    /// Tells where it is: scheme, address and port, without a path and without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.endpoint.address())
    }

    /// Lists every request of the three formats so far, in order of arrival, those included that were refused.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.ledger.requests()
    }

    /// Lists what was said to the requests that the real API would have refused.
    pub fn refusals(&self) -> Vec<String> {
        self.requests().into_iter().filter_map(|request| request.refusal).collect()
    }

    /// Waits for a request by its number; the first is 1. Runs on any runtime, or none, and for as long as it takes.
    pub fn await_request(&self, number: usize) -> impl Future<Output = Recorded> {
        self.shared.ledger.arrived(number)
    }

    /// Waits until the client of a request has gone before the answer was complete. Noticed where the answer is held
    /// by a gate or hangs; whatever is already in the sockets cannot be told from what was read.
    pub fn await_left(&self, number: usize) -> impl Future<Output = ()> {
        self.shared.ledger.left(number)
    }

    /// Waits for a request on this thread, which must not be one that the client needs; panics after [`PATIENCE`] with
    /// what came until then.
    #[track_caller]
    pub fn request(&self, number: usize) -> Recorded {
        self.shared.ledger.arrived_within(PATIENCE, number)
    }

    /// Waits for the same as [`Modeld::await_left`], in the way of [`Modeld::request`].
    #[track_caller]
    pub fn is_left(&self, number: usize) {
        self.shared.ledger.left_within(PATIENCE, number);
    }

    /// Opens a gate for every answer that waits before it or will come to it.
    pub fn open_gate(&self, name: &str) {
        self.shared.gates.open(name);
    }

    /// Adds an answer at the end of the script's turns, while it runs.
    pub fn then(&self, answer: Answer) {
        self.shared.add(answer);
    }
}

impl Drop for Modeld {
    /// Lets everybody go who waits before a gate; the endpoint then ends the connections.
    fn drop(&mut self) {
        self.shared.gates.open_all();
    }
}
