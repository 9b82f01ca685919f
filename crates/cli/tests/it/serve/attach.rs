//! Clients on stdin and stdout share one gateway.

use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use wharf_testkit::oracle::{MARKER, marked_processes, poll_until};
use wharf_testkit::test_home::{CommandOutput, PROJECT_CONFIG, TestHome, USER_CONFIG};

use super::client::PipeClient;
use super::{allow_all, home};
use crate::support::{WHARF, working};

const PATIENCE: Duration = Duration::from_secs(20);

/// Returns the pid of the gateway that runs for a home.
pub fn gateway_pid(home: &TestHome) -> Option<u32> {
    let status = home.run(["serve", "--status", "--json"]);
    let pid = |status: &CommandOutput| u32::try_from(status.json()["process"].as_u64().unwrap()).unwrap();
    (status.code == Some(0)).then(|| pid(&status))
}

fn server_pids(marker: &str) -> Vec<i32> {
    marked_processes(marker).iter().map(|process| process.pid).collect()
}

pub fn signal(pid: u32, name: &str) {
    assert!(Command::new("kill").args([name, &pid.to_string()]).status().unwrap().success());
}

#[test]
fn ten_clients_share_one_server_process() {
    let (home, marker) = home(&allow_all());
    std::thread::scope(|scope| {
        let start = || PipeClient::initialized(&home, "project", &["--server", "demo"]);
        let starting: Vec<_> = (0..10).map(|_| scope.spawn(start)).collect();
        let mut clients: Vec<PipeClient> = starting.into_iter().map(|started| started.join().unwrap()).collect();
        for (number, client) in clients.iter_mut().enumerate() {
            let text = format!("ahoy {number}");
            assert_eq!(client.call("demo__echo", &json!({ "text": text })), text);
        }
        let servers = marked_processes(&marker);
        assert_eq!(servers.len(), 1, "{servers:?}");
        for client in clients {
            let end = client.finish();
            assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""));
        }
    });
    assert!(poll_until(PATIENCE, || marked_processes(&marker).is_empty()), "the last client ends the servers");
    let socket = home.path("home/.local/state/wharf/run/gateway.socket");
    assert!(poll_until(PATIENCE, || !socket.exists()), "the last client ends the gateway");
}

#[test]
fn gateway_outlives_the_client_that_started_it() {
    let (home, marker) = home(&allow_all());
    let mut first = PipeClient::initialized(&home, "project", &["--server", "demo"]);
    assert_eq!(first.call("demo__echo", &json!({"text": "one"})), "one");
    let mut second = PipeClient::initialized(&home, "project", &["--server", "demo"]);
    let before = server_pids(&marker);
    signal(first.child.id(), "-KILL");
    drop(first);
    assert_eq!(second.call("demo__echo", &json!({"text": "two"})), "two");
    assert_eq!(server_pids(&marker), before);
    drop(second);
    assert!(poll_until(PATIENCE, || marked_processes(&marker).is_empty()));
}

#[test]
fn killed_gateway_leaves_no_process_and_its_clients_say_so() {
    let (home, marker) = home(&allow_all());
    let mut clients: Vec<_> =
        (0..3).map(|_| PipeClient::initialized(&home, "project", &["--server", "demo"])).collect();
    for client in &mut clients {
        assert_eq!(client.call("demo__echo", &json!({"text": "ahoy"})), "ahoy");
    }
    signal(gateway_pid(&home).unwrap(), "-KILL");
    for client in clients {
        let end = client.wait();
        assert!(end.code == Some(3) && end.stderr.contains("has ended"), "{end:?}");
    }
    assert!(poll_until(PATIENCE, || marked_processes(&marker).is_empty()));
    let mut next = PipeClient::initialized(&home, "project", &["--server", "demo"]);
    assert_eq!(next.call("demo__echo", &json!({"text": "again"})), "again", "the stale socket is replaced");
}

