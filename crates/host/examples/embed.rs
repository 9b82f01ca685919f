//! Runs a server, prints its tools, and calls one of them, which a rule allows. docs/embedding.md quotes the function.
//!
//! `cargo run -p wharf --example embed -- wharf demo-server`: the arguments are a server to start.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program of its own: it prints and reads the environment"
)]

use wharf::policy::Rule;
use wharf::spec::{Environment, ServerEntry, ServerName, ServerSpec, StdioSpec, UntrustedText};
use wharf::{CallOptions, Host, RawJson};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut command = std::env::args_os().skip(1);
    let program = command.next().ok_or("name a server to start, for instance: wharf demo-server")?;
    let spec = StdioSpec { program, args: command.collect(), ..StdioSpec::default() };
    let host = Host::builder()
        .environment(Environment { env: std::env::vars_os().collect(), cwd: std::env::current_dir()? })
        .servers([ServerEntry::new(ServerName::new("demo")?, ServerSpec::Stdio(spec))])
        .rules([Rule::allow("mcp__demo__*")])
        .start()
        .await?;
    host.wait_until_settled().await;
    for tool in host.catalog().visible_tools() {
        println!("  {}", UntrustedText::new(&*tool.description.shown));
    }
    let echo = host.resolve("mcp__demo__echo")?;
    let reply = host.call(&echo, &RawJson::parse(r#"{"text":"Ahoy!"}"#)?, CallOptions::default()).await?;
    println!("{}", UntrustedText::new(reply.text()?).multiline()); // Server text is shown escaped.
    host.close().await;
    Ok(())
}
