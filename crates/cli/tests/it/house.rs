//! A home and a project of one test's own, with what is configured there.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Ran, WHARF, finished, wharf};

pub struct House(tempfile::TempDir);

impl House {
    /// With these servers in the user's own file.
    pub fn with(servers: &Value) -> Self {
        let house = Self(tempfile::tempdir().unwrap());
        std::fs::create_dir_all(house.path("project")).unwrap();
        house.configure(servers);
        house
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Makes these the servers in the user's own file.
    pub fn configure(&self, servers: &Value) -> PathBuf {
        self.write("home/.config/wharf/config.json", &json!({ "mcpServers": servers }).to_string())
    }

    pub fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = wharf(args);
        command.env("HOME", self.path("home")).current_dir(self.path("project"));
        command
    }

    pub fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Ran {
        finished(self.command(args).output().unwrap())
    }
}

/// A server that works.
pub fn working() -> Value {
    json!({"command": WHARF, "args": ["demo-server", "--stdio"]})
}

/// A server that says what it lacks and ends.
pub fn boom() -> Value {
    shell("echo 'boom: missing API key' >&2; exit 3")
}

/// A server that is a line of shell.
pub fn shell(script: &str) -> Value {
    json!({"command": "sh", "args": ["-c", script]})
}
