//! Servers named on the command line: how to start them, what to call them, and connecting to all of them at once.

mod connect;
mod name;

use std::path::PathBuf;

use clap::Args;
use wharf_spec::{EnvValue, Secret, StdioSpec, Surroundings};

use crate::console::Console;
use crate::failure::Failure;

pub use connect::{connect_one, each};

/// A server of this command.
#[derive(Debug, Clone)]
pub struct Server {
    pub name: String,
    pub spec: StdioSpec,
}

/// The one server a command talks to.
#[derive(Debug, Args)]
pub struct OneServer {
    /// The command that starts the server, split like a shell line but never run by a shell
    #[arg(long, value_name = "COMMAND", help_heading = "Server")]
    stdio: String,
    #[command(flatten)]
    start: Start,
}

/// The servers a command talks to.
#[derive(Debug, Args)]
pub struct ManyServers {
    /// The command that starts a server, split like a shell line but never run by a shell; may be repeated
    #[arg(long, value_name = "COMMAND", required = true, help_heading = "Server")]
    stdio: Vec<String>,
    #[command(flatten)]
    start: Start,
}

/// How servers are started.
#[derive(Debug, Args)]
struct Start {
    /// A variable for the server: NAME=VALUE, or NAME to hand down your own; may be repeated
    #[arg(long, value_name = "NAME[=VALUE]", help_heading = "Server")]
    env: Vec<String>,
    /// Where the server runs
    #[arg(long, value_name = "DIR", help_heading = "Server")]
    cwd: Option<PathBuf>,
    /// Hand down the whole environment instead of a short list
    #[arg(long, help_heading = "Server")]
    inherit_env: bool,
}

impl OneServer {
    pub fn resolve(&self, surroundings: &Surroundings, console: &Console) -> Result<Server, Failure> {
        let mut servers = self.start.resolve(std::slice::from_ref(&self.stdio), surroundings, console)?;
        servers.pop().ok_or_else(|| Failure::usage("no server was given"))
    }
}

impl ManyServers {
    pub fn resolve(&self, surroundings: &Surroundings, console: &Console) -> Result<Vec<Server>, Failure> {
        self.start.resolve(&self.stdio, surroundings, console)
    }
}

impl Start {
    fn resolve(&self, lines: &[String], around: &Surroundings, console: &Console) -> Result<Vec<Server>, Failure> {
        let env = self.env.iter().map(|text| variable(text)).collect::<Result<Vec<_>, _>>()?;
        for (name, value) in &env {
            if matches!(value, EnvValue::Inherit) && around.var(name).is_none() {
                console.warn(format_args!("`{name}` is not set here, so the server does not get it"));
            }
        }
        let mut servers: Vec<Server> = Vec::new();
        for line in lines {
            let words = words(line)?;
            let name = name::unique(&name::derive(&words), servers.iter().map(|server| server.name.as_str()));
            let mut words = words.into_iter();
            let spec = StdioSpec {
                program: words.next().unwrap_or_default().into(),
                args: words.map(Into::into).collect(),
                cwd: self.cwd.clone(),
                env: env.iter().map(|(name, value)| (name.into(), value.clone())).collect(),
                inherit_env: self.inherit_env,
            };
            servers.push(Server { name, spec });
        }
        Ok(servers)
    }
}

/// Splits a command line. Quotes and backslashes work as in a shell; nothing else does.
fn words(line: &str) -> Result<Vec<String>, Failure> {
    let Some(words) = shlex::split(line) else {
        return Err(Failure::usage(format_args!("a quote is not closed in --stdio `{line}`")));
    };
    if words.is_empty() {
        return Err(Failure::usage("--stdio is empty").hint("give the command that starts the server"));
    }
    Ok(words)
}

/// Values are kept as secrets: many of them are.
fn variable(text: &str) -> Result<(String, EnvValue), Failure> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, EnvValue::Secret(Secret::new(value))),
        None => (text, EnvValue::Inherit),
    };
    if name.is_empty() {
        return Err(Failure::usage("--env needs a name, as in --env NAME or --env NAME=VALUE"));
    }
    Ok((name.to_owned(), value))
}
