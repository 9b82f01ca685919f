//! `wharf subscribe`: prints the changes of a server as they happen.

use std::time::SystemTime;

use serde::Serialize;
use wharf_client::{CallError, ClientServices, Connection, Event};
use wharf_spec::UntrustedText;
use wharf_wire::Interest;

use wharf_terminal::clock::time_of_day;
use wharf_terminal::deny_rules::{check_listing_not_denied, check_not_denied};
use wharf_terminal::failure::{CommandEnding, CommandResult, Failure};
use wharf_terminal::servers::{ServerArg, connect_one};
use wharf_terminal::session::{CommandSession, CommonArgs};
use wharf_terminal::style::{NAME, QUIET, paint};

/// Maximum number of resources watched by default.
const MAX_DEFAULT_RESOURCES: usize = 100;

/// Watch a server and print its changes
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without --tools, --prompts, --resources or --uri, watches everything the server supports. Each change is a line \
on stdout, with the time in UTC; with --json it is a document of its own.

Examples:
  wharf subscribe harbour
  wharf subscribe --stdio \"wharf demo-server --tide 1000\"
  wharf subscribe --uri harbour://tide --count 3 \\
      --stdio \"wharf demo-server --tide 1000\"
  wharf subscribe harbour --tools --json | jq -r .event")]
pub struct SubscribeArgs {
    /// Server: a configured name, a URL, or FILE:NAME
    #[arg(value_name = "SERVER", conflicts_with_all = ["stdio", "url"])]
    name: Option<String>,
    /// Watch the list of tools
    #[arg(long)]
    tools: bool,
    /// Watch the list of prompts
    #[arg(long)]
    prompts: bool,
    /// Watch the list of resources
    #[arg(long)]
    resources: bool,
    /// Watch this resource; repeatable
    #[arg(long = "uri", value_name = "URI")]
    uris: Vec<String>,
    /// Exit after this many changes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    #[command(flatten)]
    server: ServerArg,
    #[command(flatten)]
    pub common: CommonArgs,
}

/// JSON document of one change.
#[derive(Serialize)]
struct EventDocument<'a> {
    schema: u32,
    server: &'a str,
    event: &'static str,
    uri: Option<&'a str>,
}

pub async fn run(args: &SubscribeArgs, session: &CommandSession) -> CommandResult {
    let server = args.server.resolve(session, args.name.as_deref()).await?;
    check_listing_not_denied(session, &server, "SubscribeMcpResource")?;
    let connection = connect_one(session, &server, &ClientServices::default()).await?;
    let entry = &server;
    let server = server.name.as_str();
    let failed = |error| watch_failure(&connection, error);
    let wanted = args.interest(session, &connection).await?;
    for uri in &wanted.uris {
        check_not_denied(session, entry, "SubscribeMcpResource", &serde_json::json!({ "uri": uri }))?;
    }
    let mut subscription = connection.subscribe(wanted.clone()).await.map_err(failed)?;
    report_subscription(session, server, &wanted, subscription.confirmed_interest())?;
    let mut left = args.count;
    while left != Some(0) {
        let event = subscription.next().await.map_err(failed)?;
        if print_event(session, server, &event)? {
            left = left.map(|left| left - 1);
        }
    }
    Ok(CommandEnding::Fine)
}

/// Creates the failure of a watch. Its hints speak of the watch, not of a call.
fn watch_failure(connection: &Connection, error: CallError) -> Failure {
    let hint = match &error {
        CallError::RetryableDisconnect(_) | CallError::OutcomeUnknown(_) => {
            Some("run the command again to watch further; changes until then are not reported")
        }
        CallError::TimedOut { .. } => Some("--timeout SECONDS waits longer"),
        _ => None,
    };
    let mut failure = Failure::from_call_error(connection, error);
    if let Some(hint) = hint {
        failure.hints = vec![hint.to_owned()];
    }
    failure
}

