//! Review of tool definitions: the text of a withheld or changed one, and the commands that accept it.

mod line_diff;

use std::fmt::Write as _;

use wharf::catalog::CatalogTool;
use wharf::{ChangedDefinition, Remedy};
use wharf_spec::ToolId;

use crate::failure::{gutter, shell_word};
use crate::question::indent_json;
use crate::style::{HEADING, WARNING, paint};

/// Describes a remedy by the command that applies it.
pub fn remedy_command(remedy: Remedy<'_>) -> String {
    match remedy {
        Remedy::Release(tool) => format!("`{}` shows the definition and releases it", release_command(tool)),
        Remedy::ApproveDefinition(tool) => {
            format!("`{}` shows the change and approves it", approve_command(tool))
        }
        other => other.to_string(),
    }
}

/// Returns the command that releases a tool from quarantine.
pub fn release_command(tool: &ToolId) -> String {
    format!("wharf release {} {}", tool.server, shell_word(&tool.tool))
}

/// Returns the command that approves a changed definition.
pub fn approve_command(tool: &ToolId) -> String {
    format!("wharf approve --tool {}", shell_word(&format!("{}.{}", tool.server, tool.tool)))
}

/// Formats the definition of a quarantined tool, with the reason. Nothing is shortened.
pub fn quarantine_text(tool: &CatalogTool) -> String {
    let mut text = format!(
        "\n{}\n{} {}\nIts definition, as the server sent it:",
        paint(HEADING, &tool.id),
        paint(WARNING, "withheld:"),
        tool.quarantine().unwrap_or_default()
    );
    push_lines(&mut text, "", &indent_json(tool.definition.raw.as_str()));
    text
}

/// Formats the difference between the approved definition of a tool and the current one, line by line. Changed lines are
/// not shortened.
pub fn change_text(change: &ChangedDefinition) -> String {
    let now = indent_json(change.tool.definition.raw.as_str());
    let mut text = format!("\n{}", paint(HEADING, &change.tool.id));
    if change.approved.is_empty() {
        text.push_str("\nThe definition changed since it was approved. The approved one was too long to keep. Now:");
        push_lines(&mut text, "", &now);
        return text;
    }
    text.push_str("\nThe definition changed since it was approved (- before, + now):");
    for (mark, line) in line_diff::changed_lines(&indent_json(&change.approved), &now) {
        push_lines(&mut text, mark, &line);
    }
    text
}

/// Appends lines in the gutter, so that no line of a definition can pass for one of Wharf's.
fn push_lines(text: &mut String, mark: &str, lines: &str) {
    for line in lines.lines() {
        let _ = write!(text, "\n{}", gutter(&format!("{mark}{line}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_quote_odd_tool_names() {
        let server = wharf_spec::ServerName::new("git").unwrap();
        let id = ToolId::new(&server, "a b\u{1b};rm");
        assert_eq!(release_command(&ToolId::new(&server, "log")), "wharf release git log");
        assert_eq!(approve_command(&ToolId::new(&server, "log")), "wharf approve --tool git.log");
        assert!(release_command(&id).starts_with("wharf release git \"") || release_command(&id).contains('\''));
        assert!(!release_command(&id).contains('\u{1b}'));
    }

    #[test]
    fn long_lines_are_escaped_and_not_shortened() {
        let mut text = String::new();
        push_lines(&mut text, "+ ", &format!("{}\u{1b}[2K tail", "x".repeat(2000)));
        assert!(text.ends_with("x\\u{1b}[2K tail") && text.len() > 2000, "{text}");
    }
}
