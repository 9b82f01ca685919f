//! The table of all crossings. `UPDATE_EVIDENCE=1` writes it to `evidence/crossing.md`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use wharf::wire::Era;

use crate::client::Transport;
use crate::fixture::{Fixture, all_capabilities, options, text};
use crate::rows::{self, RowCell};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Accept,
    Decline,
    Cancel,
    Timeout,
    Disconnect,
}

const OUTCOMES: [Outcome; 5] =
    [Outcome::Accept, Outcome::Decline, Outcome::Cancel, Outcome::Timeout, Outcome::Disconnect];

/// One cell of the table.
#[derive(Debug, Clone, Copy)]
struct Cell {
    kind: &'static str,
    method: &'static str,
    client: Era,
    server: Era,
    transport: Transport,
    outcome: Outcome,
}

fn letter(era: Era) -> char {
    if era == Era::Handshake { 'L' } else { 'M' }
}

impl Cell {
    fn row(&self) -> String {
        let Self { kind, method, client, server, transport, .. } = self;
        let transport = format!("{transport:?}").to_lowercase();
        format!("{kind} | {method} | {} → {} | {transport}", letter(*client), letter(*server))
    }

    fn params(&self) -> Value {
        match self.method {
            "tools/call" => json!({"name": format!("s__{}", self.kind), "arguments": {"a": 1}}),
            "prompts/get" => json!({"name": format!("s__{}", self.kind)}),
            _ => json!({"uri": format!("ask://{}", self.kind)}),
        }
    }

    /// Returns a short timeout where the question is never answered.
    fn question_timeout(&self) -> Duration {
        let is_abandoned = self.client == Era::Stateless
            && self.kind != "form"
            && matches!(self.outcome, Outcome::Decline | Outcome::Cancel);
        let is_short = self.outcome == Outcome::Timeout || (is_abandoned && self.server == Era::Handshake);
        Duration::from_millis(if is_short { 100 } else { 300_000 })
    }

    fn accepted(&self) -> Value {
        match self.kind {
            "form" => json!({"action": "accept", "content": {"berth": 7}}),
            "sampling" => json!({"role": "assistant", "content": {"type": "text", "text": "noon"}, "model": "m"}),
            _ => json!({"roots": [{"uri": "file:///harbour", "name": "harbour"}]}),
        }
    }

    /// Checks that the server got the accepted answer.
    fn check_accepted(&self, response: &Value) {
        let answer: Value = serde_json::from_str(&text(response)).unwrap();
        assert_eq!(answer, self.accepted());
    }

    /// Checks what the server made of a question without an answer.
    fn check_unanswered(&self, response: &Value, action: &str) {
        let expected = match (self.kind, self.server, self.method) {
            ("form", ..) => json!({ "action": action }),
            ("sampling", Era::Handshake, _) => json!({"code": -1, "message": "declined by the user"}),
            ("roots", Era::Handshake, _) => json!({"code": -32601, "message": "no roots are available to this server"}),
            // A stateless server waits for nothing: the call ends.
            (_, Era::Stateless, "tools/call") => {
                assert_eq!(response["result"]["isError"], true, "{response}");
                return assert!(text(response).contains("the client did not answer"), "{response}");
            }
            _ => return assert_eq!(response["error"]["code"], -32603, "{response}"),
        };
        let answer: Value = serde_json::from_str(&text(response)).unwrap();
        assert_eq!(answer, expected);
    }

    async fn run(self) {
        let fixture = Fixture::new(self.server, self.transport, options(self.question_timeout())).await;
        match self.client {
            Era::Handshake => self.run_session(&fixture).await,
            Era::Stateless => self.run_stateless(&fixture).await,
        }
        fixture.close().await;
    }

