//! `wharf run`: runs the agent on one task.
//!
//! Questions are asked at the terminal. Without one, a call that would need a question is denied, and the model is told
//! which rule would allow it.

mod allowed_tools;
mod driver;
mod events;
mod run_totals;
mod text;

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use wharf::{AskPolicy, Host, HostError, ServerState};
use wharf_agent::{AgentLimits, TurnBlock};
use wharf_client::Connection;
use wharf_spec::UntrustedText;

use self::allowed_tools::{AllowArgs, AllowedTools};
use self::driver::{RunDriver, RunOptions};
use wharf_terminal::chat::ChatSession;
use wharf_terminal::chat::models::{ModelCatalog, SelectedModel};
use wharf_terminal::control::ControlSocket;
use wharf_terminal::failure::{CommandResult, Failure};
use wharf_terminal::managed_host::{LoadedConfig, ManagedHost};
use wharf_terminal::one_shot_host::{ManagedHostOptions, start_managed};
use wharf_terminal::question::TerminalAsker;
use wharf_terminal::session::{CommandSession, CommonArgs, parse_timeout};
use wharf_terminal::stdin::read_all;

/// Maximum time to wait for the first server before the first request to the model.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(10);

/// Run the agent on one task
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The answer is streamed to stdout, tool calls are listed on stderr. With --json every event is a document on a \
line of its own, with its kind in `event`. Calls that need permission are asked about at a terminal and denied without one. \
Allow them with --allow, with rules in `permissions` of your configuration, such as \
{\"tool\": \"mcp__git__*\", \"action\": \"allow\"}, or with `trust` in a server's entry.

Exit codes: 0 done, 1 stopped (a loop, too many requests, too long an answer) or failed, 2 no model, 3 model \
unreachable, 4 key rejected by the model, 7 timed out, 130 cancelled.

Examples:
  wharf run \"what changed in this repository today?\"
  git diff | wharf run --server git -
  wharf run --allow 'git.*' \"summarize the last ten commits\"
  wharf run --model ollama/gpt-oss:20b --json \"add 2, 3\" \\
      | jq -r 'select(.event == \"ended\") | .text'
  wharf run --resume \"and yesterday?\"")]
pub struct RunArgs {
    /// Task; `-` reads stdin
    #[arg(value_name = "TASK", required = true)]
    task: Vec<String>,
    /// Model to use: `provider/model`
    #[arg(long, value_name = "MODEL", help_heading = "Conversation")]
    model: Option<String>,
    /// Resume a conversation: the last one, or the named one
    #[arg(
        long,
        value_name = "CONVERSATION",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = LAST_CONVERSATION,
        help_heading = "Conversation"
    )]
    resume: Option<String>,
    /// Maximum number of requests to the model
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Conversation")]
    max_requests: Option<u32>,
    /// Allow calls that would need a prompt; rules that deny still apply
    #[arg(long, help_heading = "Conversation")]
    dangerously_skip_permissions: bool,
    #[command(flatten)]
    allow: AllowArgs,
    /// Use only this server; repeatable
    #[arg(long = "server", value_name = "ID", help_heading = "Server")]
    servers: Vec<String>,
    /// Time to wait for slow servers before the first request, e.g. 10 or 250ms; default: tools of slow servers are
    /// offered from a later request on
    #[arg(long, value_name = "TIME", value_parser = parse_timeout, help_heading = "Server")]
    settle: Option<Duration>,
    #[command(flatten)]
    pub common: CommonArgs,
}

/// Refers to the last conversation.
const LAST_CONVERSATION: &str = "last";

pub async fn run(args: &RunArgs, session: &CommandSession) -> CommandResult {
    for id in &args.servers {
        session.configuration.find(id)?;
    }
    let task = read_task(args).await?;
    let config = session.configuration.config()?;
    let chosen = with_max_requests(
        ModelCatalog::new(session, config).open_model(args.model.as_deref()).await?,
        args.max_requests,
    );
    let known = LoadedConfig::resolve(session, config.clone(), &args.servers).await;
    warn_of_absent(session, &known);
    let allowed = args.allow.parse(session)?;
    let host = start_managed(session, &known.entries, host_options(args, session, &allowed)).await?;
    let managed_host = ManagedHost::new(session, host, known, &args.servers);
    let mut chat = ChatSession::new(session, &managed_host.host);
    chat.select_model(chosen);
    let had = match &args.resume {
        Some(id) => resume(session, &mut chat, id).await?,
        None => Vec::new(),
    };
    let control = ControlSocket::open(session);
    let _waking = wait_for_servers(session, &managed_host.host, &had, args.settle).await;
    for warning in allowed.unmatched_warnings(&managed_host.host) {
        session.console.warn(UntrustedText::new(warning));
    }
    RunDriver::start(&managed_host, chat, RunOptions { control, allowed }, vec![TurnBlock::Text(task)])?
        .run_to_end()
        .await
}

