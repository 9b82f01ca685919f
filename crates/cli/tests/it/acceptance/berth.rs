//! A home and a project of a test's own, a model that answers from a script, and `wharf` at a terminal.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Map, Value, json};
use wharf_testkit::modeld::{Modeld, Recorded, Script, ScriptedToolResult};
use wharf_testkit::oracle::{MARKER, marked_processes, poll_until};
use wharf_testkit::pty::Terminal;
use wharf_testkit::repl;

pub const WHARF: &str = env!("CARGO_BIN_EXE_wharf");

/// How long the kernel may take to show that a process is gone.
const SOON: Duration = Duration::from_secs(5);

pub struct Berth {
    directory: tempfile::TempDir,
    pub model: Modeld,
    settings: Map<String, Value>,
    variables: Vec<(String, String)>,
}

/// What a command that ended left.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Berth {
    /// With a model that follows the script, and no server.
    pub fn new(script: Script) -> Self {
        Self::speaking("anthropic", script)
    }

    /// The same, with a model that speaks a format.
    pub fn speaking(format: &str, script: Script) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for folder in ["home/.config/wharf", "project", "bin"] {
            std::fs::create_dir_all(directory.path().join(folder)).unwrap();
        }
        let model = Modeld::start(script).unwrap();
        let provider = json!({"format": format, "baseUrl": model.url(), "apiKey": "k-1", "model": "small"});
        let settings = json!({"model": "scripted", "providers": {"scripted": provider}, "tokenStore": "file"});
        let Value::Object(settings) = settings else { unreachable!("it was written as one") };
        Self { directory, model, settings, variables: Vec::new() }
    }

    /// Adds a setting to the user's configuration: `mcpServers`, `permissions`.
    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.settings.insert(name.to_owned(), value);
        let text = Value::Object(self.settings.clone()).to_string();
        std::fs::write(self.path("home/.config/wharf/config.json"), text).unwrap();
        self
    }

    pub fn servers(self, servers: Value) -> Self {
        self.with("mcpServers", servers)
    }

    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Writes a file: `project/.mcp.json`.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(name)
    }

    /// Starts the REPL and waits for its prompt.
    #[track_caller]
    pub fn repl(&self, words: &[&str]) -> Terminal {
        repl::start(&self.command(words))
    }

    pub fn run(&self, words: &[&str]) -> Ran {
        let output = self.command(words).stdin(Stdio::null()).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// Waits for what the model is sent; the first request is 1.
    #[track_caller]
    pub fn request(&self, number: usize) -> Recorded {
        let request = self.model.expect_request(number);
        assert_eq!(request.refusal, None, "the real API would have refused it");
        request
    }

    /// Checks what the model is told in a request of the calls it made: a part of each result, or of each error.
    #[track_caller]
    pub fn tells(&self, number: usize, expected: &[Result<&str, &str>]) {
        let told = self.request(number).results();
        let is_told = |(result, expected): (&ScriptedToolResult, &Result<&str, &str>)| match expected {
            Ok(part) => !result.is_error && result.text.contains(part),
            Err(part) => result.is_error && result.text.contains(part),
        };
        assert!(told.len() == expected.len() && told.iter().zip(expected).all(is_told), "{expected:?}: {told:?}");
    }

    /// Leaves the REPL; everything it started has to be gone then.
    #[track_caller]
    pub fn leave(&self, terminal: Terminal) -> String {
        let shown = repl::exit_repl(terminal);
        self.has_nobody_left();
        shown
    }

    /// Waits until no process is left of what `wharf` started here.
    #[track_caller]
    pub fn has_nobody_left(&self) {
        let marker = self.marker();
        assert!(poll_until(SOON, || marked_processes(&marker).is_empty()), "left: {:?}", marked_processes(&marker));
    }

    /// The command lines of what `wharf` started here, and its own.
    pub fn processes(&self) -> Vec<String> {
        marked_processes(&self.marker()).into_iter().map(|process| process.cmdline).collect()
    }

    /// An entry whose process can be found later.
    pub fn marked(&self, mut entry: Value) -> Value {
        entry["env"][MARKER] = json!(self.marker());
        entry
    }

    fn marker(&self) -> String {
        self.directory.path().file_name().unwrap().to_string_lossy().into_owned()
    }

    fn command(&self, words: &[&str]) -> Command {
        let path = format!("{}:{}", self.path("bin").display(), std::env::var("PATH").unwrap());
        let mut command = Command::new(WHARF);
        command.args(words).env_clear().current_dir(self.path("project"));
        command.env("PATH", path).env("HOME", self.path("home")).env("LANG", "C.UTF-8").env(MARKER, self.marker());
        if let Some(run) = std::env::var_os("WHARF_TEST_RUN") {
            command.env("WHARF_TEST_RUN", run);
        }
        command.envs(self.variables.iter().cloned());
        command
    }
}

/// Waits for a question and answers it.
#[track_caller]
pub fn answer(terminal: &mut Terminal, question: &str, line: &str) {
    repl::wait_for_question(terminal, question);
    terminal.line(line);
}

/// An entry of the embedded demo server.
pub fn demo() -> Value {
    json!({"command": WHARF, "args": ["demo-server"]})
}

/// Allows every call without asking.
pub fn all_allowed() -> Value {
    json!([{"tool": "mcp__*", "action": "allow"}])
}

/// A program that was built beside `wharf`.
pub fn built(name: &str) -> PathBuf {
    let path = Path::new(WHARF).with_file_name(name);
    assert!(path.exists(), "run `cargo build -p wharf-testkit`: no {}", path.display());
    path
}
