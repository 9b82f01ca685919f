//! Servers in this process: whatever a handler does, its call has one outcome and everybody else is served.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Notify, Semaphore};
use wharf_client::{BoxedFuture, ClosureServer, LocalServer, ServerEnd, ToolReply, Workers, connect_local};
use wharf_wire::ToolResult;

use super::*;

/// What a handler panics with when that is the fault.
pub const ON_PURPOSE: &str = "on purpose";

type Outcome = Result<ToolResult, CallError>;

/// A server with the tool under test, and one that only echoes.
fn server<F>(fault: impl Fn(wharf_client::ToolCall) -> F + Send + Sync + 'static) -> ClosureServer
where
    F: Future<Output = Result<ToolReply, String>> + Send + 'static,
{
    let any = || serde_json::json!({ "type": "object" });
    ClosureServer::new("local", "1").tool("fault", "Does what is tested.", any(), fault).tool(
        "echo",
        "Says it again.",
        any(),
        |call| async move { Ok(ToolReply::text(call.arguments.as_str())) },
    )
}

async fn opened(cell: &Cell, server: impl LocalServer) -> Connection {
    let mut options = cell.options();
    options.limits.local_stall = Duration::from_millis(200);
    connect_local(server, options).await.unwrap()
}

async fn call(connection: &Connection, tool: &str) -> Outcome {
    connection.call_tool(tool, &json(r#"{"text":"x"}"#), RequestOptions::default()).await
}

fn demand_answer(problems: &mut Problems, who: &str, outcome: &Outcome) {
    let fine = outcome.as_ref().is_ok_and(|result| !result.is_error);
    demand(problems, fine, || format!("{who}: {}", call_word(outcome)));
}

/// Nobody else is harmed: the same server and another one answer.
async fn demand_service(problems: &mut Problems, connection: &Connection, cell: &Cell) {
    demand_answer(problems, "the next call", &call(connection, "echo").await);
    let other = opened(cell, server(|_| async { Err("unused".to_owned()) })).await;
    demand_answer(problems, "another server", &call(&other, "echo").await);
    other.close().await;
}

/// Messages are taken in order, and this one is answered at once: whatever was sent before has been heard.
async fn demand_heard(problems: &mut Problems, connection: &Connection) {
    let outcome = connection.request("tools/list", None, RequestOptions::default()).await;
    demand(problems, outcome.is_ok(), || format!("{outcome:?}"));
}

pub async fn panics(cell: &Cell) -> Problems {
    let connection = opened(cell, server(|_| async { std::panic::panic_any(ON_PURPOSE) })).await;
    let mut problems = Vec::new();
    let outcome = call(&connection, "fault").await;
    let told = outcome.as_ref().is_ok_and(|result| result.is_error && result.raw.as_str().contains(ON_PURPOSE));
    demand(&mut problems, told, || format!("{outcome:?}"));
    demand_service(&mut problems, &connection, cell).await;
    let panics = connection.workers_health().unwrap().panics;
    demand(&mut problems, panics == 1, || format!("{panics} panics counted"));
    connection.close().await;
    problems
}

pub async fn blocks(cell: &Cell) -> Problems {
    let (release, held) = std::sync::mpsc::channel::<()>();
    let held = Arc::new(Mutex::new(held));
    let ended = Arc::new(Notify::new());
    let told = Arc::clone(&ended);
    let blocking = move |_| {
        let (held, told) = (Arc::clone(&held), Arc::clone(&told));
        async move {
            let _ = held.lock().unwrap().recv();
            told.notify_one();
            Ok(ToolReply::text("at last"))
        }
    };
    let connection = opened(cell, server(blocking)).await;
    let mut problems = Vec::new();
    let outcome = call(&connection, "fault").await;
    let timed_out = matches!(outcome, Err(CallError::TimedOut { .. }));
    demand(&mut problems, timed_out, || call_word(&outcome).to_owned());
    demand_service(&mut problems, &connection, cell).await;
    let aside = connection.workers_health().unwrap().set_aside;
    demand(&mut problems, aside == 1, || format!("{aside} threads set aside"));
    drop(release);
    ended.notified().await;
    let back = oracle::poll_until(Duration::from_secs(5), || connection.workers_health().unwrap().set_aside == 0);
    demand(&mut problems, back, || "the thread that was released is still missed".to_owned());
    connection.close().await;
    problems
}

pub async fn ends(cell: &Cell) -> Problems {
    let mut problems = Vec::new();
    for by_itself in [false, true] {
        let begun = Arc::new(Notify::new());
        let heard = Arc::clone(&begun);
        let waiting = move |_| {
            let heard = Arc::clone(&heard);
            async move {
                heard.notify_one();
                std::future::pending().await
            }
        };
        let stop = Arc::new(Notify::new());
        let connection = opened(cell, Ending { server: server(waiting), stop: Arc::clone(&stop) }).await;
        let ending = async {
            begun.notified().await;
            if by_itself { stop.notify_one() } else { connection.close().await }
        };
        let (outcome, ()) = tokio::join!(call(&connection, "fault"), ending);
        // The handler was at work: nobody knows what it has done.
        demand(&mut problems, matches!(outcome, Err(CallError::OutcomeUnknown(_))), || call_word(&outcome).to_owned());
        let next = call(&connection, "echo").await;
        demand(&mut problems, matches!(next, Err(CallError::RetryableDisconnect(_))), || call_word(&next).to_owned());
        connection.close().await;
    }
    problems
}

/// A server that can be told to stop by itself.
struct Ending {
    server: ClosureServer,
    stop: Arc<Notify>,
}

impl LocalServer for Ending {
    fn serve(self: Box<Self>, end: ServerEnd, workers: Workers) -> BoxedFuture<()> {
        let Self { server, stop } = *self;
        let serving = Box::new(server).serve(end, workers);
        Box::pin(async move {
            tokio::select! {
                () = serving => {}
                () = stop.notified() => {}
            }
        })
    }
}

pub async fn late(cell: &Cell) -> Problems {
    let (begun, release) = (Arc::new(Notify::new()), Arc::new(Semaphore::new(0)));
    let ended = Arc::new(AtomicUsize::new(0));
    let (heard, gate, count) = (Arc::clone(&begun), Arc::clone(&release), Arc::clone(&ended));
    let slow = move |_| {
        let (heard, gate, count) = (Arc::clone(&heard), Arc::clone(&gate), Arc::clone(&count));
        async move {
            heard.notify_one();
            // Not a point where it could be stopped: it answers whether or not anybody listens.
            while gate.available_permits() == 0 {
                std::thread::yield_now();
            }
            count.fetch_add(1, Ordering::SeqCst);
            Ok(ToolReply::text("too late"))
        }
    };
    let connection = opened(cell, server(slow)).await;
    let mut problems = Vec::new();
    tokio::select! {
        outcome = call(&connection, "fault") => return vec![format!("it ended by itself: {outcome:?}")],
        () = begun.notified() => {}
    }
    demand_heard(&mut problems, &connection).await;
    release.add_permits(1);
    let done = oracle::poll_until(Duration::from_secs(5), || ended.load(Ordering::SeqCst) == 1);
    demand(&mut problems, done, || "the handler never ended".to_owned());
    demand_service(&mut problems, &connection, cell).await;
    // It is thrown away where it is made or where it arrives, and counted there; nobody else is given it.
    let unmatched = connection.counters().unmatched;
    demand(&mut problems, unmatched <= 1, || format!("{unmatched} unmatched responses"));
    connection.close().await;
    problems
}

pub async fn calls_itself(cell: &Cell) -> Problems {
    let (own, deepest) = (Arc::new(OnceLock::<Connection>::new()), Arc::new(AtomicUsize::new(0)));
    let (inside, count) = (Arc::clone(&own), Arc::clone(&deepest));
    let again = move |_| {
        let (inside, count) = (Arc::clone(&inside), Arc::clone(&count));
        async move {
            count.fetch_add(1, Ordering::SeqCst);
            let connection = inside.get().ok_or("not connected yet")?.clone();
            match connection.call_tool("fault", &RawJson::empty_object(), RequestOptions::default()).await {
                Ok(result) => Ok(ToolReply::raw(result.raw)),
                Err(error) => Err(format!("{error}")),
            }
        }
    };
    let connection = opened(cell, server(again)).await;
    let _ = own.set(connection.clone());
    let mut problems = Vec::new();
    let outcome = call(&connection, "fault").await;
    let told = outcome.as_ref().is_ok_and(|result| result.is_error && result.raw.as_str().contains("8 deep"));
    demand(&mut problems, told, || format!("{outcome:?}"));
    let depth = deepest.load(Ordering::SeqCst);
    demand(&mut problems, depth == 8, || format!("{depth} calls"));
    demand_service(&mut problems, &connection, cell).await;
    connection.close().await;
    problems
}

pub async fn huge(cell: &Cell) -> Problems {
    let connection = opened(cell, server(|_| async { Ok(ToolReply::text("x".repeat(9 << 20))) })).await;
    let mut problems = Vec::new();
    let outcome = call(&connection, "fault").await;
    demand(&mut problems, matches!(outcome, Err(CallError::TooLarge { .. })), || call_word(&outcome).to_owned());
    demand_service(&mut problems, &connection, cell).await;
    connection.close().await;
    problems
}

pub async fn crowd(cell: &Cell) -> Problems {
    const CALLS: usize = 200;
    let (begun, gate) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
    let (count, waits) = (Arc::clone(&begun), Arc::clone(&gate));
    let held = move |_| {
        let (count, waits) = (Arc::clone(&count), Arc::clone(&waits));
        async move {
            count.fetch_add(1, Ordering::SeqCst);
            let _turn = waits.acquire().await;
            Ok(ToolReply::text("done"))
        }
    };
    let connection = opened(cell, server(held)).await;
    let mut problems = Vec::new();
    let calls: Vec<_> = (0..CALLS)
        .map(|_| {
            let connection = connection.clone();
            let options = RequestOptions::default().timeout(Duration::from_secs(30));
            tokio::spawn(async move { connection.call_tool("fault", &RawJson::empty_object(), options).await })
        })
        .collect();
    let full = oracle::poll_until(Duration::from_secs(5), || begun.load(Ordering::SeqCst) == 64);
    demand(&mut problems, full, || format!("{} at work", begun.load(Ordering::SeqCst)));
    // One more waits its turn, within its own time, and never begins.
    let options = RequestOptions::default().timeout(Duration::from_millis(200));
    let impatient: Outcome = connection.call_tool("fault", &RawJson::empty_object(), options).await;
    demand(&mut problems, matches!(impatient, Err(CallError::TimedOut { .. })), || call_word(&impatient).to_owned());
    demand_heard(&mut problems, &connection).await;
    gate.add_permits(CALLS);
    for call in calls {
        demand_answer(&mut problems, "a call that waited", &call.await.unwrap());
    }
    let all = begun.load(Ordering::SeqCst);
    demand(&mut problems, all == CALLS, || format!("{all} begun instead of {CALLS}"));
    connection.close().await;
    problems
}

pub async fn leaks(cell: &Cell) -> Problems {
    let alive = Arc::new(());
    let kept = Arc::clone(&alive);
    let leaky = move |_| {
        let kept = Arc::clone(&kept);
        async move {
            tokio::spawn(async move {
                let _kept = kept;
                std::future::pending::<()>().await;
            });
            Ok(ToolReply::text("done"))
        }
    };
    let connection = opened(cell, server(leaky)).await;
    let mut problems = Vec::new();
    demand_answer(&mut problems, "the call", &call(&connection, "fault").await);
    let found = oracle::poll_until(Duration::from_secs(5), || connection.workers_health().unwrap().leaked_tasks == 1);
    demand(&mut problems, found, || format!("{:?}", connection.workers_health()));
    demand_service(&mut problems, &connection, cell).await;
    connection.close().await;
    drop(connection);
    let gone = oracle::poll_until(Duration::from_secs(5), || Arc::strong_count(&alive) == 1);
    demand(&mut problems, gone, || "what was left behind outlives the server".to_owned());
    problems
}
