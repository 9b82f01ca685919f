//! `wharf serve`: serves all configured servers to other MCP clients.

mod attach;
mod client_entry;
mod client_keys;
mod exposure;
mod gateway_process;
mod http;
mod log_limit;
pub mod open_questions;
mod project;
mod referenced_variables;
mod relay;
mod relay_lines;
mod status;
mod takeover;
mod token;
mod transcript;
mod view;
mod view_cache;

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use tokio::time::timeout;
use wharf_gateway::Gateway;
use wharf_serve::{parse_address, serve_lines};
use wharf_spec::Environment;

pub use client_entry::{GATEWAY_ID, own_entry};
use exposure::ExposureArgs;
use http::HttpOptions;
use project::ProjectTable;
pub use status::request as gateway_request;
pub use token::random_hex;
pub use view::find_profile;
use wharf_terminal::failure::{CommandEnding, CommandResult, Failure};
use wharf_terminal::gateway_socket::{AttachRequest, ViewRequest};
use wharf_terminal::protocol_pipes;
use wharf_terminal::session::{CommandSession, CommonArgs, parse_timeout};

/// Serve all configured servers to other MCP clients
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without --http, one client is served on stdin and stdout. All such clients of one user share a gateway in the \
background, which has one set of servers for each project. It starts with the first client and ends after the last \
one. With --config or --only-config this process serves its client alone.

Over HTTP, clients present a token, which is in a file that only you can read, or a key of `wharf key`. The path of \
the file is printed at the start. An address that other machines can reach needs --public-url, and either --tls-cert \
and --tls-key or --behind-proxy.

A call that needs permission is a question to its client, if the client shows forms. Otherwise it is refused, and the \
refusal names the rule that would allow it. Rules are in `permissions` of your configuration. Questions of servers \
reach the client of the call, whatever revisions both use.

Examples:
  wharf serve
  wharf serve --server git --server files
  wharf serve --profile readonly
  wharf serve --http 127.0.0.1:8089
  wharf serve --print-config cursor > .cursor/mcp.json
  wharf serve --status
  wharf serve --stop
  wharf serve --upgrade
  wharf tools --stdio \"wharf serve\"")]
pub struct ServeArgs {
    /// Serve Streamable HTTP on an address such as 127.0.0.1:8089; port 0 picks a free port. Other machines are served with
    /// TLS only
    #[arg(long, value_name = "ADDR", value_parser = parse_address)]
    http: Option<SocketAddr>,
    #[command(flatten)]
    exposure: ExposureArgs,
    /// With --http: time for calls in progress after SIGTERM; a second signal ends at once [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = parse_timeout, requires = "http")]
    grace: Option<Duration>,
    /// Serve what a profile of `profiles` in your configuration allows
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Names of tools and prompts [default: server, or those of the profile]
    #[arg(long, value_enum)]
    names: Option<ServedNames>,
    /// Serve only this server; repeatable
    #[arg(long = "server", value_name = "ID", help_heading = "Server")]
    servers: Vec<String>,
    /// Keep the gateway in the background running after the last client
    #[arg(long, conflicts_with_all = ["http", "alone"])]
    stay: bool,
    /// Serve this client alone, with servers of its own
    #[arg(long, conflicts_with = "http")]
    alone: bool,
    /// Print the entry by which a program uses the gateway: claude-code, cursor, codex or another of `wharf export`
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["http", "stay", "alone", "status", "stop"])]
    print_config: Option<String>,
    /// Show the gateway that runs for you: its process, projects and clients
    #[arg(long, conflicts_with_all = ["http", "servers", "stay", "alone", "stop"])]
    status: bool,
    /// End the gateway that runs for you
    #[arg(long, conflicts_with_all = ["http", "servers", "stay", "alone"])]
    stop: bool,
    /// Replace the gateway in the background that runs for you by one of this version; its clients notice nothing
    #[arg(long, conflicts_with_all = ["http", "servers", "stay", "alone", "status", "stop", "print_config"])]
    upgrade: bool,
    /// With --status: write one JSON document instead of text
    #[arg(long, requires = "status", help_heading = "Output")]
    json: bool,
    /// Run the gateway in the background
    #[arg(long, hide = true, value_enum, exclusive = true)]
    background: Option<BackgroundStep>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ServedNames {
    /// `<server>__<name>`
    Server,
    /// The server's own names; the first server has a name that several use
    Plain,
}

