//! `/mcp list-tools`: every tool, grouped by server and by declared effect.

use std::sync::Arc;

use wharf::catalog::{CatalogTool, ListName, Section};
use wharf_spec::EscapedText;

use crate::slash::lists::{list_heading, sections};
use crate::slash::{CommandContext, ReplAction};
use wharf_terminal::count_text::CountText;
use wharf_terminal::failure::Failure;
use wharf_terminal::listing::ListItem as _;
use wharf_terminal::status::show::status_line;
use wharf_terminal::style::{QUIET, WARNING, paint};
use wharf_terminal::table::{LabelRow, render_table, wrap};

/// Maximum characters shown of a name.
const MAX_NAME_CHARS: usize = 100;

const HINTS_NOTICE: &str = "Effects are declared by the server (unverified) and grant no permission.";

pub fn run(server: Option<&str>, context: &CommandContext<'_>) -> Result<ReplAction, Failure> {
    let shown = sections(server, context)?;
    let mut text: String = shown.iter().map(|section| render_section(section, context.width()) + "\n").collect();
    if server.is_none() {
        let is_missing = |id: &str| !shown.iter().any(|section| section.server.as_str() == id);
        for row in context.managed_host.rows().iter().filter(|row| is_missing(&row.id)) {
            text.push_str(&format!("{}\n", status_line(row)));
        }
    }
    if text.is_empty() {
        return context.say("no MCP servers configured");
    }
    context.print(format_args!("{text}{}\n", paint(QUIET, wrap(HINTS_NOTICE, context.width()))))
}

/// Effect of a tool as declared by its server, the most severe if several apply. A tool without hints may do anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeclaredEffect {
    ReadOnly,
    Writing,
    Destructive,
    Unsaid,
}

impl DeclaredEffect {
    const ALL: [(Self, &str); 4] = [
        (Self::ReadOnly, "read-only"),
        (Self::Writing, "writing"),
        (Self::Destructive, "destructive"),
        (Self::Unsaid, "unknown effect (no hints): may write or destroy data"),
    ];

    fn from_hints(tool: &CatalogTool) -> Self {
        let hints = tool.description.hints;
        match (hints.read_only, hints.destructive) {
            (_, Some(true)) => Self::Destructive,
            (Some(true), _) => Self::ReadOnly,
            (_, Some(false)) => Self::Writing,
            _ => Self::Unsaid,
        }
    }
}

/// Renders the tools of one server by effect, including tools that are not offered.
fn render_section(section: &Section, width: Option<usize>) -> String {
    let tools: Vec<&Arc<CatalogTool>> = section.visible_tools().collect();
    let mut text = format!("{}\n", list_heading::<Arc<CatalogTool>>(section, tools.len()));
    for (effect, name) in DeclaredEffect::ALL {
        let rows: Vec<LabelRow> =
            tools.iter().filter(|tool| DeclaredEffect::from_hints(tool) == effect).map(|tool| tool.row()).collect();
        text.push_str(&render_group(name, &rows, width));
    }
    let quarantined = format!("withheld (/mcp release {} TOOL releases one)", section.server);
    text.push_str(&render_group(&quarantined, &quarantined_rows(section), width));
    text.push_str(&render_group("unusable", &withheld_rows(section), width));
    for warning in remarks(section) {
        text.push_str(&format!("{}\n", wrap(&format!("  {} {warning}", paint(WARNING, "!")), width)));
    }
    text
}

fn render_group(name: &str, rows: &[LabelRow], width: Option<usize>) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let inner = width.map(|width| width.saturating_sub(2));
    let rows: String = render_table(rows, inner).lines().map(|line| format!("  {line}\n")).collect();
    format!("  {}\n{rows}", paint(QUIET, name))
}

fn quarantined_rows(section: &Section) -> Vec<LabelRow> {
    let row = |tool: &Arc<CatalogTool>| {
        tool.quarantine().map(|reason| LabelRow { label: format_name(&tool.id.tool), about: reason.to_owned() })
    };
    section.tools.iter().filter_map(row).collect()
}

fn withheld_rows(section: &Section) -> Vec<LabelRow> {
    let of_tools = section.withheld.iter().filter(|(list, _)| *list == ListName::Tools);
    let row = |withheld: &wharf_client::WithheldEntry| {
        let nameless = || format!("tool #{}", withheld.position + 1);
        LabelRow { label: withheld.name.clone().unwrap_or_else(nameless), about: withheld.reason.clone() }
    };
    of_tools.map(|(_, withheld)| row(withheld)).collect()
}

/// Lists further remarks about the tool list.
fn remarks(section: &Section) -> Vec<String> {
    let failed = section.failures.iter().filter(|(list, _)| *list == ListName::Tools);
    let mut remarks: Vec<String> = failed.map(|(list, why)| format!("could not list {list}: {why}")).collect();
    if section.filtered > 0 {
        remarks.push(format!("{} hidden by the entry's filter", CountText(section.filtered, "tool")));
    }
    remarks
}

fn format_name(name: &str) -> String {
    EscapedText::single_line(name, MAX_NAME_CHARS).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use unicode_width::UnicodeWidthStr as _;
    use wharf::catalog::{NameStyle, SectionInput, ServerLists, ToolFilter};
    use wharf_spec::{Glob, ServerName};
    use wharf_wire::{JsonLimits, RawJson, ToolDefinition, View as _};

    use super::*;

    fn tool(name: &str, annotations: Value) -> ToolDefinition {
        let definition = json!({ "name": name, "description": format!("Does {name}."), "inputSchema": {},
            "annotations": annotations });
        ToolDefinition::from_raw(RawJson::parse(definition.to_string()).unwrap(), &JsonLimits::default()).unwrap()
    }

    fn section() -> Section {
        let tools = vec![
            tool("read", json!({ "readOnlyHint": true })),
            tool("write", json!({ "destructiveHint": false })),
            tool("wipe", json!({ "readOnlyHint": true, "destructiveHint": true })),
            tool("what\u{1b}", json!({})),
            tool("twin", json!({})),
            tool("twin", json!({})),
            tool("poison", json!({})),
            tool("hidden", json!({})),
        ];
        let inspector = |tool: &ToolDefinition| (tool.name == "poison").then(|| "it gives orders".to_owned());
        Section::build(SectionInput {
            server: &ServerName::new("harbour").unwrap(),
            style: NameStyle::Double,
            filter: &ToolFilter { include: None, exclude: vec![Glob::new("hidden")] },
            trust: false,
            inspector: Some(&inspector),
            listed: ServerLists { tools, ..ServerLists::default() },
        })
    }

    #[test]
    fn tools_are_grouped_by_effect_and_omissions_are_reported() {
        let shown = |width| anstream::adapter::strip_str(&render_section(&section(), width)).to_string();
        assert_eq!(
            shown(None),
            "harbour  4 tools\n  \
             read-only\n    read  Does read.\n  \
             writing\n    write  Does write.\n  \
             destructive\n    wipe  Does wipe.\n  \
             unknown effect (no hints): may write or destroy data\n    what\\u{1b}  Does what\\u{1b}.\n  \
             withheld (/mcp release harbour TOOL releases one)\n    poison  it gives orders\n  \
             unusable\n    twin  duplicate tool name at the server\n    \
             twin  duplicate tool name at the server\n  \
             ! 1 tool hidden by the entry's filter\n"
        );
        for width in [60, 80, 120] {
            assert!(shown(Some(width)).lines().all(|line| line.width() <= width), "{}", shown(Some(width)));
        }
    }
}
