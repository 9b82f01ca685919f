//! The program of every form: a host with one server, a call, and a wait for its end.

use std::error::Error;
use std::io::Write as _;

use wharf::policy::Rule;
use wharf::spec::{Environment, ServerEntry, ServerName, ServerSpec, StdioSpec};
use wharf::{CallOptions, Host, RawJson};

/// The variable with the command line of the server.
const SERVER: &str = "EMBEDDING_SERVER";

/// Starts the server, calls a tool, prints `ready` with the containment, and closes the host at the end of stdin.
pub async fn run() -> Result<(), Box<dyn Error>> {
    let line = std::env::var(SERVER)?;
    let mut words = line.split(' ').map(Into::into);
    let program = words.next().ok_or("no server")?;
    let spec = StdioSpec { program, args: words.collect(), inherit_env: true, ..StdioSpec::default() };
    let host = Host::builder()
        .environment(Environment { env: std::env::vars_os().collect(), cwd: std::env::current_dir()? })
        .servers([ServerEntry::new(ServerName::new("demo")?, ServerSpec::Stdio(spec))])
        .rules([Rule::allow("mcp__demo__*")])
        .start()
        .await?;
    host.wait_until_ready("demo").await?;
    let echo = host.resolve("mcp__demo__echo")?;
    let reply = host.call(&echo, &RawJson::parse(r#"{"text":"heard"}"#)?, CallOptions::default()).await?;
    let process = host.connection("demo")?.facts().process.ok_or("no process")?;
    println!("ready {} {}", process.containment, reply.text()?);
    std::io::stdout().flush()?;
    tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new())).await??;
    host.close().await;
    Ok(())
}
