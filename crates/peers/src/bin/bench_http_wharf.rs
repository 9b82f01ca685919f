//! Benchmark of this client over Streamable HTTP, with deadline, progress, `_meta` and the `resultType` check enabled.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark prints, reads its environment and panics on errors"
)]

use std::hint::black_box;
use std::sync::{Arc, Mutex};

use wharf_auth::{Account, AccountKey, AccountOptions, FileVault};
use wharf_client::{
    Authorizer, ConnectOptions, Connection, Direction, RequestOptions, Tap, TappedMessage, connect_http,
};
use wharf_peers::{BenchOptions, HttpEchoServer, block_on, run_closed_loop};
use wharf_spec::HttpSpec;
use wharf_wire::RawJson;

fn main() {
    let options = BenchOptions::from_args();
    block_on(options.flavour, async move {
        if options.print_template { print_template(options).await } else { measure(options).await }
    });
}

async fn measure(options: BenchOptions) {
    let server = HttpEchoServer::start(&options);
    let account = options.account.then(|| account(&server));
    let connection = open(&server, None, account).await;
    let arguments = RawJson::from_value(&serde_json::json!({ "text": options.text() })).unwrap();
    let name = match (options.typed, options.account) {
        (true, _) => "wharf typed",
        (false, true) => "wharf with an account",
        (false, false) => "wharf",
    };
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
    report.with_server_counts(server.stop()).print();
}

/// Returns an account without a login, backed by a file that does not exist.
fn account(server: &HttpEchoServer) -> Arc<dyn Authorizer> {
    let vault = Arc::new(FileVault::new(std::env::temp_dir().join(format!("wharf-bench-{}.json", std::process::id()))));
    let key = AccountKey { server: "bench".to_owned(), account: String::new() };
    Arc::new(Account::new(AccountOptions::new(key, server.url.parse().unwrap(), vault)))
}

async fn open(
    server: &HttpEchoServer,
    tap: Option<Arc<dyn Tap>>,
    authorizer: Option<Arc<dyn Authorizer>>,
) -> Connection {
    let mut options = ConnectOptions::default();
    (options.tap, options.authorizer) = (tap, authorizer);
    connect_http(&HttpSpec::new(server.url.parse().unwrap()), options).await.unwrap()
}

/// Prints the body of a call, with `{id}` and `{text}` as placeholders.
async fn print_template(mut options: BenchOptions) {
    #[derive(Default)]
    struct LastSentMessage(Mutex<String>);
    impl Tap for LastSentMessage {
        fn message(&self, passing: &TappedMessage<'_>) {
            if passing.direction == Direction::Sent {
                *self.0.lock().unwrap() = String::from_utf8(passing.bytes.to_vec()).unwrap();
            }
        }
    }
    options.server = std::env::current_exe().unwrap().with_file_name("bench-http-echo");
    let (tap, server) = (Arc::new(LastSentMessage::default()), HttpEchoServer::start(&options));
    let connection = open(&server, Some(tap.clone()), None).await;
    let arguments = RawJson::from_value(&serde_json::json!({ "text": "{text}" })).unwrap();
    connection.call_tool_raw("echo", &arguments, RequestOptions::default().progress(|_| ())).await.unwrap();
    let body = tap.0.lock().unwrap().clone();
    connection.close().await;
    server.stop();
    let message: serde_json::Value = serde_json::from_str(&body).unwrap();
    println!("{}", body.replace(&message["id"].to_string(), "{id}"));
}
