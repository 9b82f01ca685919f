//! Benchmark of this client, with deadline, progress, `_meta` and the `resultType` check enabled.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a benchmark reads its environment and panics on errors"
)]

use std::sync::Arc;

use wharf_client::{ConnectOptions, Connection, GuardProgram, Tap, connect};
use wharf_peers::{BenchOptions, LastSentMessage, block_on, measure_wharf, print_call_template};
use wharf_spec::{Environment, StdioSpec};

fn main() {
    wharf_client::guard::run_guard_if_requested();
    let options = BenchOptions::from_args();
    block_on(options.flavour, async move {
        if options.print_template { print_template().await } else { measure(options).await }
    });
}

async fn measure(options: BenchOptions) {
    let connection = open(options.server.clone().into(), None).await;
    let report = measure_wharf(if options.typed { "wharf typed" } else { "wharf" }, &connection, &options).await;
    connection.close().await;
    report.print();
}

async fn open(program: std::ffi::OsString, tap: Option<Arc<dyn Tap>>) -> Connection {
    let mut options = ConnectOptions::default();
    options.surroundings = Environment { env: std::env::vars_os().collect(), cwd: std::env::current_dir().unwrap() };
    // By path: under valgrind, `/proc/self/exe` is valgrind.
    options.guard = GuardProgram::At(std::env::current_exe().unwrap());
    options.tap = tap;
    connect(&StdioSpec { program, ..StdioSpec::default() }, options).await.unwrap()
}

async fn print_template() {
    let tap = Arc::new(LastSentMessage::default());
    let echo = std::env::current_exe().unwrap().with_file_name("bench-echo");
    print_call_template(open(echo.into(), Some(tap.clone())).await, &tap).await;
}
