//! `/mcp release`: shows the definition of a withheld tool and asks for its release.

use wharf_spec::UntrustedText;

use super::resolve_in_host;
use crate::slash::lists::sections;
use crate::slash::{CommandContext, ReplAction};
use wharf_terminal::definition_review::quarantine_text;
use wharf_terminal::failure::Failure;
use wharf_terminal::suggestions::suggestion;
use wharf_terminal::table::wrap_gutter;

pub fn run(server: &str, tool: &str, context: &CommandContext<'_>) -> Result<ReplAction, Failure> {
    let name = resolve_in_host(server, context)?;
    let section = sections(Some(name.as_str()), context)?.swap_remove(0);
    let Some(found) = section.tool(tool) else {
        let names: Vec<&str> = section.tools.iter().map(|tool| &*tool.id.tool).collect();
        let shown = UntrustedText::new(tool).truncate(200).to_string();
        let failure = Failure::usage(format_args!("no tool named `{shown}`")).about_server(name.as_str());
        return Err(failure.with_hint(suggestion(tool, names.into_iter())));
    };
    if found.quarantine().is_none() {
        return context.say(format_args!("{} is not withheld", found.id));
    }
    let review = wrap_gutter(&quarantine_text(found), context.width());
    context.print(format_args!("{}\n", review.trim_start_matches('\n')))?;
    Ok(ReplAction::Release { tool: found.id.clone(), seen: found.fingerprint })
}
