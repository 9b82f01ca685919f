//! Instructions per call, which do not depend on other load.
//!
//! Counted in the client's process alone, as the difference between a long and a short run, so that startup cost
//! cancels out.

use std::path::Path;
use std::process::Command;

use super::BenchClient;
use crate::run::{TaskResult, capture, on_path, say};

/// Payload and callers of each count.
pub const SETTINGS: [(usize, usize); 3] = [(64, 1), (64, 64), (65536, 1)];

const SHORT_RUN_CALLS: u64 = 2000;
const LONG_RUN_CALLS: u64 = 4000;

/// Instructions per call of one client in each of the [`SETTINGS`]; `None` if the count failed.
pub struct InstructionCounts {
    pub label: &'static str,
    pub per_call: [Option<u64>; SETTINGS.len()],
}

/// Counts instructions for the selected clients. Returns an empty list if valgrind is not installed.
pub fn count_instructions(field: &[BenchClient], server: &Path) -> Vec<InstructionCounts> {
    if !on_path("valgrind") {
        say!("instruction counts SKIPPED: valgrind not found");
        return Vec::new();
    }
    let counted = field.iter().filter(|client| client.counted);
    counted.map(|client| InstructionCounts { label: client.label, per_call: per_call(client, server) }).collect()
}

fn per_call(client: &BenchClient, server: &Path) -> [Option<u64>; SETTINGS.len()] {
    say!("counting the instructions of {}", client.label);
    SETTINGS.map(|(payload, callers)| {
        let collect = |calls| run_callgrind(client, server, payload, callers, calls);
        let (short, long) = (collect(SHORT_RUN_CALLS), collect(LONG_RUN_CALLS));
        match (short, long) {
            (Ok(short), Ok(long)) => Some(long.saturating_sub(short) / (LONG_RUN_CALLS - SHORT_RUN_CALLS)),
            (Err(failure), _) | (_, Err(failure)) => {
                say!("no count: {}", failure.to_string().lines().next().unwrap_or_default());
                None
            }
        }
    })
}

fn run_callgrind(client: &BenchClient, server: &Path, payload: usize, callers: usize, calls: u64) -> TaskResult<u64> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--trace-children=no", "--callgrind-out-file=/dev/null"]);
    command.arg(&client.program).args(&client.arguments).arg("--server").arg(server);
    for (flag, value) in [("--payload", payload), ("--conc", callers)] {
        command.args([flag, &value.to_string()]);
    }
    let said = capture(command.args(["--calls", &calls.to_string()]))?.stderr;
    parse_collected(&said).ok_or_else(|| "no instruction count in the output of valgrind".into())
}

/// Reads `==17== Collected : 1234`; the last such line is the client's own.
fn parse_collected(said: &str) -> Option<u64> {
    let (_, count) = said.lines().rev().find_map(|line| line.split_once("Collected :"))?;
    count.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_instruction_count_is_parsed() {
        assert_eq!(parse_collected("==1== Collected : 5\n==1== \n==2== Collected : 1234\n"), Some(1234));
        assert_eq!(parse_collected("nothing"), None);
    }
}
