//! Development tasks, run as `cargo xtask <task>`.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a developer's tool: it prints and reads the environment"
)]

mod audit;
mod bench;
mod conformance;
mod dist;
mod lint;
mod peers;
mod prove;
mod run;
mod test;
mod trial;

use std::process::ExitCode;

use run::TaskResult;

const HELP: &str = "\
usage: cargo xtask <chore>

  lint                            formatting and clippy, warnings denied
  test                            every test, against real servers too; then looks for leftovers
  prove [all|faults|http|sse      the fault and process tests many times over, told in
        |processes|config|auth]   evidence/reliability.md
        [--runs N]
  bench stdio [--quick]           calls per second next to other clients and to the limit of
        [--rounds N] [--secs S]   the pipes, told in evidence/benchmarks.md
  bench http [--quick]            the same over HTTP, next to a bare client on the same library
        [--rounds N] [--secs S]
  bench catalog [--quick]         merging and searching what many servers offer, next to a plain map
        [--rounds N] [--secs S]
  bench host [--quick]            many servers as one, some in trouble, each figure beside its limit
  bench cli [--quick]             how long commands take, next to a bare client and to other
        [--rounds N]              command lines
  bench repl [--quick]            how soon the prompt is there and a key is seen, whatever servers do
        [--rounds N]
  trial URL                       nine tasks over real servers with the model that answers there, in
                                  three wire formats, told in evidence/trial.md
  conformance [REVISION]          the public conformance suite against our client, strictly; with
        [--scenario S] [--table]  --table told in evidence/conformance.md
  dist                            a static binary with completions, manual pages and licences, as an
                                  archive below target/dist
  audit                           licences, sources and advisories of the dependencies
  peers                           installs the pinned servers and SDKs of others that tests and
                                  benchmarks talk to
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match dispatch(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(words: &[&str]) -> TaskResult {
    if words.is_empty() || words.iter().any(|word| matches!(*word, "--help" | "-h" | "help")) {
        print!("{HELP}");
        return Ok(());
    }
    match words {
        ["lint"] => lint::lint(),
        ["test"] => test::test(),
        ["prove", rest @ ..] => prove::prove(rest),
        ["bench", "stdio", rest @ ..] => bench::stdio(rest),
        ["bench", "http", rest @ ..] => bench::http(rest),
        ["bench", "catalog", rest @ ..] => bench::catalog(rest),
        ["bench", "host", rest @ ..] => bench::host(rest),
        ["bench", "cli", rest @ ..] => bench::cli(rest),
        ["bench", "repl", rest @ ..] => bench::repl(rest),
        ["trial", rest @ ..] => trial::trial(rest),
        ["conformance", rest @ ..] => conformance::conformance(rest),
        ["dist"] => dist::dist(),
        ["audit"] => audit::audit(),
        ["peers"] => peers::install().map(drop),
        _ => Err(format!("no such chore: {}\n\n{HELP}", words.join(" ")).into()),
    }
}
