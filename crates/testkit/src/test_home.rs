//! The home and the project of one test, and the built `wharf` run in them.
//!
//! Everything is below one temporary directory, removed with the [`TestHome`]. Files are named relative to it:
//!
//! | name | is |
//! |---|---|
//! | `home` | `HOME`; no `XDG_*` variable is set, so the configuration is in `home/.config` and the state in `home/.local/state` |
//! | `project` | the working directory |
//! | [`USER_CONFIG`] | the user's configuration |
//! | [`PROJECT_CONFIG`], [`SHARED_CONFIG`] | the project's configuration |
#![allow(clippy::unwrap_used, reason = "a fixture panics on errors")]

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::pty::Terminal;

/// The user's configuration file.
pub const USER_CONFIG: &str = "home/.config/wharf/config.json";
/// The project's own configuration file.
pub const PROJECT_CONFIG: &str = "project/.wharf/config.json";
/// The project's configuration file for all MCP hosts.
pub const SHARED_CONFIG: &str = "project/.mcp.json";

/// The search path of commands, unless a test sets another.
const SEARCH_PATH: &str = "/usr/bin:/bin";

/// A temporary home and project.
pub struct TestHome {
    /// The temporary directory, without symbolic links.
    root: PathBuf,
    variables: Vec<(OsString, OsString)>,
    /// Removed on drop.
    _directory: tempfile::TempDir,
}

impl TestHome {
    /// Creates an empty home and an empty project.
    pub fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        for name in ["home", "project"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        let variables = vec![("PATH".into(), SEARCH_PATH.into()), ("HOME".into(), root.join("home").into())];
        Self { root, variables, _directory: directory }
    }

    /// Creates a home with these servers in the user's configuration.
    pub fn with_servers(servers: &Value) -> Self {
        let home = Self::new();
        home.configure(servers);
        home
    }

    /// Sets a variable of every command.
    pub fn with_env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.variables.retain(|(other, _)| other != name);
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Returns the environment of commands: `PATH`, `HOME` and the variables that were set.
    pub fn variables(&self) -> Vec<(OsString, OsString)> {
        self.variables.clone()
    }

    /// Returns the directory with the home and the project in it.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the absolute path of a file, without symbolic links.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.root.join(name)
    }

    /// Writes a file and creates its directory.
    pub fn write(&self, name: impl AsRef<Path>, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// Writes an executable file. A separate process writes it: a process that another test starts meanwhile could
    /// inherit the open file, and executing it would then fail with ETXTBSY.
    pub fn write_program(&self, name: impl AsRef<Path>, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut writer = Command::new("sh");
        writer.args(["-c", r#"cat >"$0" && chmod 755 "$0""#]).arg(&path);
        let output = run_with_input(writer, text);
        assert_eq!(output.code, Some(0), "{output:?}");
        path
    }

    /// Replaces the user's configuration by one with these servers.
    pub fn configure(&self, servers: &Value) -> PathBuf {
        self.write(USER_CONFIG, &json!({ "mcpServers": servers }).to_string())
    }

    pub fn read(&self, name: impl AsRef<Path>) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Returns a `wharf` command in the project, without input and with piped output.
    pub fn command<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Command {
        let mut command = wharf_command(words);
        command.envs(self.variables.iter().cloned()).current_dir(self.path("project"));
        command
    }

    /// Runs `wharf` to its end.
    pub fn run<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> CommandOutput {
        self.command(words).output().unwrap().into()
    }

    /// Runs `wharf` with the words of a line, split at spaces without quoting.
    pub fn run_line(&self, line: &str) -> CommandOutput {
        self.run(line.split_whitespace())
    }

    /// Runs `wharf` and asserts that it exits with 0.
    #[track_caller]
    pub fn run_ok(&self, words: &[&str]) -> CommandOutput {
        let output = self.run(words);
        assert_eq!(output.code, Some(0), "{words:?}: {output:?}");
        output
    }

    /// Runs `wharf` with this text as its input.
    pub fn run_with_input(&self, words: &[&str], input: &str) -> CommandOutput {
        run_with_input(self.command(words), input)
    }

    /// Starts `wharf` on a terminal, with its output in a pipe and the words of a line as in [`TestHome::run_line`].
    #[track_caller]
    pub fn terminal(&self, line: &str) -> Terminal {
        Terminal::start_piped(&self.command(line.split_whitespace()))
    }
}

impl Default for TestHome {
    fn default() -> Self {
        Self::new()
    }
}

/// The result of a command.
#[derive(Debug)]
pub struct CommandOutput {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for CommandOutput {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

impl CommandOutput {
    /// Parses stdout as one JSON document on one line.
    #[track_caller]
    pub fn json(&self) -> Value {
        assert_eq!(self.stdout.lines().count(), 1, "{self:?}");
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Returns a `wharf` command with an empty environment, without input and with piped output.
pub fn wharf_command<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(built_program("wharf"));
    command.args(words).env_clear().env("PATH", SEARCH_PATH);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs a command with this text as its input.
pub fn run_with_input(mut command: Command, input: &str) -> CommandOutput {
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    match child.stdin.take().unwrap().write_all(input.as_bytes()) {
        // A program that does not read its input may have exited.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
        written => written.unwrap(),
    }
    child.wait_with_output().unwrap().into()
}

/// Returns the path of a program of this workspace, which is in the parent of the test binary's directory.
fn built_program(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.parent().unwrap().with_file_name(name);
    assert!(path.exists(), "run `cargo build` first: no {}", path.display());
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_has_files_and_variables_of_its_own() {
        let home = TestHome::with_servers(&json!({"x": {"command": "y"}})).with_env("PATH", "/bin");
        assert_eq!(home.read(USER_CONFIG), r#"{"mcpServers":{"x":{"command":"y"}}}"#);
        let variables = [("HOME".into(), home.path("home").into()), ("PATH".into(), "/bin".into())];
        assert_eq!(home.variables(), variables);
        let program = home.write_program("bin/say", "#!/bin/sh\necho \"$1\"\n");
        let output: CommandOutput = Command::new(program).arg("[1]").output().unwrap().into();
        assert_eq!((output.code, output.json()), (Some(0), json!([1])));
        let directory = home.root().to_owned();
        drop(home);
        assert!(!directory.exists());
    }
}
