//! Tests with closures that panic, block, wait and call themselves.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use serde_json::json;
use tokio::sync::{Barrier, Semaphore, mpsc};
use tokio::task::JoinSet;

use super::*;
use crate::error::CallError;
use crate::{ConnectOptions, Connection, RequestOptions, connect_local};

async fn call(connection: &Connection, tool: &str) -> Result<String, CallError> {
    let result = connection.call_tool(tool, &RawJson::empty_object(), RequestOptions::default()).await?;
    Ok(result.raw.as_str().to_owned())
}

fn tool<F>(server: ClosureServer, name: &str, work: impl Fn() -> F + Send + Sync + 'static) -> ClosureServer
where
    F: Future<Output = String> + Send + 'static,
{
    server.tool(name, "", json!({}), move |_call| {
        let work = work();
        async move { Ok(ToolReply::text(work.await)) }
    })
}

fn short_stall_options() -> ConnectOptions {
    let mut options = ConnectOptions::default();
    options.limits.local_stall = Duration::from_millis(10);
    options
}

#[tokio::test]
async fn blocked_thread_completes_its_calls_once_released() {
    let (began, mut begun) = mpsc::unbounded_channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let (released, gate) = (Arc::new(Mutex::new(released)), Arc::new(Semaphore::new(0)));
    let (waiting, door) = (began.clone(), gate.clone());
    let server = tool(ClosureServer::new("blocks", "1"), "quick", || async { "quick".to_owned() });
    let server = tool(server, "wait", move || {
        let (began, door) = (waiting.clone(), door.clone());
        async move {
            began.send("wait").unwrap();
            door.acquire().await.unwrap().forget();
            "waited".to_owned()
        }
    });
    let server = tool(server, "block", move || {
        let (began, released) = (began.clone(), released.clone());
        async move {
            began.send("block").unwrap();
            released.lock().unwrap().recv().unwrap();
            "blocked".to_owned()
        }
    });
    let connection = connect_local(server, short_stall_options()).await.unwrap();
    let mut calls = JoinSet::new();
    for name in ["wait", "block"] {
        let caller = connection.clone();
        calls.spawn(async move { call(&caller, name).await.unwrap() });
        assert_eq!(begun.recv().await, Some(name));
    }
    // Answered by another thread, once the blocked one has been set aside.
    assert!(call(&connection, "quick").await.unwrap().contains("quick"));
    release.send(()).unwrap();
    assert!(calls.join_next().await.unwrap().unwrap().contains("blocked"));
    gate.add_permits(1);
    assert!(calls.join_next().await.unwrap().unwrap().contains("waited"));
}

#[tokio::test]
async fn repeated_blocking_is_detected_each_time() {
    let (release, released) = std::sync::mpsc::channel::<()>();
    let (began, mut begun) = mpsc::unbounded_channel();
    let released = Arc::new(Mutex::new(released));
    let server = tool(ClosureServer::new("blocks", "1"), "quick", || async { "quick".to_owned() });
    let server = tool(server, "block", move || {
        let (released, began) = (released.clone(), began.clone());
        async move {
            began.send(()).unwrap();
            released.lock().unwrap().recv().unwrap();
            "blocked".to_owned()
        }
    });
    let connection = connect_local(server, short_stall_options()).await.unwrap();
    for _ in 0..3 {
        let caller = connection.clone();
        let blocked = tokio::spawn(async move { call(&caller, "block").await.unwrap() });
        begun.recv().await.unwrap();
        assert!(call(&connection, "quick").await.unwrap().contains("quick"));
        release.send(()).unwrap();
        assert!(blocked.await.unwrap().contains("blocked"));
    }
}

#[tokio::test]
async fn calls_are_refused_while_all_threads_are_blocked() {
    let (release, released) = std::sync::mpsc::channel::<()>();
    let (began, mut begun) = mpsc::unbounded_channel();
    let released = Arc::new(Mutex::new(released));
    let server = tool(ClosureServer::new("blocks", "1"), "quick", || async { "quick".to_owned() });
    let server = tool(server, "block", move || {
        let (released, began) = (released.clone(), began.clone());
        async move {
            began.send(()).unwrap();
            let _ = released.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).recv();
            "blocked".to_owned()
        }
    });
    let connection = connect_local(server, short_stall_options()).await.unwrap();
    let mut blocked = JoinSet::new();
    for _ in 0..17 {
        let caller = connection.clone();
        blocked.spawn(async move { call(&caller, "block").await.unwrap() });
        begun.recv().await.unwrap();
    }
    assert!(matches!(call(&connection, "quick").await, Err(CallError::ErrorResponse(_))));
    drop(release);
    assert_eq!(blocked.join_all().await.len(), 17);
    // The threads become available shortly after their calls end.
    while call(&connection, "quick").await.is_err() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn nested_calls_take_no_concurrency_slot() {
    const TURNS: usize = 64;
    let itself = Arc::new(OnceLock::<Connection>::new());
    let (inner, all_in) = (itself.clone(), Arc::new(Barrier::new(TURNS)));
    let server = tool(ClosureServer::new("nested", "1"), "inner", || async { "inner".to_owned() });
    let server = tool(server, "outer", move || {
        let (inner, all_in) = (inner.clone(), all_in.clone());
        async move {
            all_in.wait().await;
            call(inner.get().unwrap(), "inner").await.unwrap()
        }
    });
    let connection = connect_local(server, ConnectOptions::default()).await.unwrap();
    let _ = itself.set(connection.clone());
    let mut calls = JoinSet::new();
    for _ in 0..TURNS {
        let caller = connection.clone();
        calls.spawn(async move { call(&caller, "outer").await.unwrap() });
    }
    assert_eq!(calls.join_all().await.len(), TURNS);
    connection.close().await;
}

#[tokio::test]
async fn recursion_is_limited_and_panics_become_error_results() {
    let itself = Arc::new(OnceLock::<Connection>::new());
    let inner = itself.clone();
    let server = tool(ClosureServer::new("deep", "1"), "panic", || async { panic!("stepped on it") });
    let server = tool(server, "deeper", move || {
        let inner = inner.clone();
        async move {
            let deeper = Box::pin(call(inner.get().unwrap(), "deeper")).await;
            deeper.unwrap_or_else(|error| error.to_string())
        }
    });
    let connection = connect_local(server, ConnectOptions::default()).await.unwrap();
    let _ = itself.set(connection.clone());
    assert!(call(&connection, "deeper").await.unwrap().contains(&CallError::TooDeep(8).to_string()));
    let panicked = call(&connection, "panic").await.unwrap();
    assert!(panicked.contains(r#""isError":true"#) && panicked.contains("stepped on it"), "{panicked}");
    connection.close().await;
}

#[tokio::test]
async fn cancelled_call_drops_its_tool_future() {
    struct DropNotice(mpsc::UnboundedSender<&'static str>);
    impl Drop for DropNotice {
        fn drop(&mut self) {
            let _ = self.0.send("left");
        }
    }
    let (events, mut happened) = mpsc::unbounded_channel();
    let server = tool(ClosureServer::new("waits", "1"), "wait", move || {
        let events = events.clone();
        async move {
            events.send("began").unwrap();
            let _left = DropNotice(events);
            std::future::pending().await
        }
    });
    let connection = connect_local(server, ConnectOptions::default()).await.unwrap();
    let caller = connection.clone();
    let task = tokio::spawn(async move { call(&caller, "wait").await });
    assert_eq!(happened.recv().await, Some("began"));
    task.abort();
    assert_eq!(happened.recv().await, Some("left"));
    connection.close().await;
}
