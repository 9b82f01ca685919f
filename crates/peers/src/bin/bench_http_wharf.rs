//! Benchmark of this client over Streamable HTTP, with deadline, progress, `_meta` and the `resultType` check enabled.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a benchmark reads its environment and panics on errors"
)]

use std::sync::Arc;

use wharf_auth::{Account, AccountKey, AccountOptions, FileVault};
use wharf_client::{Authorizer, ConnectOptions, Connection, Tap, connect_http};
use wharf_peers::{BenchOptions, HttpEchoServer, LastSentMessage, block_on, measure_wharf, print_call_template};
use wharf_spec::HttpSpec;

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
    let name = match (options.typed, options.account) {
        (true, _) => "wharf typed",
        (false, true) => "wharf with an account",
        (false, false) => "wharf",
    };
    let report = measure_wharf(name, &connection, &options).await;
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

async fn print_template(mut options: BenchOptions) {
    options.server = std::env::current_exe().unwrap().with_file_name("bench-http-echo");
    let (tap, server) = (Arc::new(LastSentMessage::default()), HttpEchoServer::start(&options));
    print_call_template(open(&server, Some(tap.clone()), None).await, &tap).await;
    server.stop();
}
