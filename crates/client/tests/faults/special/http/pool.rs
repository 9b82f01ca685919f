//! Connections are used again.

use super::*;

/// One caller with one call after the other needs at most two connections. In the handshake eras the server's own stream
/// takes one more.
pub async fn in_a_row(cell: &Cell) -> Problems {
    let cell = with_fault(cell, if cell.case == "pool" { "ok" } else { "ok-sse" });
    let server = Fixture::start(&cell);
    let connection = opened_at!(server, &cell);
    let mut problems = Vec::new();
    for _ in 0..100 {
        works(&mut problems, &connection).await;
    }
    let (connections, most) = (count(&cell, "connected"), if cell.era == "modern" { 2 } else { 3 });
    demand(&mut problems, connections <= most, || format!("{connections} connections"));
    connection.close().await;
    problems
}
