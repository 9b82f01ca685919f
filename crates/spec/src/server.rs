//! How a server is reached, and what surrounds the program that reaches it.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::mask::masked_arguments_without;
use crate::{LaunchCheck, Secret};

/// A server that is started as a child process and spoken to through its standard streams.
///
/// The command is a list of arguments and never a line for a shell.
#[derive(Clone, Default, PartialEq, Eq)]
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
    /// Checked immediately before every start.
    pub launch_check: Option<LaunchCheck>,
}

impl StdioSpec {
    /// The arguments as they may be shown: what is secret in them is `***`.
    pub fn shown_args(&self) -> Vec<String> {
        masked_arguments_without(&self.args, &self.hidden)
    }
}

/// Arguments may hold secrets, which are not shown.
impl std::fmt::Debug for StdioSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StdioSpec")
            .field("program", &self.program)
            .field("args", &self.shown_args())
            .field("cwd", &self.cwd)
            .field("env", &self.env)
            .field("inherit_env", &self.inherit_env)
            .finish()
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_secret_is_in_the_debug_form() {
        let spec = StdioSpec {
            args: ["--api-key", "hushhush", "--port", "80"].map(Into::into).to_vec(),
            env: vec![("KEY".into(), EnvValue::Secret(Secret::new("hushhush")))],
            ..StdioSpec::default()
        };
        let shown = format!("{spec:?}");
        assert!(!shown.contains("hush") && shown.contains("80"), "{shown}");
    }

    #[test]
    fn what_is_hidden_is_looked_for_in_what_was_written() {
        let spec = StdioSpec {
            args: ["https://me:hush@h/hush?a=b", "--api-key", "hush", "--port", "80"].map(Into::into).to_vec(),
            hidden: ["me:hush@h/hush", "key", "80", ""].map(Secret::new).to_vec(),
            ..StdioSpec::default()
        };
        assert_eq!(spec.shown_args(), ["https://***?a=***", "--api-***", "***", "--port", "80"]);
    }
}
