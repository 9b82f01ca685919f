//! Servers of somebody else's making: from npm and PyPI, and ours on their SDKs.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};

use serde_json::{Value, json};
use wharf_testkit::pty::PATIENCE;

use crate::support::installed;

/// One of the reference servers on npm, with its arguments.
pub fn npm(package: &str, arguments: &[&str]) -> Value {
    let script = installed(&format!("node_modules/@modelcontextprotocol/{package}/dist/index.js"));
    let mut words = vec![script.display().to_string()];
    words.extend(arguments.iter().map(ToString::to_string));
    json!({"command": "node", "args": words})
}

/// One of the reference servers on PyPI.
pub fn pypi(module: &str, arguments: &[&str]) -> Value {
    let words = [&["-m", module], arguments].concat();
    json!({"command": installed("py1/bin/python"), "args": words})
}

/// The same server, with a copy of every line that it is sent.
pub fn overheard(mut entry: Value, copy: &Path) -> Value {
    let (program, rest) = (entry["command"].take(), entry["args"].take());
    let script = r#"copy=$1; shift; tee "$copy" | "$@""#;
    let mut words = vec![json!("-c"), json!(script), json!("sh"), json!(copy), program];
    words.extend(rest.as_array().into_iter().flatten().cloned());
    entry["command"] = json!("/bin/sh");
    entry["args"] = json!(words);
    entry
}

/// A server on the TypeScript SDK 1 that is reached over HTTP. Ends when it is dropped.
pub struct Web {
    pub url: String,
    child: Child,
    said: Arc<(Mutex<Vec<String>>, Condvar)>,
}

impl Web {
    /// Starts it, `--http` or `--sse`, and waits until it listens.
    pub fn start(way: &str) -> Self {
        let mut command = Command::new("node");
        command.arg(installed("servers/ts1.mjs")).arg(way);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let said = Arc::<(Mutex<Vec<String>>, Condvar)>::default();
        listen(child.stdout.take().unwrap(), &said);
        listen(child.stderr.take().unwrap(), &said);
        let mut web = Self { url: String::new(), child, said };
        web.url = web.has_said("listening ").split_once(' ').unwrap().1.to_owned();
        web
    }

    /// Everything it has said so far that begins like this.
    pub fn all_said(&self, beginning: &str) -> Vec<String> {
        let said = self.said.0.lock().unwrap();
        said.iter().filter(|line| line.starts_with(beginning)).cloned().collect()
    }

    /// Waits until it has said something that begins like this: a request by its method, path and
    /// headers, or `stopped`.
    #[track_caller]
    pub fn has_said(&self, beginning: &str) -> String {
        let found = |said: &Vec<String>| said.iter().find(|line| line.starts_with(beginning)).cloned();
        let (said, news) = &*self.said;
        let waited = news.wait_timeout_while(said.lock().unwrap(), PATIENCE, |said| found(said).is_none());
        let said = waited.unwrap().0;
        found(&said).unwrap_or_else(|| panic!("never said `{beginning}`: {said:?}"))
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn listen(stream: impl std::io::Read + Send + 'static, said: &Arc<(Mutex<Vec<String>>, Condvar)>) {
    let said = Arc::clone(said);
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            said.0.lock().unwrap().push(line);
            said.1.notify_all();
        }
    });
}
