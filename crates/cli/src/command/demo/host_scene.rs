//! A host with several servers: a lazy one, a missing one and one that crashes and restarts, with permission rules.

use wharf::policy::{Rule, RuleAction, RuleAuthority, RuleOrigin, SourcedRule};
use wharf::spec::{ServerEntry, ServerName, ServerSpec, StdioSpec};
use wharf::{CallOptions, EventReceiver, Host, RawJson, ServerState};

use super::demo_servers::DemoServers;
use super::scenes::ensure;
use super::tour::SceneResult;
use wharf_terminal::style::{NAME, QUIET, paint};

pub async fn servers(cast: &DemoServers<'_>) -> SceneResult {
    // Subscribing to the events keeps errors out of the log: the scene shows them.
    let (host, _events) = start(cast).await?;
    let played = run_scene(&host).await;
    host.close().await;
    played
}

async fn start(cast: &DemoServers<'_>) -> Result<(Host, EventReceiver), String> {
    let demo = StdioSpec { program: cast.program.clone(), args: vec!["demo-server".into()], ..StdioSpec::default() };
    let missing = StdioSpec { program: "no-such-server".into(), ..StdioSpec::default() };
    let mut servers = Vec::new();
    for (name, spec) in [("quay", demo.clone()), ("pier", demo), ("wreck", missing)] {
        let name = ServerName::new(name).map_err(|error| error.to_string())?;
        let mut entry = ServerEntry::new(name, ServerSpec::Stdio(spec));
        entry.settings.lazy = entry.name.as_str() == "pier";
        servers.push(entry);
    }
    let host = Host::builder()
        .servers(servers)
        .rules([rule("mcp__*__echo"), rule("mcp__quay__crash")])
        .environment(cast.options("many").surroundings)
        .limits(cast.options("many").limits)
        .start_with_events();
    host.await.map_err(|error| error.to_string())
}

fn rule(tool: &str) -> SourcedRule {
    let rule = Rule::new(tool, RuleAction::Allow);
    SourcedRule { rule, origin: RuleOrigin { place: "the tour".to_owned(), authority: RuleAuthority::User } }
}

async fn run_scene(host: &Host) -> SceneResult {
    host.wait_until_settled().await;
    let mut lines: Vec<String> = host.status().iter().map(status_line).collect();
    ensure(state(host, "quay")? == ServerState::Ready, "the first server should be ready")?;
    ensure(state(host, "pier")? == ServerState::Idle, "the lazy server should be idle")?;
    ensure(state(host, "wreck")? == ServerState::Failed, "the missing server should have failed")?;
    lines.push(call_line(host, "pier", "echo").await?);
    ensure(state(host, "pier")? == ServerState::Ready, "the first call should have started the server")?;
    let crashed = call(host, "quay", "crash").await;
    lines.push(format!("quay crash  →  {}", crashed.err().ok_or("it should have crashed")?));
    lines.push(call_line(host, "quay", "echo").await?);
    ensure(host.status_of("quay").is_ok_and(|status| status.restarts == 1), "the server should have restarted")?;
    let refused = call(host, "pier", "environment").await;
    lines.push(format!("pier environment  →  {}", refused.err().ok_or("no rule allows it")?));
    Ok(lines)
}

fn status_line(status: &wharf::ServerStatus) -> String {
    let name = paint(NAME, format_args!("{:<5}", status.name.as_str())).to_string();
    match &status.last_error {
        Some(trouble) => format!("{name} {}  {}", status.state, paint(QUIET, trouble)),
        None => format!("{name} {}", status.state),
    }
}

fn state(host: &Host, server: &str) -> Result<ServerState, String> {
    host.status_of(server).map(|status| status.state).map_err(|error| error.to_string())
}

async fn call_line(host: &Host, server: &str, tool: &str) -> Result<String, String> {
    Ok(format!("{server} {tool}  →  {}", call(host, server, tool).await?))
}

async fn call(host: &Host, server: &str, tool: &str) -> Result<String, String> {
    let name = ServerName::new(server).map_err(|error| error.to_string())?;
    let arguments = if tool == "echo" { r#"{"text":"Ahoy!"}"# } else { "{}" };
    let arguments = RawJson::parse(arguments).map_err(|error| error.to_string())?;
    let reply = host.call(&wharf::spec::ToolId::new(&name, tool), &arguments, CallOptions::default()).await;
    reply.map_err(|error| error.to_string())?.text().map_err(|error| error.to_string())
}
