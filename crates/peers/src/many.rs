//! Hosts of many servers, some of which are in trouble.

use std::path::Path;

use serde_json::json;
use tokio::task::JoinSet;
use wharf::policy::{Action, Rule, RuleOrigin, SourcedRule, Standing};
use wharf::spec::{ServerEntry, ServerName, ServerSpec, StdioSpec, Surroundings, ToolId};
use wharf::{CallOptions, Host, HostBuilder, Raw};

/// How a server of `bench-host-server` behaves; the words are its modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Answers at once.
    Good,
    /// Names a program that does not exist.
    Missing,
    /// Exits at once.
    Dead,
    /// Takes 10 s before it answers anything.
    Slow,
    /// Exits 50 ms after it was ready.
    Crashing,
    /// Exits 50 ms after it was started, without a word.
    Stillborn,
}

impl Kind {
    /// What it is called, as the server's mode and in the names of servers.
    pub fn word(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Missing => "missing",
            Self::Dead => "dead",
            Self::Slow => "slow",
            Self::Crashing => "crashing",
            Self::Stillborn => "stillborn",
        }
    }
}

/// A builder with what every host here has, and a rule for each of the servers by its name.
pub fn host(servers: Vec<ServerEntry>) -> HostBuilder {
    let rules: Vec<SourcedRule> = servers.iter().map(|server| allow(&server.name, "*")).collect();
    let surroundings = Surroundings { env: std::env::vars_os().collect(), cwd: std::env::current_dir().unwrap() };
    Host::builder().servers(servers).rules(rules).surroundings(surroundings)
}

/// The rule that allows a tool of a server.
pub fn allow(server: &ServerName, tool: &str) -> SourcedRule {
    let rule = Rule::new(format!("mcp__{server}__{tool}"), Action::Allow);
    SourcedRule { rule, origin: RuleOrigin { place: "bench:1".to_owned(), standing: Standing::User } }
}

/// The `number`-th server of a kind; at every start it adds a line to the file `starts`, if there is one.
pub fn entry(program: &Path, kind: Kind, number: usize, starts: Option<&Path>) -> ServerEntry {
    let name = named(kind, number);
    let mut spec = StdioSpec { program: program.into(), ..StdioSpec::default() };
    if kind == Kind::Missing {
        spec.program = program.with_file_name("no-such-program").into();
    }
    spec.args.push(kind.word().into());
    spec.args.extend(starts.map(|file| file.as_os_str().to_owned()));
    ServerEntry::new(name, ServerSpec::Stdio(spec))
}

/// The name of the `number`-th server of a kind.
pub fn named(kind: Kind, number: usize) -> ServerName {
    ServerName::new(&format!("{}-{number}", kind.word())).unwrap()
}

/// A tool of the `number`-th good server.
pub fn good_tool(number: usize, tool: &str) -> ToolId {
    ToolId::new(&named(Kind::Good, number), tool)
}

/// Waits until each of the first good servers has answered a call.
pub async fn answered(host: &Host, servers: usize) {
    let mut first = JoinSet::new();
    for number in 0..servers {
        let host = host.clone();
        first.spawn(async move {
            host.call(&good_tool(number, "echo"), &small(), CallOptions::default()).await.unwrap();
        });
    }
    first.join_all().await;
}

/// Arguments of a call that carries 64 bytes.
pub fn small() -> Raw {
    Raw::of(&json!({ "text": "x".repeat(64) })).unwrap()
}
