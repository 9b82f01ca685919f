//! `/prompts` and `/resources`, and shared list rendering over the catalog.

use std::sync::Arc;

use wharf::catalog::{ListFreshness, ListName, Section};
use wharf_spec::ServerName;
use wharf_wire::{PromptDefinition, Resource};

use super::grammar::ServerFilterArgs;
use super::mcp::resolve_in_host;
use super::{CommandContext, ReplAction};
use wharf_terminal::age::AgeText;
use wharf_terminal::count_text::CountText;
use wharf_terminal::failure::Failure;
use wharf_terminal::listing::ListItem;
use wharf_terminal::style::{HEADING, QUIET, WARNING, paint};
use wharf_terminal::table::{LabelRow, render_table, wrap};

pub fn prompts(args: &ServerFilterArgs, context: &CommandContext<'_>) -> Result<ReplAction, Failure> {
    let shown = permitted_sections(args.server.as_deref(), context)?;
    let text = render_lists(&shown, ListName::Prompts, |section| section.prompts.iter().collect(), context.width());
    print_list::<PromptDefinition>(text, "/prompt SERVER PROMPT sends one to the agent", context)
}

pub fn resources(args: &ServerFilterArgs, context: &CommandContext<'_>) -> Result<ReplAction, Failure> {
    let shown = permitted_sections(args.server.as_deref(), context)?;
    let text = render_lists(&shown, ListName::Resources, |section| section.resources.iter().collect(), context.width());
    print_list::<Resource>(text, "@server:uri in a message attaches one", context)
}

/// Prints a list, or a notice if it is empty.
pub fn print_list<T: ListItem>(text: String, hint: &str, context: &CommandContext<'_>) -> Result<ReplAction, Failure> {
    if text.is_empty() {
        return context.say(format_args!("no connected server offers {}s", T::NOUN));
    }
    context.print(format_args!("{text}{}\n", paint(QUIET, wrap(hint, context.width()))))
}

/// Returns the sections of servers that the rules do not deny.
///
/// # Errors
///
/// Fails if the named server is denied.
fn permitted_sections(server: Option<&str>, context: &CommandContext<'_>) -> Result<Vec<Arc<Section>>, Failure> {
    let mut shown = sections(server, context)?;
    if server.is_some() {
        shown.iter().try_for_each(|section| refuse_denied(&section.server, context))?;
    }
    shown.retain(|section| context.managed_host.host.denial_of(section.server.as_str()).is_none());
    Ok(shown)
}

/// Fails if the rules deny the whole server.
pub fn refuse_denied(server: &ServerName, context: &CommandContext<'_>) -> Result<(), Failure> {
    match context.managed_host.host.denial_of(server.as_str()) {
        Some(refusal) => Err(Failure::from_refusal(&refusal).about_server(server.as_str())),
        None => Ok(()),
    }
}

/// Returns the catalog sections of all servers, or of the named one.
///
/// # Errors
///
/// Fails if the server does not exist or has no section.
pub fn sections(server: Option<&str>, context: &CommandContext<'_>) -> Result<Vec<Arc<Section>>, Failure> {
    let catalog = context.managed_host.host.catalog();
    let Some(server) = server else { return Ok(catalog.sections().to_vec()) };
    let name = resolve_in_host(server, context)?;
    match catalog.section(name.as_str()) {
        Some(section) => Ok(vec![Arc::clone(section)]),
        None => Err(no_section_failure(&name, context)),
    }
}

fn no_section_failure(name: &ServerName, context: &CommandContext<'_>) -> Failure {
    match context.managed_host.host.connection(name.as_str()) {
        Ok(_) => Failure::unsupported("the server has not listed its features yet").about_server(name.as_str()),
        Err(error) => context.managed_host.failure(name, error).with_hint(format_args!("/mcp connect {name}")),
    }
}

/// Renders the non-empty lists, each below a heading.
pub fn render_lists<T: ListItem>(
    sections: &[Arc<Section>],
    list: ListName,
    items: impl Fn(&Section) -> Vec<&T>,
    width: Option<usize>,
) -> String {
    let shown = sections.iter().map(|section| render_list(section, list, &items(section), width));
    shown.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

/// Renders the list of one server, or an empty string if there is none.
fn render_list<T: ListItem>(section: &Section, list: ListName, items: &[&T], width: Option<usize>) -> String {
    let failed = section.failures.iter().find(|(which, _)| *which == list);
    if items.is_empty() && failed.is_none() {
        return String::new();
    }
    let rows: Vec<LabelRow> = items.iter().map(|item| item.row()).collect();
    let mut text = format!("{}\n{}", list_heading::<T>(section, items.len()), render_table(&rows, width));
    if let Some((_, why)) = failed {
        let warning = format!("  {} could not list {list}: {why}", paint(WARNING, "!"));
        text.push_str(&format!("{}\n", wrap(&warning, width)));
    }
    text
}

/// Renders the heading: the server, the number of items, and the age of a cached list.
pub fn list_heading<T: ListItem>(section: &Section, count: usize) -> String {
    let age = match section.freshness {
        ListFreshness::Live => String::new(),
        ListFreshness::Kept { at } => format!(" · cached {}", AgeText(at)),
    };
    format!("{}  {}", paint(HEADING, &section.server), paint(QUIET, format_args!("{}{age}", CountText(count, T::NOUN))))
}
