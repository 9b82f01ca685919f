//! The same as a process.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::client::{get, try_fetch};

#[test]
fn it_tells_its_addresses_obeys_and_ends_with_its_input() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_authd"))
        .args(["issuer_path=/t", "registration=bad_request"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    let addresses = next();
    let issuer = addresses["issuer"].as_str().unwrap();
    assert_eq!(try_fetch("POST", &format!("{issuer}/register"), &[], "{}").unwrap().status, 400);
    assert_eq!(get(addresses["server"].as_str().unwrap()).status, 401);
    input.write_all(b"counts\nseen\nmove-issuer\nnonsense\n").unwrap();
    assert_eq!(next()["refusals"], 1);
    assert_eq!(next()[0]["path"], "/t/register");
    assert_eq!(next(), serde_json::json!({}));
    assert!(next()["error"].is_string());
    drop(input);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_switch_that_does_not_exist_is_an_error() {
    let output = Command::new(env!("CARGO_BIN_EXE_authd")).arg("rotations=omitted").output().unwrap();
    assert!(!output.status.success());
}
