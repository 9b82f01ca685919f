//! `wharf tools`.

mod withheld;

use std::sync::Arc;

use tokio::time::Instant;
use wharf::catalog::{CatalogTool, ListName, Section};
use wharf_client::{ClientServices, Connection, WithheldEntry};
use wharf_spec::{ServerEntry, UntrustedText};

use wharf_terminal::call_arguments::InputSchema;
use wharf_terminal::failure::{CommandResult, Failure};
use wharf_terminal::listing::{ServerItems, print_lists};
use wharf_terminal::one_shot_host::{OneShotHost, OneShotOptions, StartMode};
use wharf_terminal::progress::{starting_text, with_startup_status};
use wharf_terminal::search;
use wharf_terminal::servers::ServerArgs;
use wharf_terminal::session::{CommandSession, CommonArgs};

/// List the tools of servers
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Lists the usable tools, without filtered ones. Withheld tools cause a warning: --withheld lists them with the \
reasons, and `wharf release` releases one after a review.

Examples:
  wharf tools
  wharf tools git --schema
  wharf tools --search \"create issue\"
  wharf tools --withheld
  wharf tools --stdio \"wharf demo-server\"
  wharf tools --json | jq '.items[].name'")]
pub struct ToolsArgs {
    #[command(flatten)]
    servers: ServerArgs,
    /// Filter tools by keywords, best match first
    #[arg(long, value_name = "WORDS")]
    search: Option<String>,
    /// Show the arguments of each tool
    #[arg(long)]
    schema: bool,
    /// List the withheld tools instead, with the reasons
    #[arg(long, conflicts_with_all = ["search", "schema"])]
    withheld: bool,
    #[command(flatten)]
    pub common: CommonArgs,
}

pub async fn run(args: &ToolsArgs, session: &CommandSession) -> CommandResult {
    let (entries, failures) = args.servers.resolve(session).await?;
    let hosted =
        OneShotHost::start(session, entries, OneShotOptions::for_call(ClientServices::default(), StartMode::AtOnce))
            .await?;
    if args.withheld {
        let mut results = list_all(session, &hosted, withheld::withheld_tools).await;
        results.extend(failures.into_iter().map(Err));
        return print_lists(session, results);
    }
    let mut results = list_all(session, &hosted, listing_from_section).await;
    results.extend(failures.into_iter().map(Err));
    if let Some(words) = &args.search {
        results = filter_by_keywords(results, words);
    }
    if args.schema {
        results.iter_mut().flatten().for_each(|found| found.below = argument_lines);
    }
    if results.is_empty() && !session.console.mode.json {
        session.console.say("no tool matches these keywords");
    }
    let has_withheld = results.iter().flatten().any(|found| !found.withheld.is_empty());
    let ending = print_lists(session, results)?;
    if has_withheld && !session.console.mode.json {
        session.console.say("`wharf tools --withheld` shows withheld tools and how to release them");
    }
    Ok(ending)
}

/// Selects the items of one server.
type SectionItems<T> = fn(&Connection, Option<&Section>) -> ServerItems<T>;

/// Tools of one server, or its failure.
type ToolListing = Result<ServerItems<Arc<CatalogTool>>, Failure>;

/// Lists the tools of every server, in the order of the servers. Waits for each without a time limit of its own.
async fn list_all<T>(
    session: &CommandSession,
    hosted: &OneShotHost<'_>,
    items: SectionItems<T>,
) -> Vec<Result<ServerItems<T>, Failure>> {
    let waiting = std::cell::RefCell::new(Vec::new());
    let status_text = || starting_text(&waiting.borrow());
    let work = async {
        let mut results = Vec::new();
        for (number, entry) in hosted.entries().iter().enumerate() {
            // All servers start in parallel. The next one may be ready already.
            *waiting.borrow_mut() = hosted.entries()[number..].iter().map(|entry| entry.name.to_string()).collect();
            results.push(list_tools(hosted, entry, items).await);
        }
        results
    };
    with_startup_status(session, Instant::now(), status_text, work).await
}

async fn list_tools<T>(
    hosted: &OneShotHost<'_>,
    entry: &ServerEntry,
    items: SectionItems<T>,
) -> Result<ServerItems<T>, Failure> {
    let connection = hosted.host.wait_until_ready(entry.name.as_str()).await;
    let connection = connection.map_err(|error| hosted.failure(&entry.name, error))?;
    let catalog = hosted.host.catalog();
    let section = catalog.section(entry.name.as_str());
    if section.is_none_or(|section| section.failures.iter().any(|(list, _)| *list == ListName::Tools)) {
        // The catalog holds only the error's text: list again to get the error itself.
        connection.list_tools().await.map_err(|error| Failure::from_call_error(&connection, error))?;
    }
    Ok(items(&connection, section.map(|section| &**section)))
}

fn listing_from_section(connection: &Connection, section: Option<&Section>) -> ServerItems<Arc<CatalogTool>> {
    let quarantined =
        section.into_iter().flat_map(|section| section.tools.iter().zip(0..)).filter_map(|(tool, position)| {
            let name = Some(UntrustedText::new(&*tool.id.tool).truncate(100).to_string());
            let reason = format!("quarantined: {}", tool.quarantine()?);
            Some(WithheldEntry { position, name, reason })
        });
    let of_list = section.into_iter().flat_map(|section| &section.withheld);
    let of_list = of_list.filter(|(list, _)| *list == ListName::Tools).map(|(_, withheld)| withheld.clone());
    ServerItems {
        facts: connection.facts().clone(),
        is_offered: connection.facts().capabilities.tools,
        items: section.into_iter().flat_map(Section::visible_tools).cloned().collect(),
        withheld: of_list.chain(quarantined).collect(),
        ranks: Vec::new(),
        below: |_| String::new(),
    }
}

/// Keeps the tools that match the keywords, best match first, within each server and across servers. Drops servers
/// without a match. Failed servers come last.
fn filter_by_keywords(results: Vec<ToolListing>, words: &str) -> Vec<ToolListing> {
    let all: Vec<Arc<CatalogTool>> = results.iter().flatten().flat_map(|found| found.items.iter().cloned()).collect();
    let mut places = search::rank_tools(&all, words).into_iter();
    let mut sifted: Vec<(Option<usize>, ToolListing)> = results
        .into_iter()
        .map(|result| match result {
            Ok(found) => rank_tools(found, places.by_ref()),
            Err(failure) => (Some(usize::MAX), Err(failure)),
        })
        .filter(|(best, _)| best.is_some())
        .collect();
    sifted.sort_by_key(|(best, _)| *best);
    sifted.into_iter().map(|(_, result)| result).collect()
}

/// Sorts the tools of one server by rank and returns the best rank. Drops tools without a rank.
fn rank_tools(
    mut found: ServerItems<Arc<CatalogTool>>,
    places: impl Iterator<Item = Option<usize>>,
) -> (Option<usize>, ToolListing) {
    let placed = found.items.drain(..).zip(places).filter_map(|(tool, place)| Some((place?, tool)));
    let mut placed: Vec<(usize, Arc<CatalogTool>)> = placed.collect();
    placed.sort_by_key(|(place, _)| *place);
    let best = placed.first().map(|(place, _)| *place);
    (found.ranks, found.items) = placed.into_iter().unzip();
    (best, Ok(found))
}

/// Formats the arguments of a tool, one per line.
fn argument_lines(tool: &Arc<CatalogTool>) -> String {
    let schema = tool.definition.input_schema.as_ref().map(InputSchema::decode);
    schema.map(|schema| schema.lines().iter().map(|line| format!("      {line}\n")).collect()).unwrap_or_default()
}
