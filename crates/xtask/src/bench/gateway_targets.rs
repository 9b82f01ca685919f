//! The gateways that `cargo xtask bench gateway` compares, each before the same server.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::peers::GatewayPeers;
use crate::run::{TaskResult, say, target};

/// Maximum time for a start.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// What is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// The server itself over HTTP.
    Direct,
    /// HTTP to a pipe with the same HTTP library, and nothing else.
    Hop,
    Wharf,
    RustProxy,
    NodeProxy,
    Supergateway,
    Mcporter,
    PythonProxy,
    Fastmcp,
}

impl TargetKind {
    pub const ALL: [Self; 9] = [
        Self::Direct,
        Self::Hop,
        Self::Wharf,
        Self::RustProxy,
        Self::NodeProxy,
        Self::Supergateway,
        Self::Mcporter,
        Self::PythonProxy,
        Self::Fastmcp,
    ];

    pub fn label(self) -> &'static str {
        match self {
            Self::Direct => "direct HTTP",
            Self::Hop => "bare hop",
            Self::Wharf => "Wharf",
            Self::RustProxy => "mcp-proxy 0.6.0 (Rust)",
            Self::NodeProxy => "mcp-proxy 6.7.19 (npm)",
            Self::Supergateway => "supergateway 4.0.0",
            Self::Mcporter => "mcporter 0.12.3",
            Self::PythonProxy => "mcp-proxy 0.13.0 (PyPI)",
            Self::Fastmcp => "fastmcp 4.1.2",
        }
    }

    pub fn is_script(self) -> bool {
        !matches!(self, Self::Direct | Self::Hop | Self::Wharf | Self::RustProxy)
    }

    pub fn has_process_per_session(self) -> bool {
        self == Self::Supergateway
    }

    /// Returns the name of the tool.
    pub fn tool(self) -> &'static str {
        match self {
            Self::Wharf | Self::Mcporter => "echo__echo",
            Self::RustProxy => "echo/echo",
            _ => "echo",
        }
    }

    /// Returns the command of the server behind, whose use is not counted.
    pub fn server(self) -> Option<&'static str> {
        (self != Self::Direct).then_some("/bench-echo")
    }
}

/// A started target. Ends when dropped.
pub struct RunningTarget {
    pub kind: TargetKind,
    pub url: String,
    pub token: Option<String>,
    /// The load generator.
    pub load: PathBuf,
    child: Child,
}

impl RunningTarget {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for RunningTarget {
    fn drop(&mut self) {
        // Descendants would stay: none of the others ends its server when it is killed.
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["--", &group]).status();
        let _ = self.child.wait();
        let _ = Command::new("kill").args(["-9", "--", &group]).stderr(Stdio::null()).status();
    }
}

/// Ends what is left of all targets: mcporter has a process in the background, which nothing of ours is a parent of.
pub fn end_background_processes() {
    let wanted = format!("HOME={}", home().display());
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        if environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes()) {
            let _ = Command::new("kill").arg(entry.file_name()).stderr(Stdio::null()).status();
        }
    }
}

/// Returns the home of all targets.
fn home() -> PathBuf {
    target().join("bench/gateway-home")
}

/// Starts all targets. One that does not start is left out.
pub fn start_all(binaries: &Path, others: &GatewayPeers, only: &[String]) -> TaskResult<Vec<RunningTarget>> {
    let starter = Starter { binaries, others, home: create_home(binaries)? };
    let is_wanted = |kind: &TargetKind| only.is_empty() || only.iter().any(|name| kind.label().contains(name.as_str()));
    let mut started = Vec::new();
    for kind in TargetKind::ALL.into_iter().filter(is_wanted) {
        match starter.start(kind) {
            Ok(running) => started.push(running),
            Err(failure) => say!("{} SKIPPED: {failure}", kind.label()),
        }
    }
    Ok(started)
}

struct Starter<'a> {
    binaries: &'a Path,
    others: &'a GatewayPeers,
    home: PathBuf,
}

/// Writes the configuration of every gateway below one home. Audit and rules are on in Wharf's.
fn create_home(binaries: &Path) -> TaskResult<PathBuf> {
    let home = home();
    let _ = fs::remove_dir_all(&home);
    fs::create_dir_all(home.join(".config/wharf"))?;
    let server = binaries.join("bench-echo");
    let servers = json!({"echo": {"command": server, "args": []}});
    let rules = json!([{"tool": "mcp__other__*", "action": "deny"}, {"tool": "mcp__*", "action": "allow"}]);
    let config = json!({"mcpServers": servers, "permissions": rules});
    fs::write(home.join(".config/wharf/config.json"), config.to_string())?;
    fs::write(home.join("servers.json"), json!({"mcpServers": servers}).to_string())?;
    let kept = json!({"echo": {"command": server, "args": [], "lifecycle": "keep-alive"}});
    fs::write(home.join("mcporter.json"), json!({"mcpServers": kept}).to_string())?;
    Ok(home)
}