    async fn run_session(&self, fixture: &Fixture) {
        let mut client = fixture.session(all_capabilities()).await;
        client.request(1, self.method, self.params()).await;
        let question = client.question().await;
        assert_eq!(question["method"], method_of(self.kind), "{question}");
        match self.outcome {
            Outcome::Accept => {
                client.respond(&question, Ok(self.accepted())).await;
                self.check_accepted(&client.response(1).await);
            }
            Outcome::Decline => {
                let declined = if self.kind == "form" { Ok(json!({"action": "decline"})) } else { Err(-1) };
                client.respond(&question, declined).await;
                self.check_unanswered(&client.response(1).await, "decline");
            }
            Outcome::Cancel if self.kind == "form" => {
                client.respond(&question, Ok(json!({"action": "cancel"}))).await;
                self.check_unanswered(&client.response(1).await, "cancel");
            }
            Outcome::Cancel => {
                let params = json!({"requestId": 1});
                client.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})).await;
                let withdrawn = client.find(|message| message["method"] == "notifications/cancelled").await;
                assert_eq!(withdrawn["params"]["requestId"], question["id"]);
                self.check_withdrawn(fixture).await;
            }
            Outcome::Timeout => self.check_unanswered(&client.response(1).await, "cancel"),
            Outcome::Disconnect if self.transport == Transport::Http => {
                // A closed stream does not cancel the call: its response can be read later.
                client.close_calls();
                client.respond(&question, Ok(self.accepted())).await;
                client.resume();
                self.check_accepted(&client.response(1).await);
            }
            Outcome::Disconnect => {
                client.close().await;
                return self.check_withdrawn(fixture).await;
            }
        }
        client.close().await;
    }

    /// Checks that the call has ended at its server: it was cancelled, or not repeated.
    async fn check_withdrawn(&self, fixture: &Fixture) {
        match self.server {
            Era::Handshake => fixture.received.wait_for("notifications/cancelled").await,
            Era::Stateless => {
                let mut other = fixture.session(json!({})).await;
                other.request(9, "tools/call", json!({"name": "s__plain"})).await;
                assert_eq!(text(&other.response(9).await), "not asked");
                other.close().await;
                let own = usize::from(self.method == "tools/call");
                assert_eq!(fixture.received.count("tools/call"), 1 + own);
            }
        }
    }

    async fn run_stateless(&self, fixture: &Fixture) {
        let mut client = fixture.stateless(all_capabilities());
        let asked = client.call(self.method, self.params()).await;
        let result = &asked["result"];
        assert_eq!(result["resultType"], "input_required", "{asked}");
        let (key, question) = result["inputRequests"].as_object().unwrap().iter().next().unwrap();
        assert_eq!(question["method"], method_of(self.kind));
        let retry = |answer: Value| {
            let mut params = self.params();
            params["inputResponses"] = json!({ key: answer });
            params["requestState"] = result["requestState"].clone();
            params
        };
        let is_form = self.kind == "form";
        match self.outcome {
            Outcome::Accept => self.check_accepted(&client.call(self.method, retry(self.accepted())).await),
            Outcome::Decline | Outcome::Cancel if is_form => {
                let action = if self.outcome == Outcome::Decline { "decline" } else { "cancel" };
                let response = client.call(self.method, retry(json!({ "action": action }))).await;
                self.check_unanswered(&response, action);
            }
            // Who declines a model or roots does not return (2026-07-28 basic/patterns/mrtr).
            Outcome::Decline | Outcome::Cancel => match self.server {
                Era::Handshake => {
                    fixture.received.wait_for("notifications/cancelled").await;
                    assert_eq!(fixture.gateway.parked_calls(), 0);
                }
                Era::Stateless => assert_eq!(fixture.received.count(self.method), 1),
            },
            Outcome::Timeout if self.server == Era::Stateless => {
                // The server keeps no call, so that its client may take any time.
                self.check_accepted(&client.call(self.method, retry(self.accepted())).await);
            }
            Outcome::Timeout => {
                fixture.received.wait_for("notifications/cancelled").await;
                let late = client.call(self.method, retry(self.accepted())).await;
                match self.method {
                    "tools/call" => assert_eq!(late["error"]["data"]["reason"], "outcome_unknown", "{late}"),
                    _ => assert_eq!(late["result"]["resultType"], "input_required", "{late}"),
                }
            }
            Outcome::Disconnect => {
                client.close().await;
                client = fixture.stateless(all_capabilities());
                self.check_accepted(&client.call(self.method, retry(self.accepted())).await);
            }
        }
        client.close().await;
    }
}

fn method_of(kind: &str) -> &'static str {
    match kind {
        "form" => "elicitation/create",
        "sampling" => "sampling/createMessage",
        _ => "roots/list",
    }
}

/// The eras of client and server.
pub const ERAS: [(Era, Era); 4] = [
    (Era::Handshake, Era::Handshake),
    (Era::Handshake, Era::Stateless),
    (Era::Stateless, Era::Handshake),
    (Era::Stateless, Era::Stateless),
];

/// Returns the transports of clients of an era. HTTP+SSE exists in the handshake era only.
pub fn transports(client: Era) -> Vec<Transport> {
    match client {
        Era::Handshake => vec![Transport::Stdio, Transport::Http, Transport::Sse],
        Era::Stateless => vec![Transport::Stdio, Transport::Http],
    }
}

fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for kind in ["form", "sampling", "roots"] {
        for method in ["tools/call", "prompts/get", "resources/read"] {
            for (client, server) in ERAS {
                for transport in transports(client) {
                    let all = OUTCOMES.map(|outcome| Cell { kind, method, client, server, transport, outcome });
                    cells.extend(all);
                }
            }
        }
    }
    cells
}

/// A cell of either table.
#[derive(Clone, Copy)]
enum TableCell {
    Question(Cell),
    Other(RowCell),
}

impl TableCell {
    async fn run(self) {
        match self {
            Self::Question(cell) => cell.run().await,
            Self::Other(cell) => cell.run().await,
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Question(cell) => format!("{} | {:?}", cell.row(), cell.outcome),
            Self::Other(cell) => cell.describe(),
        }
    }
}

