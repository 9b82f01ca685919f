//! A home and a project of a test's own, and `wharf` run in them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::{Ran, WHARF, finished};
use crate::terminal::{Terminal, at_terminal};

pub struct Yard {
    directory: tempfile::TempDir,
}

impl Yard {
    pub fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for name in ["home", "project"] {
            std::fs::create_dir(directory.path().join(name)).unwrap();
        }
        Self { directory }
    }

    pub fn root(&self) -> PathBuf {
        self.directory.path().canonicalize().unwrap()
    }

    pub fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    pub fn project(&self) -> PathBuf {
        self.root().join("project")
    }

    /// Writes a file under the root: `project/.mcp.json`.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.root().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    pub fn write_user(&self, text: &str) {
        self.write("home/.config/wharf/config.json", text);
    }

    /// The words of a line, without any quoting.
    pub fn command(&self, line: &str) -> Command {
        self.command_of(&line.split_whitespace().collect::<Vec<_>>())
    }

    pub fn command_of(&self, words: &[&str]) -> Command {
        let mut command = Command::new(WHARF);
        command.args(words).env_clear().env("PATH", "/usr/bin:/bin").env("HOME", self.home());
        command.current_dir(self.project());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn run(&self, line: &str) -> Ran {
        finished(self.command(line).output().unwrap())
    }

    pub fn run_of(&self, words: &[&str]) -> Ran {
        finished(self.command_of(words).output().unwrap())
    }

    pub fn terminal(&self, line: &str) -> Terminal {
        at_terminal(&self.command(line))
    }
}

/// An entry of a demo server.
pub fn demo_entry() -> String {
    format!(r#"{{"command": {:?}, "args": ["demo-server", "--stdio"]}}"#, Path::new(WHARF))
}