impl SubscribeArgs {
    /// Returns the requested subscriptions, or by default everything the server supports.
    async fn interest(&self, session: &CommandSession, connection: &Connection) -> Result<Interest, Failure> {
        let Self { tools, prompts, resources, uris, .. } = self;
        let named = Interest {
            tools: *tools,
            prompts: *prompts,
            resources: *resources,
            uris: uris.clone(),
            ..Interest::default()
        };
        if !named.is_empty() {
            return Ok(named);
        }
        let offered = &connection.facts().capabilities;
        Ok(Interest {
            tools: offered.tools_list_changed,
            prompts: offered.prompts_list_changed,
            resources: offered.resources_list_changed,
            uris: if offered.resources_subscribe { listed_uris(session, connection).await? } else { Vec::new() },
            ..Interest::default()
        })
    }
}

/// Returns the URIs of the listed resources, up to the limit.
async fn listed_uris(session: &CommandSession, connection: &Connection) -> Result<Vec<String>, Failure> {
    let listing = connection.list_resources().await.map_err(|error| watch_failure(connection, error))?;
    if listing.items.len() > MAX_DEFAULT_RESOURCES {
        let (server, all) = (&connection.facts().name, listing.items.len());
        session.console.warn(format_args!(
            "{server} lists {all} resources; watching the first {MAX_DEFAULT_RESOURCES}. Use --uri for others"
        ));
    }
    Ok(listing.items.into_iter().take(MAX_DEFAULT_RESOURCES).map(|resource| resource.uri).collect())
}

/// Prints the confirmed and the rejected subscriptions. Fails if none was confirmed, because no event would ever
/// arrive.
fn report_subscription(
    session: &CommandSession,
    server: &str,
    wanted: &Interest,
    honoured: &Interest,
) -> Result<(), Failure> {
    if honoured.is_empty() {
        let failure = Failure::unsupported(format_args!(
            "the server does not support subscriptions to {}",
            interest_text(wanted)
        ));
        return Err(failure
            .about_server(server)
            .with_hint("omit --uri and similar options to watch everything the server supports"));
    }
    session.console.say(format_args!("{}: watching {}", paint(NAME, server), interest_text(honoured)));
    let refused = wanted.without(honoured);
    if !refused.is_empty() {
        session.console.warn(format_args!("{server} does not support subscriptions to {}", interest_text(&refused)));
    }
    Ok(())
}

/// Formats subscriptions as `tools, prompts, harbour://tide`.
fn interest_text(interest: &Interest) -> String {
    let lists = [(interest.tools, "tools"), (interest.prompts, "prompts"), (interest.resources, "resources")];
    let lists = lists.into_iter().filter(|(wanted, _)| *wanted).map(|(_, name)| name.to_owned());
    let uris = interest.uris.iter().map(|uri| UntrustedText::new(uri.as_str()).truncate(200).to_string());
    lists.chain(uris).collect::<Vec<_>>().join(", ")
}

/// Prints a change immediately. Returns whether the event was one to print.
fn print_event(session: &CommandSession, server: &str, event: &Event) -> Result<bool, Failure> {
    let (event, uri) = match event {
        Event::Tools => ("tools", None),
        Event::Prompts => ("prompts", None),
        Event::Resources => ("resources", None),
        Event::Resource(uri) => ("resource", Some(uri.as_str())),
        Event::Resumed => ("resumed", None),
        _ => return Ok(false),
    };
    if session.console.mode.json {
        session.console.print_json(&EventDocument { schema: 1, server, event, uri })?;
        return Ok(true);
    }
    let what = match (event, uri) {
        (_, Some(uri)) => format!("{} changed", UntrustedText::new(uri).truncate(1_000)),
        ("resumed", None) => "subscription resumed; changes may have been missed".to_owned(),
        (list, None) => format!("{list} changed"),
    };
    let time = paint(QUIET, time_of_day(SystemTime::now()));
    session.console.print(format_args!("{time} {} · {what}\n", paint(NAME, server)))?;
    Ok(true)
}
