//! The tool somebody means, among those of one server.

use std::sync::Arc;

use wharf::catalog::{CatalogTool, ListName};
use wharf_client::Connection;
use wharf_spec::ServerName;

use wharf_terminal::failure::Failure;
use wharf_terminal::hosting::Hosted;
use wharf_terminal::nearest::suggestion;

/// A tool by its own name, or by any name the catalog has for it, as far as that is known now.
pub fn known(hosted: &Hosted<'_>, server: &ServerName, wanted: &str) -> Option<Arc<CatalogTool>> {
    let catalog = hosted.host.catalog();
    let section = catalog.section(server.as_str())?;
    let by_name = || catalog.resolve(wanted).ok().filter(|tool| tool.id.server == *server);
    section.tool(wanted).or_else(by_name).map(Arc::clone)
}

/// The same of a server that is ready; says why where there is none.
pub async fn find(
    hosted: &Hosted<'_>,
    server: &ServerName,
    connection: &Connection,
    wanted: &str,
) -> Result<Arc<CatalogTool>, Failure> {
    if let Some(tool) = known(hosted, server, wanted) {
        return Ok(tool);
    }
    let catalog = hosted.host.catalog();
    let section = catalog.section(server.as_str());
    if section.is_none_or(|section| section.failures.iter().any(|(list, _)| *list == ListName::Tools)) {
        // Asked once more for the error itself, of which the catalog keeps the words only.
        connection.list_tools().await.map_err(|error| Failure::calling(connection, error))?;
    }
    let names = section.into_iter().flat_map(|section| section.tools.iter().map(|tool| &*tool.id.tool));
    let failure = Failure::usage(format_args!("there is no tool `{wanted}`")).about(server.as_str());
    let failure = failure.hint(suggestion(wanted, names.collect::<Vec<_>>().into_iter()));
    Err(match section.and_then(|section| section.why_not(wanted)) {
        Some(why) => failure.hint(why),
        None => failure,
    })
}
