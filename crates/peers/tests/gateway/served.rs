//! A gateway over HTTP with its home and its servers.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use wharf_peers::load::{Endpoint, process_use};
use wharf_testkit::oracle::{MARKER, MarkedProcess, marked_processes, poll_until};
use wharf_testkit::test_home::{TestHome, USER_CONFIG};

/// The server of these tests.
pub const SERVER: &str = env!("CARGO_BIN_EXE_bench-gateway");
/// Maximum time for the start of a gateway, or for the end of its processes.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A home with some servers.
pub struct ServedHome {
    pub home: TestHome,
    pub marker: String,
}

impl ServedHome {
    /// Servers `s0`, `s1` and so on, which note their calls in a file each. All calls are allowed.
    pub fn new(servers: usize) -> Self {
        let home = TestHome::new();
        let marker = home.root().file_name().unwrap().to_string_lossy().into_owned();
        let served = Self { home, marker };
        let entries = (0..servers).map(|number| (format!("s{number}"), served.entry(number)));
        let entries = Value::Object(entries.collect());
        let config = json!({"mcpServers": entries, "permissions": [{"tool": "mcp__*", "action": "allow"}]});
        served.home.write(USER_CONFIG, &config.to_string());
        served
    }

    fn entry(&self, number: usize) -> Value {
        let words = ["server", "--child", "--journal", self.journal(number).to_str().unwrap()].map(str::to_owned);
        json!({"command": SERVER, "args": words, "env": {MARKER: self.marker}})
    }

    /// Returns the file in which a server notes its calls.
    pub fn journal(&self, number: usize) -> PathBuf {
        self.home.root().join(format!("journal-{number}"))
    }

    /// Returns the server processes, without what they have started.
    pub fn servers(&self) -> Vec<MarkedProcess> {
        let mut processes = marked_processes(&self.marker);
        processes.retain(|process| process.cmdline.starts_with(SERVER));
        processes
    }

    /// Kills the server processes, and waits until others have replaced them.
    pub fn replace_servers(&self) {
        let before = self.servers();
        for process in &before {
            let _ = Pid::from_raw(process.pid).map(|pid| kill_process(pid, Signal::KILL));
        }
        let is_new = |now: &MarkedProcess| before.iter().all(|old| old.pid != now.pid);
        let replaced = poll_until(PATIENCE, || before.is_empty() || self.servers().iter().any(is_new));
        assert!(replaced, "the gateway does not start its servers again");
    }

    /// Returns whether all processes of servers end.
    pub fn is_left_empty(&self, limit: Duration) -> bool {
        poll_until(limit, || marked_processes(&self.marker).is_empty())
    }
}

/// A running gateway over HTTP.
pub struct ServedGateway {
    child: Child,
    pub endpoint: Endpoint,
    /// All lines of stderr, at the end.
    messages: mpsc::Receiver<Vec<String>>,
}

impl ServedGateway {
    pub fn start(served: &ServedHome) -> Self {
        let mut command = served.home.command(["serve", "--http", "127.0.0.1:0"]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let url = line_after(&mut lines, "listening on ");
        let token = std::fs::read_to_string(line_after(&mut lines, "the token is in ")).unwrap();
        let mut endpoint = Endpoint::parse(&url).unwrap();
        endpoint.token = Some(token.trim().to_owned());
        let (done, messages) = mpsc::channel();
        std::thread::spawn(move || done.send(lines.map_while(Result::ok).collect()));
        Self { child, endpoint, messages }
    }

    pub fn url(&self) -> String {
        format!("http://{}{}", self.endpoint.address, self.endpoint.path)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn resident_kib(&self) -> u64 {
        process_use(&[self.pid()]).resident_kib
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends the gateway as a service manager does. Returns its messages.
    pub fn terminate(mut self) -> Vec<String> {
        assert!(Command::new("kill").arg(self.pid().to_string()).status().unwrap().success());
        self.child.wait().unwrap();
        self.messages.recv().unwrap_or_default()
    }
}

impl Drop for ServedGateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn line_after(lines: &mut std::io::Lines<BufReader<ChildStderr>>, text: &str) -> String {
    let found = lines.find_map(|line| line.unwrap().split_once(text).map(|(_, rest)| rest.to_owned()));
    found.unwrap_or_else(|| panic!("no line with {text:?}"))
}

/// Runs a future on a runtime of its own.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(future)
}

/// Returns the texts of all files below a directory.
pub fn files_below(directory: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else if let Ok(bytes) = std::fs::read(&path) {
            found.push((path, String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
    found
}
