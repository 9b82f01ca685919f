//! Streams that bring more than the answer.

use super::*;

/// What a resumed stream repeats is heard once.
pub async fn duplicates(cell: &Cell) -> Problems {
    let server = Fixture::start(cell);
    let connection = opened_at!(server, cell);
    let outcome = call_tool(&connection, "note").await;
    let mut problems = Vec::new();
    demand(&mut problems, call_word(&outcome) == "result", || call_word(&outcome).to_owned());
    let counters = connection.counters();
    demand(&mut problems, counters.notifications == 2 && counters.unmatched == 0, || format!("{counters:?}"));
    let resumed = cell.ledger().lines.iter().any(|line| line.starts_with("get stream-") && line.contains(".3 "));
    demand(&mut problems, resumed, || format!("not resumed after what was heard last: {:?}", cell.ledger().lines));
    works(&mut problems, &connection).await;
    connection.close().await;
    problems
}

/// The first answer counts.
pub async fn twice(cell: &Cell) -> Problems {
    let server = Fixture::start(cell);
    let connection = opened_at!(server, cell);
    let outcome = call_tool(&connection, "note").await;
    let mut problems = Vec::new();
    let first = outcome.as_ref().is_ok_and(|result| !result.raw.as_str().contains("duplicate"));
    demand(&mut problems, first, || format!("{outcome:?}"));
    works(&mut problems, &connection).await;
    connection.close().await;
    problems
}

/// Progress that belongs to nobody is counted and reaches nobody, and what goes backwards is none.
pub async fn odd_progress(cell: &Cell) -> Problems {
    let server = Fixture::start(cell);
    let connection = opened_at!(server, cell);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let options = RequestOptions::default().progress(move |progress| sink.lock().unwrap().push(progress.progress));
    let outcome = connection.call_tool("note", &json(r#"{"nonce":"n-1"}"#), options).await;
    let mut problems = Vec::new();
    demand(&mut problems, call_word(&outcome) == "result", || call_word(&outcome).to_owned());
    let seen = seen.lock().unwrap().clone();
    demand(&mut problems, seen == [5.0], || format!("progress: {seen:?}"));
    let stray = connection.counters().stray_progress;
    demand(&mut problems, stray >= 2, || format!("{stray} counted"));
    works(&mut problems, &connection).await;
    connection.close().await;
    problems
}

/// The stateless era has no requests of the server's: they are counted, and never answered.
pub async fn unwanted_requests(cell: &Cell) -> Problems {
    let server = Fixture::start(cell);
    let connection = opened_at!(server, cell);
    let outcome = call_tool(&connection, "note").await;
    let mut problems = Vec::new();
    demand(&mut problems, call_word(&outcome) == "result", || call_word(&outcome).to_owned());
    works(&mut problems, &connection).await;
    let unwanted = connection.counters().unwanted_requests;
    // Before the revision is agreed on they are only logged.
    let counted = cell.phase == wharf_testkit::cases::FaultPhase::Before || unwanted == 4;
    demand(&mut problems, counted, || format!("{unwanted} counted"));
    connection.close().await;
    demand(&mut problems, count(cell, "post reply") == 0, || "one was answered".to_owned());
    problems
}
