//! How a server is reached, and what surrounds the program that reaches it.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::Secret;

/// A server that is started as a child process and spoken to through its standard streams.
///
/// The command is a list of arguments and never a line for a shell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StdioSpec {
    /// The program: a path, or a name looked up in `PATH`.
    pub program: OsString,
    /// Its arguments, each handed over as it is.
    pub args: Vec<OsString>,
    /// Where it runs; the working directory of the surroundings when absent.
    pub cwd: Option<PathBuf>,
    /// Variables it gets besides the short list every server gets.
    pub env: Vec<(OsString, EnvValue)>,
    /// Hands the whole environment down instead of the short list.
    pub inherit_env: bool,
    /// Values among the arguments that may not be shown.
    pub hidden: Vec<Secret>,
}

/// What a variable is set to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvValue {
    /// A value that may be shown.
    Plain(OsString),
    /// A value that may not.
    Secret(Secret),
    /// Whatever the surroundings have under the same name, if anything.
    Inherit,
}

/// The environment and the working directory, read once at the edge of the program and passed down as values.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// Every variable.
    pub env: Vec<(OsString, OsString)>,
    /// The working directory.
    pub cwd: PathBuf,
}

impl Surroundings {
    /// The value of a variable.
    pub fn var(&self, name: &str) -> Option<&OsString> {
        self.env.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }
}

/// The environment may hold secrets: only its size is shown.
impl std::fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Surroundings").field("env", &self.env.len()).field("cwd", &self.cwd).finish()
    }
}
