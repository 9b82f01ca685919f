//! Finds the server of a tool that is given without one.

use wharf::ServerState;
use wharf::catalog::ToolFilter;
use wharf_spec::ServerEntry;

use super::super::cached_catalog::CachedCatalog;
use wharf_terminal::failure::Failure;
use wharf_terminal::one_shot_host::{OneShotHost, OneShotOptions};
use wharf_terminal::servers::usable_servers;
use wharf_terminal::session::CommandSession;
use wharf_terminal::suggestions::{quote_names, suggestion};

/// Starts a host for a tool without a server. The cached catalogs decide if every server has one; otherwise all servers
/// start, and their lists decide.
///
/// # Errors
///
/// Fails if no server or several servers have the tool.
pub async fn start_owner<'a>(
    session: &'a CommandSession,
    tool: &str,
    with: OneShotOptions,
) -> Result<(OneShotHost<'a>, ServerEntry), Failure> {
    let (entries, _) = usable_servers(session).await?;
    let catalogs: Vec<Option<CachedCatalog>> = entries.iter().map(|entry| read_catalog(session, entry)).collect();
    if catalogs.iter().all(Option::is_some) {
        let has_tool = |(entry, catalog): &(&ServerEntry, &CachedCatalog)| {
            catalog.tool(tool).is_some() && ToolFilter::from_settings(&entry.settings).admits(tool)
        };
        let owners = entries.iter().zip(catalogs.iter().flatten()).filter(has_tool);
        let owners: Vec<&ServerEntry> = owners.map(|(entry, _)| entry).collect();
        let known = catalogs.iter().flatten().flat_map(CachedCatalog::tool_names);
        let owner = single_owner(tool, &owners, || known.map(str::to_owned).collect())?;
        return Ok((OneShotHost::start(session, vec![owner.clone()], with).await?, owner));
    }
    let hosted = OneShotHost::start(session, entries, with).await?;
    // All servers start in parallel. A slow one matters only if no other has the tool.
    hosted.host.wait_for_startup().await;
    if listed_owners(&hosted, tool).is_empty() {
        for entry in hosted.entries() {
            // The failure of another server does not matter here.
            let _ = hosted.ready(&entry.name).await;
        }
    }
    let catalog = hosted.host.catalog();
    let known = || catalog.sections().iter().flat_map(|section| &section.tools).map(|tool| tool.id.tool.to_string());
    let owner = single_owner(tool, &listed_owners(&hosted, tool), || known().collect())?;
    let is_starting = |entry: &&ServerEntry| {
        hosted.host.status_of(entry.name.as_str()).is_ok_and(|status| status.state == ServerState::Connecting)
    };
    for entry in hosted.entries().iter().filter(is_starting) {
        let name = &entry.name;
        session
            .console
            .warn(format_args!("{name} is not ready yet, so its tools were not considered (wharf test {name})"));
    }
    Ok((hosted, owner))
}

/// Returns the servers whose lists have the tool.
fn listed_owners<'a>(hosted: &'a OneShotHost<'_>, tool: &str) -> Vec<&'a ServerEntry> {
    let catalog = hosted.host.catalog();
    let has_tool =
        |entry: &&ServerEntry| catalog.section(entry.name.as_str()).is_some_and(|section| section.tool(tool).is_some());
    hosted.entries().iter().filter(has_tool).collect()
}

fn read_catalog(session: &CommandSession, entry: &ServerEntry) -> Option<CachedCatalog> {
    CachedCatalog::read_current(session.configuration.state.as_deref()?, entry)
}

fn single_owner(
    tool: &str,
    owners: &[&ServerEntry],
    known: impl FnOnce() -> Vec<String>,
) -> Result<ServerEntry, Failure> {
    match owners {
        [owner] => Ok((*owner).clone()),
        [] => {
            let known = known();
            Err(Failure::usage(format_args!("no server and no tool named `{tool}`"))
                .with_hint(suggestion(tool, known.iter().map(String::as_str)))
                .with_hint("`wharf list` shows the servers, `wharf tools` their tools"))
        }
        several => {
            let names: Vec<String> = several.iter().map(|entry| format!("{}.{tool}", entry.name)).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            Err(Failure::usage(format_args!("several servers have a tool named `{tool}`"))
                .with_hint(format_args!("call one of {}", quote_names(&names))))
        }
    }
}
