//! Server of the control socket: one task per connection, with limits on connections and time.

use std::os::unix::net::UnixListener as StdListener;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::lines::SocketLines;
use super::message::{ControlCall, ControlError, encode_response, parse_call};
use super::sockets::effective_uid;
use super::{ControlRequest, PendingControlRequest, ProcessIdentity};

/// Maximum concurrent connections. Further ones wait to be accepted.
const MAX_CONNECTIONS: usize = 8;
/// Timeout for reading a request and for writing a response.
const IO_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout for handling a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Pause after a failed `accept`.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// An event of the accept loop.
enum AcceptEvent {
    Came(std::io::Result<UnixStream>),
    Left,
    /// The request receiver was dropped.
    Over,
}

/// Accepts connections until the request receiver is dropped, then waits for pending replies.
pub async fn accept_connections(
    listener: StdListener,
    identity: Arc<ProcessIdentity>,
    requests: mpsc::Sender<PendingControlRequest>,
) {
    let Ok(listener) = UnixListener::from_std(listener) else { return };
    let mut callers = JoinSet::new();
    loop {
        match next_event(&listener, &mut callers, &requests).await {
            AcceptEvent::Came(Ok(stream)) => accept_same_user(stream, &mut callers, &identity, &requests),
            AcceptEvent::Came(Err(_)) => tokio::time::sleep(ACCEPT_RETRY_DELAY).await,
            AcceptEvent::Left => {}
            AcceptEvent::Over => break,
        }
    }
    while callers.join_next().await.is_some() {}
}

async fn next_event(
    listener: &UnixListener,
    callers: &mut JoinSet<()>,
    requests: &mpsc::Sender<PendingControlRequest>,
) -> AcceptEvent {
    tokio::select! {
        () = requests.closed() => AcceptEvent::Over,
        came = listener.accept(), if callers.len() < MAX_CONNECTIONS => AcceptEvent::Came(came.map(|(stream, _)| stream)),
        Some(_) = callers.join_next() => AcceptEvent::Left,
    }
}

/// Serves a connection of the same user. The directory permissions already exclude other users; this check covers a
/// socket obtained in another way.
fn accept_same_user(
    stream: UnixStream,
    callers: &mut JoinSet<()>,
    identity: &Arc<ProcessIdentity>,
    requests: &mpsc::Sender<PendingControlRequest>,
) {
    if stream.peer_cred().is_ok_and(|peer| peer.uid() == effective_uid()) {
        callers.spawn(serve_connection(SocketLines::new(stream), Arc::clone(identity), requests.clone()));
    }
}

/// Serves one connection until it closes or a timeout expires.
async fn serve_connection(
    mut lines: SocketLines,
    identity: Arc<ProcessIdentity>,
    requests: mpsc::Sender<PendingControlRequest>,
) {
    loop {
        let line = tokio::select! {
            line = timeout(IO_TIMEOUT, lines.next()) => line,
            () = requests.closed() => return,
        };
        let reply = match line {
            Ok(Ok(Some(line))) => reply(&line, &identity, &requests).await,
            Ok(Err(error)) if error.kind() == std::io::ErrorKind::InvalidData => {
                // The rest of that line cannot be distinguished from the next one.
                let _ =
                    timeout(IO_TIMEOUT, lines.send(encode_response(&Value::Null, Err(ControlError::too_long())))).await;
                return;
            }
            _ => return,
        };
        if !matches!(timeout(IO_TIMEOUT, lines.send(reply)).await, Ok(Ok(()))) {
            return;
        }
    }
}

async fn reply(line: &[u8], identity: &ProcessIdentity, requests: &mpsc::Sender<PendingControlRequest>) -> Vec<u8> {
    let (id, called) = parse_call(line);
    let outcome = match called {
        Ok(ControlCall::Hello) => Ok(serde_json::to_value(identity).unwrap_or_default()),
        Ok(ControlCall::Asked(request)) => forward_request(request, requests).await,
        Err(fault) => Err(fault),
    };
    encode_response(&id, outcome)
}

async fn forward_request(
    request: ControlRequest,
    requests: &mpsc::Sender<PendingControlRequest>,
) -> Result<Value, ControlError> {
    let (answer, answered) = oneshot::channel();
    let asked = async {
        requests.send(PendingControlRequest { request, answer }).await.ok()?;
        answered.await.ok()
    };
    match timeout(REQUEST_TIMEOUT, asked).await {
        Ok(Some(outcome)) => outcome,
        Ok(None) | Err(_) => Err(ControlError::no_response()),
    }
}
