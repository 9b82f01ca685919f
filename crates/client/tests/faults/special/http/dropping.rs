//! Calls and connections that are given up.

use super::*;

/// Whatever has reached the server when its future is dropped is withdrawn; the rest never arrives.
pub async fn dropped(cell: &Cell) -> Problems {
    let cell = with_fault(cell, "ok");
    let server = Fixture::start(&cell);
    let connection = opened_at!(server, &cell);
    let mut problems = Vec::new();
    works(&mut problems, &connection).await;
    let arguments = json(r#"{"ms":600000}"#);
    for turns in (0..10).map(|power| 1 << power) {
        let call = connection.call_tool("slow", &arguments, RequestOptions::default().timeout(Duration::from_secs(60)));
        tokio::select! {
            biased;
            outcome = call => problems.push(format!("the call ended by itself: {}", call_word(&outcome))),
            () = passing(turns) => {}
        }
    }
    // One that has certainly arrived.
    let before = begun(&cell, "slow").len();
    let call = connection.call_tool("slow", &arguments, RequestOptions::default().timeout(Duration::from_secs(60)));
    tokio::select! {
        biased;
        outcome = call => problems.push(format!("the call ended by itself: {}", call_word(&outcome))),
        () = written(&cell, "call slow", before + 1) => {}
    }
    let withdrawn = if cell.era == "modern" { "closed" } else { "cancelled" };
    let all = eventually(&cell, |ledger| {
        begun(&cell, "slow").iter().all(|id| ledger.lines.iter().any(|line| *line == format!("{withdrawn} {id}")))
    });
    demand(&mut problems, all, || format!("not all withdrawn: {:?}", cell.ledger().lines));
    works(&mut problems, &connection).await;
    connection.close().await;
    problems
}

/// Lets everybody else go on this often.
async fn passing(turns: usize) {
    for _ in 0..turns {
        tokio::task::yield_now().await;
    }
}

/// Leave is taken of a session however short it was, and nobody is kept waiting for it.
pub async fn closed_at_once(cell: &Cell) -> Problems {
    let mut cell = with_fault(cell, "ok");
    cell.limits = wharf_client::Limits::default();
    let mut problems = Vec::new();
    for number in 1..=10 {
        let server = Fixture::start(&cell);
        let connection = opened_at!(server, &cell);
        let began = Instant::now();
        connection.close().await;
        let took = began.elapsed();
        demand(&mut problems, took < cell.limits.stop_grace / 2, || format!("closing took {took:?}"));
        let left = cell.era == "modern" || eventually(&cell, |_| count(&cell, "delete session-") == number);
        demand(&mut problems, left, || format!("the session was not left: {:?}", cell.ledger().lines));
    }
    problems
}
