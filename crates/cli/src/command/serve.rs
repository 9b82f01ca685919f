//! `wharf serve`: serves all configured servers to other MCP clients.

mod token;

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use tokio::time::timeout;
use wharf::PromptPolicy;
use wharf_gateway::{Gateway, GatewayOptions, NameScheme};
use wharf_serve::{ClientAccess, HttpForm, HttpLimits, HttpServer, parse_loopback_address, serve_lines};
use wharf_spec::{Environment, UntrustedText};

use wharf_terminal::failure::{CommandEnding, CommandResult, Failure};
use wharf_terminal::managed_host::LoadedConfig;
use wharf_terminal::one_shot_host::{ManagedHostOptions, start_managed};
use wharf_terminal::protocol_pipes;
use wharf_terminal::session::CommandSession;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without --http, one client is served on stdin and stdout. Over HTTP any number of clients share the servers. They \
present a token, which is in a file that only you can read; its path is printed at the start.

Calls that would need a question are refused, and the refusal names the rule that would allow them. Rules are in \
`permissions` of your configuration.

Examples:
  wharf serve
  wharf serve --server git --server files
  wharf serve --http 127.0.0.1:8089
  wharf tools --stdio \"wharf serve\"")]
pub struct ServeArgs {
    /// Serve Streamable HTTP on a loopback address such as 127.0.0.1:8089; port 0 picks a free port
    #[arg(long, value_name = "ADDR", value_parser = parse_loopback_address)]
    http: Option<SocketAddr>,
    /// Names of tools and prompts
    #[arg(long, value_enum, default_value_t = ServedNames::Server)]
    names: ServedNames,
    /// Serve only this server; repeatable
    #[arg(long = "server", value_name = "ID", help_heading = "Server")]
    servers: Vec<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ServedNames {
    /// `<server>__<name>`
    Server,
    /// The server's own names; the first server has a name that several use
    Plain,
}

pub async fn run(args: &ServeArgs, session: &CommandSession) -> CommandResult {
    for id in &args.servers {
        session.configuration.find(id)?;
    }
    let config = session.configuration.config()?;
    let known = LoadedConfig::resolve(session, config.clone(), &args.servers).await;
    for (id, why) in &known.failures {
        session.console.warn(format_args!("{id}: {}", UntrustedText::new(why.error.message.as_str())));
    }
    let options = ManagedHostOptions {
        asker: None,
        when_asked: PromptPolicy::Ask,
        sink: None,
        has_agent: true,
        allowed: None,
        environment: Some(environment_of_servers(&session.environment)?),
    };
    let host = start_managed(session, &known.entries, options).await?;
    let mut options = GatewayOptions::default();
    options.names = match args.names {
        ServedNames::Server => NameScheme::Server,
        ServedNames::Plain => NameScheme::Plain,
    };
    let gateway = Gateway::new(host.clone(), options);
    let served = match args.http {
        Some(address) => serve_http(session, gateway, address).await,
        None => serve_stdio(&gateway).await,
    };
    host.close().await;
    served.map(|()| CommandEnding::Fine)
}

/// Variable by which a server of `wharf serve` knows what started it.
const SERVED_VARIABLE: &str = "WHARF_SERVED";

/// Returns the environment of the servers.
///
/// # Errors
///
/// Fails if this command is itself one of them: it would start itself without end.
fn environment_of_servers(environment: &Environment) -> Result<Environment, Failure> {
    if environment.var(SERVED_VARIABLE).is_some() {
        return Err(Failure::usage("this `wharf serve` was started by another one, which would serve itself")
            .with_hint("remove or disable the server that runs `wharf serve` in your configuration (wharf list)"));
    }
    let mut environment = environment.clone();
    environment.env.push((SERVED_VARIABLE.into(), "1".into()));
    Ok(environment)
}

/// Maximum time for writing what is left at the end.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

async fn serve_stdio(gateway: &Gateway) -> Result<(), Failure> {
    let input = protocol_pipes::input().map_err(Failure::other)?;
    let (output, written) = protocol_pipes::output().map_err(Failure::other)?;
    let mut written = pin!(written);
    let served = tokio::select! {
        served = serve_lines(gateway, input, output) => served,
        written = &mut written => written,
    };
    // A client that does not read does not hold up the end.
    let served = match served {
        Ok(()) => timeout(FLUSH_TIMEOUT, written).await.unwrap_or(Ok(())),
        failed => failed,
    };
    match served {
        // The client closed its end first. Not an error.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        served => served.map_err(Failure::other),
    }
}

async fn serve_http(session: &CommandSession, gateway: Gateway, address: SocketAddr) -> Result<(), Failure> {
    let token = token::open(session)?;
    let access = ClientAccess::token(&token.text);
    let bound = HttpServer::bind(address, HttpForm::Streamable, Arc::new(gateway), access, HttpLimits::default()).await;
    let server = bound.map_err(|error| {
        Failure::other(format_args!("cannot listen on {address}: {error}"))
            .with_hint("choose another port, or port 0 for a free one")
    })?;
    let url = server.url().map_err(Failure::other)?;
    session.console.say(format_args!("listening on {url}"));
    session.console.say(format_args!(
        "clients send the header `Authorization: Bearer TOKEN`; the token is in {}",
        token.path.display()
    ));
    // A signal ends the command.
    server.run(std::future::pending()).await;
    Ok(())
}
