//! `/mcp stats`: number, outcome and duration of tool calls in this session.

use wharf::ToolStats;
use wharf_spec::UntrustedText;

use super::resolve_configured;
use crate::slash::{CommandContext, ReplAction};
use wharf_terminal::call_numbers::{NUMBERS, stats_cells};
use wharf_terminal::columns::{ColumnAlignment, render_columns};
use wharf_terminal::count_text::CountText;
use wharf_terminal::failure::Failure;
use wharf_terminal::style::{HEADING, NAME, QUIET, paint};
use wharf_terminal::table::wrap;

pub fn run(server: Option<&str>, context: &CommandContext<'_>) -> Result<ReplAction, Failure> {
    let names: Vec<String> = match server {
        Some(server) => vec![resolve_configured(server, context)?.to_string()],
        None => context.managed_host.host.status().into_iter().map(|status| status.name.to_string()).collect(),
    };
    // A server removed in the meantime has no statistics.
    let of = |name: &String| (name.clone(), context.managed_host.host.stats_of(name).unwrap_or_default());
    let counted: Vec<(String, Vec<ToolStats>)> = names.iter().map(of).filter(|(_, tools)| !tools.is_empty()).collect();
    if counted.is_empty() {
        return context.say("no calls in this session (see `wharf stats` for earlier ones)");
    }
    context.print(render_stats(&counted, context.width()))
}

fn render_stats(servers: &[(String, Vec<ToolStats>)], width: Option<usize>) -> String {
    let mut text: String = servers.iter().map(|(server, tools)| render_server(server, tools, width)).collect();
    let hint = "this session only (see `wharf stats` for all sessions)";
    text.push_str(&format!("{}\n", paint(QUIET, wrap(hint, width))));
    text
}

fn render_server(server: &str, tools: &[ToolStats], width: Option<usize>) -> String {
    let [calls, errors, half, most, nearly_all] = NUMBERS;
    let head = [("  TOOL", ColumnAlignment::Left), calls, errors, half, most, nearly_all];
    let rows: Vec<[String; 6]> = tools.iter().map(stats_row).collect();
    let table =
        render_columns(
            head,
            &rows,
            width,
            |at, cell| if at == 0 { paint(NAME, cell).to_string() } else { cell.to_owned() },
        );
    let sum = |of: fn(&ToolStats) -> u64| tools.iter().map(of).sum::<u64>();
    let (calls, errors) = (CountText(sum(|tool| tool.calls), "call"), CountText(sum(|tool| tool.errors), "error"));
    let total = format!("{calls}, {errors}");
    format!("{}  {}\n{table}", paint(HEADING, server), paint(QUIET, total))
}

fn stats_row(stats: &ToolStats) -> [String; 6] {
    let name = UntrustedText::new(stats.tool.as_str()).truncate(100).to_string();
    let [calls, errors, half, most, nearly_all] = stats_cells(stats);
    [format!("  {name}"), calls, errors, half, most, nearly_all]
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr as _;

    use super::*;

    #[test]
    fn every_tool_has_a_row_below_its_server() {
        let mut push = ToolStats::default();
        (push.tool, push.calls, push.errors) = ("push\u{1b}".to_owned(), 3, 1);
        (push.p50_us, push.p90_us, push.p99_us) = (12_000, 340_000, 2_500_000);
        let servers = [("git".to_owned(), vec![push])];
        let shown = |width| anstream::adapter::strip_str(&render_stats(&servers, width)).to_string();
        assert_eq!(
            shown(None),
            "git  3 calls, 1 error\n  TOOL        CALLS  ERRORS    P50     P90    P99\n  \
             push\\u{1b}      3       1  12 ms  340 ms  2.5 s\n\
             this session only (see `wharf stats` for all sessions)\n"
        );
        for width in [60, 80, 120] {
            assert!(shown(Some(width)).lines().all(|line| line.width() <= width), "{}", shown(Some(width)));
        }
    }
}
