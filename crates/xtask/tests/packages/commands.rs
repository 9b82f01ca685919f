//! Runs commands, and looks at their effect on directories.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use wharf_testkit::test_home::TestHome;

/// Runs a command to its end and returns its stdout without the last line break.
pub fn run(command: &mut Command) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{command:?}: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    if output.status.success() {
        Ok(stdout)
    } else {
        Err(format!("{command:?}: {}\n{stdout}\n{stderr}", output.status))
    }
}

/// Returns a command with the environment of a home, and nothing of this process.
pub fn command_in(home: &TestHome, program: impl AsRef<Path>) -> Command {
    let mut command = Command::new(program.as_ref());
    command.env_clear().envs(home.variables()).current_dir(home.path("project"));
    // `cargo xtask test` looks for processes with this variable.
    if let Some(marker) = env::var_os("WHARF_TEST_RUN") {
        command.env("WHARF_TEST_RUN", marker);
    }
    command
}

/// Returns the absolute path of a program on the search path.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// Checks that an installed `wharf` reports its version, and calls a tool of the demo server and of a server from npm.
pub fn check_wharf(home: &TestHome, wharf: &Path, version: &str) -> Result<(), String> {
    let stated = run(command_in(home, wharf).arg("--version"))?;
    expect(stated == format!("wharf {version}"), || format!("--version printed {stated}"))?;
    call_echo(home, wharf)?;
    call_npm_server(home, wharf)
}

/// Calls a tool of a server from npm. Without `cargo xtask`, which installs that server, this is left out.
fn call_npm_server(home: &TestHome, wharf: &Path) -> Result<(), String> {
    let script = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";
    let script =
        env::var_os("WHARF_PEERS").map(|peers| PathBuf::from(peers).join(script)).filter(|file| file.is_file());
    let (Some(script), Some(node)) = (script, find_program("node")) else {
        return expect(env::var_os("CI").is_none(), || "the server from npm is not installed".to_owned());
    };
    let server = format!("'{}' '{}' stdio", node.display(), script.display());
    let answer = run(command_in(home, wharf).args(["call", "echo", "message=Ahoy", "--stdio", &server]))?;
    expect(answer == "Echo: Ahoy", || format!("the server from npm answered {answer}"))
}

/// Calls a tool of the demo server, which is a separate process of the same binary.
pub fn call_echo(home: &TestHome, wharf: &Path) -> Result<(), String> {
    let server = format!("'{}' demo-server", wharf.display());
    let answer = run(command_in(home, wharf).args(["call", "echo", "text=Ahoy", "--stdio", &server]))?;
    expect(answer == "Ahoy", || format!("the server answered {answer}"))
}

pub fn expect(is_met: bool, failure: impl FnOnce() -> String) -> Result<(), String> {
    if is_met { Ok(()) } else { Err(failure()) }
}

/// Checks that files below a folder exist and have contents.
pub fn check_files(folder: &Path, names: &[&str]) -> Result<(), String> {
    for name in names {
        let size = fs::metadata(folder.join(name)).map_or(0, |file| file.len());
        expect(size > 0, || format!("{name} is missing or empty in {}", folder.display()))?;
    }
    Ok(())
}

/// Returns everything below a folder, relative to it.
pub fn entries(folder: &Path) -> BTreeSet<PathBuf> {
    walk(folder).into_iter().map(|path| path.strip_prefix(folder).unwrap().to_owned()).collect()
}

/// Returns everything below a folder that is not a directory, relative to it.
pub fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let is_file = |path: &PathBuf| fs::symlink_metadata(folder.join(path)).is_ok_and(|entry| !entry.is_dir());
    entries(folder).into_iter().filter(is_file).collect()
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(walk(&entry.path()));
        }
        found.push(entry.path());
    }
    found
}

/// Checks that a removal left a folder as it was.
pub fn check_unchanged(before: &BTreeSet<PathBuf>, after: &BTreeSet<PathBuf>) -> Result<(), String> {
    let left: Vec<_> = after.difference(before).collect();
    let lost: Vec<_> = before.difference(after).collect();
    expect(left.is_empty() && lost.is_empty(), || format!("left behind: {left:?}; lost: {lost:?}"))
}
