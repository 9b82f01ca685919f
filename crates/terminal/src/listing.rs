//! Shared by `tools`, `resources`, `templates` and `prompts`: lists all servers and prints the results.

mod prompts;
mod resources;
mod templates;
mod tools;

pub use tools::custom_name;

use serde::Serialize;
use wharf_client::{CallError, Connection, Listing, ServerFacts, WithheldEntry};
use wharf_spec::{ServerEntry, UntrustedText};
use wharf_wire::ServerCapabilities;

use crate::count_text::CountText;
use crate::deny_rules::check_listing_not_denied;
use crate::failure::{CommandEnding, CommandResult, ErrorDocument, Failure, render_failure};
use crate::servers::{ServerArgs, connect_each};
use crate::session::CommandSession;
use crate::style::{HEADING, QUIET, paint};
use crate::table::{LabelRow, render_table, wrap};

/// An item that can be printed as part of a list.
pub trait ListItem {
    /// Singular noun.
    const NOUN: &'static str;
    /// Returns the table row.
    fn row(&self) -> LabelRow;
    /// Returns the JSON item.
    fn item<'a>(&'a self, server: &'a str) -> impl Serialize + 'a;
}

/// An item that servers can be asked to list.
pub trait ServerList: ListItem + Sized + Send + 'static {
    /// Name of the tool that permission rules use for this list.
    const TOOL: &'static str;
    fn is_offered(offer: &ServerCapabilities) -> bool;
    fn list(connection: &Connection) -> impl Future<Output = Result<Listing<Self>, CallError>> + Send;
}

/// The items of one server.
pub struct ServerItems<T> {
    pub facts: ServerFacts,
    /// True if the server has the capability for this list.
    pub is_offered: bool,
    pub items: Vec<T>,
    pub withheld: Vec<WithheldEntry>,
    /// Ranks of the items over all servers, 0 being the best. Empty if the items are not ranked.
    pub ranks: Vec<usize>,
    /// Returns text to print below a row.
    pub below: fn(&T) -> String,
}

/// Lists every server and prints the items, in the order of the servers.
///
/// # Errors
///
/// Fails if the servers cannot be resolved, if rules deny all of them, or if the only server fails.
pub async fn list<T: ServerList>(session: &CommandSession, servers: &ServerArgs) -> CommandResult {
    let (servers, failures) = servers.resolve(session).await?;
    let servers = without_denied::<T>(session, servers)?;
    let mut results = connect_each(session, &servers, |connection| list_server::<T>(connection)).await?;
    results.extend(failures.into_iter().map(Err));
    print_lists(session, results)
}

/// Removes servers that a rule denies, with a warning. Fails if none is left.
fn without_denied<T: ServerList>(
    session: &CommandSession,
    mut servers: Vec<ServerEntry>,
) -> Result<Vec<ServerEntry>, Failure> {
    let mut denied = Vec::new();
    servers.retain(|server| match check_listing_not_denied(session, server, T::TOOL) {
        Ok(()) => true,
        Err(failure) => {
            denied.push(failure);
            false
        }
    });
    if servers.is_empty() && !denied.is_empty() {
        return Err(denied.swap_remove(0));
    }
    for failure in &denied {
        let server = failure.error.server.as_deref().unwrap_or_default();
        session.console.warn(format_args!("skipping {server}: {}", failure.error.message));
    }
    Ok(servers)
}

/// Prints the items of the servers.
///
/// # Errors
///
/// Fails if the only server failed, or if the output cannot be written.
pub fn print_lists<T: ListItem>(
    session: &CommandSession,
    mut results: Vec<Result<ServerItems<T>, Failure>>,
) -> CommandResult {
    if results.len() == 1
        && let Some(Err(failure)) = results.pop_if(|only| only.is_err())
    {
        return Err(failure);
    }
    for found in results.iter().flatten() {
        warn_of_withheld(session, found);
    }
    if session.console.mode.json {
        show_json(session, &results)?
    } else {
        show_text(session, &results)?
    }
    let worst = results.iter().find_map(|result| result.as_ref().err());
    Ok(worst.map_or(CommandEnding::Fine, |failure| CommandEnding::Reported(failure.kind)))
}

