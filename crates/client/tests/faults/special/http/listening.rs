//! Being told of changes, by a server that does not make it easy.

use super::*;

fn of_tools() -> Interest {
    Interest { tools: true, ..Interest::default() }
}

/// The names of the next events, as far as they come in time.
async fn events(cell: &Cell, subscription: &mut Subscription, wanted: usize) -> Vec<String> {
    let mut seen = Vec::new();
    let _ = tokio::time::timeout(cell.limits.call_total_timeout, async {
        while seen.len() < wanted {
            match subscription.next().await {
                Ok(event) => seen.push(format!("{event:?}")),
                Err(error) => return seen.push(error.to_string()),
            }
        }
    })
    .await;
    seen
}

macro_rules! watched {
    ($connection:expr) => {
        match $connection.subscribe(of_tools()).await {
            Ok(subscription) => subscription,
            Err(error) => return vec![format!("cannot be watched: {error}")],
        }
    };
}

/// The stream ends again and again: each time it is opened anew, at a bounded rate.
pub async fn drops(cell: &Cell) -> Problems {
    let server = Fixture::start(cell);
    let connection = opened_at!(server, cell);
    let mut subscription = watched!(connection);
    let mut problems = Vec::new();
    if cell.era == "modern" {
        let began = Instant::now();
        let seen = events(cell, &mut subscription, 3).await;
        demand(&mut problems, seen == ["Resumed", "Resumed", "Resumed"], || format!("{seen:?}"));
        // Once at the beginning, and once for each time it was taken up: nobody is stormed.
        let opened = count(cell, "listen ");
        demand(&mut problems, opened == 4, || format!("opened {opened} times"));
        let least = cell.limits.listen_again * (4 + 4 + 4);
        demand(&mut problems, began.elapsed() >= least, || "opened again without a pause".to_owned());
    } else {
        demand(&mut problems, eventually(cell, |_| count(cell, "get ") >= 3), || "not opened again".to_owned());
        let opened = count(cell, "get ");
        demand(&mut problems, opened <= 4, || format!("opened {opened} times at once"));
    }
    works(&mut problems, &connection).await;
    drop(subscription);
    connection.close().await;
    problems
}

/// It ends after some news, which is heard each time.
pub async fn drops_with_news(cell: &Cell) -> Problems {
    let server = Fixture::start(cell);
    let connection = opened_at!(server, cell);
    let mut subscription = watched!(connection);
    let mut problems = Vec::new();
    let expected = ["Tools", "Resumed", "Tools", "Resumed"];
    let seen = events(cell, &mut subscription, expected.len()).await;
    demand(&mut problems, seen == expected, || format!("{seen:?}"));
    works(&mut problems, &connection).await;
    drop(subscription);
    connection.close().await;
    problems
}

/// Nobody says what will be told: that is known in time, and the server hears that nobody listens any more.
pub async fn unacknowledged(cell: &Cell) -> Problems {
    let server = Fixture::start(cell);
    let connection = opened_at!(server, cell);
    let outcome = connection.subscribe(of_tools()).await;
    let mut problems = Vec::new();
    demand(&mut problems, matches!(outcome, Err(CallError::TimedOut { .. })), || "watched all the same".to_owned());
    drop(outcome);
    demand(&mut problems, eventually(cell, |_| count(cell, "closed ") == 1), || "the stream stays open".to_owned());
    works(&mut problems, &connection).await;
    connection.close().await;
    problems
}

/// What comes before the acknowledgement is no news.
pub async fn too_early(cell: &Cell) -> Problems {
    let server = Fixture::start(cell);
    let connection = opened_at!(server, cell);
    let mut subscription = watched!(connection);
    let mut problems = Vec::new();
    works(&mut problems, &connection).await;
    let early = tokio::select! {
        biased;
        event = subscription.next() => Some(format!("{event:?}")),
        () = std::future::ready(()) => None,
    };
    demand(&mut problems, early.is_none(), || format!("{early:?}"));
    drop(subscription);
    connection.close().await;
    problems
}

/// Less is told than was asked, and the caller can see that.
pub async fn smaller(cell: &Cell) -> Problems {
    let server = Fixture::start(cell);
    let connection = opened_at!(server, cell);
    let subscription = watched!(connection);
    let mut problems = Vec::new();
    demand(&mut problems, subscription.confirmed_interest().is_empty(), || {
        format!("{:?}", subscription.confirmed_interest())
    });
    works(&mut problems, &connection).await;
    drop(subscription);
    demand(&mut problems, eventually(cell, |_| count(cell, "closed ") == 1), || "the stream stays open".to_owned());
    connection.close().await;
    problems
}

/// However a server ends it, it is one end, and one new beginning.
pub async fn ends(cell: &Cell) -> Problems {
    let server = Fixture::start(cell);
    let connection = opened_at!(server, cell);
    let mut subscription = watched!(connection);
    let seen = events(cell, &mut subscription, 1).await;
    let mut problems = Vec::new();
    demand(&mut problems, seen == ["Resumed"], || format!("{seen:?}"));
    let opened = count(cell, "listen ");
    demand(&mut problems, opened == 2, || format!("opened {opened} times"));
    works(&mut problems, &connection).await;
    drop(subscription);
    connection.close().await;
    problems
}

/// The session is forgotten: the call is rejected with it and not made again (F8), and the listener learns that
/// something may have been missed.
pub async fn forgotten(cell: &Cell) -> Problems {
    let cell = with_fault(cell, "H07-session");
    let server = Fixture::start(&cell);
    let connection = opened_at!(server, &cell);
    let mut subscription = watched!(connection);
    let outcome = call_tool(&connection, "note").await;
    let mut problems = Vec::new();
    demand(&mut problems, call_word(&outcome) == "gone", || call_word(&outcome).to_owned());
    let seen = events(&cell, &mut subscription, 1).await;
    demand(&mut problems, seen == ["Resumed"], || format!("{seen:?}"));
    let listens = eventually(&cell, |ledger| ledger.lines.iter().any(|line| line == "get - session-2"));
    demand(&mut problems, listens, || format!("the new session is not listened to: {:?}", cell.ledger().lines));
    works(&mut problems, &connection).await;
    demand(&mut problems, cell.ledger().call_count("n-1") == 1, || "I2: the call was made again".to_owned());
    drop(subscription);
    connection.close().await;
    problems
}
