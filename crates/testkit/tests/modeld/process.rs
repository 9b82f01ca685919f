//! The same as a process.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use wharf_testkit::modeld::ModelApiFormat;

use crate::client::{KEYS, receive, saying, send};

#[test]
fn it_reads_its_script_tells_its_address_and_ends_with_its_input() {
    let mut child =
        Command::new(env!("CARGO_BIN_EXE_modeld")).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    let script = json!({ "turns": [{ "blocks": [{ "text": "aye" }], "pace": { "hold": { "gate": "g" } } }] });
    writeln!(input, "{script}").unwrap();
    let url = next()["url"].as_str().unwrap().to_owned();
    input.write_all(b"open g\n").unwrap();
    assert_eq!(next(), json!({}));
    let format = ModelApiFormat::Anthropic;
    let reply = receive(send(&url, format.path(), &KEYS, &saying(format, "hi").to_string())).unwrap();
    assert_eq!(reply.json()["content"][0]["text"], "aye");
    input.write_all(b"requests\nrefusals\nnonsense\n").unwrap();
    assert_eq!(next()[0]["body"]["messages"][0]["content"], "hi");
    assert_eq!(next(), json!([]));
    assert!(next()["error"].is_string());
    drop(input);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_script_that_cannot_be_read_is_an_error() {
    let output = Command::new(env!("CARGO_BIN_EXE_modeld")).arg("/nonexistent/script.json").output().unwrap();
    assert!(!output.status.success());
}
