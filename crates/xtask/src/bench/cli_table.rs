//! The report of `bench cli`: run time of each command, and the limits.

use std::fmt::Write;

use super::cli::{BenchedCommand, CliBenchPlan, EVERYBODY, LISTING};
use super::tables::median;
use crate::run::MachineDescription;

/// Milliseconds per command, one row per round.
pub type CliRounds = Vec<[f64; EVERYBODY.len()]>;

pub fn page(plan: &CliBenchPlan, rounds: &CliRounds) -> String {
    let here = MachineDescription::detect();
    let mut page = format!(
        "# Benchmarks: the command line\n\n\
         Time from the start of a command to its exit, with an empty environment. The calls \
         all have the demo server echo a word over stdio, and end after that server exits. The bare client is a program \
         of ours that does nothing else. mcporter (0.12.3) and the Inspector's command line (2.12.0) run on Node 24. \
         Medians over {} rounds in which the commands take turns. Differences and ratios are computed within each round and \
         are medians too.\n\n\
         Measured on {}, Linux {}, {} cores, {}, with `{}`.\n\n\
         | command | median |\n| --- | ---: |\n",
        rounds.len(),
        here.date,
        here.kernel,
        here.cores,
        here.processor,
        plan.command,
    );
    for who in EVERYBODY {
        let _ = writeln!(page, "| {} | {:.1} ms |", label(who), median(times(rounds, who)));
    }
    page.push_str("\n| metric | measured | limit | within limit |\n| --- | ---: | ---: | --- |\n");
    for CliLimitRow { what, measured, limit, reached } in rows(rounds) {
        let held = if reached { "yes" } else { "**no**" };
        let _ = writeln!(page, "| {what} | {measured} | {limit} | {held} |");
    }
    page
}

fn label(who: BenchedCommand) -> String {
    let told = match who {
        BenchedCommand::Version => "`wharf --version`",
        BenchedCommand::List => return format!("`wharf {LISTING}`, 10 servers configured"),
        BenchedCommand::Bare => "bare client, one call",
        BenchedCommand::Call => "`wharf call`",
        BenchedCommand::McporterList => "`mcporter config list`, the same 10 servers",
        BenchedCommand::McporterCall => "`mcporter call`",
        BenchedCommand::InspectorCall => "`mcp-inspector --cli --method tools/call`",
    };
    told.to_owned()
}

struct CliLimitRow {
    what: String,
    measured: String,
    limit: String,
    reached: bool,
}

fn rows(rounds: &CliRounds) -> [CliLimitRow; 5] {
    [
        difference_row(rounds, BenchedCommand::List, BenchedCommand::Version, 3.0),
        difference_row(rounds, BenchedCommand::Call, BenchedCommand::Bare, 5.0),
        ratio_row(rounds, BenchedCommand::McporterList, BenchedCommand::List),
        ratio_row(rounds, BenchedCommand::McporterCall, BenchedCommand::Call),
        ratio_row(rounds, BenchedCommand::InspectorCall, BenchedCommand::Call),
    ]
}

/// Compares two commands by the difference in milliseconds.
fn difference_row(rounds: &CliRounds, one: BenchedCommand, other: BenchedCommand, limit: f64) -> CliLimitRow {
    let difference = median_comparison(rounds, one, other, |one, other| one - other);
    CliLimitRow {
        what: format!("{} beyond {}", label(one), label(other)),
        measured: format!("{difference:+.1} ms"),
        limit: format!("{limit:+.0} ms"),
        reached: difference <= limit,
    }
}

/// Compares another client with ours by the ratio of their times.
fn ratio_row(rounds: &CliRounds, one: BenchedCommand, ours: BenchedCommand) -> CliLimitRow {
    let relation = median_comparison(rounds, one, ours, |one, ours| one / ours);
    CliLimitRow {
        what: format!("{} : {}", label(one), label(ours)),
        measured: format!("{relation:.1}×"),
        limit: "at least 10×".into(),
        reached: relation >= 10.0,
    }
}

/// Returns the median of a comparison made in each round.
fn median_comparison(
    rounds: &CliRounds,
    one: BenchedCommand,
    other: BenchedCommand,
    compare: impl Fn(f64, f64) -> f64,
) -> f64 {
    let (ones, others) = (times(rounds, one), times(rounds, other));
    median(ones.into_iter().zip(others).map(|(one, other)| compare(one, other)).collect())
}

fn times(rounds: &CliRounds, who: BenchedCommand) -> Vec<f64> {
    let place = EVERYBODY.iter().position(|other| *other == who).unwrap_or_default();
    rounds.iter().map(|round| round[place]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_inclusive() {
        let held = |version, list, bare, call, listed, called, inspected| {
            rows(&vec![[version, list, bare, call, listed, called, inspected]]).map(|row| row.reached)
        };
        assert_eq!(held(2.0, 5.0, 5.0, 10.0, 50.0, 100.0, 100.0), [true; 5]);
        assert_eq!(held(2.0, 5.1, 5.0, 10.1, 50.0, 100.0, 100.0), [false; 5]);
    }

    #[test]
    fn comparisons_are_within_a_round() {
        // A slow round affects all commands: the difference stays.
        let rounds = [1.0, 100.0, 3.0].map(|base| [base, base + 2.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
        assert_eq!(rows(&rounds.to_vec())[0].measured, "+2.0 ms");
    }
}
