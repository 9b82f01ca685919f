//! `/tools`: lists the tools available to the agent, or searches them by keywords.

use std::sync::Arc;

use wharf::catalog::{CatalogTool, ListName, Section};

use super::lists::{print_list, render_lists, sections};
use super::{CommandContext, ReplAction};
use wharf_terminal::failure::Failure;
use wharf_terminal::search::rank_tools;
use wharf_terminal::table::{LabelRow, render_table};

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
    let text = render_lists(&shown, ListName::Tools, |section| section.visible_tools().collect(), post.width());
    print_list::<Arc<CatalogTool>>(text, "/mcp list-tools shows declared effects and withheld tools", post)
}

fn search(sections: &[Arc<Section>], words: &str, post: &CommandContext<'_>) -> Result<ReplAction, Failure> {
    let rows = search_rows(sections, words);
    if rows.is_empty() {
        return post.say("no tool matches these keywords");
    }
    post.print(render_table(&rows, post.width()))
}

/// Returns the tools that match the words, best match first, each with its server.
fn search_rows(sections: &[Arc<Section>], words: &str) -> Vec<LabelRow> {
    let tools: Vec<Arc<CatalogTool>> = sections.iter().flat_map(|section| section.visible_tools()).cloned().collect();
    let mut placed: Vec<(usize, &Arc<CatalogTool>)> =
        rank_tools(&tools, words).into_iter().zip(&tools).filter_map(|(place, tool)| Some((place?, tool))).collect();
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
    use crate::slash::command_fixture::{HARBOUR, harbour, with_host};

    #[test]
    fn search_names_the_server_and_may_find_nothing() {
        with_host(HARBOUR, harbour, async |post| {
            let sections = post.fleet.host.catalog().sections().to_vec();
            let labels =
                |words: &str| search_rows(&sections, words).into_iter().map(|row| row.label).collect::<Vec<_>>();
            assert_eq!(labels("echo"), ["harbour echo"]);
            assert_eq!(labels("zebra"), [""; 0]);
        });
    }
}
