//! Server arguments of commands: configured servers by name, others by command or URL; and connecting to them in
//! parallel.

mod connect;
mod name;
mod resolve;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use url::Url;
use wharf_spec::{EnvValue, HttpSpec, HttpTransport, Secret, ServerEntry, ServerName, ServerSpec, StdioSpec};

use crate::failure::Failure;
use crate::session::CommandSession;

pub use connect::{connect_each, connect_one, start_connections};
pub use resolve::{
    configured_names, is_address, is_file_entry, login_key_of_word, printable_word, resolve_configured, usable_servers,
};

/// The server of a command, if not a configured one.
#[derive(Debug, Args)]
pub struct ServerArg {
    /// Start this command as a server; split into words as in a shell, but not run by a shell
    #[arg(long, value_name = "COMMAND", conflicts_with = "url", help_heading = "Server")]
    stdio: Option<String>,
    #[command(flatten)]
    at: UrlArg,
    #[command(flatten)]
    start: StartArgs,
}

/// The HTTP server of a command, if not a configured one.
#[derive(Debug, Args)]
pub struct UrlArg {
    /// Connect to the server at this URL: http:// or https://
    #[arg(long, value_name = "URL", help_heading = "Server")]
    url: Option<String>,
    #[command(flatten)]
    dial: DialArgs,
}

/// The servers of a command.
#[derive(Debug, Args)]
pub struct ServerArgs {
    /// Servers: configured names, URLs, or FILE:NAME; default: all configured
    #[arg(value_name = "SERVER")]
    names: Vec<String>,
    /// Start this command as a server; split into words as in a shell, but not run by a shell; repeatable
    #[arg(long, value_name = "COMMAND", help_heading = "Server")]
    stdio: Vec<String>,
    /// Connect to the server at this URL: http:// or https://; repeatable
    #[arg(long, value_name = "URL", help_heading = "Server")]
    url: Vec<String>,
    #[command(flatten)]
    start: StartArgs,
    #[command(flatten)]
    dial: DialArgs,
}

/// Options for servers that are started.
#[derive(Debug, Args)]
struct StartArgs {
    /// Environment variable of the server: NAME=VALUE, or NAME to pass on your own; repeatable
    #[arg(long, value_name = "NAME[=VALUE]", help_heading = "Server")]
    env: Vec<String>,
    /// Working directory of the server
    #[arg(long, value_name = "DIR", help_heading = "Server")]
    cwd: Option<PathBuf>,
    /// Pass on the whole environment instead of a minimal one
    #[arg(long, help_heading = "Server")]
    inherit_env: bool,
}

/// Options for servers at a URL.
#[derive(Debug, Default, Args)]
struct DialArgs {
    /// Header for the server at --url: NAME=VALUE; repeatable
    #[arg(long, value_name = "NAME=VALUE", help_heading = "Server at a URL")]
    header: Vec<String>,
    /// Transport of the server at --url
    #[arg(long, value_enum, default_value_t = TransportArg::Auto, help_heading = "Server at a URL")]
    transport: TransportArg,
    /// Proxy for the server at --url; proxy variables of the environment are ignored
    #[arg(long, value_name = "URL", help_heading = "Server at a URL")]
    proxy: Option<String>,
    /// PEM file of additional certificates to trust; repeatable
    #[arg(long, value_name = "FILE", help_heading = "Server at a URL")]
    ca: Vec<PathBuf>,
    /// PEM file with your client certificate and its key
    #[arg(long, value_name = "FILE", help_heading = "Server at a URL")]
    client_cert: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum TransportArg {
    /// Detect the transport
    #[default]
    Auto,
    /// Streamable HTTP
    Http,
    /// HTTP+SSE of revision 2024-11-05
    Sse,
}

impl UrlArg {
    /// Returns the server of this name or URL, or the one that `--url` gives.
    ///
    /// # Errors
    ///
    /// Fails if there is no such server, or if options do not apply.
    pub async fn resolve(&self, session: &CommandSession, word: Option<&str>) -> Result<ServerEntry, Failure> {
        self.resolve_any(session, word).await?.ok_or_else(|| {
            Failure::usage("no server given")
                .with_hint("name a server or give its --url; `wharf list` shows the configured ones")
        })
    }

