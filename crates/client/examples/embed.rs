//! A program with servers of its own: starts them, waits for a word, and ends one way or another.
//!
//! `cargo run -p wharf-client --example embed -- [--no-guard] [--env NAME=VALUE]... "SERVER ARGUMENT..."...`
//!
//! It says `ready` and waits for a line: `panic` makes it panic, anything else closes the servers politely. It handles
//! no signal. Whatever ends it, nothing of its servers is left, because a guard watches each of them.

#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "a program prints and reads its surroundings")]

use std::error::Error;

use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use wharf_client::{ConnectError, ConnectOptions, Connection, GuardProgram, connect};
use wharf_spec::{EnvValue, Environment, StdioSpec};

fn main() -> Result<(), Box<dyn Error>> {
    let (servers, options) = arguments()?;
    let runtime = Runtime::new()?;

    let connections = runtime.block_on(connect_all(servers, options))?;
    let containment =
        connections.first().ok_or("no server was given")?.facts().process.ok_or("no process")?.containment;
    println!("ready {} containment {containment}", connections.len());

    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    assert_ne!(line.trim(), "panic", "as asked");
    runtime.block_on(close_all(connections));
    Ok(())
}

/// Connects to all servers at once; one that fails takes the others with it.
async fn connect_all(servers: Vec<StdioSpec>, options: ConnectOptions) -> Result<Vec<Connection>, ConnectError> {
    let connecting = servers.into_iter().map(|server| {
        let mut options = options.clone();
        options.name = server.program.to_string_lossy().into_owned();
        async move { connect(&server, options).await }
    });
    connecting.collect::<JoinSet<_>>().join_all().await.into_iter().collect()
}

/// Closes all at once: each gets the end of its input, then SIGTERM, then SIGKILL.
async fn close_all(connections: Vec<Connection>) {
    let closing = connections.into_iter().map(|connection| async move { connection.close().await });
    closing.collect::<JoinSet<_>>().join_all().await;
}

fn arguments() -> Result<(Vec<StdioSpec>, ConnectOptions), Box<dyn Error>> {
    let mut options = ConnectOptions::default();
    options.surroundings = Environment { env: std::env::vars_os().collect(), cwd: std::env::current_dir()? };
    let (mut servers, mut env) = (Vec::new(), Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--no-guard" => options.guard = GuardProgram::None,
            "--env" => {
                let variable = arguments.next().ok_or("--env needs NAME=VALUE")?;
                let (name, value) = variable.split_once('=').ok_or("--env needs NAME=VALUE")?;
                env.push((name.into(), EnvValue::Plain(value.into())));
            }
            line => {
                let mut words = line.split_whitespace();
                let program = words.next().ok_or("a server's command is empty")?.into();
                servers.push(StdioSpec { program, args: words.map(Into::into).collect(), ..StdioSpec::default() });
            }
        }
    }
    // A server sees nothing of our environment but a short list and what it is given here.
    servers.iter_mut().for_each(|server| server.env.clone_from(&env));
    Ok((servers, options))
}
