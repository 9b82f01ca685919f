//! How many server processes many clients need.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};
use tokio::task::JoinSet;
use wharf_peers::load::{ClientEra, ClientOptions, Endpoint, McpClient, process_tree};
use wharf_testkit::test_home::{TestHome, USER_CONFIG};

use crate::served::{PATIENCE, ServedGateway, ServedHome, block_on};
use crate::{Findings, Scale};

/// Maximum number of processes of one server for clients that can be asked.
const MAX_INSTANCES: usize = 4;

/// Every client is a `wharf serve` of its own, as the clients of people start it.
pub fn declaring_nothing(scale: Scale) -> Findings {
    let (clients, servers) = (scale.pick(4, 20), scale.pick(4, 20));
    let mut found = Findings::new(format!("{clients} clients x {servers} servers"));
    let served = ServedHome::new(servers);
    let mut open: Vec<PipeClient> = (0..clients).map(|_| PipeClient::start(&served.home)).collect();
    for client in &mut open {
        for server in 0..servers {
            let answer = client.call(&format!("s{server}__note"), "ahoy");
            found.require(answer["result"]["content"][0]["text"] == "ahoy", || format!("no answer: {answer}"));
        }
    }
    let processes = served.servers().len();
    let status = served.home.run(["serve", "--status", "--json"]);
    let status: Value = serde_json::from_str(&status.stdout).unwrap_or_default();
    let gateway = status["process"].as_u64().unwrap_or_default();
    let guards = count_guards(u32::try_from(gateway).unwrap_or_default(), &served);
    found.figure(format!("{processes} server processes, {guards} guards, 1 gateway, {clients} relays"));
    found.require(processes == servers, || format!("{processes} server processes for {servers} servers"));
    open.into_iter().for_each(PipeClient::finish);
    found.require(served.is_left_empty(PATIENCE), || "processes left".to_owned());
    found
}

/// Counts the descendants of the gateway that are `wharf` itself.
fn count_guards(gateway: u32, served: &ServedHome) -> usize {
    let servers = served.servers();
    let is_server = |pid: &u32| servers.iter().any(|server| server.pid.unsigned_abs() == *pid);
    let all = process_tree(gateway, "sleep");
    all.iter().filter(|pid| **pid != gateway && !is_server(pid)).count()
}

/// A client may know the tools of a server from before it failed.
pub fn failed_server(_: Scale) -> Findings {
    let mut found = Findings::new("1 call");
    let served = ServedHome::new(1);
    let mut config: Value = serde_json::from_str(&served.home.read(USER_CONFIG)).unwrap();
    config["mcpServers"]["boom"] = json!({"command": "sh", "args": ["-c", "echo 'missing key' >&2; exit 3"]});
    served.home.write(USER_CONFIG, &config.to_string());
    let mut client = PipeClient::start(&served.home);
    let told = client.call("boom__anything", "ahoy");
    let text = told["result"]["content"][0]["text"].as_str().unwrap_or_default();
    let has_reason = text.contains("server `boom`") && text.contains("exited with code 3");
    found.require(has_reason, || format!("no reason: {told}"));
    found.require(told["result"]["isError"] == true, || format!("not an error: {told}"));
    let unknown = client.call("nowhere__anything", "ahoy");
    found.require(unknown["error"]["code"] == -32602, || format!("no error: {unknown}"));
    client.finish();
    found
}

/// A session ends before the next one begins.
pub fn one_after_the_other(scale: Scale) -> Findings {
    let (clients, servers) = (scale.pick(3, 20), scale.pick(2, 20));
    let mut found = Findings::new(format!("{clients} clients x {servers} servers"));
    let (served, most) = (ServedHome::new(servers), std::cell::Cell::new(0));
    let gateway = ServedGateway::start(&served);
    block_on(async {
        for number in 0..clients {
            found.problems.extend(ask_all(gateway.endpoint.clone(), number, servers).await);
            most.set(served.servers().len().max(most.get()));
        }
    });
    let most = most.get();
    found.figure(format!("{most} server processes"));
    // The first process of each server serves clients that declare nothing, and lists the tools.
    found.require(most <= 2 * servers, || format!("{most} server processes for {servers} servers"));
    gateway.terminate();
    found.require(served.is_left_empty(PATIENCE), || "processes left".to_owned());
    found
}

/// All sessions call all servers at once.
pub fn overlapping(scale: Scale) -> Findings {
    let (clients, servers) = (scale.pick(3, 20), scale.pick(2, 20));
    let mut found = Findings::new(format!("{clients} clients x {servers} servers"));
    let served = ServedHome::new(servers);
    let gateway = ServedGateway::start(&served);
    block_on(async {
        let mut asking = JoinSet::new();
        for number in 0..clients {
            asking.spawn(ask_all(gateway.endpoint.clone(), number, servers));
        }
        let mut most = 0;
        while let Some(problems) = asking.join_next().await {
            most = most.max(served.servers().len());
            found.problems.extend(problems.unwrap());
        }
        found.figure(format!("{most} server processes"));
        let limit = servers * (1 + MAX_INSTANCES);
        found.require(most <= limit, || format!("{most} server processes, {limit} at most"));
    });
    gateway.terminate();
    found.require(served.is_left_empty(PATIENCE), || "processes left".to_owned());
    found
}

/// Has every server ask the client, and returns what went wrong.
async fn ask_all(endpoint: Endpoint, number: usize, servers: usize) -> Vec<String> {
    let capabilities = json!({"elicitation": {}, "roots": {"listChanged": true}});
    let options = ClientOptions { capabilities, ..ClientOptions::new(ClientEra::Handshake) };
    let mut client = McpClient::open(&endpoint, options).await.unwrap();
    let mut problems = Vec::new();
    for server in 0..servers {
        let text = format!("client {number} at {server}");
        match client.call(&format!("s{server}__ask"), &text).await {
            Ok(answer) if answer["result"]["content"][0]["text"] == text => {}
            Ok(answer) => problems.push(answer.to_string()),
            Err(error) => problems.push(error.to_string()),
        }
    }
    problems
}

/// A client on a pipe.
pub struct PipeClient {
    child: Child,
    input: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
    last_id: u64,
}

impl PipeClient {
    pub fn start(home: &TestHome) -> Self {
        let mut command = home.command(["serve"]);
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        let mut client = Self { child, input, lines: BufReader::new(output).lines(), last_id: 0 };
        let info = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
        client.request("initialize", &params);
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let messages = self.lines.by_ref().map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
        let mut responses = messages.filter(|message| message["id"] == id && message.get("method").is_none());
        responses.next().expect("a response")
    }

    fn call(&mut self, tool: &str, text: &str) -> Value {
        self.request("tools/call", &json!({"name": tool, "arguments": {"text": text}}))
    }

    fn finish(mut self) {
        drop(self.input.take());
        self.child.wait().unwrap();
    }
}

impl Drop for PipeClient {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
