//! Calls: withdrawn, slow, in disorder, and what travels with them.

use super::*;

pub async fn dropped_call(cell: &Cell) -> Problems {
    let cell = with_fault(cell, "ok");
    let connection = opened!(&cell);
    let arguments = json(r#"{"ms":60000}"#);
    let call = connection.call_tool("slow", &arguments, RequestOptions::default());
    // The call is under way once the server has heard of it.
    let heard = async {
        while cell.ledger().lines.iter().all(|line| !line.starts_with("call slow")) {
            tokio::task::yield_now().await
        }
    };
    tokio::select! {
        outcome = call => return vec![format!("the call ended by itself: {}", call_word(&outcome))],
        () = heard => {}
    }
    let told = oracle::poll_until(Duration::from_secs(5), || {
        cell.ledger().lines.iter().any(|line| line.starts_with("cancelled "))
    });
    let after = call_tool(&connection, "echo").await;
    connection.close().await;
    let mut problems = Vec::new();
    demand(&mut problems, told, || "the server was not told".to_owned());
    demand(&mut problems, after.is_ok(), || format!("the next call: {}", call_word(&after)));
    problems
}

pub async fn endless_progress(cell: &Cell) -> Problems {
    let connection = opened!(&with_fault(cell, "S13"));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let mut options = RequestOptions::default()
        .timeout(Duration::from_millis(300))
        .progress(move |progress| sink.lock().unwrap().push(progress.progress));
    options.timeout_max = Some(Duration::from_millis(1200));
    let outcome = connection.call_tool("note", &json(r#"{"nonce":"n-1"}"#), options).await;
    connection.close().await;
    let mut problems = Vec::new();
    let total = matches!(outcome, Err(CallError::TimedOut { limit: TimeoutKind::Total, .. }));
    demand(&mut problems, total, || format!("expected the total limit, found {}", call_word(&outcome)));
    let count = seen.lock().unwrap().len();
    demand(&mut problems, count > 6, || format!("only {count} progress notifications"));
    problems
}

pub async fn progress_order(cell: &Cell) -> Problems {
    let connection = opened!(&with_fault(cell, "ok"));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut problems = Vec::new();
    for _ in 0..20 {
        seen.lock().unwrap().clear();
        let sink = Arc::clone(&seen);
        let options = RequestOptions::default().progress(move |progress| sink.lock().unwrap().push(progress.progress));
        let outcome = connection.call_tool("progress", &json(r#"{"steps":20,"every_ms":0}"#), options).await;
        // Nothing more may come once the result is here.
        let order = seen.lock().unwrap().clone();
        demand(&mut problems, outcome.is_ok(), || call_word(&outcome).to_owned());
        demand(&mut problems, order.len() == 20 && order.is_sorted(), || format!("{order:?}"));
    }
    connection.close().await;
    problems
}

pub async fn disorder(cell: &Cell) -> Problems {
    const COUNT: usize = 1000;
    let connection = opened!(cell);
    let calls = (0..COUNT).map(|number| {
        let connection = connection.clone();
        tokio::spawn(async move {
            let outcome = connection
                .call_tool("echo", &json(format!(r#"{{"text":"answer {number}"}}"#)), RequestOptions::default())
                .await;
            outcome.is_ok_and(|result| result.raw.as_str().contains(&format!("\"answer {number}\"")))
        })
    });
    let calls: Vec<_> = calls.collect();
    let mut right = 0;
    for call in calls {
        right += usize::from(call.await.unwrap_or(false));
    }
    connection.close().await;
    if right == COUNT { Vec::new() } else { vec![format!("{right} of {COUNT} calls got their own answer")] }
}

pub async fn gating(cell: &Cell) -> Problems {
    let cell = with_fault(cell, "ok");
    let connection = opened!(&cell);
    let mut problems = Vec::new();
    for method in ["completion/complete", "logging/setLevel", "ping", "initialize", "notifications/x"] {
        let outcome = connection.request(method, None, RequestOptions::default()).await;
        demand(&mut problems, matches!(outcome, Err(CallError::Unsupported(_))), || format!("{method} was sent"));
    }
    let bad = connection.request("tools/list\"", None, RequestOptions::default()).await;
    demand(&mut problems, matches!(bad, Err(CallError::Invalid(_))), || "a method with a quote was sent".to_owned());
    connection.close().await;
    problems
}

#[derive(Default)]
struct Recorder(Mutex<Vec<String>>);

impl Tap for Recorder {
    fn message(&self, passing: &TappedMessage<'_>) {
        if passing.direction == Direction::Sent {
            self.0.lock().unwrap().push(String::from_utf8_lossy(passing.bytes).into_owned());
        }
    }
}

pub async fn meta(cell: &Cell) -> Problems {
    let mut problems = Vec::new();
    for era in ["modern", "legacy"] {
        let mut cell = with_fault(cell, "ok");
        cell.era = era.to_owned();
        let tap = Arc::new(Recorder::default());
        let mut options = cell.options();
        options.tap = Some(tap.clone());
        let connection = match connect(&cell.spec(), options).await {
            Ok(connection) => connection,
            Err(error) => return vec![explain(&error)],
        };
        let mut options = RequestOptions::default().progress(|_| ());
        options.meta = Some(json(r#"{ "traceparent" : "00-1" }"#));
        let outcome = connection.call_tool("echo", &json(r#"{"text":"x"}"#), options.clone()).await;
        demand(&mut problems, outcome.is_ok(), || call_word(&outcome).to_owned());
        let sent: serde_json::Value = serde_json::from_str(tap.0.lock().unwrap().last().unwrap()).unwrap();
        let meta = &sent["params"]["_meta"];
        let versioned = meta["io.modelcontextprotocol/protocolVersion"] == "2026-07-28";
        let fine =
            meta["traceparent"] == "00-1" && meta["progressToken"] == sent["id"] && versioned == (era == "modern");
        demand(&mut problems, fine, || format!("{era}: {sent}"));
        // A caller may also bring it in the raw parameters, but not what the connection itself puts there.
        let raw = json(r#"{"_meta":{"traceparent":"00-2"},"uri":"x"}"#);
        let _ = connection.request("resources/read", Some(&raw), RequestOptions::default()).await;
        let sent: serde_json::Value = serde_json::from_str(tap.0.lock().unwrap().last().unwrap()).unwrap();
        demand(&mut problems, sent["params"]["_meta"]["traceparent"] == "00-2" && sent["params"]["uri"] == "x", || {
            sent.to_string()
        });
        options.meta = Some(json(r#"{"progressToken":1}"#));
        let outcome = connection.call_tool("echo", &json("{}"), options).await;
        demand(&mut problems, matches!(outcome, Err(CallError::Invalid(_))), || {
            "a progressToken of the caller's own was sent".to_owned()
        });
        connection.close().await;
    }
    problems
}
