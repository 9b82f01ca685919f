//! Development tasks, run as `cargo xtask <task>`.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a developer's tool: it prints and reads the environment"
)]

mod api;
mod audit;
mod bench;
mod conformance;
mod lint;
mod package;
mod peers;
mod prove;
mod run;
mod test;
mod trial;
mod voice;

use std::process::ExitCode;

use run::TaskResult;

const HELP: &str = "\
usage: cargo xtask <task>

  lint                            formatting, clippy and rustdoc with warnings denied, and figures of the language
  api                             the part of lint that builds the documentation and compares the public API
                                  with evidence/api; with WHARF_REWRITE=1 records it
  test                            every test, also against real servers; then checks for leftover processes
  prove [all|faults|http|sse      the fault and process tests, repeated; writes
        |processes|config|auth    evidence/reliability.md
        |memory|embedding]
        [--runs N]
  prove package [--profile NAME]  makes the packages, installs them, runs them in a bare root file system
        [--binary FILE]           and measures them; writes evidence/packages.md
  prove gateway [--runs N]        whole gateways with many clients, servers, kills and clients of other makers; writes
        [--profile NAME]          evidence/gateway.md; --built uses the programs that are there
        [--built] [CASE]
  bench stdio [--quick]           calls per second, compared with other clients and the limit of
        [--rounds N] [--secs S]   the pipes, written to evidence/benchmarks.md
  bench http [--quick]            the same over HTTP, compared with a bare client on the same library
        [--rounds N] [--secs S]
        [--rounds N] [--secs S]
  bench host [--quick]            many servers behind one host, some failing, with limits
  bench cli [--quick]             run time of commands, compared with a bare client and other
        [--rounds N]              command lines
  bench repl [--quick]            time to prompt and key latency, quiet and under load
        [--rounds N]
  bench gateway [--quick]         calls through `wharf serve --http`, compared with a bare hop and other gateways
        [--rounds N] [--secs S] [--only TARGET] [--profile NAME] [--built] [--note TEXT]
  trial URL                       nine tasks with real servers and the model at URL, in
                                  three wire formats, written to evidence/trial.md
  conformance [REVISION]          the public conformance suite against this client; with
        [--scenario S] [--table]  --table written to evidence/conformance.md
  conformance server [REVISION]   the suite's server half against `wharf serve`, with a fixture server behind it on
        [--behind stdio|http]     stdio and over HTTP, in either era
        [--era handshake|stateless] [--scenario S] [--profile NAME] [--built] [--table]
  package [--profile NAME]        every package of one static binary below target/package: archive,
        [--binary FILE] [--quick] wheel, npm, Debian, install.sh, SHA256SUMS and SBOM; --targets lists
        [--target T] [--out DIR]  the platforms, --quick compresses less
  audit                           licences, sources and advisories of the dependencies
  peers                           installs the pinned third-party servers and SDKs that tests and
                                  benchmarks use
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
        ["api"] => lint::check_api(),
        ["test"] => test::test(),
        ["prove", "package", rest @ ..] => package::prove_packages(rest),
        ["prove", "gateway", rest @ ..] => prove::gateway(rest),
        ["prove", rest @ ..] => prove::prove(rest),
        ["bench", "stdio", rest @ ..] => bench::stdio(rest),
        ["bench", "http", rest @ ..] => bench::http(rest),
        ["bench", "host", rest @ ..] => bench::host(rest),
        ["bench", "cli", rest @ ..] => bench::cli(rest),
        ["bench", "repl", rest @ ..] => bench::repl(rest),
        ["bench", "gateway", rest @ ..] => bench::gateway(rest),
        ["trial", rest @ ..] => trial::trial(rest),
        ["conformance", rest @ ..] => conformance::conformance(rest),
        ["package", rest @ ..] => package::package(rest),
        ["audit"] => audit::audit(),
        ["peers"] => peers::install().map(drop),
        _ => Err(format!("unknown task: {}\n\n{HELP}", words.join(" ")).into()),
    }
}
