//! Embeds a host in tests, whose `main` is the harness's. Started by the test `embedding`.

#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a program prints, reads its environment and may panic"
)]

mod session;

#[test]
#[ignore = "the test `embedding` starts it"]
fn plain_test() {
    tokio::runtime::Runtime::new().unwrap().block_on(session::run()).unwrap();
}

#[tokio::test]
#[ignore = "the test `embedding` starts it"]
async fn tokio_test() {
    session::run().await.unwrap();
}
