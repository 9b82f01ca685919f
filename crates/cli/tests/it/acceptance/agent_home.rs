//! A home with a model that answers from a script, and `wharf` on a terminal in it.

use std::ops::Deref;
use std::time::Duration;

use serde_json::{Map, Value, json};
use wharf_testkit::modeld::{Modeld, Recorded, Script, ScriptedToolResult};
use wharf_testkit::oracle::{MARKER, marked_processes, poll_until};
use wharf_testkit::pty::Terminal;
use wharf_testkit::repl;
use wharf_testkit::test_home::{TestHome, USER_CONFIG};

use crate::support::WHARF;

/// How long the kernel may take to show that a process is gone.
const SOON: Duration = Duration::from_secs(5);

/// A home whose configuration names a scripted model, and whose processes have a marker.
pub struct AgentHome {
    home: TestHome,
    pub model: Modeld,
    settings: Map<String, Value>,
}

impl Deref for AgentHome {
    type Target = TestHome;

    fn deref(&self) -> &TestHome {
        &self.home
    }
}

impl AgentHome {
    /// With a model that follows the script, and no server.
    pub fn new(script: Script) -> Self {
        Self::speaking("anthropic", script)
    }

    /// The same, with a model that speaks a format.
    pub fn speaking(format: &str, script: Script) -> Self {
        let home = TestHome::new();
        let path = format!("{}:{}", home.path("bin").display(), std::env::var("PATH").unwrap());
        let marker = marker(&home);
        let mut home = home.with_env("PATH", path).with_env("LANG", "C.UTF-8").with_env(MARKER, marker);
        if let Some(run) = std::env::var_os("WHARF_TEST_RUN") {
            home = home.with_env("WHARF_TEST_RUN", run);
        }
        let model = Modeld::start(script).unwrap();
        let provider = json!({"format": format, "baseUrl": model.url(), "apiKey": "k-1", "model": "small"});
        let settings = json!({"model": "scripted", "providers": {"scripted": provider}, "tokenStore": "file"});
        let Value::Object(settings) = settings else { unreachable!("it was written as one") };
        Self { home, model, settings }
    }

    /// Adds a setting to the user's configuration: `mcpServers`, `permissions`.
    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.settings.insert(name.to_owned(), value);
        self.write(USER_CONFIG, &Value::Object(self.settings.clone()).to_string());
        self
    }

    pub fn servers(self, servers: Value) -> Self {
        self.with("mcpServers", servers)
    }

    pub fn variable(self, name: &str, value: &str) -> Self {
        Self { home: self.home.with_env(name, value), ..self }
    }

    /// Starts the REPL and waits for its prompt.
    #[track_caller]
    pub fn repl(&self, words: &[&str]) -> Terminal {
        repl::start(&self.command(words))
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
        let marker = marker(self);
        assert!(poll_until(SOON, || marked_processes(&marker).is_empty()), "left: {:?}", marked_processes(&marker));
    }

    /// The command lines of what `wharf` started here, and its own.
    pub fn processes(&self) -> Vec<String> {
        marked_processes(&marker(self)).into_iter().map(|process| process.cmdline).collect()
    }

    /// An entry whose process can be found later.
    pub fn marked(&self, mut entry: Value) -> Value {
        entry["env"][MARKER] = json!(marker(self));
        entry
    }
}

/// The value of the marker of a home's processes.
fn marker(home: &TestHome) -> String {
    home.root().file_name().unwrap().to_string_lossy().into_owned()
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