async fn list_server<T: ServerList>(connection: Connection) -> Result<ServerItems<T>, Failure> {
    let facts = connection.facts().clone();
    let is_offered = T::is_offered(&facts.capabilities);
    let (items, withheld) = if is_offered {
        let listing = T::list(&connection).await.map_err(|error| Failure::from_call_error(&connection, error))?;
        (listing.items, listing.withheld)
    } else {
        Default::default()
    };
    Ok(ServerItems { facts, is_offered, items, withheld, ranks: Vec::new(), below: |_| String::new() })
}

fn warn_of_withheld<T: ListItem>(session: &CommandSession, found: &ServerItems<T>) {
    for withheld in &found.withheld {
        let name = withheld.name.as_ref().map(|name| format!(" `{name}`")).unwrap_or_default();
        session.console.warn(format_args!(
            "{}: {}{name} at position {} is withheld: {}",
            found.facts.name,
            T::NOUN,
            withheld.position + 1,
            withheld.reason
        ));
    }
}

fn show_text<T: ListItem>(
    session: &CommandSession,
    results: &[Result<ServerItems<T>, Failure>],
) -> Result<(), Failure> {
    let mut first = true;
    for result in results {
        match result {
            Ok(found) => {
                let gap = if std::mem::take(&mut first) { "" } else { "\n" };
                session.console.print(format_args!("{gap}{}\n{}", heading(found), rows(session, found)))?;
            }
            Err(failure) => session.console.say(wrap(&render_failure(failure), session.console.stderr_width())),
        }
    }
    Ok(())
}

fn rows<T: ListItem>(session: &CommandSession, found: &ServerItems<T>) -> String {
    let rows: Vec<LabelRow> = found.items.iter().map(T::row).collect();
    let table = render_table(&rows, session.console.stdout_width());
    let lines = table.lines().zip(&found.items);
    lines.map(|(line, item)| format!("{line}\n{}", (found.below)(item))).collect()
}

/// Returns the heading: configured name, reported name, revision and number of items.
fn heading<T: ListItem>(found: &ServerItems<T>) -> String {
    let ServerItems { facts, items, .. } = found;
    let mut about = Vec::new();
    if let Some(info) = &facts.server_info {
        let called = format!("{} {}", info.name, info.version);
        about.push(UntrustedText::new(called.trim()).truncate(80).to_string());
    }
    about.push(facts.revision.to_string());
    about.push(match found.is_offered {
        false => format!("offers no {}s", T::NOUN),
        true => CountText(items.len(), T::NOUN).to_string(),
    });
    format!("{}  {}", paint(HEADING, &facts.name), paint(QUIET, about.join(" · ")))
}

/// JSON document of a list.
#[derive(Serialize)]
struct ItemListDocument<'a, I> {
    items: Vec<I>,
    withheld: Vec<WithheldItem<'a>>,
    /// Errors of the servers that could not be listed.
    errors: Vec<ErrorDocument<'a>>,
}

#[derive(Serialize)]
struct WithheldItem<'a> {
    server: &'a str,
    position: usize,
    name: Option<&'a str>,
    reason: &'a str,
}

fn show_json<T: ListItem>(
    session: &CommandSession,
    results: &[Result<ServerItems<T>, Failure>],
) -> Result<(), Failure> {
    let found = || results.iter().flatten().map(|found| (found.facts.name.as_str(), found));
    let mut ranked: Vec<(usize, &str, &T)> = found()
        .flat_map(|(server, found)| {
            let ranks = found.ranks.iter().copied().chain(std::iter::repeat(0));
            found.items.iter().zip(ranks).map(move |(item, rank)| (rank, server, item))
        })
        .collect();
    // A stable sort: unranked items stay in the order of the servers.
    ranked.sort_by_key(|(rank, ..)| *rank);
    let items = ranked.into_iter().map(|(_, server, item)| item.item(server)).collect();
    let withheld = found()
        .flat_map(|(server, found)| {
            found.withheld.iter().map(move |withheld| WithheldItem {
                server,
                position: withheld.position,
                name: withheld.name.as_deref(),
                reason: &withheld.reason,
            })
        })
        .collect();
    let errors: Vec<_> =
        results.iter().filter_map(|result| result.as_ref().err()).map(Failure::error_document).collect();
    session.console.print_document(errors.is_empty(), &ItemListDocument { items, withheld, errors })
}
