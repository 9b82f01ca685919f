//! Finds a tool of one server by name.

use std::sync::Arc;

use wharf::catalog::{CatalogTool, ListName};
use wharf_client::Connection;
use wharf_spec::ServerName;

use wharf_terminal::failure::Failure;
use wharf_terminal::one_shot_host::OneShotHost;
use wharf_terminal::suggestions::suggestion;

/// Looks up a tool in the current catalog, by its own name or by an alias.
pub fn find_in_catalog(hosted: &OneShotHost<'_>, server: &ServerName, wanted: &str) -> Option<Arc<CatalogTool>> {
    let catalog = hosted.host.catalog();
    let section = catalog.section(server.as_str())?;
    let by_name = || catalog.resolve(wanted).ok().filter(|tool| tool.id.server == *server);
    section.tool(wanted).or_else(by_name).map(Arc::clone)
}

/// Looks up a tool of a server that is ready.
///
/// # Errors
///
/// Fails if the tools cannot be listed, or if no tool has that name.
pub async fn find_tool(
    hosted: &OneShotHost<'_>,
    server: &ServerName,
    connection: &Connection,
    wanted: &str,
) -> Result<Arc<CatalogTool>, Failure> {
    if let Some(tool) = find_in_catalog(hosted, server, wanted) {
        return Ok(tool);
    }
    let catalog = hosted.host.catalog();
    let section = catalog.section(server.as_str());
    if section.is_none_or(|section| section.failures.iter().any(|(list, _)| *list == ListName::Tools)) {
        // The catalog holds only the error's text: list again to get the error itself.
        connection.list_tools().await.map_err(|error| Failure::from_call_error(connection, error))?;
    }
    let names = section.into_iter().flat_map(|section| section.tools.iter().map(|tool| &*tool.id.tool));
    let failure = Failure::usage(format_args!("no tool named `{wanted}`")).about_server(server.as_str());
    let failure = failure.with_hint(suggestion(wanted, names.collect::<Vec<_>>().into_iter()));
    Err(match section.and_then(|section| section.explain_missing(wanted)) {
        Some(why) => failure.with_hint(why),
        None => failure,
    })
}
