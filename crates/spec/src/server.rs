//! Specification of a local server, and the environment that the program runs in.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::mask::mask_arguments_and_values;
use crate::{LaunchCheck, Secret};

/// A server that is started as a child process and communicates over its standard streams.
///
/// The command is a list of arguments and never a shell command line.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct StdioSpec {
    /// The program: a path, or a name looked up in `PATH`.
    pub program: OsString,
    /// Arguments, passed to the program unchanged.
    pub args: Vec<OsString>,
    /// Working directory of the server. `None` means that of the host.
    pub cwd: Option<PathBuf>,
    /// Variables in addition to the default list that every server gets.
    pub env: Vec<(OsString, EnvValue)>,
    /// Passes on the whole environment instead of the default list.
    pub inherit_env: bool,
    /// Values in the arguments that must be masked when the arguments are displayed.
    pub hidden: Vec<Secret>,
    /// Check that runs immediately before every start.
    pub launch_check: Option<LaunchCheck>,
}

impl StdioSpec {
    /// Returns the arguments with secrets masked as `***`.
    pub fn masked_args(&self) -> Vec<String> {
        mask_arguments_and_values(&self.args, &self.hidden)
    }
}

/// Masks the secrets in the arguments.
impl std::fmt::Debug for StdioSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StdioSpec")
            .field("program", &self.program)
            .field("args", &self.masked_args())
            .field("cwd", &self.cwd)
            .field("env", &self.env)
            .field("inherit_env", &self.inherit_env)
            .finish()
    }
}

/// The value of an environment variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvValue {
    /// A value that may be displayed.
    Plain(OsString),
    /// A value that must not be displayed.
    Secret(Secret),
    /// The variable of the same name in the host's environment, if there is one.
    Inherit,
}

/// The environment variables and the working directory, read once at startup and passed down as values.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// All environment variables.
    pub env: Vec<(OsString, OsString)>,
    /// Working directory.
    pub cwd: PathBuf,
}

impl Environment {
    /// Returns the value of a variable.
    pub fn var(&self, name: &str) -> Option<&OsString> {
        self.env.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }
}

/// Shows only the number of variables, because their values may be secret.
impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Surroundings").field("env", &self.env.len()).field("cwd", &self.cwd).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_contains_no_secrets() {
        let spec = StdioSpec {
            args: ["--api-key", "hushhush", "--port", "80"].map(Into::into).to_vec(),
            env: vec![("KEY".into(), EnvValue::Secret(Secret::new("hushhush")))],
            ..StdioSpec::default()
        };
        let shown = format!("{spec:?}");
        assert!(!shown.contains("hush") && shown.contains("80"), "{shown}");
    }

    #[test]
    fn hidden_values_are_matched_in_original_arguments() {
        let spec = StdioSpec {
            args: ["https://me:hush@h/hush?a=b", "--api-key", "hush", "--port", "80"].map(Into::into).to_vec(),
            hidden: ["me:hush@h/hush", "key", "80", ""].map(Secret::new).to_vec(),
            ..StdioSpec::default()
        };
        assert_eq!(spec.masked_args(), ["https://***?a=***", "--api-***", "***", "--port", "80"]);
    }
}
