//! Calls of this client, alike over every transport.

use std::hint::black_box;
use std::sync::{Arc, Mutex};

use wharf_client::{Connection, Direction, RequestOptions, Tap, TappedMessage};
use wharf_wire::RawJson;

use crate::{BenchOptions, BenchReport, run_closed_loop};

/// Measures the `echo` tool of a connection, with deadline and progress enabled.
pub async fn measure_wharf(name: &str, connection: &Connection, options: &BenchOptions) -> BenchReport {
    let arguments = RawJson::from_value(&serde_json::json!({ "text": options.text() })).unwrap();
    let caller = connection.clone();
    run_closed_loop(name, options, move || {
        let (connection, arguments) = (caller.clone(), arguments.clone());
        async move {
            let options = RequestOptions::default().progress(|_| ());
            black_box(connection.call_tool_raw("echo", &arguments, options).await.unwrap());
        }
    })
    .await
}

/// Records the last message that a client sends.
#[derive(Default)]
pub struct LastSentMessage(Mutex<String>);

impl Tap for LastSentMessage {
    fn message(&self, passing: &TappedMessage<'_>) {
        if passing.direction == Direction::Sent {
            *self.0.lock().unwrap() = String::from_utf8(passing.bytes.to_vec()).unwrap();
        }
    }
}

/// Prints the message of a call, with `{id}` and `{text}` as placeholders, and closes the connection.
pub async fn print_call_template(connection: Connection, tap: &Arc<LastSentMessage>) {
    let arguments = RawJson::from_value(&serde_json::json!({ "text": "{text}" })).unwrap();
    connection.call_tool_raw("echo", &arguments, RequestOptions::default().progress(|_| ())).await.unwrap();
    let text = tap.0.lock().unwrap().clone();
    connection.close().await;
    let message: serde_json::Value = serde_json::from_str(&text).unwrap();
    println!("{}", text.replace(&message["id"].to_string(), "{id}"));
}
