//! A home and a project of a test's own.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::support::{Ran, finished, wharf};

pub struct World {
    directory: tempfile::TempDir,
    variables: Vec<(String, String)>,
}

pub const USER: &str = "home/.config/wharf/config.json";
pub const PROJECT: &str = "home/project/.wharf/config.json";
pub const SHARED: &str = "home/project/.mcp.json";

impl World {
    pub fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(directory.path().join("home/project")).unwrap();
        Self { directory, variables: Vec::new() }
    }

    pub fn set(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// A command in the project, of whoever lives in the home.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = wharf(args);
        command.env("HOME", self.path("home")).current_dir(self.path("home/project"));
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        finished(self.command(args).output().unwrap())
    }

    /// Runs a command that has to end well.
    #[track_caller]
    pub fn fine(&self, args: &[&str]) -> Ran {
        let ran = self.run(args);
        assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
        ran
    }

    /// Runs a command that reads this text.
    pub fn piped(&self, args: &[&str], input: &str) -> Ran {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        finished(child.wait_with_output().unwrap())
    }
}
