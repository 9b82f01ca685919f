//! Calls in parallel, each asked something several times before it is answered (2026-07-28, basic/patterns/mrtr):
//! however they interleave, no `requestState` and no answer ever reaches another call.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail the test")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::watch;
use wharf_client::{
    BoxedFuture, CallError, ClientSender, ClientServices, ConnectOptions, Connection, Elicitor, LocalMessage,
    LocalServer, RequestOptions, RequestSource, ServerEnd, Workers, connect_local,
};
use wharf_wire::{Elicitation, ElicitationResponse, RawJson};

/// What one call goes through.
#[derive(Debug, Clone)]
struct Script {
    rounds: Vec<Round>,
    /// Given up by its caller as soon as it has been asked this often.
    dropped_after: Option<usize>,
}

#[derive(Debug, Clone)]
struct Round {
    questions: usize,
    /// The text of a JSON string, quotes included, or none.
    state: Option<String>,
}

/// Says which of the requests that wait is answered next, and how many turns others get before.
#[derive(Debug, Clone, Copy)]
struct Choice {
    which: usize,
    turns: usize,
}

fn state() -> impl Strategy<Value = String> {
    let piece = prop_oneof![Just("a"), Just(r"\u0062"), Just(r"\/"), Just(r#"\""#), Just("é"), Just(r"\\"), Just(" ")];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| format!("\"{}\"", pieces.concat()))
}

fn round() -> impl Strategy<Value = Round> {
    (0usize..3, prop::option::of(state())).prop_map(|(questions, state)| match state {
        // One of the two must be there.
        None => Round { questions: questions.max(1), state: None },
        state => Round { questions, state },
    })
}

fn script() -> impl Strategy<Value = Script> {
    let dropped = prop::option::weighted(0.2, 0usize..3);
    (prop::collection::vec(round(), 0..5), dropped).prop_map(|(rounds, dropped_after)| Script { rounds, dropped_after })
}

fn choice() -> impl Strategy<Value = Choice> {
    (any::<usize>(), 0usize..8).prop_map(|(which, turns)| Choice { which, turns })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn state_and_answers_never_reach_another_call(
        scripts in prop::collection::vec(script(), 1..7),
        choices in prop::collection::vec(choice(), 1..60),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        let problems = runtime.block_on(play(scripts, choices));
        prop_assert!(problems.is_empty(), "{problems:?}");
    }
}

async fn play(scripts: Vec<Script>, choices: Vec<Choice>) -> Vec<String> {
    let problems = Arc::new(Mutex::new(Vec::new()));
    let asked = Arc::new(watch::Sender::new(BTreeMap::new()));
    let server = Scripted { scripts: scripts.clone(), choices, problems: Arc::clone(&problems) };
    let mut options = ConnectOptions::default();
    options.name = "scripted".to_owned();
    options.limits.asks_per_minute = usize::MAX;
    options.services = ClientServices::default().elicitation(Parrot { asked: Arc::clone(&asked) });
    let connection = connect_local(server, options).await.unwrap();
    let calls = scripts
        .iter()
        .enumerate()
        .map(|(number, script)| tokio::spawn(one_call(connection.clone(), number, script.clone(), Arc::clone(&asked))));
    for call in calls.collect::<Vec<_>>() {
        let problem = call.await.unwrap();
        problems.lock().unwrap().extend(problem);
    }
    connection.close().await;
    std::mem::take(&mut *problems.lock().unwrap())
}

/// How often each call has been asked something.
type Asked = Arc<watch::Sender<BTreeMap<usize, usize>>>;

async fn one_call(connection: Connection, number: usize, script: Script, asked: Asked) -> Option<String> {
    let arguments = RawJson::parse(format!(r#"{{"call":{number}}}"#)).unwrap();
    let call = connection.call_tool("go", &arguments, RequestOptions::default());
    let outcome = match script.dropped_after {
        None => call.await,
        Some(limit) => tokio::select! {
            biased;
            () = until_asked(&asked, number, limit) => return None,
            outcome = call => outcome,
        },
    };
    match outcome {
        Ok(result) if result.raw.as_str().contains(&format!(r#""own":{number}}}"#)) => None,
        Ok(result) => Some(format!("call {number} got another's result: {}", result.raw.as_str())),
        Err(CallError::RetryableDisconnect(_)) if script.dropped_after.is_some() => None,
        Err(error) => Some(format!("call {number}: {error}")),
    }
}

async fn until_asked(asked: &Asked, number: usize, limit: usize) {
    let mut asked = asked.subscribe();
    let often = |asked: &BTreeMap<usize, usize>| asked.get(&number).copied().unwrap_or(0) >= limit;
    asked.wait_for(often).await.unwrap();
}

/// Answers every question with the question itself, after a few turns of everybody else.
struct Parrot {
    asked: Asked,
}

impl Elicitor for Parrot {
    fn elicit(&self, _: RequestSource<'_>, question: Elicitation) -> BoxedFuture<ElicitationResponse> {
        let asked = Arc::clone(&self.asked);
        Box::pin(async move {
            let message = question.message().to_owned();
            let call: usize = message.split('/').next().unwrap().parse().unwrap();
            asked.send_modify(|asked| *asked.entry(call).or_default() += 1);
            for _ in 0..message.len() % 5 {
                tokio::task::yield_now().await;
            }
            ElicitationResponse::Accept(Some(RawJson::from_value(&json!({ "answer": message })).unwrap()))
        })
    }
}

/// Asks by the script, answers in the order it is told, and checks everything that comes back.
struct Scripted {
    scripts: Vec<Script>,
    choices: Vec<Choice>,
    problems: Arc<Mutex<Vec<String>>>,
}

#[derive(Deserialize)]
struct Request<'a> {
    id: Option<u64>,
    method: String,
    #[serde(borrow, default)]
    params: Option<Params<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params<'a> {
    #[serde(default)]
    arguments: Option<Arguments>,
    #[serde(borrow, default)]
    input_responses: Option<&'a RawValue>,
    #[serde(borrow, default)]
    request_state: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Arguments {
    call: usize,
}

impl LocalServer for Scripted {
    fn serve(self: Box<Self>, mut end: ServerEnd, _workers: Workers) -> BoxedFuture<()> {
        Box::pin(async move {
            let (outbox, mut waiting, mut rounds) = (end.sender(), Vec::new(), BTreeMap::new());
            let mut choices = self.choices.iter().copied().cycle();
            loop {
                let Choice { which, turns } = choices.next().unwrap();
                tokio::select! {
                    biased;
                    message = end.receive() => match message {
                        Some(message) => self.take(&message, &outbox, &mut waiting, &mut rounds),
                        None => return,
                    },
                    () = yields(turns), if !waiting.is_empty() => {
                        let (id, call) = waiting.remove(which % waiting.len());
                        outbox.send(self.next_answer(id, call, &mut rounds));
                    }
                }
            }
        })
    }
}

async fn yields(turns: usize) {
    for _ in 0..turns {
        tokio::task::yield_now().await;
    }
}

impl Scripted {
    fn take(
        &self,
        message: &LocalMessage,
        outbox: &ClientSender,
        waiting: &mut Vec<(u64, usize)>,
        rounds: &mut BTreeMap<usize, usize>,
    ) {
        let request: Request = serde_json::from_slice(&message.text).unwrap();
        let Some(id) = request.id else { return };
        if request.method != "tools/call" {
            let discovered = json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} } });
            return outbox.send(json!({ "jsonrpc": "2.0", "id": id, "result": discovered }).to_string());
        }
        let params = request.params.unwrap();
        let call = params.arguments.as_ref().unwrap().call;
        self.check(call, rounds.get(&call).copied().unwrap_or(0), &params);
        waiting.push((id, call));
    }

    /// A request of round n carries what round n − 1 of the same call asked for, and nothing else.
    fn check(&self, call: usize, round: usize, params: &Params<'_>) {
        let asked = round.checked_sub(1).map(|before| &self.scripts[call].rounds[before]);
        let state = asked.and_then(|asked| asked.state.as_deref());
        let found = params.request_state.map(RawValue::get);
        if found != state {
            self.complain(format!("call {call}, round {round}: state {found:?} instead of {state:?}"));
        }
        let questions = asked.map_or(0, |asked| asked.questions);
        let expected: BTreeMap<String, serde_json::Value> = (0..questions)
            .map(|question| {
                let answer = format!("{call}/{}/{question}", round - 1);
                (format!("q{question}"), json!({ "action": "accept", "content": { "answer": answer } }))
            })
            .collect();
        let found: BTreeMap<String, serde_json::Value> =
            params.input_responses.map(|text| serde_json::from_str(text.get()).unwrap()).unwrap_or_default();
        if found != expected || params.input_responses.is_some() != (questions > 0) {
            self.complain(format!("call {call}, round {round}: {found:?} instead of {expected:?}"));
        }
    }

    fn next_answer(&self, id: u64, call: usize, rounds: &mut BTreeMap<usize, usize>) -> String {
        let round = rounds.entry(call).or_default();
        let Some(Round { questions, state }) = self.scripts[call].rounds.get(*round) else {
            let content = json!([{ "type": "text", "text": "done" }]);
            let result = json!({ "resultType": "complete", "content": content, "structuredContent": { "own": call } });
            return json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string();
        };
        let requests: BTreeMap<String, serde_json::Value> = (0..*questions)
            .map(|question| {
                let schema = json!({ "type": "object", "properties": { "answer": { "type": "string" } } });
                let message = format!("{call}/{round}/{question}");
                let params = json!({ "mode": "form", "message": message, "requestedSchema": schema });
                (format!("q{question}"), json!({ "method": "elicitation/create", "params": params }))
            })
            .collect();
        *round += 1;
        let mut text = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"input_required""#);
        if *questions > 0 {
            text.push_str(&format!(r#","inputRequests":{}"#, json!(requests)));
        }
        if let Some(state) = state {
            text.push_str(&format!(r#","requestState":{state}"#));
        }
        text + "}}"
    }

    fn complain(&self, problem: String) {
        self.problems.lock().unwrap().push(problem);
    }
}
