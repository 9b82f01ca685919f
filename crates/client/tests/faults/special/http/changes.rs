//! What held a moment ago holds no more: the era, the list of tools, a cursor.

use super::*;

/// The server speaks the other era from one request to the next. The connection says so, and the next one is met anew.
pub async fn other_era(cell: &Cell) -> Problems {
    let server = Fixture::start(cell);
    let connection = opened_at!(server, cell);
    let (expected, then) = if cell.era == "modern" { ("refused", "handshake") } else { ("gone", "stateless") };
    let mut problems = Vec::new();
    for tool in ["note", "echo"] {
        let outcome = call_tool(&connection, tool).await;
        demand(&mut problems, call_word(&outcome) == expected, || format!("{tool}: {}", call_word(&outcome)));
    }
    connection.close().await;
    demand(&mut problems, cell.ledger().call_count("n-1") == 0, || "the call was carried out".to_owned());
    let again = crate::exercise::run(cell, Some(&server)).await;
    let found = [again.connect, again.first, again.read, again.second];
    demand(&mut problems, found == [then, "result", "result", "result"], || again.to_string());
    problems
}

/// Connecting begins with what the server spoke the last time; when that is no longer so, it is found out anew.
pub async fn remembered(cell: &Cell) -> Problems {
    let mut problems = Vec::new();
    for (fault, eras, probes) in [("ok", ["2025", "2025"], 1), ("H37", ["2025", "2026"], 3)] {
        let cell = &with_fault(cell, fault);
        let (server, mut options) = (Fixture::start(cell), cell.options());
        options.transport_cache = Some(Arc::new(TransportCache::default()));
        for era in eras {
            match connect_http(&server.spec(), options.clone()).await {
                Ok(connection) => {
                    let found = connection.facts().revision.to_string();
                    demand(&mut problems, found.starts_with(era), || format!("{fault}: {found}"));
                    connection.close().await;
                }
                Err(error) => problems.push(explain(&error)),
            }
        }
        let asked = count(cell, "post server/discover");
        demand(&mut problems, asked == probes, || format!("{fault}: asked {asked} times"));
    }
    problems
}

/// The list changes while it is listed or right after: whoever was told sees the new one, also within its minute.
pub async fn outdated(cell: &Cell) -> Problems {
    let server = Fixture::start(cell);
    let connection = opened_at!(server, cell);
    let mut subscription = match connection.subscribe(Interest { tools: true, ..Interest::default() }).await {
        Ok(subscription) => subscription,
        Err(error) => return vec![error.to_string()],
    };
    if cell.era != "modern" {
        written(cell, "get ", 1).await;
    }
    let mut problems = Vec::new();
    let first = names(&connection).await;
    demand(&mut problems, first.iter().any(|name| name == "before"), || format!("{first:?}"));
    let told = tokio::time::timeout(cell.limits.call_total_timeout, subscription.next()).await;
    demand(&mut problems, matches!(told, Ok(Ok(Event::Tools))), || format!("{told:?}"));
    let second = names(&connection).await;
    let current = second.iter().any(|name| name == "after") && second.iter().all(|name| name != "before");
    demand(&mut problems, current, || format!("{second:?}"));
    works(&mut problems, &connection).await;
    drop(subscription);
    connection.close().await;
    problems
}

async fn names(connection: &Connection) -> Vec<String> {
    match connection.list_tools().await {
        Ok(listing) => listing.items.into_iter().map(|tool| tool.name).collect(),
        Err(error) => vec![error.to_string()],
    }
}

/// A cursor that is lost on the way costs one new beginning, and no more than one.
pub async fn lost_cursor(cell: &Cell) -> Problems {
    let server = Fixture::start(cell);
    let connection = opened_at!(server, cell);
    let listing = connection.list_tools().await;
    let mut problems = Vec::new();
    let lost = count(cell, "cursor lost");
    if cell.case == "H40" {
        let names = listing.map(|listing| listing.items.len());
        demand(&mut problems, matches!(names, Ok(8)) && lost == 1, || format!("{names:?} tools, {lost} lost"));
        works(&mut problems, &connection).await;
    } else {
        let refused = matches!(&listing, Err(CallError::ErrorResponse(error)) if error.code == -32602);
        demand(&mut problems, refused && lost == 2, || format!("{listing:?}, {lost} lost"));
        let read = connection.read_resource("fault://greeting", RequestOptions::default()).await;
        demand(&mut problems, read.is_ok(), || format!("{read:?}"));
    }
    connection.close().await;
    problems
}
