//! Calls that are asked to come again: what they bring is theirs alone, byte for byte.

use super::*;
use wharf_client::{BoxedFuture, Elicitor, RequestSource};
use wharf_wire::{Elicitation, ElicitationResponse};

/// Answers everything with the question.
struct Parrot;

impl Elicitor for Parrot {
    fn elicit(&self, _: RequestSource<'_>, question: Elicitation) -> BoxedFuture<ElicitationResponse> {
        let answer = RawJson::from_value(&serde_json::json!({ "answer": question.message() })).unwrap();
        Box::pin(std::future::ready(ElicitationResponse::Accept(Some(answer))))
    }
}

pub async fn inputs(cell: &Cell) -> Problems {
    let server = Fixture::start(cell);
    let mut options = cell.options();
    options.services = wharf_client::ClientServices::default().elicitation(Parrot);
    let connection = match connect_http(&server.spec(), options).await {
        Ok(connection) => connection,
        Err(error) => return vec![explain(&error)],
    };
    let outcome = call_tool(&connection, "note").await;
    let mut problems = Vec::new();
    demand(&mut problems, call_word(&outcome) == "result", || format!("{outcome:?}"));
    works(&mut problems, &connection).await;
    connection.close().await;
    demand(&mut problems, cell.ledger().effect_count("n-1") == 1, || "I2: not carried out exactly once".to_owned());
    problems
}

/// A server that is never satisfied is left after a bounded number of rounds.
pub async fn endless(cell: &Cell) -> Problems {
    let server = Fixture::start(cell);
    let connection = opened_at!(server, cell);
    let outcome = call_tool(&connection, "note").await;
    let read = connection.read_resource("fault://greeting", RequestOptions::default()).await;
    connection.close().await;
    let mut problems = Vec::new();
    demand(&mut problems, call_word(&outcome) == "rounds", || call_word(&outcome).to_owned());
    let rounds = count(cell, "round n-1");
    demand(&mut problems, rounds == cell.limits.rounds + 1, || format!("{rounds} rounds"));
    demand(&mut problems, read.is_ok(), || format!("{read:?}"));
    problems
}

/// The server checks that each call brings back its own state, once.
pub async fn parallel(cell: &Cell) -> Problems {
    let cell = with_fault(cell, "H38-changed");
    let server = Fixture::start(&cell);
    let connection = opened_at!(server, &cell);
    let calls = (0..16).map(|number| {
        let connection = connection.clone();
        tokio::spawn(async move {
            let arguments = json(format!(r#"{{"nonce":"p-{number}"}}"#));
            connection.call_tool("note", &arguments, RequestOptions::default()).await
        })
    });
    let mut problems = Vec::new();
    for call in calls.collect::<Vec<_>>() {
        let outcome = call.await.unwrap();
        demand(&mut problems, call_word(&outcome) == "result", || format!("{outcome:?}"));
    }
    connection.close().await;
    let once = (0..16).all(|number| cell.ledger().effect_count(&format!("p-{number}")) == 1);
    demand(&mut problems, once, || "I2: not each carried out exactly once".to_owned());
    problems
}
