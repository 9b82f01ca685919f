//! Calls of many principals while servers are killed: each answer belongs to its call, and each call executes once.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use wharf_peers::load::{ClientEra, ClientOptions, Endpoint, LoadError, McpClient};

use crate::served::{ServedGateway, ServedHome, block_on, files_below};
use crate::{Findings, Scale};

/// As many that each one lives for more than ten seconds between two kills: the supervisor would give it up otherwise.
const SERVERS: usize = 12;
/// Calls between two lists of tools.
const CALLS_PER_LIST: usize = 25;
/// One of so many principals can be asked. Its calls need a server process each, of which there are few.
const PRINCIPALS_PER_ASKED: usize = 25;

pub fn marks(scale: Scale) -> Findings {
    let (principals, calls) = (scale.pick(10, 200), scale.pick(60, 500));
    let mut found = Findings::new(format!("{} calls by {principals} principals", principals * calls));
    let served = ServedHome::new(SERVERS);
    let keys = add_keys(&served, principals);
    let gateway = ServedGateway::start(&served);
    let interval = Duration::from_millis(if scale.is_full { 1000 } else { 300 });
    let (outcomes, kills) = block_on(call_all(&served, &gateway, Load { keys, calls, interval }));
    let messages = gateway.terminate();
    let mut total = Outcomes::default();
    outcomes.into_iter().for_each(|one| total.add(one));
    let doubled = doubled_calls(&served);
    let leaks = leaks(&served, &messages);
    found.figure(format!(
        "{} answered, {} ended with an error because of {kills} kills, {} questions, {} lists; {} misrouted, {} doubled, \
         {} hung, {} foreign marks, {} marks in logs and audit",
        total.answered, total.failed, total.questions, total.lists, total.misrouted.len(), doubled.len(), total.hung,
        total.foreign.len(), leaks.len()
    ));
    let lost = lost_audit_entries(&served);
    found.figure(format!("{lost} audit entries lost"));
    // A small number of calls fits into the queue of the audit log.
    found.require(scale.is_full || lost == 0, || format!("{lost} audit entries lost"));
    let kinds = total.errors.iter().map(|(error, count)| format!("{count} x {error}"));
    found.figure(kinds.collect::<Vec<_>>().join(", "));
    let share = total.answered * 100 / (principals * calls);
    found.require(share >= 80, || format!("only {share} % of the calls were answered"));
    found.require(total.hung == 0, || format!("{} hung", total.hung));
    found.require(kills > 0, || "no server was killed".to_owned());
    for wrong in [&total.misrouted, &doubled, &total.foreign, &leaks] {
        found.require(wrong.is_empty(), || format!("{:?}", &wrong[..wrong.len().min(3)]));
    }
    found
}

/// What is called.
struct Load {
    /// Names and keys.
    keys: Vec<(String, String)>,
    /// Number of calls of each principal.
    calls: usize,
    /// Time between two kills.
    interval: Duration,
}

/// Adds a key for each principal.
fn add_keys(served: &ServedHome, count: usize) -> Vec<(String, String)> {
    let add = |number: usize| {
        let name = format!("p{number:03}");
        let printed = served.home.run_ok(&["key", "add", &name]);
        let key = printed.stdout.split_whitespace().last().unwrap_or_default().to_owned();
        (name, key)
    };
    (0..count).map(add).collect()
}

async fn call_all(served: &ServedHome, gateway: &ServedGateway, load: Load) -> (Vec<Outcomes>, usize) {
    let is_over = Arc::new(AtomicBool::new(false));
    let mut principals = JoinSet::new();
    for (number, (name, key)) in load.keys.into_iter().enumerate() {
        let endpoint = Endpoint { token: Some(key), ..gateway.endpoint.clone() };
        let principal = Principal { name, endpoint, number, calls: load.calls };
        principals.spawn(principal.run());
    }
    let killing = async {
        let mut kills = 0;
        while !is_over.load(Ordering::Relaxed) {
            tokio::time::sleep(load.interval).await;
            kills += kill_one(served, kills);
        }
        kills
    };
    let calling = async {
        let outcomes = principals.join_all().await;
        is_over.store(true, Ordering::Relaxed);
        outcomes
    };
    tokio::join!(calling, killing)
}

/// Kills all processes of one server.
fn kill_one(served: &ServedHome, turn: usize) -> usize {
    let journal = served.journal(turn % SERVERS);
    let processes = served.servers();
    let of_it = processes.iter().filter(|process| process.cmdline.ends_with(&*journal.to_string_lossy()));
    let killed =
        of_it.filter(|process| Pid::from_raw(process.pid).is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok()));
    usize::from(killed.count() > 0)
}

#[derive(Default)]
struct Outcomes {
    answered: usize,
    failed: usize,
    hung: usize,
    questions: usize,
    lists: usize,
    misrouted: Vec<String>,
    /// Messages with the mark of another principal.
    foreign: Vec<String>,
    errors: BTreeMap<String, usize>,
}

