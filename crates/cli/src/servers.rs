//! Servers named on the command line: how to start them, what to call them, and connecting to all of them at once.

mod connect;
mod name;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use url::Url;
use wharf_spec::{EnvValue, HttpForm, HttpSpec, Secret, ServerSpec, StdioSpec, Surroundings};

use crate::console::Console;
use crate::failure::Failure;

pub use connect::{connect_one, each};

/// A server of this command.
#[derive(Debug, Clone)]
pub struct Server {
    pub name: String,
    pub spec: ServerSpec,
}

/// The one server a command talks to.
#[derive(Debug, Args)]
pub struct OneServer {
    /// The command that starts the server, split like a shell line but never run by a shell
    #[arg(long, value_name = "COMMAND", required_unless_present = "url", help_heading = "Server")]
    stdio: Option<String>,
    /// The address of the server: http:// or https://
    #[arg(long, value_name = "URL", conflicts_with = "stdio", help_heading = "Server")]
    url: Option<String>,
    #[command(flatten)]
    start: Start,
    #[command(flatten)]
    dial: Dial,
}

/// The servers a command talks to.
#[derive(Debug, Args)]
pub struct ManyServers {
    /// The command that starts a server, split like a shell line but never run by a shell; may be repeated
    #[arg(long, value_name = "COMMAND", required_unless_present = "url", help_heading = "Server")]
    stdio: Vec<String>,
    /// The address of a server: http:// or https://; may be repeated
    #[arg(long, value_name = "URL", help_heading = "Server")]
    url: Vec<String>,
    #[command(flatten)]
    start: Start,
    #[command(flatten)]
    dial: Dial,
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

/// How servers are dialled.
#[derive(Debug, Args)]
struct Dial {
    /// A header for the server at --url: NAME=VALUE; may be repeated
    #[arg(long, value_name = "NAME=VALUE", requires = "url", help_heading = "Server at a URL")]
    header: Vec<String>,
    /// Which form of the protocol the server at --url speaks
    #[arg(long, value_enum, default_value_t = Transport::Auto, requires = "url", help_heading = "Server at a URL")]
    transport: Transport,
    /// The proxy to reach the server at --url through; none is taken from the environment
    #[arg(long, value_name = "URL", requires = "url", help_heading = "Server at a URL")]
    proxy: Option<String>,
    /// A file of certificates to trust beside the system's own, in PEM; may be repeated
    #[arg(long, value_name = "FILE", requires = "url", help_heading = "Server at a URL")]
    ca: Vec<PathBuf>,
    /// A file with your own certificate and its key, in PEM
    #[arg(long, value_name = "FILE", requires = "url", help_heading = "Server at a URL")]
    client_cert: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Transport {
    /// Whichever it turns out to speak
    Auto,
    /// Streamable HTTP
    Http,
    /// HTTP+SSE, of 2024-11-05
    Sse,
}

impl OneServer {
    pub fn resolve(&self, surroundings: &Surroundings, console: &Console) -> Result<Server, Failure> {
        let mut servers = Vec::new();
        self.start.resolve(self.stdio.as_slice(), surroundings, console, &mut servers)?;
        self.dial.resolve(self.url.as_slice(), &mut servers)?;
        servers.pop().ok_or_else(|| Failure::usage("no server was given"))
    }
}

impl ManyServers {
    pub fn resolve(&self, surroundings: &Surroundings, console: &Console) -> Result<Vec<Server>, Failure> {
        let mut servers = Vec::new();
        self.start.resolve(&self.stdio, surroundings, console, &mut servers)?;
        self.dial.resolve(&self.url, &mut servers)?;
        Ok(servers)
    }
}

fn add(servers: &mut Vec<Server>, name: &str, spec: ServerSpec) {
    let name = name::unique(name, servers.iter().map(|server| server.name.as_str()));
    servers.push(Server { name, spec });
}

impl Start {
    fn resolve(
        &self,
        lines: &[String],
        around: &Surroundings,
        console: &Console,
        servers: &mut Vec<Server>,
    ) -> Result<(), Failure> {
        let env = self.env.iter().map(|text| variable(text)).collect::<Result<Vec<_>, _>>()?;
        for (name, value) in &env {
            if matches!(value, EnvValue::Inherit) && around.var(name).is_none() {
                console.warn(format_args!("`{name}` is not set here, so the server does not get it"));
            }
        }
        for line in lines {
            let words = words(line)?;
            let name = name::derive(&words);
            let mut words = words.into_iter();
            let spec = StdioSpec {
                program: words.next().unwrap_or_default().into(),
                args: words.map(Into::into).collect(),
                cwd: self.cwd.clone(),
                env: env.iter().map(|(name, value)| (name.into(), value.clone())).collect(),
                inherit_env: self.inherit_env,
                hidden: Vec::new(),
            };
            add(servers, &name, ServerSpec::Stdio(spec));
        }
        Ok(())
    }
}

impl Dial {
    fn resolve(&self, urls: &[String], servers: &mut Vec<Server>) -> Result<(), Failure> {
        let headers = self.header.iter().map(|text| header(text)).collect::<Result<Vec<_>, _>>()?;
        if urls.len() > 1 && !headers.is_empty() {
            // What is meant for one of them is a secret from the others.
            return Err(
                Failure::usage("--header goes with one --url only").hint("ask each server with a command of its own")
            );
        }
        for text in urls {
            let mut spec = HttpSpec::new(address(text)?);
            spec.headers.clone_from(&headers);
            spec.form = match self.transport {
                Transport::Auto => HttpForm::Automatic,
                Transport::Http => HttpForm::Streamable,
                Transport::Sse => HttpForm::Sse,
            };
            spec.proxy = self.proxy.as_deref().map(Secret::new);
            spec.extra_ca.clone_from(&self.ca);
            spec.client_certificate.clone_from(&self.client_cert);
            add(servers, &name::of_url(&spec.url), ServerSpec::Http(spec));
        }
        Ok(())
    }
}

/// Reads an address. What it says is not repeated before it is known where in it a secret may stand.
fn address(text: &str) -> Result<Url, Failure> {
    let bad = |what: &str| Failure::usage(format_args!("--url {what}")).hint("write it like https://example.org/mcp");
    let url = Url::parse(text).map_err(|_| bad("is no URL"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(bad(&format!("`{}:` does not begin with http:// or https://", url.scheme())));
    }
    Ok(url)
}

/// Written like a variable or like a line of HTTP.
fn header(text: &str) -> Result<(String, Secret), Failure> {
    let Some((name, value)) = text.split_once(['=', ':']) else {
        return Err(Failure::usage("--header needs a name and a value, as in --header NAME=VALUE"));
    };
    Ok((name.trim().to_owned(), Secret::new(value.trim())))
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
