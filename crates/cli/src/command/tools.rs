//! `wharf tools`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::time::Instant;
use wharf::catalog::{CatalogTool, ListName, Section};
use wharf_client::{Connection, Services, Withheld};
use wharf_spec::{ServerEntry, Untrusted};
use wharf_wire::Raw;

use super::list::{Found, Listed, show};
use crate::call_arguments::Schema;
use crate::failure::{Failure, Outcome};
use crate::hosting::{Begin, Hosted};
use crate::search::{Query, Searched};
use crate::servers::{ManyServers, while_starting};
use crate::session::{Common, Session};
use crate::table::Row;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Shows what may be used: not what a server's filter leaves out, nor what is withheld or quarantined, of which it warns.

Examples:
  wharf tools
  wharf tools git --schema
  wharf tools --search \"create issue\"
  wharf tools --stdio \"wharf demo-server\"
  wharf tools --json --stdio \"wharf demo-server\" | jq '.items[].name'")]
pub struct Args {
    #[command(flatten)]
    servers: ManyServers,
    /// Only tools that are like these words, the most like them first
    #[arg(long, value_name = "WORDS")]
    search: Option<String>,
    /// Show the arguments of each tool as well
    #[arg(long)]
    schema: bool,
    #[command(flatten)]
    pub common: Common,
}

pub async fn run(args: &Args, session: &Session) -> Outcome {
    let (entries, failures) = args.servers.resolve(session).await?;
    let hosted = Hosted::start(session, entries, Services::default(), Begin::AtOnce).await?;
    let mut results = gather(session, &hosted).await;
    results.extend(failures.into_iter().map(Err));
    for found in results.iter_mut().flatten() {
        if let Some(text) = &args.search {
            sift(found, &Query::new(text));
        }
        if args.schema {
            found.below = arguments_of;
        }
    }
    if args.search.is_some() {
        order_by_best(&mut results, args);
    }
    if results.is_empty() && !session.console.manner.json {
        session.console.say("no tool is like these words");
    }
    show(session, results)
}

/// What every server offers, in the order of the servers; each is waited for as long as it takes.
async fn gather(session: &Session, hosted: &Hosted<'_>) -> Vec<Result<Found<Arc<CatalogTool>>, Failure>> {
    let waiting = std::cell::RefCell::new(Vec::new());
    let told = || format!("{} · starting", waiting.borrow().join(", "));
    let work = async {
        let mut results = Vec::new();
        for (number, entry) in hosted.entries().iter().enumerate() {
            // They all start at once; whoever comes next in the row may long be ready.
            *waiting.borrow_mut() = hosted.entries()[number..].iter().map(|entry| entry.name.to_string()).collect();
            results.push(offered(hosted, entry).await);
        }
        results
    };
    while_starting(session, Instant::now(), told, work).await
}

async fn offered(hosted: &Hosted<'_>, entry: &ServerEntry) -> Result<Found<Arc<CatalogTool>>, Failure> {
    let connection = hosted.host.ready(entry.name.as_str()).await;
    let connection = connection.map_err(|error| hosted.failure(&entry.name, error))?;
    let catalog = hosted.host.catalog();
    let section = catalog.section(entry.name.as_str());
    if section.is_none_or(|section| section.failures.iter().any(|(list, _)| *list == ListName::Tools)) {
        // Asked once more for the error itself, of which the catalog keeps the words only.
        connection.list_tools().await.map_err(|error| Failure::calling(&connection, error))?;
    }
    Ok(found(&connection, section.map(|section| &**section)))
}

