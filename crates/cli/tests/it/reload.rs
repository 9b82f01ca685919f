//! `wharf status --watch`: files are edited while it runs, and the host follows.

use std::io::{BufRead as _, BufReader, Read};
use std::process::Child;
use std::sync::mpsc;
use std::time::Duration;

use serde_json::json;
use wharf_testkit::test_home::TestHome;

use crate::support::{boom, working};

/// Long enough to fail by, on any machine.
const PATIENCE: Duration = Duration::from_secs(40);

/// A command that runs on, and the lines of one of its streams. Dropped, it is ended.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn lines(stream: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        BufReader::new(stream).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
    });
    lines
}

/// Waits for a line with this in it.
#[track_caller]
fn expect(lines: &mpsc::Receiver<String>, part: &str) {
    let mut seen = Vec::new();
    while let Ok(line) = lines.recv_timeout(PATIENCE) {
        if line.contains(part) {
            return;
        }
        seen.push(line);
    }
    panic!("{part:?} never came: {seen:#?}");
}

#[test]
fn edited_config_is_applied_and_broken_one_is_ignored() {
    let home = TestHome::with_servers(&json!({ "one": working() }));
    let mut running = Running(home.command(["status", "--watch"]).spawn().unwrap());
    let told = lines(running.0.stdout.take().unwrap());
    let warned = lines(running.0.stderr.take().unwrap());
    expect(&told, "one · ready");
    home.configure(&json!({ "one": working(), "two": boom() }));
    expect(&told, "configuration changed: added two");
    expect(&told, "two · reconnecting: exited with code 3: boom: missing API key");
    home.write("home/.config/wharf/config.json", "{\"mcpServers\": {\"one\":");
    expect(&warned, "using its last valid content");
    expect(&told, "configuration changed: no servers changed");
    home.configure(&json!({ "three": working() }));
    expect(&told, "configuration changed: added three; removed one, two");
    expect(&told, "three · ready");
    let id = rustix::process::Pid::from_child(&running.0);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    assert_eq!(running.0.wait().unwrap().code(), Some(130));
}

#[test]
fn watch_json_has_a_document_per_change() {
    let home = TestHome::with_servers(&json!({ "one": working() }));
    let mut running = Running(home.command(["status", "--watch", "--json"]).spawn().unwrap());
    let told = lines(running.0.stdout.take().unwrap());
    let first: serde_json::Value = serde_json::from_str(&told.recv_timeout(PATIENCE).unwrap()).unwrap();
    assert_eq!(first["items"][0]["id"], "one");
    expect(&told, r#""state":"ready""#);
    home.configure(&json!({}));
    expect(
        &told,
        r#"{"event":"config","schema":1,"added":[],"removed":["one"],"changed":[],"unapproved":[],"problems":[],"success":true}"#,
    );
}
