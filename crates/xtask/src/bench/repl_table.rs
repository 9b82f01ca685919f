//! The report of `bench repl`: startup, key latency and first requests, with their limits.

use std::fmt::Write;

use super::repl::{CROWD, ReplBenchPlan, ReplMeasurements, SURFACES, StartupTimes};
use super::tables::median;
use crate::run::MachineDescription;

/// Maximum delay of the prompt caused by the servers, in milliseconds.
const MAX_DELAY_MS: f64 = 20.0;
/// Maximum ratio of key latency during a flood to quiet latency.
const MAX_SLOWDOWN: f64 = 2.0;
/// Maximum ratio of the time to the first request with a broken and a slow server to the time without them.
const MAX_REQUEST_RATIO: f64 = 1.2;

pub fn page(plan: &ReplBenchPlan, measured: &ReplMeasurements) -> String {
    let here = MachineDescription::detect();
    let mut page = format!(
        "# Benchmarks: the REPL\n\n\
         On a pseudo-terminal, from the start of `wharf` to its prompt, and to the echo of a key that is typed as soon as the \
         prompt is shown: with no server, and with {CROWD}, of which a fifth each responds, responds after two seconds, never \
         responds, exits at once, and does not exist. Medians over {} rounds in which both take turns. The difference is computed \
         within each round, and is a median too. Then from a key to its echo, {} keys each: with a server that sends \
         nothing, and with one that writes to stderr and sends log notifications as fast as they are read ({:.0} per \
         second). Then from the start to the first request to a model, by `wharf run`, at the prompt and through a pipe: \
         with the demo server alone, and with one more that exits at once and one that responds after 20 seconds; the \
         ratio is a median of those within each round.\n\n\
         Measured on {}, Linux {}, {} cores, {}, with `{}`.\n\n",
        measured.openings.len(),
        measured.keys.0.len(),
        median(measured.flood.clone()),
        here.date,
        here.kernel,
        here.cores,
        here.processor,
        plan.command,
    );
    page.push_str(
        "| metric | quiet | loaded | difference | limit | within limit |\n| --- | ---: | ---: | ---: | ---: | --- |\n",
    );
    for row in rows(measured).into_iter().chain(request_rows(measured)) {
        let _ = writeln!(page, "{row}");
    }
    page
}

fn rows(measured: &ReplMeasurements) -> [String; 4] {
    [
        startup_row("prompt shown", measured, |opening| opening.prompt),
        startup_row("first key echoed", measured, |opening| opening.key),
        latency_row("key echoed, median", measured, 0.5, Some(MAX_SLOWDOWN)),
        latency_row("key echoed, p95", measured, 0.95, None),
    ]
}

fn startup_row(what: &str, measured: &ReplMeasurements, when: impl Fn(&StartupTimes) -> f64) -> String {
    let times = |of: fn(&(StartupTimes, StartupTimes)) -> &StartupTimes| {
        median(measured.openings.iter().map(|pair| when(of(pair))).collect())
    };
    let later = median(measured.openings.iter().map(|(quiet, crowd)| when(crowd) - when(quiet)).collect());
    let (quiet, crowd) = (times(|pair| &pair.0), times(|pair| &pair.1));
    format!(
        "| {what} | {quiet:.1} ms | {crowd:.1} ms | {later:+.1} ms | {MAX_DELAY_MS:+.0} ms | {} |",
        yes_no(later <= MAX_DELAY_MS)
    )
}

fn latency_row(what: &str, measured: &ReplMeasurements, share: f64, limit: Option<f64>) -> String {
    let (calm, flooded) = (quantile(&measured.keys.0, share), quantile(&measured.keys.1, share));
    let slower = flooded / calm;
    let (limit, held) = match limit {
        Some(limit) => (format!("{limit:.0}×"), yes_no(slower <= limit)),
        None => (String::new(), ""),
    };
    format!("| {what} | {calm:.0} µs | {flooded:.0} µs | {slower:.2}× | {limit} | {held} |")
}

fn request_rows(measured: &ReplMeasurements) -> [String; SURFACES.len()] {
    std::array::from_fn(|place| {
        let times = &measured.requests[place];
        let alone = median(times.iter().map(|(alone, _)| *alone).collect());
        let mixed = median(times.iter().map(|(_, mixed)| *mixed).collect());
        let ratio = median(times.iter().map(|(alone, mixed)| mixed / alone).collect());
        format!(
            "| first request, {} | {alone:.1} ms | {mixed:.1} ms | {ratio:.2}× | {MAX_REQUEST_RATIO:.1}× | {} |",
            SURFACES[place],
            yes_no(ratio <= MAX_REQUEST_RATIO)
        )
    })
}

fn yes_no(is_held: bool) -> &'static str {
    if is_held { "yes" } else { "**no**" }
}

fn quantile(times: &[f64], share: f64) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    let place = (times.len() as f64 * share) as usize;
    times.get(place).or(times.last()).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(later: f64, slower: f64) -> ReplMeasurements {
        // A slow round affects both cases: the difference stays.
        let openings = [10.0, 300.0, 20.0].map(|prompt| {
            let of = |prompt: f64| StartupTimes { prompt, key: prompt + 1.0 };
            (of(prompt), of(prompt + later))
        });
        ReplMeasurements {
            openings: openings.into(),
            keys: (vec![100.0; 9], vec![100.0 * slower; 9]),
            flood: vec![1.0],
            requests: [1.0, 1.2, 1.21].map(|ratio| vec![(100.0, 100.0 * ratio), (300.0, 300.0 * ratio)]),
        }
    }

    #[test]
    fn request_limit_is_inclusive() {
        let rows = request_rows(&measured(0.0, 1.0));
        assert_eq!(rows.each_ref().map(|row| row.contains("| yes |")), [true, true, false]);
        assert!(rows[1].starts_with("| first request, repl | ") && rows[1].contains(" 1.20× | 1.2× |"), "{rows:?}");
    }

    #[test]
    fn limits_are_inclusive() {
        let verdicts = |later, slower| rows(&measured(later, slower)).map(|row| row.contains("| yes |"));
        assert_eq!(verdicts(20.0, 2.0), [true, true, true, false]);
        assert_eq!(verdicts(20.1, 2.01), [false; 4]);
    }

    #[test]
    fn differences_are_taken_within_a_round() {
        let row = rows(&measured(5.0, 1.5)).map(|row| row.to_owned());
        assert_eq!(row[0], "| prompt shown | 20.0 ms | 25.0 ms | +5.0 ms | +20 ms | yes |");
        assert_eq!(row[2], "| key echoed, median | 100 µs | 150 µs | 1.50× | 2× | yes |");
    }
}