    async fn resolve_any(&self, session: &CommandSession, word: Option<&str>) -> Result<Option<ServerEntry>, Failure> {
        let mut servers = Vec::new();
        match word {
            Some(word) => servers.push(resolve::resolve_word(session, word, &self.dial).await?),
            None => self.dial.resolve(self.url.as_slice(), session, &mut servers)?,
        }
        let address = word.filter(|word| is_address(word));
        self.dial.check(self.url.iter().len() + address.iter().len())?;
        Ok(servers.pop())
    }
}

impl ServerArg {
    /// Reports whether `--stdio` or `--url` gives the server.
    pub fn is_given(&self) -> bool {
        self.stdio.is_some() || self.at.url.is_some()
    }

    /// Returns the server that the options give or the word names.
    ///
    /// # Errors
    ///
    /// Fails if there is no such server, or if options do not apply to it.
    pub async fn resolve(&self, session: &CommandSession, word: Option<&str>) -> Result<ServerEntry, Failure> {
        let mut started = Vec::new();
        if word.is_none() {
            self.start.resolve(self.stdio.as_slice(), session, &mut started)?;
        }
        self.start.check(self.stdio.as_slice())?;
        let found = self.at.resolve_any(session, word).await?;
        found.or_else(|| started.pop()).ok_or_else(|| resolve::no_server_failure(session))
    }

    /// Takes the server's name off the words of a command, unless the options give the server.
    pub fn split_server<'a>(&self, words: &'a [String]) -> (Option<&'a str>, &'a [String]) {
        match words {
            [name, rest @ ..] if !self.is_given() => (Some(name), rest),
            words => (None, words),
        }
    }
}

impl ServerArgs {
    /// Returns the servers, and the failures of others that were requested.
    ///
    /// # Errors
    ///
    /// Fails if no server is left, or if options do not apply.
    pub async fn resolve(&self, session: &CommandSession) -> Result<(Vec<ServerEntry>, Vec<Failure>), Failure> {
        let (mut servers, mut failures) = (Vec::new(), Vec::new());
        let (addresses, names): (Vec<String>, Vec<String>) =
            self.names.iter().cloned().partition(|word| is_address(word));
        for word in &names {
            match resolve::resolve_word(session, word, &self.dial).await {
                Ok(entry) => servers.push(entry),
                Err(failure) => failures.push(failure),
            }
        }
        self.start.resolve(&self.stdio, session, &mut servers)?;
        self.dial.resolve(&self.url, session, &mut servers)?;
        self.dial.resolve(&addresses, session, &mut servers)?;
        if servers.is_empty() && failures.is_empty() {
            (servers, failures) = usable_servers(session).await?;
        }
        self.start.check(&self.stdio)?;
        self.dial.check(self.url.len() + addresses.len())?;
        if servers.is_empty() && failures.is_empty() {
            Err(resolve::no_server_failure(session))
        } else {
            Ok((servers, failures))
        }
    }
}

fn push_server(servers: &mut Vec<ServerEntry>, name: &str, spec: ServerSpec) -> Result<(), Failure> {
    let name = name::unique_name(name, servers.iter().map(|server| server.name.as_str()));
    servers.push(ServerEntry::new(ServerName::new(&name).map_err(Failure::other)?, spec));
    Ok(())
}

impl StartArgs {
    fn resolve(
        &self,
        lines: &[String],
        session: &CommandSession,
        servers: &mut Vec<ServerEntry>,
    ) -> Result<(), Failure> {
        let env = self.env.iter().map(|text| parse_variable(text)).collect::<Result<Vec<_>, _>>()?;
        for (name, value) in &env {
            if matches!(value, EnvValue::Inherit) && session.environment.var(name).is_none() {
                session.console.warn(format_args!("`{name}` is not set and is not passed to the server"));
            }
        }
        for line in lines {
            let words = split_command(line)?;
            let name = name::name_from_command(&words);
            let mut words = words.into_iter();
            let spec = StdioSpec {
                program: words.next().unwrap_or_default().into(),
                args: words.map(Into::into).collect(),
                cwd: self.cwd.clone(),
                env: env.iter().map(|(name, value)| (name.into(), value.clone())).collect(),
                inherit_env: self.inherit_env,
                ..StdioSpec::default()
            };
            push_server(servers, &name, ServerSpec::Stdio(spec))?;
        }
        Ok(())
    }