/// Servers of a project, `${project}` and the servers' working directory belong to the client's project.
#[test]
fn projects_have_servers_of_their_own() {
    let (home, marker) = home(&allow_all());
    let mut config: Value = serde_json::from_str(&home.read(USER_CONFIG)).unwrap();
    config["mcpServers"] = json!({"demo": config["mcpServers"]["demo"]});
    home.write(USER_CONFIG, &config.to_string());
    let mut own = working();
    own["env"] = json!({ MARKER: marker });
    home.write(PROJECT_CONFIG, &json!({"mcpServers": {"local": own}}).to_string());
    home.write("elsewhere/notes.txt", "");
    let digest = home.run(["approve", "local", "--json"]).json()["items"][0]["digest"].as_str().unwrap().to_owned();
    home.run_ok(&["approve", "local", "--digest", &digest]);
    let mut here = PipeClient::initialized(&home, "project", &[]);
    let mut elsewhere = PipeClient::initialized(&home, "elsewhere", &[]);
    // A slow server is announced later.
    assert!(poll_until(PATIENCE, || here.tool_names().iter().any(|name| name == "local__echo")));
    assert_eq!(here.call("local__echo", &json!({"text": "here"})), "here");
    let names = elsewhere.tool_names();
    assert!(names.iter().any(|name| name == "demo__echo"), "{names:?}");
    assert!(!names.iter().any(|name| name.starts_with("local__")), "{names:?}");
    let refused = elsewhere.call("local__echo", &json!({"text": "there"}));
    assert!(refused.contains("unknown tool"), "{refused}");
    assert_eq!(marked_processes(&marker).len(), 3, "two servers here, one elsewhere");
    drop(elsewhere);
    assert!(poll_until(PATIENCE, || marked_processes(&marker).len() == 2), "the other project's server ends");
    assert_eq!(here.call("local__echo", &json!({"text": "still"})), "still");
}

#[test]
fn clients_see_only_the_servers_they_select() {
    let (home, marker) = home(&allow_all());
    let mut config: Value = serde_json::from_str(&home.read(USER_CONFIG)).unwrap();
    config["mcpServers"]["second"] = config["mcpServers"]["demo"].clone();
    home.write(USER_CONFIG, &config.to_string());
    let mut one = PipeClient::initialized(&home, "project", &["--server", "demo"]);
    assert!(one.tool_names().iter().all(|name| name.starts_with("demo__")));
    assert_eq!(marked_processes(&marker).len(), 1);
    let mut other = PipeClient::initialized(&home, "project", &["--server", "second", "--names", "plain"]);
    assert_eq!(other.call("echo", &json!({"text": "ahoy"})), "ahoy");
    assert_eq!(marked_processes(&marker).len(), 2);
    let refused = one.call("second__echo", &json!({"text": "ahoy"}));
    assert!(refused.contains("unknown tool"), "{refused}");
}

#[test]
fn client_with_its_own_configuration_is_served_alone() {
    let (home, marker) = home(&allow_all());
    let file = home.path(USER_CONFIG);
    let file = file.to_str().unwrap();
    for words in [&["--config", file, "--server", "demo"][..], &["--alone", "--server", "demo"]] {
        let mut client = PipeClient::initialized(&home, "project", words);
        assert_eq!(client.call("demo__echo", &json!({"text": "ahoy"})), "ahoy");
        assert_eq!(gateway_pid(&home), None);
        let end = client.finish();
        let says_so = end.stderr.contains("serving this client alone, because of --config");
        assert_eq!((end.code, says_so), (Some(0), words[0] == "--config"), "{end:?}");
        assert!(poll_until(PATIENCE, || marked_processes(&marker).is_empty()));
    }
}

#[test]
fn client_is_served_alone_if_no_gateway_can_start() {
    let (home, _) = home(&allow_all());
    // A socket directory that others can read is not used.
    home.write("home/.local/state/wharf/run/other", "");
    let mut client = PipeClient::initialized(&home, "project", &["--server", "demo"]);
    assert_eq!(client.call("demo__echo", &json!({"text": "ahoy"})), "ahoy");
    let end = client.finish();
    assert!(end.code == Some(0) && end.stderr.contains("serving this client alone: "), "{end:?}");
}

#[test]
fn gateway_stays_until_it_is_stopped() {
    let (home, marker) = home(&allow_all());
    let mut client = PipeClient::initialized(&home, "project", &["--server", "demo", "--stay"]);
    assert_eq!(client.call("demo__echo", &json!({"text": "ahoy"})), "ahoy");
    let before = server_pids(&marker);
    assert_eq!(client.finish().code, Some(0));
    let mut client = PipeClient::initialized(&home, "project", &["--server", "demo"]);
    assert_eq!(client.call("demo__echo", &json!({"text": "again"})), "again");
    assert_eq!(server_pids(&marker), before);
    assert_eq!(client.finish().code, Some(0));
    let stopped = home.run(["serve", "--stop"]);
    assert!(stopped.code == Some(0) && stopped.stderr.contains("is ending"), "{stopped:?}");
    assert!(poll_until(PATIENCE, || marked_processes(&marker).is_empty()));
    let again = home.run(["serve", "--stop"]);
    assert!(again.code == Some(3) && again.stderr.contains("no gateway is running"), "{again:?}");
}