impl Outcomes {
    fn add(&mut self, other: Self) {
        self.answered += other.answered;
        self.failed += other.failed;
        self.hung += other.hung;
        self.questions += other.questions;
        self.lists += other.lists;
        self.misrouted.extend(other.misrouted);
        self.foreign.extend(other.foreign);
        other.errors.into_iter().for_each(|(error, count)| *self.errors.entry(error).or_default() += count);
    }
}

/// A client with its own key.
struct Principal {
    name: String,
    endpoint: Endpoint,
    number: usize,
    calls: usize,
}

impl Principal {
    async fn run(self) -> Outcomes {
        let mut outcomes = Outcomes::default();
        let mut client = self.connect().await;
        for call in 0..self.calls {
            if call % CALLS_PER_LIST == 0 {
                let listed = client.request("tools/list", json!({}), "").await;
                outcomes.lists += usize::from(listed.is_ok());
                self.check_marks(&listed.unwrap_or_default(), &mut outcomes);
            }
            let mark = format!("[{}-{call:06}]", self.name);
            let tool = if self.is_asked() && call % 10 == 0 { "ask" } else { "note" };
            let tool = format!("s{}__{tool}", (self.number + call) % SERVERS);
            let answer = client.call(&tool, &mark).await;
            if matches!(answer, Err(LoadError::Io(_) | LoadError::Hung)) {
                client = self.connect().await;
            }
            self.judge(answer, &mark, &mut outcomes);
            for heard in std::mem::take(&mut client.heard) {
                outcomes.questions += usize::from(heard.contains("requestedSchema"));
                self.check_marks(&Value::String(heard), &mut outcomes);
            }
        }
        outcomes
    }

    fn is_asked(&self) -> bool {
        self.number.is_multiple_of(PRINCIPALS_PER_ASKED)
    }

    async fn connect(&self) -> McpClient {
        let era = if self.number.is_multiple_of(2) { ClientEra::Handshake } else { ClientEra::Stateless };
        let capabilities = if self.is_asked() { json!({"elicitation": {}}) } else { json!({}) };
        let options = ClientOptions { capabilities, ..ClientOptions::new(era) };
        McpClient::open(&self.endpoint, options).await.unwrap()
    }

    fn judge(&self, answer: Result<Value, LoadError>, mark: &str, outcomes: &mut Outcomes) {
        let answer = match answer {
            Ok(answer) => answer,
            Err(LoadError::Hung) => {
                outcomes.hung += 1;
                return;
            }
            Err(error) => {
                outcomes.failed += 1;
                *outcomes.errors.entry(error.to_string()).or_default() += 1;
                return;
            }
        };
        self.check_marks(&answer, outcomes);
        let text = answer["result"]["content"][0]["text"].as_str();
        if let Some(text) = text.filter(|_| answer["result"]["isError"] != true) {
            outcomes.answered += 1;
            if text != mark {
                outcomes.misrouted.push(format!("{mark}: {text}"));
            }
            return;
        }
        outcomes.failed += 1;
        let message = answer["error"]["message"].as_str().or(text).unwrap_or_default();
        // Without the name of the server.
        let kind: String = message.split('`').skip(2).collect();
        let kind: String = kind.trim_start_matches(": ").chars().take(60).collect();
        *outcomes.errors.entry(kind).or_default() += 1;
    }

    /// Marks of other principals are a leak.
    fn check_marks(&self, message: &Value, outcomes: &mut Outcomes) {
        let text = message.to_string();
        let own = format!("[{}-", self.name);
        if text.match_indices("[p").any(|(place, _)| !text[place..].starts_with(&own)) {
            outcomes.foreign.push(text);
        }
    }
}

/// Returns the calls that a server received more than once.
fn doubled_calls(served: &ServedHome) -> Vec<String> {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for number in 0..SERVERS {
        let journal = std::fs::read_to_string(served.journal(number)).unwrap_or_default();
        journal.lines().for_each(|line| *counts.entry(line.to_owned()).or_default() += 1);
    }
    counts.into_iter().filter(|(_, count)| *count > 1).map(|(mark, count)| format!("{mark} {count} x")).collect()
}

/// Sums the entries that the audit log says it has lost.
fn lost_audit_entries(served: &ServedHome) -> u64 {
    let files = files_below(&served.home.root().join("home/.local/state/wharf"));
    let audit = files.iter().filter(|(path, _)| path.to_string_lossy().contains("audit.jsonl"));
    let lines = audit.flat_map(|(_, text)| text.lines()).filter(|line| line.contains(r#""event":"lost""#));
    let lost = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok()?["entry"]["entries"].as_u64());
    lost.sum()
}

/// Returns the places outside of answers that have a mark: messages, logs and the audit log.
fn leaks(served: &ServedHome, messages: &[String]) -> Vec<String> {
    let has_mark = |text: &str| {
        text.match_indices("[p").any(|(place, _)| text[place + 2..].starts_with(|c: char| c.is_ascii_digit()))
    };
    let files = files_below(&served.home.root().join("home"));
    let files = files.into_iter().filter(|(_, text)| has_mark(text)).map(|(path, _)| path.display().to_string());
    files.chain(messages.iter().filter(|line| has_mark(line)).cloned()).collect()
}