    /// Rejects start options without `--stdio`.
    fn check(&self, lines: &[String]) -> Result<(), Failure> {
        let has_options = !self.env.is_empty() || self.cwd.is_some() || self.inherit_env;
        if has_options && lines.is_empty() {
            return Err(
                Failure::usage("--env, --cwd and --inherit-env apply only to --stdio").with_hint("add --stdio COMMAND")
            );
        }
        Ok(())
    }
}

impl DialArgs {
    /// Rejects connection options without a URL, and headers with several URLs.
    fn check(&self, addresses: usize) -> Result<(), Failure> {
        let has_options = !self.header.is_empty()
            || self.transport != TransportArg::Auto
            || self.proxy.is_some()
            || !self.ca.is_empty()
            || self.client_cert.is_some();
        if has_options && addresses == 0 {
            let options = "--header, --transport, --proxy, --ca and --client-cert";
            return Err(Failure::usage(format_args!("{options} apply only to a server at a URL"))
                .with_hint("use --url, or give a URL as the server"));
        }
        if addresses > 1 && !self.header.is_empty() {
            // A header for one server may be a secret that others must not see.
            return Err(Failure::usage("--header requires a single --url").with_hint("run one command per server"));
        }
        Ok(())
    }

    fn resolve(
        &self,
        urls: &[String],
        session: &CommandSession,
        servers: &mut Vec<ServerEntry>,
    ) -> Result<(), Failure> {
        let headers = self.header.iter().map(|text| parse_header(text)).collect::<Result<Vec<_>, _>>()?;
        for text in urls {
            let mut spec = HttpSpec::new(parse_url(text)?);
            spec.headers.clone_from(&headers);
            spec.form = match self.transport {
                TransportArg::Auto => HttpTransport::Automatic,
                TransportArg::Http => HttpTransport::Streamable,
                TransportArg::Sse => HttpTransport::Sse,
            };
            spec.proxy = self.proxy.as_deref().map(Secret::new);
            spec.extra_ca.clone_from(&self.ca);
            spec.client_certificate.clone_from(&self.client_cert);
            spec.login_key = Some(spec.url.to_string());
            spec.account.clone_from(&session.configuration.account);
            push_server(servers, &name::name_from_url(&spec.url), ServerSpec::Http(spec))?;
        }
        Ok(())
    }
}

/// Parses a URL. The failure does not repeat the text, which may contain a secret.
fn parse_url(text: &str) -> Result<Url, Failure> {
    let bad =
        |what: &str| Failure::usage(format_args!("--url {what}")).with_hint("write it like https://example.org/mcp");
    let url = Url::parse(text).map_err(|_| bad("is not a URL"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(bad(&format!("`{}:` does not begin with http:// or https://", url.scheme())));
    }
    Ok(url)
}

/// Parses `NAME=VALUE` or `NAME: VALUE`.
fn parse_header(text: &str) -> Result<(String, Secret), Failure> {
    let Some((name, value)) = text.split_once(['=', ':']) else {
        return Err(Failure::usage("--header needs a name and a value, as in --header NAME=VALUE"));
    };
    Ok((name.trim().to_owned(), Secret::new(value.trim())))
}

/// Splits a command line. Supports quotes and backslashes as in a shell, and nothing else.
fn split_command(line: &str) -> Result<Vec<String>, Failure> {
    let Some(words) = shlex::split(line) else {
        return Err(Failure::usage("unclosed quote in --stdio"));
    };
    if words.is_empty() {
        return Err(Failure::usage("--stdio is empty").with_hint("give the command that starts the server"));
    }
    Ok(words)
}

/// Parses a variable. Values are treated as secrets, since many are.
fn parse_variable(text: &str) -> Result<(String, EnvValue), Failure> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, EnvValue::Secret(Secret::new(value))),
        None => (text, EnvValue::Inherit),
    };
    if name.is_empty() {
        return Err(Failure::usage("--env needs a name, as in --env NAME or --env NAME=VALUE"));
    }
    Ok((name.to_owned(), value))
}
