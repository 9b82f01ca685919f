//! `wharf run`: runs the agent on one task, without a terminal.
//!
//! There are no prompts: a call that would need one is denied, and the model is told which rule would allow it.

mod driver;
mod events;
mod run_totals;
mod text;

use std::time::Duration;

use tokio::task::JoinSet;
use wharf::{Host, HostError, PromptPolicy};
use wharf_agent::{AgentLimits, TurnBlock};
use wharf_client::Connection;
use wharf_spec::UntrustedText;

use self::driver::RunDriver;
use wharf_terminal::chat::ChatSession;
use wharf_terminal::chat::models::{ModelCatalog, SelectedModel};
use wharf_terminal::control::ControlSocket;
use wharf_terminal::failure::{CommandResult, Failure};
use wharf_terminal::managed_host::{LoadedConfig, ManagedHost};
use wharf_terminal::one_shot_host::{ManagedHostOptions, start_managed};
use wharf_terminal::session::{CommandSession, CommonArgs, parse_timeout};
use wharf_terminal::stdin::read_all;

/// Maximum time to wait for servers before the first request to the model.
const DEFAULT_SETTLE_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The answer is streamed to stdout, tool calls are listed on stderr. With --json every event is a document on a \
line of its own; docs/agent.md lists them. Calls that would need a prompt are denied. Allow them with rules or \
`trust`, see docs/permissions.md.

Exit codes: 0 done, 1 stopped (a loop, too many requests, too long an answer) or failed, 2 no model, 3 model \
unreachable, 4 key rejected by the model, 7 timed out, 130 cancelled.

Examples:
  wharf run \"what changed in this repository today?\"
  git diff | wharf run --server git -
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
    /// Use only this server; repeatable
    #[arg(long = "server", value_name = "ID", help_heading = "Server")]
    servers: Vec<String>,
    /// Time to wait for servers before the first request, e.g. 10 or 250ms; default: 10 seconds
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
    let host = start_managed(session, &known.entries, host_options(args)).await?;
    let fleet = ManagedHost::new(session, host, known, &args.servers);
    let mut chat = ChatSession::new(session, &fleet.host);
    chat.select_model(chosen);
    let had = match &args.resume {
        Some(id) => resume(session, &mut chat, id).await?,
        None => Vec::new(),
    };
    let control = ControlSocket::open(session);
    wait_for_servers(session, &fleet.host, &had, args.settle.unwrap_or(DEFAULT_SETTLE_TIMEOUT)).await;
    RunDriver::start(&fleet, chat, control, vec![TurnBlock::Text(task)])?.run_to_end().await
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

/// Returns host options without an asker.
fn host_options(args: &RunArgs) -> ManagedHostOptions {
    let when_asked = if args.dangerously_skip_permissions { PromptPolicy::Allow } else { PromptPolicy::Ask };
    ManagedHostOptions { asker: None, when_asked, sink: None }
}

/// Warns about configured servers that are not available.
fn warn_of_absent(session: &CommandSession, known: &LoadedConfig) {
    for (id, why) in &known.failures {
        session.console.warn(format_args!("{id}: {}", UntrustedText::new(why.error.message.as_str())));
    }
}

/// Resumes a conversation and returns the servers it used.
async fn resume(session: &CommandSession, chat: &mut ChatSession<'_>, id: &str) -> Result<Vec<String>, Failure> {
    let going = chat.resume(Some(id.to_owned()).filter(|id| id != LAST_CONVERSATION)).await?;
    for problem in &going.problems {
        session.console.warn(UntrustedText::new(problem.as_str()));
    }
    Ok(going.servers)
}

/// Waits for the servers up to a time limit; tools that appear later are offered from then on. Starts the lazy servers
/// that the conversation used, all in parallel.
async fn wait_for_servers(session: &CommandSession, host: &Host, had: &[String], time: Duration) {
    let mut waking: JoinSet<Result<Connection, HostError>> =
        had.iter().map(|server| start_server(host, server)).collect();
    let all = async {
        while let Some(woken) = waking.join_next().await {
            if let Ok(Err(error @ HostError::UnknownServer { .. })) = woken {
                session.console.warn(format_args!("the conversation used a server that is not available: {error}"));
            }
        }
        host.wait_until_settled().await;
    };
    let _ = tokio::time::timeout(time, all).await;
    for status in host.status() {
        if let Some(trouble) = status.last_error.filter(|_| status.connected.is_none()) {
            session.console.warn(format_args!("{}: {}", status.name, UntrustedText::new(trouble.to_string())));
        }
    }
}

fn start_server(host: &Host, server: &str) -> impl Future<Output = Result<Connection, HostError>> + use<> {
    let (host, server) = (host.clone(), server.to_owned());
    async move { host.wait_until_ready(&server).await }
}
