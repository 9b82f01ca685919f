//! `/help`: lists the commands, or shows the usage of one.

use super::grammar::{ParsedLine, grammar, parse_words};
use super::{CommandContext, ReplAction};
use wharf_terminal::failure::Failure;
use wharf_terminal::style::{HEADING, paint};
use wharf_terminal::table::{LabelRow, render_table, wrap};

const OVERVIEW_FOOTER: &str = "\
Any other input goes to the agent. @server:uri in a message attaches a server's resource.
Ctrl-C cancels the run; press it twice to exit. Tab completes. See /help COMMAND for details.";

pub fn run(words: &[String], context: &CommandContext<'_>) -> Result<ReplAction, Failure> {
    let text = if words.is_empty() { overview(context.width()) } else { usage(words, context.width())? };
    context.print(text)
}

/// Returns the usage of a command as rendered by clap.
fn usage(words: &[String], width: Option<usize>) -> Result<String, Failure> {
    let words = words.iter().map(|word| word.trim_start_matches('/').to_owned());
    match parse_words(words.chain(["--help".to_owned()]).collect(), width)? {
        ParsedLine::Help(text) => Ok(text),
        // The words formed a complete command that accepts any argument, including `--help`.
        ParsedLine::Command(_) => Ok(overview(width)),
    }
}

/// Renders one line per command.
fn overview(width: Option<usize>) -> String {
    let grammar = grammar();
    let rows: Vec<LabelRow> = grammar.get_subcommands().map(row).collect();
    format!("{}\n{}\n{}\n", paint(HEADING, "Commands:"), render_table(&rows, width), wrap(OVERVIEW_FOOTER, width))
}

fn row(command: &clap::Command) -> LabelRow {
    let names = std::iter::once(command.get_name()).chain(command.get_visible_aliases());
    let mut label = names.map(|name| format!("/{name}")).collect::<Vec<_>>().join(", ");
    for argument in command.get_positionals() {
        let name = argument.get_value_names().and_then(|names| names.first()).map(|name| name.as_str());
        let name = name.unwrap_or_default();
        label.push_str(&if argument.is_required_set() { format!(" {name}") } else { format!(" [{name}]") });
    }
    LabelRow::new(&label, command.get_about().map(ToString::to_string).as_deref())
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr as _;

    use super::*;

    #[test]
    fn every_command_has_a_line_within_the_width() {
        let whole = anstream::adapter::strip_str(&overview(None)).to_string();
        for line in [
            "  /mcp [SERVER]                       Show and control MCP servers\n",
            "  /prompt SERVER PROMPT [NAME=VALUE]  Expand a server's prompt and send it to the agent\n",
            "  /exit, /quit                        Close all servers and exit\n",
        ] {
            assert!(whole.contains(line), "{whole}");
        }
        for width in [60, 80, 120] {
            let text = anstream::adapter::strip_str(&overview(Some(width))).to_string();
            assert!(text.lines().all(|line| line.width() <= width), "{text}");
        }
    }

    #[test]
    fn help_shows_the_usage_of_a_command() {
        let usage_of = |line: &str, width| usage(&line.split(' ').map(str::to_owned).collect::<Vec<_>>(), width);
        for (line, part) in [
            ("/mcp connect", "Usage: /mcp connect <SERVER>\n"),
            ("mcp", "Usage: /mcp [SERVER]\n       /mcp COMMAND\n"),
            ("model", "Usage: /model [MODEL]\n"),
            ("quit", "Usage: /exit\n"),
        ] {
            let help = usage_of(line, None).unwrap();
            assert!(help.contains(part), "{help}");
        }
        assert_eq!(usage_of("modle", None).unwrap_err().hints, ["did you mean `/model`?"]);
    }

    #[test]
    fn help_fits_terminals_of_60_and_80_columns() {
        let grammar = grammar();
        let inner = grammar.find_subcommand("mcp").into_iter().flat_map(clap::Command::get_subcommands);
        let inner = inner.map(|command| vec!["mcp".to_owned(), command.get_name().to_owned()]);
        let outer = grammar.get_subcommands().map(|command| vec![command.get_name().to_owned()]);
        for words in outer.chain(inner).chain([Vec::new()]) {
            let help = |width| if words.is_empty() { overview(width) } else { usage(&words, width).unwrap() };
            let plain = |width| anstream::adapter::strip_str(&help(width)).to_string();
            for width in [60, 80] {
                let text = plain(Some(width));
                assert!(text.lines().all(|line| line.width() <= width), "{text}");
                assert!(words.is_empty() || text.split_whitespace().eq(plain(None).split_whitespace()), "{text}");
            }
        }
    }
}
