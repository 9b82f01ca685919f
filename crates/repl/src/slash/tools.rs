//! `/tools`: lists the tools available to the agent, searches them by keywords, or switches one off.

use std::sync::Arc;

use wharf::catalog::{CatalogTool, ListName, Section};
use wharf_spec::{ServerName, UntrustedText};

use super::lists::{print_list, render_lists, sections};
use super::{CommandContext, ReplAction};
use wharf_terminal::failure::Failure;
use wharf_terminal::listing::custom_name;
use wharf_terminal::search::rank_tools;
use wharf_terminal::suggestions::suggestion;
use wharf_terminal::table::{LabelRow, render_table};

/// Maximum number of search results.
const MAX_FOUND: usize = 20;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  /tools
  /tools git
  /tools --search create issue
  /tools git --search create issue
  /tools off git.git_push")]
#[command(args_conflicts_with_subcommands = true)]
pub struct ToolsCommandArgs {
    #[command(subcommand)]
    command: Option<ToolSwitch>,
    /// Filter by server
    #[arg(value_name = "SERVER")]
    server: Option<String>,
    /// Filter tools by keywords, best match first
    #[arg(long, value_name = "WORDS", num_args = 1..)]
    search: Vec<String>,
}

impl ToolsCommandArgs {
    /// Returns the keywords and the server. A word after quoted keywords is the server.
    fn split(&self) -> (String, Option<&str>) {
        match (&self.search[..], &self.server) {
            ([quoted, server], None) if quoted.contains(char::is_whitespace) => (quoted.clone(), Some(server)),
            (words, server) => (words.join(" "), server.as_deref()),
        }
    }
}

#[derive(Debug, clap::Subcommand)]
enum ToolSwitch {
    /// Switch a tool off for this session
    Off(ToolArg),
    /// Switch a tool on again
    On(ToolArg),
}

#[derive(Debug, clap::Args)]
struct ToolArg {
    /// The tool and its server
    #[arg(value_name = "SERVER.TOOL")]
    tool: String,
}

pub async fn run(args: &ToolsCommandArgs, context: &CommandContext<'_>) -> Result<ReplAction, Failure> {
    match &args.command {
        None => list(args, context),
        Some(ToolSwitch::Off(ToolArg { tool })) => switch_off(tool, context).await,
        Some(ToolSwitch::On(ToolArg { tool })) => switch_on(tool, context).await,
    }
}

/// Switches a tool off: the model is not offered it, and calls of it are refused.
async fn switch_off(word: &str, context: &CommandContext<'_>) -> Result<ReplAction, Failure> {
    let catalog = context.managed_host.host.catalog();
    let found = catalog.resolve(word).map(|tool| tool.id.clone());
    let id = match found {
        Ok(id) => id,
        Err(_) if find_off(word, context).is_some() => return context.say("the tool is off already"),
        Err(error) => return Err(Failure::usage(error).with_hint("/tools lists the tools")),
    };
    if id.tool.contains(['*', '?', '[']) {
        return Err(Failure::unsupported("a tool with a wildcard in its name cannot be switched off"));
    }
    context.managed_host.switch_tool(&id.server, &id.tool, false).await;
    let shown = UntrustedText::new(format!("{}.{}", id.server, id.tool)).to_string();
    context.say(format_args!("{shown} is off for this session (/tools on {shown} switches it on again)"))
}

async fn switch_on(word: &str, context: &CommandContext<'_>) -> Result<ReplAction, Failure> {
    let Some((server, tool)) = find_off(word, context) else {
        let off = off_names(context);
        let failure = Failure::usage(format_args!("no tool `{word}` is switched off"));
        return Err(failure.with_hint(suggestion(word, off.iter().map(String::as_str))));
    };
    context.managed_host.switch_tool(&server, &tool, true).await;
    let shown = UntrustedText::new(format!("{server}.{tool}")).to_string();
    context.say(format_args!("{shown} is on again"))
}

/// Returns the switched-off tool with this name, in any spelling of server and tool.
fn find_off(word: &str, context: &CommandContext<'_>) -> Option<(ServerName, String)> {
    let is_meant = |(server, tool): &(ServerName, String)| {
        [".", "/", ":", "::", "__"].iter().any(|separator| {
            let joined = format!("{server}{separator}{tool}");
            word == joined || word.strip_prefix("mcp__") == Some(joined.as_str())
        })
    };
    context.managed_host.tools_off().into_iter().find(is_meant)
}

fn off_names(context: &CommandContext<'_>) -> Vec<String> {
    context.managed_host.tools_off().iter().map(|(server, tool)| format!("{server}.{tool}")).collect()
}

fn list(args: &ToolsCommandArgs, context: &CommandContext<'_>) -> Result<ReplAction, Failure> {
    let (words, server) = args.split();
    let shown = sections(server, context)?;
    if !words.is_empty() {
        return search(&shown, &words, context);
    }
    let text = render_lists(&shown, ListName::Tools, |section| section.visible_tools().collect(), context.width());
    let hint = match off_names(context).join(", ") {
        off if off.is_empty() => "/mcp list-tools shows declared effects and withheld tools".to_owned(),
        off => format!("off for this session: {}", UntrustedText::new(off)),
    };
    print_list::<Arc<CatalogTool>>(text, &hint, context)
}

fn search(sections: &[Arc<Section>], words: &str, context: &CommandContext<'_>) -> Result<ReplAction, Failure> {
    let rows = search_rows(sections, words);
    if rows.is_empty() {
        return context.say("no tool matches these keywords");
    }
    context.print(render_table(&rows, context.width()))
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
    let label = custom_name(tool).map_or_else(|| format!("{} {}", tool.id.server, tool.id.tool), str::to_owned);
    LabelRow::new(&label, definition.description.as_deref().or(definition.title.as_deref()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slash::command_fixture::{HARBOUR, harbour, with_host};

    /// F12: several keywords need no quotes.
    #[test]
    fn keywords_may_be_unquoted() {
        use crate::slash::grammar::{ParsedLine, SlashCommand, parse_line};
        for (line, words, server) in [
            ("tools --search create issue", "create issue", None),
            ("tools --search create an issue", "create an issue", None),
            ("tools git --search create issue", "create issue", Some("git")),
            ("tools --search 'create issue' git", "create issue", Some("git")),
            ("tools git", "", Some("git")),
        ] {
            let Ok(ParsedLine::Command(SlashCommand::Tools(args))) = parse_line(line, None) else { panic!("{line}") };
            assert_eq!(args.split(), (words.to_owned(), server), "{line}");
        }
    }

    #[test]
    fn search_names_the_server_and_may_find_nothing() {
        with_host(HARBOUR, harbour, async |context| {
            let sections = context.managed_host.host.catalog().sections().to_vec();
            let labels =
                |words: &str| search_rows(&sections, words).into_iter().map(|row| row.label).collect::<Vec<_>>();
            assert_eq!(labels("echo"), ["harbour echo"]);
            assert_eq!(labels("zebra"), [""; 0]);
        });
    }
}