fn found(connection: &Connection, section: Option<&Section>) -> Found<Arc<CatalogTool>> {
    let quarantined =
        section.into_iter().flat_map(|section| section.tools.iter().zip(0..)).filter_map(|(tool, position)| {
            let name = Some(Untrusted::new(&*tool.id.tool).shortened(100).to_string());
            let reason = format!("it is quarantined: {}", tool.quarantine()?);
            Some(Withheld { position, name, reason })
        });
    let of_list = section.into_iter().flat_map(|section| &section.withheld);
    let of_list = of_list.filter(|(list, _)| *list == ListName::Tools).map(|(_, withheld)| withheld.clone());
    Found {
        facts: connection.facts().clone(),
        is_offered: connection.facts().capabilities.tools,
        items: section.into_iter().flat_map(Section::offered).cloned().collect(),
        withheld: of_list.chain(quarantined).collect(),
        below: |_| String::new(),
    }
}

/// Keeps what is like the words, the most like them first.
fn sift(found: &mut Found<Arc<CatalogTool>>, query: &Query) {
    let mut ranked: Vec<_> = found.items.drain(..).filter_map(|tool| Some((rank(query, &tool)?, tool))).collect();
    // Stable: what is equally like them stays in its order.
    ranked.sort_by(|(one, _), (other, _)| other.cmp(one));
    found.items = ranked.into_iter().map(|(_, tool)| tool).collect();
}

fn rank(query: &Query, tool: &CatalogTool) -> Option<crate::search::Rank> {
    let schema = tool.definition.input_schema.as_ref().map(Schema::read);
    query.rank(&Searched {
        server: tool.id.server.as_str(),
        name: &tool.id.tool,
        texts: [tool.definition.description.as_deref(), tool.definition.title.as_deref()],
        arguments: schema.iter().flat_map(Schema::names).collect(),
    })
}

/// Servers whose best tool is more like the words go first; those that have none are left out.
fn order_by_best(results: &mut Vec<Result<Found<Arc<CatalogTool>>, Failure>>, args: &Args) {
    let query = Query::new(args.search.as_deref().unwrap_or_default());
    results.retain(|result| result.as_ref().map_or(true, |found| !found.items.is_empty()));
    let best = |result: &Result<Found<Arc<CatalogTool>>, Failure>| {
        result.as_ref().ok().and_then(|found| rank(&query, found.items.first()?))
    };
    results.sort_by_cached_key(|result| std::cmp::Reverse(best(result)));
}

/// The arguments of a tool, a line for each.
fn arguments_of(tool: &Arc<CatalogTool>) -> String {
    let schema = tool.definition.input_schema.as_ref().map(Schema::read);
    schema.map(|schema| schema.lines().iter().map(|line| format!("      {line}\n")).collect()).unwrap_or_default()
}

/// A tool as programs see it; schemas and annotations byte for byte.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Item<'a> {
    server: &'a str,
    name: &'a str,
    alias: &'a str,
    title: Option<&'a str>,
    description: Option<&'a str>,
    input_schema: Option<&'a Raw>,
    output_schema: Option<&'a Raw>,
    annotations: Option<&'a RawValue>,
}

/// What the view of a tool decodes but a document wants as it came.
#[derive(Deserialize, Default)]
#[serde(default)]
struct AsItCame<'a> {
    #[serde(borrow)]
    annotations: Option<&'a RawValue>,
}

impl Listed for Arc<CatalogTool> {
    const NOUNS: (&'static str, &'static str) = ("tool", "tools");

    fn row(&self) -> Row {
        let tool = &self.definition;
        let title = (tool.display_name() != tool.name).then(|| tool.display_name());
        Row::new(&tool.name, tool.description.as_deref().or(title))
    }

    fn item<'a>(&'a self, server: &'a str) -> impl Serialize + 'a {
        let tool = &self.definition;
        let AsItCame { annotations } = serde_json::from_str(tool.raw.get()).unwrap_or_default();
        Item {
            server,
            name: &tool.name,
            alias: self.alias(),
            title: tool.title.as_deref(),
            description: tool.description.as_deref(),
            input_schema: tool.input_schema.as_ref(),
            output_schema: tool.output_schema.as_ref(),
            annotations,
        }
    }
}
