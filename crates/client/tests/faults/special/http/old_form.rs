//! HTTP+SSE of 2024-11-05, where everything hangs on one stream.

use super::*;
use wharf_client::Transport;
use wharf_spec::HttpTransport;

/// The stream takes everything in flight with it; what comes too late on the next one is nobody's.
pub async fn many_in_flight(cell: &Cell) -> Problems {
    let cell = with_fault(cell, "L07");
    let server = Fixture::start(&cell);
    let connection = opened_at!(server, &cell);
    let slow = |ms: u32| {
        let connection = connection.clone();
        let options = RequestOptions::default().timeout(Duration::from_secs(60));
        tokio::spawn(async move { connection.call_tool("slow", &json(format!(r#"{{"ms":{ms}}}"#)), options).await })
    };
    // The first one ends the stream, when the others are under way.
    let mut calls = vec![slow(500)];
    written(&cell, "call slow", 1).await;
    calls.extend((1..16).map(|_| slow(600_000)));
    written(&cell, "call slow", 16).await;
    let mut problems = Vec::new();
    for call in calls {
        let outcome = call.await.unwrap();
        demand(&mut problems, call_word(&outcome) == "unknown", || call_word(&outcome).to_owned());
    }
    works(&mut problems, &connection).await;
    let unmatched = connection.counters().unmatched;
    demand(&mut problems, unmatched == 1, || format!("{unmatched} late answers counted"));
    connection.close().await;
    let ledger = cell.ledger();
    let anew = ledger.lines.iter().any(|line| line == "post tools/call session-2");
    demand(&mut problems, anew, || format!("the new endpoint is not used: {:?}", ledger.lines));
    demand(&mut problems, begun(&cell, "slow").len() == 16, || "I2: a call was made again".to_owned());
    problems
}

/// Tried as Streamable HTTP first, and as this when that is refused.
pub async fn automatic(cell: &Cell) -> Problems {
    let mut problems = Vec::new();
    for (fault, expected) in [("ok", "result"), ("L03-query", "result"), ("L04-other", "result"), ("L07", "unknown")] {
        let mut cell = with_fault(cell, fault);
        cell.folder = cell.folder.join(fault);
        std::fs::create_dir_all(&cell.folder).unwrap();
        let server = Fixture::start(&cell);
        let mut spec = server.spec();
        spec.form = HttpTransport::Automatic;
        let connection = match connect_http(&spec, cell.options()).await {
            Ok(connection) => connection,
            Err(error) => return vec![explain(&error)],
        };
        demand(&mut problems, connection.facts().transport == Transport::HttpSse, || fault.to_owned());
        let outcome = call_tool(&connection, "note").await;
        demand(&mut problems, call_word(&outcome) == expected, || format!("{fault}: {}", call_word(&outcome)));
        works(&mut problems, &connection).await;
        connection.close().await;
        let clean = cell.ledger().violations().is_empty() && count(&cell, "elsewhere") == 0;
        demand(&mut problems, clean, || format!("{fault}: {:?}", cell.ledger().lines));
    }
    problems
}
