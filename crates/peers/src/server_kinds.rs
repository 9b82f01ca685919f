//! Hosts with many servers, some of them failing.

use std::path::Path;

use serde_json::json;
use tokio::task::JoinSet;
use wharf::policy::{Rule, RuleAction, RuleAuthority, RuleOrigin, SourcedRule};
use wharf::spec::{Environment, ServerEntry, ServerName, ServerSpec, StdioSpec, ToolId};
use wharf::{CallOptions, Host, HostBuilder, RawJson};

/// Behaviour of a `bench-host-server`; the names are its modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerKind {
    /// Answers immediately.
    Good,
    /// Names a program that does not exist.
    Missing,
    /// Exits immediately.
    Dead,
    /// Answers nothing for the first 10 s.
    Slow,
    /// Exits 50 ms after it is ready.
    Crashing,
    /// Exits 50 ms after it starts, without output.
    Stillborn,
}

impl ServerKind {
    /// Returns the name used as the server's mode and in server names.
    pub fn name(self) -> &'static str {
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

/// Returns a host builder with the common settings, and a rule that allows each server's tools.
pub fn host_builder(servers: Vec<ServerEntry>) -> HostBuilder {
    let rules: Vec<SourcedRule> = servers.iter().map(|server| allow_rule(&server.name, "*")).collect();
    let surroundings = Environment { env: std::env::vars_os().collect(), cwd: std::env::current_dir().unwrap() };
    Host::builder().servers(servers).rules(rules).environment(surroundings)
}

/// Returns a rule that allows a tool of a server.
pub fn allow_rule(server: &ServerName, tool: &str) -> SourcedRule {
    let rule = Rule::new(format!("mcp__{server}__{tool}"), RuleAction::Allow);
    SourcedRule { rule, origin: RuleOrigin { place: "bench:1".to_owned(), authority: RuleAuthority::User } }
}

/// Returns the entry of the `number`-th server of a kind. With `starts`, each start appends a line to that file.
pub fn server_entry(program: &Path, kind: ServerKind, number: usize, starts: Option<&Path>) -> ServerEntry {
    let name = server_name(kind, number);
    let mut spec = StdioSpec { program: program.into(), ..StdioSpec::default() };
    if kind == ServerKind::Missing {
        spec.program = program.with_file_name("no-such-program").into();
    }
    spec.args.push(kind.name().into());
    spec.args.extend(starts.map(|file| file.as_os_str().to_owned()));
    ServerEntry::new(name, ServerSpec::Stdio(spec))
}

/// Returns the name of the `number`-th server of a kind.
pub fn server_name(kind: ServerKind, number: usize) -> ServerName {
    ServerName::new(&format!("{}-{number}", kind.name())).unwrap()
}

/// Returns the id of a tool of the `number`-th healthy server.
pub fn good_tool(number: usize, tool: &str) -> ToolId {
    ToolId::new(&server_name(ServerKind::Good, number), tool)
}

/// Waits until each of the first `servers` healthy servers has answered a call.
pub async fn wait_until_answered(host: &Host, servers: usize) {
    let mut first = JoinSet::new();
    for number in 0..servers {
        let host = host.clone();
        first.spawn(async move {
            host.call(&good_tool(number, "echo"), &small_arguments(), CallOptions::default()).await.unwrap();
        });
    }
    first.join_all().await;
}

/// Returns call arguments with 64 bytes of text.
pub fn small_arguments() -> RawJson {
    RawJson::from_value(&json!({ "text": "x".repeat(64) })).unwrap()
}