/// The results of all cells, in order.
type CellResults = Vec<Result<(), String>>;

/// Runs a cell and says how it ended.
async fn result_of(cell: TableCell) -> Result<(), String> {
    let ended = tokio::time::timeout(Duration::from_secs(60), tokio::spawn(cell.run())).await;
    match ended {
        Ok(Ok(())) => Ok(()),
        Ok(Err(failed)) => match failed.into_panic().downcast::<String>() {
            Ok(text) => Err(*text),
            Err(other) => Err(other.downcast::<&str>().map_or("panic".to_owned(), |text| (*text).to_owned())),
        },
        Err(_) => Err("timed out".to_owned()),
    }
}

/// Runs cells, some at a time.
async fn run_all(cells: &[TableCell]) -> CellResults {
    let (permits, mut running) = (Arc::new(Semaphore::new(8)), JoinSet::new());
    for (index, cell) in cells.iter().copied().enumerate() {
        let permits = Arc::clone(&permits);
        running.spawn(async move {
            let _permit = permits.acquire().await.unwrap();
            (index, result_of(cell).await)
        });
    }
    let mut results = BTreeMap::new();
    while let Some(ended) = running.join_next().await {
        let (index, result) = ended.unwrap();
        results.insert(index, result);
    }
    results.into_values().collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn everything_crosses_in_every_cell() {
    let (questions, others) = (cells(), rows::cells());
    let all = questions.iter().copied().map(TableCell::Question);
    let all: Vec<TableCell> = all.chain(others.iter().copied().map(TableCell::Other)).collect();
    let results = run_all(&all).await;
    let failed = all
        .iter()
        .zip(&results)
        .filter_map(|(cell, result)| Some(format!("{}: {}", cell.describe(), result.as_ref().err()?)));
    let failed: Vec<String> = failed.collect();
    for cell in &all {
        println!("{}", cell.describe());
    }
    println!("{} cells, {} failed", all.len(), failed.len());
    #[expect(clippy::disallowed_methods, reason = "a developer asks for the evidence by a variable")]
    let updates_evidence = std::env::var_os("UPDATE_EVIDENCE").is_some();
    if updates_evidence {
        write_evidence(&questions, &others, &results);
    }
    assert!(failed.is_empty(), "{} of {} cells failed:\n{}", failed.len(), all.len(), failed.join("\n"));
    assert!(all.len() >= 670, "{}", all.len());
}

fn mark(result: &Result<(), String>) -> &'static str {
    if result.is_ok() { "ok" } else { "FAILS" }
}

fn write_evidence(questions: &[Cell], others: &[RowCell], results: &[Result<(), String>]) {
    let (of_questions, of_others) = results.split_at(questions.len());
    let passed = |results: &[Result<(), String>]| results.iter().filter(|result| result.is_ok()).count();
    let mut text = String::from(
        "# Across the eras\n\n\
         Written by `UPDATE_EVIDENCE=1 cargo test -p wharf-gateway --test crossing everything_crosses`. L is a \
         handshake revision (2025-11-25), M is 2026-07-28: the client's era and transport, and the server's era.\n\n",
    );
    let _ = writeln!(text, "{} of {} cells pass.\n\n## Questions\n", passed(results), results.len());
    text.push_str(
        "A row is a question of a server during a request of a client. A client of M that declines a model or roots \
         does not return, as its revision says. A closed POST of L over HTTP is no cancellation: the client resumes \
         the stream. A timeout of M → M is none: nothing waits.\n\n",
    );
    text.push_str("| question | request | client → server | client's transport | accept | decline | cancel | timeout | disconnect |\n");
    text.push_str("|---|---|---|---|---|---|---|---|---|\n");
    for (row, results) in questions.chunks(OUTCOMES.len()).zip(of_questions.chunks(OUTCOMES.len())) {
        let marks: Vec<_> = results.iter().map(mark).collect();
        let _ = writeln!(text, "| {} | {} |", row[0].row(), marks.join(" | "));
    }
    write_rows(&mut text, others, of_others);
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../evidence/crossing.md");
    std::fs::write(path, text).unwrap();
}

fn write_rows(text: &mut String, others: &[RowCell], results: &[Result<(), String>]) {
    let columns = others.len() / rows::ROWS.len();
    let titles =
        others[..columns].iter().map(|cell| cell.describe().split(" | ").skip(1).collect::<Vec<_>>().join(" "));
    let titles: Vec<String> = titles.collect();
    let _ = writeln!(text, "\n## Everything else\n\n| | {} |\n|---|{}", titles.join(" | "), "---|".repeat(columns));
    for (row, results) in others.chunks(columns).zip(results.chunks(columns)) {
        let marks: Vec<_> = results.iter().map(mark).collect();
        let _ = writeln!(text, "| {} | {} |", row[0].row.title(), marks.join(" | "));
    }
}
