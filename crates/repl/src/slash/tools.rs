//! `/tools`: lists the tools available to the agent, or searches them by keywords.

use std::sync::Arc;

use wharf::catalog::{CatalogTool, ListName, Section};

use super::lists::{all, finish, sections};
use super::{CommandContext, ReplAction};
use wharf_terminal::failure::Failure;
use wharf_terminal::search::places;
use wharf_terminal::table::{LabelRow, table};

/// Maximum number of search results.
const MAX_FOUND: usize = 20;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  /tools
  /tools git
  /tools --search \"create issue\"")]
pub struct ToolsCommandArgs {
    /// Filter by server
    #[arg(value_name = "SERVER")]
    server: Option<String>,
    /// Filter tools by keywords, best match first
    #[arg(long, value_name = "WORDS")]
    search: Option<String>,
}

pub fn run(args: &ToolsCommandArgs, post: &CommandContext<'_>) -> Result<ReplAction, Failure> {
    let shown = sections(args.server.as_deref(), post)?;
    if let Some(words) = &args.search {
        return search(&shown, words, post);
    }
    let text = all(&shown, ListName::Tools, |section| section.offered().collect(), post.width());
    finish::<Arc<CatalogTool>>(text, "/mcp list-tools shows declared effects and withheld tools", post)
}

fn search(sections: &[Arc<Section>], words: &str, post: &CommandContext<'_>) -> Result<ReplAction, Failure> {
    let rows = found(sections, words);
    if rows.is_empty() {
        return post.say("no tool matches these keywords");
    }
    post.print(table(&rows, post.width()))
}

/// Returns the tools that match the words, best match first, each with its server.
fn found(sections: &[Arc<Section>], words: &str) -> Vec<LabelRow> {
    let tools: Vec<Arc<CatalogTool>> = sections.iter().flat_map(|section| section.offered()).cloned().collect();
    let mut placed: Vec<(usize, &Arc<CatalogTool>)> =
        places(&tools, words).into_iter().zip(&tools).filter_map(|(place, tool)| Some((place?, tool))).collect();
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().take(MAX_FOUND).map(|(_, tool)| row(tool)).collect()
}

fn row(tool: &CatalogTool) -> LabelRow {
    let definition = &tool.definition;
    let label = format!("{} {}", tool.id.server, tool.id.tool);
    LabelRow::new(&label, definition.description.as_deref().or(definition.title.as_deref()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slash::command_fixture::{HARBOUR, harbour, play};

    #[test]
    fn search_names_the_server_and_may_find_nothing() {
        play(HARBOUR, harbour, async |post| {
            let sections = post.fleet.host.catalog().sections().to_vec();
            let labels = |words: &str| found(&sections, words).into_iter().map(|row| row.label).collect::<Vec<_>>();
            assert_eq!(labels("echo"), ["harbour echo"]);
            assert_eq!(labels("zebra"), [""; 0]);
        });
    }
}
