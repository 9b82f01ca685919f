//! The report of a trial: tasks solved, with all answers and calls.

use std::fmt::Write;

use super::{FORMATS, TrialResult};
use crate::run::MachineDescription;

/// Minimum number of the nine tasks to solve.
const MIN_SOLVED: usize = 8;

pub fn page(tries: &[TrialResult]) -> String {
    let here = MachineDescription::detect();
    let mut page = format!(
        "# A real model\n\n\
         Nine tasks over servers from npm and PyPI, each done by `wharf run` with a model of 1.5 billion parameters \
         (Qwen2.5-Coder-1.5B-Instruct, Q4_K_M, on llama.cpp with `--temp 0.1`) in each of the three wire formats that \
         llama.cpp supports, with at most six requests. A task \
         succeeds if the required tool was called with the required arguments. The answers of so small a model vary \
         and are quoted below. A model that repeats one call is detected and stopped; a model that alternates between \
         calls may use up its requests first.\n\n\
         Made on {}, {} cores, {}, with `cargo xtask trial`.\n\n\
         | format | solved | repeated call detected | longest task | at least {MIN_SOLVED} |\n\
         | --- | ---: | ---: | ---: | --- |\n",
        here.date, here.cores, here.processor,
    );
    for format in FORMATS {
        let of: Vec<&TrialResult> = tries.iter().filter(|went| went.format == format).collect();
        let _ = writeln!(page, "{}", row(format, &of));
    }
    for format in FORMATS {
        let _ = write!(page, "\n## {format}\n");
        for went in tries.iter().filter(|went| went.format == format) {
            page.push_str(&transcript(went));
        }
    }
    page
}

fn row(format: &str, of: &[&TrialResult]) -> String {
    let right = of.iter().filter(|went| went.right).count();
    let noticed = of.iter().filter(|went| went.noticed).count();
    let longest = of.iter().map(|went| went.seconds).fold(0.0, f64::max);
    let enough = if right >= MIN_SOLVED { "yes" } else { "**no**" };
    format!("| {format} | {right} of {} | {noticed} | {longest:.0} s | {enough} |", of.len())
}

fn transcript(went: &TrialResult) -> String {
    let mut text = format!("\n```text\n› {}\n", went.task);
    for call in &went.calls {
        let dot = if call.server.is_empty() { "" } else { "." };
        let _ = writeln!(text, "▸ {}{dot}{} {}", call.server, call.tool, call.arguments);
    }
    if !went.answer.is_empty() {
        let _ = writeln!(text, "{}", went.answer.trim().replace("```", "'''"));
    }
    let verdict = if went.right { "right" } else { "not right" };
    let noticed = if went.noticed { ", a call was repeated" } else { "" };
    let _ = write!(text, "({verdict}, {}{noticed}, {:.0} s)\n```\n", went.ending, went.seconds);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_of_nine_tasks_pass_the_trial() {
        let went = |number: usize, rights: usize| TrialResult {
            format: FORMATS[0],
            task: String::new(),
            calls: Vec::new(),
            right: number < rights,
            answer: String::new(),
            ending: "done".into(),
            noticed: number == 0,
            seconds: 2.0,
        };
        for (rights, expected) in [(8, "| yes |"), (7, "| **no** |")] {
            let tries: Vec<TrialResult> = (0..9).map(|number| went(number, rights)).collect();
            let row = row(FORMATS[0], &tries.iter().collect::<Vec<_>>());
            assert_eq!(row, format!("| anthropic | {rights} of 9 | 1 | 2 s {expected}"));
        }
    }
}
