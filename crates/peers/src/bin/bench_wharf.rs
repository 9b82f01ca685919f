//! Benchmark of this client, with deadline, progress, `_meta` and the `resultType` check enabled.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark prints, reads its environment and panics on errors"
)]

use std::hint::black_box;
use std::sync::{Arc, Mutex};

use wharf_client::{ConnectOptions, Connection, Direction, GuardProgram, RequestOptions, Tap, TappedMessage, connect};
use wharf_peers::{BenchOptions, block_on, run_closed_loop};
use wharf_spec::{Environment, StdioSpec};
use wharf_wire::RawJson;

fn main() {
    wharf_client::guard::run_guard_if_requested();
    let options = BenchOptions::from_args();
    block_on(options.flavour, async move {
        if options.print_template { print_template().await } else { measure(options).await }
    });
}

async fn measure(options: BenchOptions) {
    let connection = open(options.server.clone().into(), None).await;
    let arguments = RawJson::from_value(&serde_json::json!({ "text": options.text() })).unwrap();
    let name = if options.typed { "wharf typed" } else { "wharf" };
    let (caller, typed) = (connection.clone(), options.typed);
    let report = run_closed_loop(name, &options, move || {
        let (connection, arguments) = (caller.clone(), arguments.clone());
        async move {
            let options = RequestOptions::default().progress(|_| ());
            if typed {
                black_box(connection.call_tool("echo", &arguments, options).await.unwrap());
            } else {
                black_box(connection.call_tool_raw("echo", &arguments, options).await.unwrap());
            }
        }
    })
    .await;
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

/// Prints the line of a call, with `{id}` and `{text}` as placeholders.
async fn print_template() {
    #[derive(Default)]
    struct LastSentLine(Mutex<String>);
    impl Tap for LastSentLine {
        fn message(&self, passing: &TappedMessage<'_>) {
            if passing.direction == Direction::Sent {
                *self.0.lock().unwrap() = String::from_utf8(passing.bytes.to_vec()).unwrap();
            }
        }
    }
    let tap = Arc::new(LastSentLine::default());
    let echo = std::env::current_exe().unwrap().with_file_name("bench-echo");
    let connection = open(echo.into(), Some(tap.clone())).await;
    let arguments = RawJson::from_value(&serde_json::json!({ "text": "{text}" })).unwrap();
    connection.call_tool_raw("echo", &arguments, RequestOptions::default().progress(|_| ())).await.unwrap();
    let line = tap.0.lock().unwrap().clone();
    connection.close().await;
    let message: serde_json::Value = serde_json::from_str(&line).unwrap();
    println!("{}", line.replace(&message["id"].to_string(), "{id}"));
}
