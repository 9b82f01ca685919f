//! Test fixture for commands: a real host with in-process servers and a configuration that names them.

use std::process::ExitCode;

use anstream::ColorChoice;
use serde_json::json;
use wharf::{Host, HostBuilder};
use wharf_client::{ClosureServer, ToolReply};
use wharf_spec::{Environment, ServerName};
use wharf_testkit::test_home::TestHome;

use super::{ChatSummary, CommandContext};
use wharf_terminal::config_context::ConfigArgs;
use wharf_terminal::failure::CommandEnding;
use wharf_terminal::managed_host::{LoadedConfig, ManagedHost};
use wharf_terminal::session::CliContext;
use wharf_terminal::session::{CommonArgs, run};

/// Runs a test with a host of these servers. The configuration is written to a temporary home.
#[track_caller]
pub fn with_host(config: &str, servers: fn() -> HostBuilder, scene: impl AsyncFnOnce(&CommandContext<'_>)) {
    let home = TestHome::new();
    let file = home.write("config.json", config);
    let context = CliContext {
        environment: Environment { env: home.variables(), cwd: home.path("project") },
        color: ColorChoice::Never,
        config: ConfigArgs::only(file),
    };
    let code = run(context, &CommonArgs::default(), async |session| {
        let host = servers().environment(session.environment.clone()).start().await.unwrap();
        host.wait_until_settled().await;
        let known =
            LoadedConfig { config: session.configuration.config()?.clone(), entries: Vec::new(), failures: Vec::new() };
        let managed_host = ManagedHost::new(session, host.clone(), known, &[]);
        scene(&CommandContext { managed_host: &managed_host, facts: ChatSummary::default() }).await;
        host.close().await;
        Ok(CommandEnding::Fine)
    });
    assert_eq!(code, ExitCode::SUCCESS);
}

/// A server named `harbour` with a tool, a prompt and a resource.
pub fn harbour() -> HostBuilder {
    let make = || {
        let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
        ClosureServer::new("Harbour", "1.2")
            .instructions("Ring the bell\u{1b}[2J before you enter.")
            .tool("echo", "Says it again.", schema, |_| async { Ok(ToolReply::text("again")) })
            .prompt("welcome", "Welcomes somebody.", &["name"], |given| async move {
                Ok(format!("Welcome {}.", given.get("name").map(String::as_str).unwrap_or_default()))
            })
            .resource("note://tides", "tides", "text/plain", || async { Ok("High at noon.".to_owned()) })
    };
    Host::builder().local(ServerName::new("harbour").unwrap(), make)
}

/// Configuration for [`harbour`].
pub const HARBOUR: &str =
    r#"{"mcpServers": {"harbour": {"command": "never-run"}, "off": {"command": "never-run", "enabled": false}}}"#;
