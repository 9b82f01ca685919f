//! The catalogs that the agent's search is tried on are what the servers still say.
//!
//! With `WHARF_RECORD` set they are written instead, after the pins have changed.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use wharf_client::{ClientServices, Connection, Event};
use wharf_wire::{ElicitationResponse, Interest};

use crate::HANDSHAKE;
use crate::crew::{Hold, Model, Person};
use crate::peer::Peer;

/// A server of which there is a recording.
struct Recorded {
    peer: Peer,
    /// Names the recording.
    server: &'static str,
    package: &'static str,
    /// Tools that come late, once the server knows what its client can do.
    late: &'static [&'static str],
}

fn servers() -> [Recorded; 5] {
    let node = |server, package: &'static str| {
        let peer = Peer::node(server, package.trim_start_matches("@modelcontextprotocol/"), HANDSHAKE);
        Recorded { peer, server, package, late: &[] }
    };
    let python = |server, package, module: &str| {
        let peer = Peer::python(server, "py1", HANDSHAKE).arg("-m").arg(module);
        Recorded { peer, server, package, late: &[] }
    };
    let everything = node("everything", "@modelcontextprotocol/server-everything");
    let filesystem = node("filesystem", "@modelcontextprotocol/server-filesystem");
    let memory = node("memory", "@modelcontextprotocol/server-memory");
    let time = python("time", "mcp-server-time", "mcp_server_time");
    [
        Recorded { peer: everything.peer.arg("stdio"), late: LATE, ..everything },
        Recorded { peer: filesystem.peer.arg_home(), ..filesystem },
        python("git", "mcp-server-git", "mcp_server_git"),
        Recorded { peer: memory.peer.env_home("MEMORY_FILE_PATH", "graph.jsonl"), ..memory },
        Recorded { peer: time.peer.arg("--local-timezone").arg("UTC"), ..time },
    ]
}

const LATE: &[&str] = &[
    "get-roots-list",
    "simulate-research-query",
    "trigger-elicitation-request",
    "trigger-sampling-request",
    "trigger-url-elicitation",
];

#[tokio::test]
async fn recorded_catalogs_match_the_servers() {
    for server in servers() {
        let mut options = server.peer.home.options();
        let person = Person::new(|_| ElicitationResponse::Cancel).with_pages();
        options.services =
            ClientServices::default().elicitation(person).sampling(Model::noon()).roots(Hold::new("file:///tmp/hold"));
        let connection = server.peer.open(options).await;
        let listed = listed(&connection, server.late).await;
        server.peer.close(connection).await;
        check(&server, &listed);
    }
}

/// Every tool as the server writes it, in the order of their names.
async fn listed(connection: &Connection, late: &[&str]) -> Vec<String> {
    let mut watch = None;
    loop {
        let mut tools = connection.list_tools().await.unwrap().items;
        if late.iter().all(|late| tools.iter().any(|tool| tool.name == *late)) {
            tools.sort_by(|one, other| one.name.cmp(&other.name));
            return tools.iter().map(|tool| tool.raw.as_str().to_owned()).collect();
        }
        let interest = Interest { tools: true, ..Interest::default() };
        match &mut watch {
            None => watch = Some(connection.subscribe(interest).await.unwrap()),
            Some(watch) => assert!(matches!(watch.next().await, Ok(Event::Tools))),
        }
    }
}

fn check(server: &Recorded, listed: &[String]) {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../search/tests/recall").join(server.server).with_extension("json");
    if std::env::var_os("WHARF_RECORD").is_some() {
        fs::write(&file, recording(server, listed)).unwrap();
    }
    let recorded: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let listed: Vec<Value> = listed.iter().map(|tool| serde_json::from_str(tool).unwrap()).collect();
    assert_eq!(recorded["version"], version(server.package), "{}", server.package);
    assert_eq!(recorded["tools"], json!(listed), "{}: record it again with WHARF_RECORD=1", server.package);
}

/// A tool on each line, byte for byte.
fn recording(server: &Recorded, listed: &[String]) -> String {
    let tools: Vec<String> = listed.iter().map(|tool| format!("    {tool}")).collect();
    let (package, version, tools) = (server.package, version(server.package), tools.join(",\n"));
    format!("{{\n  \"package\": \"{package}\",\n  \"version\": \"{version}\",\n  \"tools\": [\n{tools}\n  ]\n}}\n")
}

/// The version of a package that is pinned.
fn version(package: &str) -> String {
    let node: Value = serde_json::from_str(include_str!("../../node/package.json")).unwrap();
    let python = include_str!("../../python/py1.txt").lines().filter_map(|line| line.split_once("=="));
    let of_python = python.filter(|(name, _)| *name == package).map(|(_, version)| version.to_owned()).next();
    of_python.or_else(|| node["dependencies"][package].as_str().map(str::to_owned)).unwrap()
}