/// A step of the start of a gateway in the background.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum BackgroundStep {
    /// Starts the gateway and ends.
    Launch,
    /// Is the gateway.
    Run,
}

impl BackgroundStep {
    fn as_str(self) -> &'static str {
        match self {
            Self::Launch => "launch",
            Self::Run => "run",
        }
    }
}

pub async fn run(args: &ServeArgs, session: &CommandSession) -> CommandResult {
    environment_of_servers(&session.environment)?;
    let served = match args.background {
        Some(BackgroundStep::Launch) => attach::launch_gateway().map_err(Failure::other),
        Some(BackgroundStep::Run) => gateway_process::run_background(session).await,
        // Problems of the configuration are this client's to see, also if the gateway reads it.
        None if let Err(failure) = session.configuration.config() => Err(failure),
        None if args.status => status::show(session).await,
        None if args.stop => status::stop(session).await,
        None if args.upgrade => attach::upgrade(session).await,
        None => serve(args, session).await,
    };
    served.map(|()| CommandEnding::Fine)
}

async fn serve(args: &ServeArgs, session: &CommandSession) -> Result<(), Failure> {
    for id in &args.servers {
        session.configuration.find(id)?;
    }
    let view = args.view();
    if let Some(profile) = &view.profile {
        find_profile(&session.configuration.config()?.settings, profile)?;
    }
    if let Some(client) = &args.print_config {
        return client_entry::print(session, client, &view);
    }
    if let Some(address) = args.http {
        let grace = args.grace.unwrap_or(gateway_process::DEFAULT_GRACE);
        let exposure = args.exposure.clone();
        let public_url = exposure.public_url().map(|url| url.origin.clone());
        let opened = wharf_threads::run_blocking(move || exposure.open(address)).await;
        let exposure = opened.map_err(Failure::other)??;
        return http::serve(session, &HttpOptions { address, exposure, public_url, view, grace }).await;
    }
    let places = &session.configuration.places;
    let attached = if args.alone {
        None
    } else if !places.flags.is_empty() || places.only_flags {
        session.console.say("serving this client alone, because of --config or --only-config");
        None
    } else {
        let mut request = AttachRequest::new(&session.environment, view.clone());
        request.stay = args.stay;
        let attached = attach::attach(session, request.clone()).await;
        let explain = |reason: &String| session.console.say(format_args!("serving this client alone: {reason}"));
        attached.inspect_err(explain).ok().map(|client| (request, client))
    };
    match attached {
        Some((request, client)) => relay::relay(session, request, client).await,
        None => serve_alone(session, &view).await,
    }
}

impl ServeArgs {
    pub fn common(&self) -> CommonArgs {
        CommonArgs { json: self.json, ..CommonArgs::default() }
    }

    /// Returns how clients see the servers.
    fn view(&self) -> ViewRequest {
        let plain_names = self.names.map(|names| matches!(names, ServedNames::Plain));
        ViewRequest { servers: self.servers.clone(), plain_names, profile: self.profile.clone() }
    }
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

/// Serves one client on stdin and stdout with servers of its own.
async fn serve_alone(session: &CommandSession, view: &ViewRequest) -> Result<(), Failure> {
    let projects = Arc::<ProjectTable>::default();
    let (_lease, gateway, warnings) = projects.join(session.duplicate()?, &view.clone().into()).await?;
    warnings.iter().for_each(|warning| session.console.warn(warning));
    let served = serve_pipe(&gateway).await;
    projects.close().await;
    served
}

async fn serve_pipe(gateway: &Gateway) -> Result<(), Failure> {
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
