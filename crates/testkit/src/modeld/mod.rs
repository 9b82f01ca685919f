//! A scripted model API on loopback, in three wire formats.
//!
//! It runs on threads of this process and stops when the [`Modeld`] is dropped.
//! Requests are checked as strictly as by the real APIs, rejected with their error messages, and recorded before they
//! are answered. The accepted parameters depend on the model name; the responses depend only on the [`Script`].

mod api_error;
mod checks;
mod format;
mod gates;
mod http;
mod new_content;
mod prepared_answer;
mod request_log;
mod script;
mod seal;
mod serving;
mod wire;

use std::future::Future;
use std::io;
use std::sync::Arc;

pub use crate::request::Fields;
pub use format::ModelApiFormat;
pub use new_content::ScriptedToolResult;
pub use request_log::Recorded;
pub use script::{Answer, AnswerFailure, Hold, Pace, Rule, Say, Script, Stop, Usage, When};

use crate::pty::PATIENCE;
use crate::transport_faults::Endpoint;
use serving::Shared;

/// A running model API.
pub struct Modeld {
    shared: Arc<Shared>,
    /// Dropped to close every connection.
    endpoint: Endpoint,
}

impl Modeld {
    /// Starts the API on `127.0.0.1` and a free port.
    pub fn start(script: Script) -> io::Result<Modeld> {
        let shared = Arc::new(Shared::new(script));
        let theirs = Arc::clone(&shared);
        let endpoint = Endpoint::start(move |guest| serving::serve_connection(&theirs, guest))?;
        Ok(Modeld { shared, endpoint })
    }

    /// Returns the base URL: scheme, address and port, without a trailing slash.
    pub fn url(&self) -> String {
        format!("http://{}", self.endpoint.address())
    }

    /// Returns all requests of the three formats so far, in order of arrival, rejected ones included.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.ledger.requests()
    }

    /// Returns the error messages of requests that the real API would have rejected.
    pub fn refusals(&self) -> Vec<String> {
        self.requests().into_iter().filter_map(|request| request.refusal).collect()
    }

    /// Waits for a request by its number; the first is 1. Works on any runtime, or none, without a timeout.
    pub fn wait_for_request(&self, number: usize) -> impl Future<Output = Recorded> {
        self.shared.ledger.wait_for_request(number)
    }

    /// Waits until the client of a request disconnects before the response is complete. Detected only if the response
    /// is held by a gate or hangs; data already in the sockets cannot be distinguished from data that was read.
    pub fn wait_for_disconnect(&self, number: usize) -> impl Future<Output = ()> {
        self.shared.ledger.wait_for_disconnect(number)
    }

    /// Waits for a request on this thread, which the client must not depend on. Panics after [`PATIENCE`] with the
    /// requests received so far.
    #[track_caller]
    pub fn expect_request(&self, number: usize) -> Recorded {
        self.shared.ledger.expect_request(PATIENCE, number)
    }

    /// Waits like [`Modeld::wait_for_disconnect`], on this thread, and panics like [`Modeld::expect_request`].
    #[track_caller]
    pub fn expect_disconnect(&self, number: usize) {
        self.shared.ledger.expect_disconnect(PATIENCE, number);
    }

    /// Opens a gate for all current and future responses.
    pub fn open_gate(&self, name: &str) {
        self.shared.gates.open(name);
    }

    /// Appends a response to the script's turns at run time.
    pub fn push_answer(&self, answer: Answer) {
        self.shared.add(answer);
    }
}

impl Drop for Modeld {
    /// Releases responses that wait at a gate; the endpoint then closes the connections.
    fn drop(&mut self) {
        self.shared.gates.open_all();
    }
}
