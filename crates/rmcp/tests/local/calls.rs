//! What goes well: calls, lists, progress, cancellation, and more calls than run at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rmcp::model::ProgressNotificationParam;
use serde_json::json;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use wharf_client::{CallError, ClosureServer, Connection, NegotiationMode, RequestOptions, ToolReply};
use wharf_wire::{Era, RawJson};

use crate::handler::{BOTH, NOTE, arguments, call, connected, echo, said, server, text_of, told};

#[tokio::test]
async fn every_handler_feature_works_in_both_eras() {
    for (negotiation, era) in BOTH.into_iter().zip([Era::Stateless, Era::Handshake]) {
        let connection = connected(echo(), negotiation).await;
        assert_eq!(connection.facts().revision.era(), era);
        assert_eq!(connection.facts().server_info.as_ref().unwrap().name, "handler");
        assert_eq!(connection.list_tools().await.unwrap().items[0].name, "echo");
        assert_eq!(told(&call(&connection, "echo", "ahoy").await.unwrap()), "ahoy");
        assert_eq!(connection.list_resources().await.unwrap().items[0].uri, NOTE);
        let read = connection.read_resource(NOTE, RequestOptions::default()).await.unwrap();
        assert_eq!(read.contents[0].text.as_deref(), Some("Mind the gap."));
        assert_eq!(connection.list_prompts().await.unwrap().items[0].name, "greet");
        let prompt = connection.get_prompt("greet", &[], RequestOptions::default()).await.unwrap();
        assert!(prompt.messages_raw.as_str().contains("Please greet."));
        connection.close().await;
    }
}

#[tokio::test]
async fn closure_and_rmcp_servers_are_called_alike() {
    async fn ask(connection: &Connection) -> String {
        told(&call(connection, "echo", "same").await.unwrap()).to_owned()
    }
    let closures = ClosureServer::new("closures", "1.0.0").tool("echo", "", json!({}), |call| async move {
        let arguments: serde_json::Value = call.decode()?;
        Ok(ToolReply::text(arguments["text"].as_str().unwrap_or_default()))
    });
    let connections =
        [connected(closures, NegotiationMode::Automatic).await, connected(echo(), NegotiationMode::Automatic).await];
    for connection in &connections {
        assert_eq!(ask(connection).await, "same");
    }
}

#[tokio::test]
async fn progress_is_ordered_and_precedes_the_result() {
    let reporting = server(|_request, context| async move {
        let token = context.meta.get_progress_token().unwrap();
        for step in [1.0, 2.0] {
            let progress = ProgressNotificationParam::new(token.clone(), step).with_message("on it");
            context.peer.notify_progress(progress).await.unwrap();
        }
        Ok(said("done"))
    });
    let connection = connected(reporting, NegotiationMode::Automatic).await;
    let (steps, mut stepped) = mpsc::unbounded_channel();
    let options = RequestOptions::default().progress(move |progress| steps.send(progress.progress).unwrap());
    let result = connection.call_tool("work", &arguments(""), options).await.unwrap();
    assert_eq!(told(&result), "done");
    assert_eq!([stepped.try_recv().unwrap(), stepped.try_recv().unwrap()], [1.0, 2.0]);
}

#[tokio::test]
async fn cancelled_call_cancels_the_token_and_late_result_is_dropped() {
    let (events, mut happened) = mpsc::unbounded_channel();
    let waiting = server(move |request, context| {
        let events = events.clone();
        async move {
            if request.name == "wait" {
                events.send("began").unwrap();
                context.ct.cancelled().await;
                events.send("left").unwrap();
            }
            Ok(said("late"))
        }
    });
    let connection = connected(waiting, NegotiationMode::Automatic).await;
    let caller = connection.clone();
    let task = tokio::spawn(async move { call(&caller, "wait", "").await });
    assert_eq!(happened.recv().await, Some("began"));
    task.abort();
    assert_eq!(happened.recv().await, Some("left"));
    call(&connection, "go on", "").await.unwrap();
    assert_eq!(connection.counters().unmatched, 0);
}

#[tokio::test]
async fn calls_over_the_concurrency_limit_wait_and_complete() {
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (began, mut begun) = mpsc::unbounded_channel();
    let gate = Arc::new(Semaphore::new(0));
    let (seen, door) = (most.clone(), gate.clone());
    let gated = server(move |request, _context| {
        let (running, seen, door, began) = (running.clone(), seen.clone(), door.clone(), began.clone());
        async move {
            seen.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            began.send(()).unwrap();
            door.acquire().await.unwrap().forget();
            running.fetch_sub(1, Ordering::SeqCst);
            Ok(said(text_of(&request)))
        }
    });
    let connection = connected(gated, NegotiationMode::Automatic).await;
    let mut calls = JoinSet::new();
    for number in 0..200 {
        let caller = connection.clone();
        calls.spawn(async move { call(&caller, "echo", &number.to_string()).await.unwrap() });
    }
    for _ in 0..64 {
        begun.recv().await.unwrap();
    }
    gate.add_permits(200);
    let mut answers: Vec<u32> = calls.join_all().await.iter().map(|result| told(result).parse().unwrap()).collect();
    answers.sort_unstable();
    assert!(answers.into_iter().eq(0..200));
    assert_eq!(most.load(Ordering::SeqCst), 64);
}

#[tokio::test]
async fn unparsable_request_is_refused_and_others_succeed() {
    let connection = connected(echo(), NegotiationMode::Automatic).await;
    let lone_surrogate = RawJson::parse(r#"{"text":"\ud800"}"#).unwrap();
    let refused = connection.call_tool("echo", &lone_surrogate, RequestOptions::default()).await;
    assert!(matches!(refused, Err(CallError::ErrorResponse(_))), "{refused:?}");
    let nameless = RawJson::parse(r#"{"name":7}"#).unwrap();
    let refused = connection.request("tools/call", Some(&nameless), RequestOptions::default()).await;
    assert!(matches!(refused, Err(CallError::ErrorResponse(_))), "{refused:?}");
    let unknown = connection.request("harbour/depth", None, RequestOptions::default()).await;
    assert!(matches!(unknown, Err(CallError::ErrorResponse(error)) if error.code == -32601));
    assert_eq!(told(&call(&connection, "echo", "still here").await.unwrap()), "still here");
}
