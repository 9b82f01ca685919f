//! The report of `bench http`: medians over the rounds, in tables.

use std::fmt::Write;

use super::http::{BARE, ConnectionCount, SEQUENCE, UnusedAccount, WAYS};
use super::instructions::InstructionCounts;
use super::rounds::{BenchSetting, ThroughputSample};
use super::tables::{format_bytes, group_digits, instruction_table, median, plural};
use super::{BenchClient, BenchTransport, CALLERS, CORES, PAYLOADS, ThroughputPlan};
use crate::run::MachineDescription;

/// Figures counted by the servers.
pub struct ServerCounts<'a> {
    pub connections: &'a [ConnectionCount],
    pub account: &'a UnusedAccount,
}

pub fn page(
    plan: &ThroughputPlan,
    field: &[BenchClient],
    samples: &[ThroughputSample],
    counted: &ServerCounts<'_>,
    counts: &[InstructionCounts],
) -> String {
    let mut page = introduction(plan, &MachineDescription::detect());
    let labels: Vec<&str> = field.iter().map(|client| client.label).collect();
    for way in WAYS {
        for cores in CORES {
            for payload in PAYLOADS {
                let _ = writeln!(
                    page,
                    "\n## {}, {}, {}\n",
                    response_heading(way),
                    plural(cores, "core"),
                    format_bytes(payload)
                );
                page.push_str(&table(&labels, samples, |callers| BenchSetting { way, cores, payload, callers }));
            }
        }
    }
    page.push_str(&connection_table(counted.connections));
    page.push_str(&account_table(counted.account));
    page.push_str("\n## Instructions over HTTP\n\nJSON responses. ");
    page.push_str(&instruction_table(counts));
    page
}

fn introduction(plan: &ThroughputPlan, here: &MachineDescription) -> String {
    format!(
        "# Benchmarks: calling a tool over HTTP\n\n\
         Callers that each have one call in flight, against the same echo server over HTTP/1.1 on the loopback \
         interface; client and server share the cores named. Each cell is calls per second, the median time of a \
         call, and in brackets that time relative to the limit: a bare client on the same HTTP library, on as many \
         threads, that sends the same requests and reads the responses without parsing them. The figures are \
         medians over {} rounds of {} s in which the clients take turns. The ratio is computed within each round \
         and is a median too.\n\n\
         Measured on {}, Linux {}, {} cores, {}, with `{}`.\n",
        plan.rounds, plan.seconds, here.date, here.kernel, here.cores, here.processor, plan.command,
    )
}

fn response_heading(way: BenchTransport) -> &'static str {
    match way {
        BenchTransport::Stdio => "Over stdio",
        BenchTransport::Json => "JSON responses",
        BenchTransport::Sse => "SSE responses",
    }
}

/// Formats one row per client.
fn table(labels: &[&str], samples: &[ThroughputSample], setting: impl Fn(usize) -> BenchSetting) -> String {
    let mut table = String::from("| client |");
    for callers in CALLERS {
        let _ = write!(table, " {} |", plural(callers, "caller"));
    }
    let _ = writeln!(table, "\n| --- |{}", " ---: |".repeat(CALLERS.len()));
    for label in labels {
        let _ = write!(table, "| {label} |");
        for callers in CALLERS {
            let _ = write!(table, " {} |", cell(samples, setting(callers), label));
        }
        table.push('\n');
    }
    table
}

fn cell(samples: &[ThroughputSample], setting: BenchSetting, label: &str) -> String {
    let (rates, times) = (figures(samples, setting, label, |sample| sample.rate), times(samples, setting, label));
    let limits = self::times(samples, setting, limit_of(label));
    let relation = median(times.iter().zip(limits).map(|(time, limit)| time / limit).collect());
    let (rate, time) = (median(rates).round() as u64, median(times));
    format!("{}, {time:.0} µs ({relation:.2}×)", group_digits(rate))
}

/// Returns the bare client with the same number of threads.
fn limit_of(label: &str) -> &'static str {
    BARE[usize::from(label.ends_with("two workers"))]
}

fn times(samples: &[ThroughputSample], setting: BenchSetting, label: &str) -> Vec<f64> {
    figures(samples, setting, label, |sample| sample.median)
}

/// Returns a figure of the client per round, in round order.
fn figures(
    samples: &[ThroughputSample],
    setting: BenchSetting,
    label: &str,
    figure: impl Fn(&ThroughputSample) -> f64,
) -> Vec<f64> {
    let of_client = samples.iter().filter(|sample| sample.setting == setting && sample.label == label);
    of_client.map(figure).collect()
}

fn connection_table(connections: &[ConnectionCount]) -> String {
    let mut table = format!(
        "\n## Connections\n\n\
         Connections that one caller opens for the handshake and {SEQUENCE} sequential calls.\n\n\
         them.\n\n\
         | client | JSON | streams |\n| --- | ---: | ---: |\n"
    );
    for ConnectionCount { label, opened: [json, sse] } in connections {
        let _ = writeln!(table, "| {label} | {json} | {sse} |");
    }
    table
}

fn account_table(UnusedAccount { requests: [without, with], times }: &UnusedAccount) -> String {
    let column = |nth: usize| median(times.iter().map(|pair| pair[nth]).collect());
    let relation = median(times.iter().map(|[without, with]| with / without).collect());
    format!(
        "\n## Unused account\n\n\
         A server that requires no login, called by Wharf on one thread: number of requests for connecting and \
         {SEQUENCE} calls, and the median time of a call of one caller, which is a median over pairs of runs.\n\n\
         | client | requests | a call |\n| --- | ---: | ---: |\n\
         | without an account | {without} | {:.0} µs |\n\
         | with an account | {with} | {:.0} µs ({relation:.2}×) |\n",
        column(0),
        column(1),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cell_compares_times_within_a_round() {
        let setting = BenchSetting { way: BenchTransport::Sse, cores: 1, payload: 64, callers: 1 };
        let other = BenchSetting { way: BenchTransport::Json, ..setting };
        let sample =
            |round, setting, label, median| ThroughputSample { round, setting, label, rate: 1e6 / median, median };
        let samples = [
            sample(0, setting, BARE[0], 100.0),
            sample(0, setting, "Wharf, one thread", 120.0),
            sample(0, setting, BARE[1], 50.0),
            sample(0, other, BARE[0], 1.0),
        ];
        assert_eq!(cell(&samples, setting, "Wharf, one thread"), "8 333, 120 µs (1.20×)");
        assert_eq!(cell(&samples, setting, BARE[1]), "20 000, 50 µs (1.00×)");
    }

    #[test]
    fn account_is_compared_within_each_pair_of_runs() {
        let account = UnusedAccount { requests: [102, 102], times: vec![[10.0, 11.0], [20.0, 20.0], [40.0, 41.0]] };
        let table = account_table(&account);
        assert!(table.contains("| without an account | 102 | 20 µs |"), "{table}");
        assert!(table.contains("| with an account | 102 | 20 µs (1.02×) |"), "{table}");
    }

    #[test]
    fn baseline_has_the_same_number_of_threads() {
        for (label, limit) in [("rmcp 3.8, two workers", BARE[1]), ("Python SDK 2.3", BARE[0]), (BARE[1], BARE[1])] {
            assert_eq!(limit_of(label), limit);
        }
    }
}
