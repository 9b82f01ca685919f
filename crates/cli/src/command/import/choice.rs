//! The question which servers to import.

use super::plan::{PlannedServer, render_table};
use wharf_terminal::question;
use wharf_terminal::session::CommandSession;
use wharf_terminal::table::wrap_gutter;

const PROMPT: &str = "Import (a)ll, (n)one, numbers such as 1 3-5, or (d)etails? ";
const HELP: &str = "Answer a, n, d, or numbers of the table, such as 1 3-5.";

/// An answer to the question.
#[derive(Debug, PartialEq, Eq)]
enum ImportAnswer {
    Servers(Vec<usize>),
    Details,
}

/// Asks which servers to import. Returns their indices in `planned`. Requires a terminal.
pub async fn choose(session: &CommandSession, planned: &[PlannedServer<'_>]) -> Vec<usize> {
    let storable: Vec<usize> = (0..planned.len()).filter(|at| planned[*at].verdict.is_ok()).collect();
    let console = &session.console;
    loop {
        let Some(line) = question::ask_line(console, "", PROMPT).await else { return Vec::new() };
        match parse_answer(&line, storable.len()) {
            Some(ImportAnswer::Servers(chosen)) => return chosen.into_iter().map(|number| storable[number]).collect(),
            Some(ImportAnswer::Details) => {
                for one in planned {
                    console.say(wrap_gutter(&one.review_text(session), console.stderr_width()));
                }
                console.say(format_args!("\n{}", render_table(planned, console.stderr_width()).trim_end()));
            }
            None => console.say(HELP),
        }
    }
}

/// Parses an answer about `count` servers, numbered from 1.
fn parse_answer(line: &str, count: usize) -> Option<ImportAnswer> {
    match line.trim().to_ascii_lowercase().as_str() {
        "a" | "all" => return Some(ImportAnswer::Servers((0..count).collect())),
        "" | "n" | "no" | "none" => return Some(ImportAnswer::Servers(Vec::new())),
        "d" | "details" => return Some(ImportAnswer::Details),
        _ => {}
    }
    let mut chosen = Vec::new();
    for word in line.split([' ', ',', '\t']).filter(|word| !word.is_empty()) {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if first == 0 || first > last || last > count {
            return None;
        }
        chosen.extend(first - 1..last);
    }
    chosen.sort_unstable();
    chosen.dedup();
    (!chosen.is_empty()).then_some(ImportAnswer::Servers(chosen))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_selects_all_none_or_numbers() {
        for (line, expected) in [
            ("a", Some(vec![0, 1, 2, 3])),
            ("ALL ", Some(vec![0, 1, 2, 3])),
            ("", Some(vec![])),
            ("none", Some(vec![])),
            ("2", Some(vec![1])),
            ("3-4, 1 1", Some(vec![0, 2, 3])),
            ("5", None),
            ("0", None),
            ("3-2", None),
            ("y", None),
            (",", None),
            ("1 x", None),
        ] {
            assert_eq!(parse_answer(line, 4), expected.map(ImportAnswer::Servers), "{line:?}");
        }
        assert_eq!(parse_answer("d", 4), Some(ImportAnswer::Details));
    }
}
