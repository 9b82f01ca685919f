//! The report of `bench stdio`: medians over the rounds, in tables.

use std::fmt::Write;

use super::instructions::{self, InstructionCounts};
use super::rounds::{BenchSetting, ThroughputSample};
use super::{BenchClient, BenchTransport, CALLERS, CORES, LOCAL_ROWS, PAYLOADS, ThroughputPlan};
use crate::run::MachineDescription;

pub fn page(
    plan: &ThroughputPlan,
    field: &[BenchClient],
    samples: &[ThroughputSample],
    counts: &[InstructionCounts],
) -> String {
    let mut page = introduction(plan, &MachineDescription::detect());
    for cores in CORES {
        for payload in PAYLOADS {
            let _ = writeln!(page, "\n## {}, {}\n", plural(cores, "core"), format_bytes(payload));
            page.push_str(&rate_table(field, samples, cores, payload));
        }
    }
    page.push_str(&in_process_tables(samples));
    page.push_str("\n## Instructions\n\n");
    page.push_str(&instruction_table(counts));
    page
}

fn introduction(plan: &ThroughputPlan, here: &MachineDescription) -> String {
    format!(
        "# Benchmarks: calling a tool over stdio\n\n\
         Callers that each have one call in flight, against the same echo server; client and server share \
         the cores named. Each cell is calls per second, and in brackets the time per call relative to the \
         limit: a client that writes the same bytes as Wharf into the same pipes and only counts the line \
         ends that come back. Rates are medians over {} rounds of {} s in which the clients take turns. \
         The ratio is computed within each round and is a median too.\n\n\
         Measured on {}, Linux {}, {} cores, {}, with `{}`.\n",
        plan.rounds, plan.seconds, here.date, here.kernel, here.cores, here.processor, plan.command,
    )
}

fn rate_table(field: &[BenchClient], samples: &[ThroughputSample], cores: usize, payload: usize) -> String {
    let rows: Vec<_> = field.iter().map(|client| (client.label, client.label, field[0].label)).collect();
    table("client", &rows, samples, cores, payload)
}

/// Formats one row per entry of `rows`: name, measured client, and the client it is compared with.
fn table(
    what: &str,
    rows: &[(&str, &str, &str)],
    samples: &[ThroughputSample],
    cores: usize,
    payload: usize,
) -> String {
    let mut table = format!("| {what} |");
    for callers in CALLERS {
        let _ = write!(table, " {} |", plural(callers, "caller"));
    }
    let _ = writeln!(table, "\n| --- |{}", " ---: |".repeat(CALLERS.len()));
    for (name, label, limit) in rows {
        let _ = write!(table, "| {name} |");
        for callers in CALLERS {
            let setting = BenchSetting { way: BenchTransport::Stdio, cores, payload, callers };
            let rate = median(rates_per_round(samples, setting, label));
            let relation = median(ratios_per_round(samples, setting, limit, label));
            let _ = write!(table, " {} ({relation:.2}×) |", group_digits(rate.round() as u64));
        }
        table.push('\n');
    }
    table
}

/// Formats the cost of an in-process call, compared with the same client's call over stdio.
fn in_process_tables(samples: &[ThroughputSample]) -> String {
    let mut text = String::from(
        "\n## In the same process\n\n\
         Calls per second of an `echo` that lives in the client's process, and in brackets the time per call relative \
         to the same client's call over stdio in the same round: below 1.00× the call in the process costs less. \
         Servers that decode arguments and write results are compared with each other in the rows with the rmcp \
         server; the byte copier is the echo server of the other tables, which does neither.\n",
    );
    for cores in CORES {
        for payload in PAYLOADS {
            let _ = writeln!(text, "\n### {}, {}\n", plural(cores, "core"), format_bytes(payload));
            text.push_str(&table("in the process : over stdio", &LOCAL_ROWS, samples, cores, payload));
        }
    }
    text
}

/// Returns the client's rate per round, in round order.
fn rates_per_round(samples: &[ThroughputSample], setting: BenchSetting, label: &str) -> Vec<f64> {
    let of_client = samples.iter().filter(|sample| sample.setting == setting && sample.label == label);
    of_client.map(|sample| sample.rate).collect()
}

/// Returns the ratio of the call time to the limit's, per round.
fn ratios_per_round(samples: &[ThroughputSample], setting: BenchSetting, limit: &str, label: &str) -> Vec<f64> {
    let limits = rates_per_round(samples, setting, limit);
    let rates = rates_per_round(samples, setting, label);
    limits.iter().zip(rates).map(|(limit, rate)| limit / rate).collect()
}

pub fn instruction_table(counts: &[InstructionCounts]) -> String {
    if counts.is_empty() {
        return "Skipped: valgrind was not installed.\n".into();
    }
    let mut table = String::from(
        "Instructions per call in the client's process, counted by callgrind on one thread, without the kernel \
         and the server.\n\n| client |",
    );
    for (payload, callers) in instructions::SETTINGS {
        let _ = write!(table, " {}, {} |", format_bytes(payload), plural(callers, "caller"));
    }
    let _ = writeln!(table, "\n| --- |{}", " ---: |".repeat(instructions::SETTINGS.len()));
    for client in counts {
        let _ = write!(table, "| {} |", client.label);
        for count in client.per_call {
            let _ = write!(table, " {} |", count.map_or_else(|| "–".into(), group_digits));
        }
        table.push('\n');
    }
    table
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => values[odd / 2],
        even => (values[even / 2 - 1] + values[even / 2]) / 2.0,
    }
}

pub fn plural(count: usize, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

pub fn format_bytes(payload: usize) -> String {
    if payload >= 1024 { format!("{} KiB", payload / 1024) } else { format!("{payload} B") }
}

/// Formats a number with digits in groups of three.
pub fn group_digits(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_odd_even_and_empty_lists() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(vec![]).is_nan());
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        let setting = BenchSetting { way: BenchTransport::Stdio, cores: 1, payload: 64, callers: 1 };
        let sample = |round, label, rate| ThroughputSample { round, setting, label, rate, median: 0.0 };
        let samples =
            [sample(0, "limit", 100.0), sample(0, "us", 50.0), sample(1, "us", 100.0), sample(1, "limit", 300.0)];
        assert_eq!(ratios_per_round(&samples, setting, "limit", "us"), [2.0, 3.0]);
    }

    #[test]
    fn in_process_server_is_compared_with_stdio() {
        let setting = BenchSetting { way: BenchTransport::Stdio, cores: 1, payload: 64, callers: 1 };
        let sample = |label, rate| ThroughputSample { round: 0, setting, label, rate, median: 0.0 };
        let page = in_process_tables(&[sample(LOCAL_ROWS[0].2, 100.0), sample(LOCAL_ROWS[0].1, 1600.0)]);
        let row = page.lines().find(|line| line.contains(LOCAL_ROWS[0].0)).unwrap_or_default();
        assert!(row.starts_with("| closures : rmcp server over stdio, one thread | 1 600 (0.06×) |"), "{row}");
    }

    #[test]
    fn digits_are_grouped() {
        for (number, text) in [(7, "7"), (123, "123"), (1234, "1 234"), (1_234_567, "1 234 567")] {
            assert_eq!(group_digits(number), text);
        }
    }
}
