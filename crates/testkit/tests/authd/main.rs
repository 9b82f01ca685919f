//! The authorization server and the protected server, each switch seen by plain requests.
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail the test")]

mod client;
mod documents;
mod extensions;
mod logins;
mod process;
mod server;
mod tokens;

use wharf_testkit::authd::{AuthSwitches, Authd};

/// A pair with some switches turned.
fn start(turn: impl FnOnce(&mut AuthSwitches)) -> Authd {
    let mut switches = AuthSwitches::default();
    turn(&mut switches);
    Authd::start(switches).unwrap()
}

/// Waits for what a request brings about, without a clock.
fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}
