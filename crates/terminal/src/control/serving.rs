//! Attending to a socket: a task for each who calls, few at a time, and none of them for long.

use std::os::unix::net::UnixListener as StdListener;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::lines::Lines;
use super::message::{Called, Fault, answer, called};
use super::sockets::own_user;
use super::{Hello, Order, Request};

/// Callers that are served at once; others wait until one has gone.
const MOST_CALLERS: usize = 8;
/// How long a caller may take to say something, or to take what it is told.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a request may take to be answered.
const ANSWERED_WITHIN: Duration = Duration::from_secs(60);
/// How long nobody is let in after the system has refused to.
const PAUSE: Duration = Duration::from_millis(100);

/// What happened at the socket.
enum News {
    Came(std::io::Result<UnixStream>),
    Left,
    /// Nobody takes orders any more.
    Over,
}

/// Serves whoever calls, for as long as somebody takes their orders; then tells the answers that there are.
pub async fn attend(listener: StdListener, hello: Arc<Hello>, orders: mpsc::Sender<Order>) {
    let Ok(listener) = UnixListener::from_std(listener) else { return };
    let mut callers = JoinSet::new();
    loop {
        match next(&listener, &mut callers, &orders).await {
            News::Came(Ok(stream)) => admit(stream, &mut callers, &hello, &orders),
            News::Came(Err(_)) => tokio::time::sleep(PAUSE).await,
            News::Left => {}
            News::Over => break,
        }
    }
    while callers.join_next().await.is_some() {}
}

async fn next(listener: &UnixListener, callers: &mut JoinSet<()>, orders: &mpsc::Sender<Order>) -> News {
    tokio::select! {
        () = orders.closed() => News::Over,
        came = listener.accept(), if callers.len() < MOST_CALLERS => News::Came(came.map(|(stream, _)| stream)),
        Some(_) = callers.join_next() => News::Left,
    }
}

/// The directory keeps others out already; whoever got hold of the socket in another way is turned away here.
fn admit(stream: UnixStream, callers: &mut JoinSet<()>, hello: &Arc<Hello>, orders: &mpsc::Sender<Order>) {
    if stream.peer_cred().is_ok_and(|peer| peer.uid() == own_user()) {
        callers.spawn(serve(Lines::new(stream), Arc::clone(hello), orders.clone()));
    }
}

/// Answers one caller, line by line, until it leaves or says nothing any more.
async fn serve(mut lines: Lines, hello: Arc<Hello>, orders: mpsc::Sender<Order>) {
    loop {
        let line = tokio::select! {
            line = timeout(PATIENCE, lines.next()) => line,
            () = orders.closed() => return,
        };
        let reply = match line {
            Ok(Ok(Some(line))) => reply(&line, &hello, &orders).await,
            Ok(Err(error)) if error.kind() == std::io::ErrorKind::InvalidData => {
                // What is still to come of that line cannot be told from another.
                let _ = timeout(PATIENCE, lines.send(answer(&Value::Null, Err(Fault::too_long())))).await;
                return;
            }
            _ => return,
        };
        if !matches!(timeout(PATIENCE, lines.send(reply)).await, Ok(Ok(()))) {
            return;
        }
    }
}

async fn reply(line: &[u8], hello: &Hello, orders: &mpsc::Sender<Order>) -> Vec<u8> {
    let (id, called) = called(line);
    let outcome = match called {
        Ok(Called::Hello) => Ok(serde_json::to_value(hello).unwrap_or_default()),
        Ok(Called::Asked(request)) => ask(request, orders).await,
        Err(fault) => Err(fault),
    };
    answer(&id, outcome)
}

async fn ask(request: Request, orders: &mpsc::Sender<Order>) -> Result<Value, Fault> {
    let (answer, answered) = oneshot::channel();
    let asked = async {
        orders.send(Order { request, answer }).await.ok()?;
        answered.await.ok()
    };
    match timeout(ANSWERED_WITHIN, asked).await {
        Ok(Some(outcome)) => outcome,
        Ok(None) | Err(_) => Err(Fault::unanswered()),
    }
}