#[test]
fn clients_attach_to_a_gateway_over_http() {
    let (home, marker) = home(&allow_all());
    let mut gateway = super::HttpGateway::start(&home);
    gateway.line_after("the token is in ");
    let mut client = PipeClient::initialized(&home, "project", &["--server", "demo"]);
    assert_eq!(client.call("demo__echo", &json!({"text": "ahoy"})), "ahoy");
    assert_eq!((marked_processes(&marker).len(), gateway_pid(&home)), (1, Some(gateway.child.id())));
    let mut second = home.command(["serve", "--http", "127.0.0.1:0"]);
    let second = second.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut second = super::HttpGateway::new(second);
    second.line_after("served by another process");
    assert_eq!(second.terminate(), Some(0));
    assert_eq!(gateway.terminate(), Some(0));
    assert_eq!(client.wait().code, Some(3));
    assert!(poll_until(PATIENCE, || marked_processes(&marker).is_empty()));
}

/// A configuration that changes applies to the clients that are attached.
#[test]
fn changed_configuration_applies_to_attached_clients() {
    let (home, _) = home(&allow_all());
    let mut client = PipeClient::initialized(&home, "project", &[]);
    assert!(client.tool_names().iter().any(|name| name == "demo__echo"));
    home.run_ok(&["add", "late", "--scope", "global", "--", WHARF, "demo-server", "--stdio"]);
    let sees_it = |client: &mut PipeClient| client.tool_names().iter().any(|name| name == "late__echo");
    assert!(poll_until(PATIENCE, || sees_it(&mut client)));
}

#[test]
fn server_of_a_gateway_cannot_attach_to_it() {
    let (home, _) = home(&allow_all());
    let _client = PipeClient::initialized(&home, "project", &["--server", "demo"]);
    let nested = CommandOutput::from(home.command(["serve"]).env("WHARF_SERVED", "1").output().unwrap());
    assert!(nested.code == Some(2) && nested.stderr.contains("would serve itself"), "{nested:?}");
}

/// Clients share servers unless they differ in a variable that an entry refers to.
#[test]
fn clients_with_other_values_of_a_referenced_variable_have_servers_of_their_own() {
    let (home, marker) = home(&allow_all());
    let mut config: Value = serde_json::from_str(&home.read(USER_CONFIG)).unwrap();
    config["mcpServers"]["demo"]["env"]["HARBOUR"] = json!("${HARBOUR:-none}");
    home.write(USER_CONFIG, &config.to_string());
    let home = home.with_env("HARBOUR", "one").with_env("OTHER", "one");
    let mut first = PipeClient::initialized(&home, "project", &["--server", "demo"]);
    assert_eq!(first.call("demo__echo", &json!({"text": "ahoy"})), "ahoy");
    let home = home.with_env("OTHER", "two");
    let mut same = PipeClient::initialized(&home, "project", &["--server", "demo"]);
    assert_eq!(same.call("demo__echo", &json!({"text": "ahoy"})), "ahoy");
    assert_eq!(marked_processes(&marker).len(), 1, "no entry refers to OTHER");
    let home = home.with_env("HARBOUR", "two");
    let mut other = PipeClient::initialized(&home, "project", &["--server", "demo"]);
    assert_eq!(other.call("demo__echo", &json!({"text": "ahoy"})), "ahoy");
    assert_eq!(marked_processes(&marker).len(), 2);
    let harbours = || marked_processes(&marker).into_iter().map(|process| harbour(process.pid));
    let mut found: Vec<String> = harbours().collect();
    found.sort();
    assert_eq!(found, ["one", "two"]);
}

/// Returns a variable of a running server.
fn harbour(pid: i32) -> String {
    let variables = std::fs::read_to_string(format!("/proc/{pid}/environ")).unwrap();
    variables.split('\0').find_map(|line| line.strip_prefix("HARBOUR=")).unwrap().to_owned()
}