/// Reads the task. Several words are joined.
async fn read_task(args: &RunArgs) -> Result<String, Failure> {
    let text = match args.task.as_slice() {
        [dash] if dash == "-" => {
            read_all().await.map_err(|error| Failure::usage(format_args!("cannot read stdin: {error}")))?
        }
        words => words.join(" "),
    };
    match text.trim() {
        "" => Err(Failure::usage("empty task").with_hint("wharf run \"TASK\"")),
        task => Ok(task.to_owned()),
    }
}

fn with_max_requests(chosen: SelectedModel, max_requests: Option<u32>) -> SelectedModel {
    let requests = max_requests.unwrap_or(chosen.limits.requests);
    SelectedModel { limits: AgentLimits { requests, ..chosen.limits }, ..chosen }
}

/// Returns the host options. Without a terminal there is no asker.
fn host_options(args: &RunArgs, session: &CommandSession, allowed: &Arc<AllowedTools>) -> ManagedHostOptions {
    let when_asked = if args.dangerously_skip_permissions { AskPolicy::Allow } else { AskPolicy::Ask };
    let (asker, sink) = TerminalAsker::open(session).unzip();
    ManagedHostOptions { asker, when_asked, sink, has_agent: true, allowed: Some(allowed.filter()), environment: None }
}

/// Warns about configured servers that are not available.
fn warn_of_absent(session: &CommandSession, known: &LoadedConfig) {
    for (id, why) in &known.failures {
        session.console.warn(format_args!("{id}: {}", UntrustedText::new(why.error.message.as_str())));
    }
}

/// Resumes a conversation and returns the servers it used.
async fn resume(session: &CommandSession, chat: &mut ChatSession<'_>, id: &str) -> Result<Vec<String>, Failure> {
    let resumed = chat.resume(Some(id.to_owned()).filter(|id| id != LAST_CONVERSATION)).await?;
    for problem in &resumed.problems {
        session.console.warn(UntrustedText::new(problem.as_str()));
    }
    Ok(resumed.servers)
}

/// Waits for the servers that start in the usual time, or for all of them up to `settle`. Starts the lazy servers that
/// the conversation used, whose tools are known. The returned tasks wait for those.
async fn wait_for_servers(
    session: &CommandSession,
    host: &Host,
    had: &[String],
    settle: Option<Duration>,
) -> JoinSet<Result<Connection, HostError>> {
    for server in had {
        if let Err(error) = host.status_of(server) {
            session.console.warn(format_args!("the conversation used a server that is not available: {error}"));
        }
    }
    let mut waking: JoinSet<Result<Connection, HostError>> =
        had.iter().map(|server| start_server(host, server)).collect();
    match settle {
        None => {
            let _ = tokio::time::timeout(STARTUP_TIMEOUT, host.wait_for_startup()).await;
        }
        Some(time) => {
            let all = async {
                while waking.join_next().await.is_some() {}
                host.wait_until_settled().await;
            };
            let _ = tokio::time::timeout(time, all).await;
        }
    }
    warn_of_unready(session, host);
    waking
}

/// Warns about servers whose tools are missing in the first request.
fn warn_of_unready(session: &CommandSession, host: &Host) {
    for status in host.status().into_iter().filter(|status| status.connected.is_none()) {
        match status.last_error {
            Some(trouble) => {
                session.console.warn(format_args!("{}: {}", status.name, UntrustedText::new(trouble.to_string())));
            }
            None if status.state == ServerState::Connecting && status.offers.is_none() => session.console.warn(
                format_args!("{}: still starting, its tools follow later (--settle TIME waits for it)", status.name),
            ),
            None => {}
        }
    }
}

fn start_server(host: &Host, server: &str) -> impl Future<Output = Result<Connection, HostError>> + use<> {
    let (host, server) = (host.clone(), server.to_owned());
    async move { host.wait_until_ready(&server).await }
}