impl Starter<'_> {
    fn start(&self, kind: TargetKind) -> TaskResult<RunningTarget> {
        let server = self.binaries.join("bench-echo");
        let port = free_port()?;
        let text = port.to_string();
        let mut command = match kind {
            TargetKind::Direct => {
                let mut command = Command::new(self.binaries.join("bench-http-echo"));
                command.args(["--answers", "json"]);
                command
            }
            TargetKind::Hop => {
                let mut command = Command::new(self.binaries.join("bench-gateway"));
                command.args(["hop", "--server"]).arg(&server);
                command
            }
            TargetKind::Wharf => {
                let mut command = Command::new(self.binaries.join("wharf"));
                command.args(["serve", "--http", "127.0.0.1:0"]);
                command
            }
            TargetKind::RustProxy => {
                let mut command = Command::new(&self.others.rust);
                command.arg("--config").arg(self.rust_config(port, &server)?);
                command
            }
            TargetKind::NodeProxy => {
                let mut command = self.node("mcp-proxy/dist/bin/mcp-proxy.mjs");
                command.args(["--host", "127.0.0.1", "--port", &text, "--server", "stream", "--"]).arg(&server);
                command
            }
            TargetKind::Supergateway => {
                let mut command = self.node("supergateway/dist/index.js");
                command.args(["--outputTransport", "streamableHttp", "--stateful", "--logLevel", "none"]);
                command.args(["--port", &text, "--stdio"]).arg(&server);
                command
            }
            TargetKind::Mcporter => {
                let mut command = Command::new(&self.others.newer_node);
                command.arg(&self.others.mcporter).arg("--config").arg(self.home.join("mcporter.json"));
                command.args(["serve", "--http", &text]);
                command
            }
            TargetKind::PythonProxy => {
                let mut command = Command::new(self.others.python_proxy.join("bin/mcp-proxy"));
                command.args(["--host", "127.0.0.1", "--port", &text, "--"]).arg(&server);
                command
            }
            TargetKind::Fastmcp => {
                let mut command = Command::new(self.others.fastmcp.join("bin/fastmcp"));
                command.arg("run").arg(self.home.join("servers.json"));
                command.args(["--transport", "http", "--host", "127.0.0.1", "--port", &text, "--no-banner"]);
                command
            }
        };
        self.launch(kind, &mut command, port)
    }

    fn launch(&self, kind: TargetKind, command: &mut Command, port: u16) -> TaskResult<RunningTarget> {
        use std::os::unix::process::CommandExt as _;
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.env_clear().env("PATH", path).env("HOME", &self.home).current_dir(&self.home).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|error| format!("{}: {error}", kind.label()))?;
        let load = self.binaries.join("bench-gateway");
        let mut running = RunningTarget { kind, url: String::new(), token: None, load, child };
        let (stdout, stderr) = (running.child.stdout.take(), running.child.stderr.take());
        match kind {
            TargetKind::Direct | TargetKind::Hop => running.url = line_after(stdout, "listening ")?,
            TargetKind::Wharf => {
                let mut lines = BufReader::new(stderr.ok_or("no stderr")?);
                running.url = find_after(&mut lines, "listening on ")?;
                let file = find_after(&mut lines, "the token is in ")?;
                running.token = Some(fs::read_to_string(file)?.trim().to_owned());
                drain(Some(lines));
                drain(stdout);
            }
            _ => {
                drain(stdout);
                drain(stderr);
                wait_for_port(port, &mut running.child)?;
                let path = if kind == TargetKind::RustProxy { "" } else { "mcp" };
                running.url = format!("http://127.0.0.1:{port}/{path}");
            }
        }
        Ok(running)
    }

    fn node(&self, script: &str) -> Command {
        let mut command = Command::new("node");
        command.arg(self.others.node_modules.join(script));
        command
    }

    fn rust_config(&self, port: u16, server: &Path) -> TaskResult<PathBuf> {
        let path = self.home.join("proxy.toml");
        let text = format!(
            "[proxy]\nname = \"bench\"\nseparator = \"/\"\n\n[proxy.listen]\nhost = \"127.0.0.1\"\nport = {port}\n\n\
             [[backends]]\nname = \"echo\"\ntransport = \"stdio\"\ncommand = {server:?}\nargs = []\n"
        );
        fs::write(&path, text)?;
        Ok(path)
    }
}

fn free_port() -> TaskResult<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn wait_for_port(port: u16, child: &mut Child) -> TaskResult {
    let began = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        if let Some(status) = child.try_wait()? {
            return Err(format!("ended with {status}").into());
        }
        if began.elapsed() > START_TIMEOUT {
            return Err("did not listen in time".into());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

fn line_after(stdout: Option<impl Read>, text: &str) -> TaskResult<String> {
    let mut line = String::new();
    BufReader::new(stdout.ok_or("no stdout")?).read_line(&mut line)?;
    Ok(line.trim().strip_prefix(text).ok_or_else(|| format!("not `{text}...`: {line}"))?.to_owned())
}

/// Returns the rest of the next line that contains a text.
fn find_after(lines: &mut impl BufRead, text: &str) -> TaskResult<String> {
    let found = lines.lines().find_map(|line| line.ok()?.split_once(text).map(|(_, rest)| rest.to_owned()));
    found.ok_or_else(|| format!("no line with {text}").into())
}

/// Reads and drops output, so that the process does not wait for a reader.
fn drain(output: Option<impl Read + Send + 'static>) {
    if let Some(mut output) = output {
        std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
    }
}
