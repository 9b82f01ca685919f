//! `/prompts` and `/resources`, and what lists have in common: what the catalog holds, server by server.

use std::sync::Arc;

use wharf::catalog::{Freshness, ListName, Section};
use wharf_spec::ServerName;
use wharf_wire::{PromptDefinition, Resource};

use super::grammar::OfServer;
use super::mcp::kept;
use super::{Post, Wish};
use wharf_terminal::age::Ago;
use wharf_terminal::failure::{Failure, Kind};
use wharf_terminal::listing::Listed;
use wharf_terminal::style::{HEADING, QUIET, WARNING, paint};
use wharf_terminal::table::{Row, table, wrap};

pub fn prompts(args: &OfServer, post: &Post<'_>) -> Result<Wish, Failure> {
    let shown = permitted_sections(args.server.as_deref(), post)?;
    let text = all(&shown, ListName::Prompts, |section| section.prompts.iter().collect(), post.width());
    finish::<PromptDefinition>(text, "/prompt SERVER PROMPT says one to the agent", post)
}

pub fn resources(args: &OfServer, post: &Post<'_>) -> Result<Wish, Failure> {
    let shown = permitted_sections(args.server.as_deref(), post)?;
    let text = all(&shown, ListName::Resources, |section| section.resources.iter().collect(), post.width());
    finish::<Resource>(text, "@server:uri in a message attaches one", post)
}

/// Prints a list, or says that there is nothing in it.
pub fn finish<T: Listed>(text: String, hint: &str, post: &Post<'_>) -> Result<Wish, Failure> {
    if text.is_empty() {
        return post.say(format_args!("no server that is connected offers {}", T::NOUNS.1));
    }
    post.print(format_args!("{text}{}\n", paint(QUIET, wrap(hint, post.width()))))
}

/// The same without servers that rules deny. Fails where such a server is named.
fn permitted_sections(server: Option<&str>, post: &Post<'_>) -> Result<Vec<Arc<Section>>, Failure> {
    let mut shown = sections(server, post)?;
    if server.is_some() {
        shown.iter().try_for_each(|section| refuse_denied(&section.server, post))?;
    }
    shown.retain(|section| post.fleet.host.denial_of(section.server.as_str()).is_none());
    Ok(shown)
}

/// Fails where rules deny everything a server offers.
pub fn refuse_denied(server: &ServerName, post: &Post<'_>) -> Result<(), Failure> {
    match post.fleet.host.denial_of(server.as_str()) {
        Some(refusal) => Err(Failure::of(Kind::Denied, refusal).about(server.as_str())),
        None => Ok(()),
    }
}

/// What the servers offer, or of that what one does. Fails where there is no such server, or it is not there.
pub fn sections(server: Option<&str>, post: &Post<'_>) -> Result<Vec<Arc<Section>>, Failure> {
    let catalog = post.fleet.host.catalog();
    let Some(server) = server else { return Ok(catalog.sections().to_vec()) };
    let name = kept(server, post)?;
    match catalog.section(name.as_str()) {
        Some(section) => Ok(vec![Arc::clone(section)]),
        None => Err(nothing_known(&name, post)),
    }
}

fn nothing_known(name: &ServerName, post: &Post<'_>) -> Failure {
    match post.fleet.host.connection(name.as_str()) {
        Ok(_) => Failure::unsupported("it has not said yet what it offers").about(name.as_str()),
        Err(error) => post.fleet.failure(name, error).hint(format_args!("/mcp connect {name}")),
    }
}

/// The lists of all these servers that have one, each below its heading.
pub fn all<T: Listed>(
    sections: &[Arc<Section>],
    list: ListName,
    items: impl Fn(&Section) -> Vec<&T>,
    width: Option<usize>,
) -> String {
    let shown = sections.iter().map(|section| one(section, list, &items(section), width));
    shown.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

/// The list of one server; nothing where it has none.
fn one<T: Listed>(section: &Section, list: ListName, items: &[&T], width: Option<usize>) -> String {
    let failed = section.failures.iter().find(|(which, _)| *which == list);
    if items.is_empty() && failed.is_none() {
        return String::new();
    }
    let rows: Vec<Row> = items.iter().map(|item| item.row()).collect();
    let mut text = format!("{}\n{}", heading::<T>(section, items.len()), table(&rows, width));
    if let Some((_, why)) = failed {
        let told = format!("  {} the list of {list} cannot be had: {why}", paint(WARNING, "!"));
        text.push_str(&format!("{}\n", wrap(&told, width)));
    }
    text
}

/// The server, how many it has, and whether that is what it once said.
pub fn heading<T: Listed>(section: &Section, count: usize) -> String {
    let noun = if count == 1 { T::NOUNS.0 } else { T::NOUNS.1 };
    let age = match section.freshness {
        Freshness::Live => String::new(),
        Freshness::Kept { at } => format!(" · as it was {}", Ago(at)),
    };
    format!("{}  {}", paint(HEADING, &section.server), paint(QUIET, format_args!("{count} {noun}{age}")))
}
