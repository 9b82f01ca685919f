//! Servers that do not read.

use super::*;

/// Arguments larger than the pipe.
fn large() -> RawJson {
    json(format!(r#"{{"text":"{}"}}"#, "x".repeat(1 << 20)))
}

fn deaf(cell: &Cell) -> Cell {
    let mut cell = with_fault(cell, "deaf");
    cell.phase = wharf_testkit::cases::FaultPhase::After;
    cell
}

pub async fn deaf_large(cell: &Cell) -> Problems {
    let mut cell = deaf(cell);
    cell.limits.write_stall = Duration::from_secs(10);
    let connection = opened!(&cell);
    let began = Instant::now();
    let outcome =
        connection.call_tool("echo", &large(), RequestOptions::default().timeout(Duration::from_millis(300))).await;
    println!("measured: a timeout of 300 ms against a server that does not read: {} ms", began.elapsed().as_millis());
    connection.close().await;
    if call_word(&outcome) == "timeout" { Vec::new() } else { vec![call_word(&outcome).to_owned()] }
}

pub async fn deaf_stall(cell: &Cell) -> Problems {
    let connection = opened!(&deaf(cell));
    let outcome = connection.call_tool("echo", &large(), RequestOptions::default()).await;
    let cause = outcome.as_ref().err().and_then(CallError::disconnect_report).map(|gone| gone.cause.clone());
    connection.close().await;
    match cause {
        Some(DisconnectCause::StoppedReading(_)) if call_word(&outcome) == "unknown" => Vec::new(),
        other => vec![format!("{} {other:?}", call_word(&outcome))],
    }
}

pub async fn deaf_queue(cell: &Cell) -> Problems {
    let mut cell = deaf(cell);
    cell.limits.queued = 3 << 20;
    cell.limits.write_stall = Duration::from_secs(10);
    let connection = opened!(&cell);
    let arguments = large();
    let calls = (0..8).map(|_| {
        let (connection, arguments) = (connection.clone(), arguments.clone());
        tokio::spawn(async move { connection.call_tool("echo", &arguments, RequestOptions::default()).await })
    });
    let calls: Vec<_> = calls.collect();
    let mut words = Vec::new();
    for call in calls {
        words.push(call_word(&call.await.unwrap()));
    }
    connection.close().await;
    let refused = words.iter().filter(|word| **word == "busy").count();
    let fine = (4..8).contains(&refused) && words.iter().all(|word| matches!(*word, "busy" | "timeout"));
    if fine { Vec::new() } else { vec![format!("{words:?}")] }
}
