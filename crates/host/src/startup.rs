//! Waiting for servers that are starting, without waiting for slow ones.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::context::HostContext;
use crate::server::Server;
use crate::supervise::ServerState;

/// Additional time for other servers, as a fraction of the longest startup time so far.
const EXTRA_TIME_DIVISOR: u32 = 8;
/// Time to wait for a server whose tools are known from an earlier start, while no server is ready.
const KNOWN_SERVER_TIMEOUT: Duration = Duration::from_secs(1);
/// Minimum time to wait for a server whose tools are not known: programs that need an interpreter start in less.
const MIN_UNKNOWN_SERVER_WAIT: Duration = Duration::from_secs(1);

/// Waits until every starting server is listed, has failed or has taken longer than the ready ones. See
/// [`Host::wait_for_startup`](crate::Host::wait_for_startup). Cancel-safe.
pub(crate) async fn wait_for_startup(context: &HostContext) {
    let servers = context.servers.load_full();
    let mut starting: JoinSet<()> = servers.values().filter(|server| is_starting(server)).map(wait_for_one).collect();
    while !starting.is_empty() {
        let ready = servers.values().filter_map(|server| server.startup_time.get()).max();
        let pending = servers.values().filter(|server| is_starting(server));
        // `None` is later than any time.
        let deadlines = pending.map(|server| deadline(context, server, ready.copied()));
        let last = deadlines.reduce(|one, other| one.zip(other).map(|(one, other)| one.max(other)));
        let Some(last) = last else { return };
        tokio::select! {
            _ = starting.join_next() => {}
            () = tokio::time::sleep_until(last.unwrap_or_else(Instant::now)), if last.is_some() => return,
        }
    }
}

fn wait_for_one(server: &Arc<Server>) -> impl Future<Output = ()> + use<> {
    let server = Arc::clone(server);
    async move { server.wait_until_settled().await }
}

/// Reports whether the outcome of the server's first connection attempt is open, or its first lists are being read.
fn is_starting(server: &Arc<Server>) -> bool {
    let snapshot = server.snapshot.borrow();
    let is_unlisted = snapshot.state == ServerState::Ready && server.startup_time.get().is_none();
    !snapshot.is_settled() || is_unlisted
}

/// Returns the time until which to wait for a starting server. `None` is unlimited.
fn deadline(context: &HostContext, server: &Server, ready: Option<Duration>) -> Option<Instant> {
    let is_known = || context.publisher.peek().section(server.name.as_str()).is_some();
    let time = match ready.map(|longest| longest + longest / EXTRA_TIME_DIVISOR) {
        Some(time) if is_known() => time,
        Some(time) => time.max(MIN_UNKNOWN_SERVER_WAIT),
        None if is_known() => KNOWN_SERVER_TIMEOUT,
        None => return None,
    };
    Some(server.snapshot.borrow().started.unwrap_or_else(Instant::now) + time)
}
