//! The system's keyring, accessed through its command-line program.

use std::path::PathBuf;

use wharf_spec::{Environment, Secret};

use super::SecretError;
use super::program::SecretProgram;
use crate::approvals::file_digests::find_on_path;

/// Service name of the stored secrets.
const SERVICE: &str = "wharf";

/// The system's keyring, accessed through its command-line program. Operations block for at most 10 s per program run.
///
/// Names are passed to that program and may contain letters, digits and `_.:%-` only.
#[derive(Debug, Clone)]
pub struct Keyring {
    kind: KeyringKind,
    program: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyringKind {
    /// `secret-tool` of libsecret.
    SecretTool,
    /// `security` of macOS.
    Security,
}

impl Keyring {
    /// Returns the keyring of this system, if its program is on the search path.
    pub fn detect(around: &Environment) -> Option<Self> {
        let kind = if cfg!(target_os = "macos") { KeyringKind::Security } else { KeyringKind::SecretTool };
        Self::detect_kind(kind, around)
    }

    pub(super) fn detect_kind(kind: KeyringKind, around: &Environment) -> Option<Self> {
        let name = match kind {
            KeyringKind::SecretTool => "secret-tool",
            KeyringKind::Security => "security",
        };
        let program = find_on_path(name, around.var("PATH")?, around)?;
        Some(Self { kind, program })
    }

    /// Looks up a value. Returns `None` if the keyring works but does not have it.
    pub fn lookup_optional(&self, name: &str, around: &Environment) -> Result<Option<Secret>, SecretError> {
        match self.lookup(name, around) {
            Err(error) if error.is_missing() => Ok(None),
            found => found.map(Some),
        }
    }

    pub(super) fn lookup(&self, name: &str, around: &Environment) -> Result<Secret, SecretError> {
        match self.kind {
            KeyringKind::SecretTool => self.program(&["lookup", "service", SERVICE, "name", name]),
            KeyringKind::Security => self.program(&["find-generic-password", "-s", SERVICE, "-a", name, "-w"]),
        }
        .run(around)
    }

    /// Stores a value. Replaces an existing one.
    pub fn set(&self, name: &str, value: &Secret, around: &Environment) -> Result<(), SecretError> {
        match self.kind {
            KeyringKind::SecretTool => {
                let label = format!("Wharf: {name}");
                let program = self.program(&["store", "--label", &label, "service", SERVICE, "name", name]);
                program.with_input(value.reveal().to_owned()).run_silently(around)
            }
            // Passed on stdin, because arguments are visible to other processes. -X takes hexadecimal digits, which
            // need no quoting.
            KeyringKind::Security => {
                let digits: String = value.reveal().bytes().map(|byte| format!("{byte:02x}")).collect();
                let line = format!("add-generic-password -U -s {SERVICE} -a {name} -X {digits}\n");
                self.program(&["-i"]).with_input(line).run_silently(around)?;
                // `security -i` exits successfully even if the command failed.
                self.lookup(name, around).map(drop)
            }
        }
    }

    /// Removes a value and returns whether it existed.
    ///
    /// # Errors
    /// Returns a [`SecretError`] if the value may still exist.
    pub fn remove(&self, name: &str, around: &Environment) -> Result<bool, SecretError> {
        // `secret-tool clear` does not report whether the value existed.
        match self.lookup(name, around) {
            Err(error) if error.is_missing() => return Ok(false),
            found => found.map(drop)?,
        }
        let program = match self.kind {
            KeyringKind::SecretTool => self.program(&["clear", "service", SERVICE, "name", name]),
            KeyringKind::Security => self.program(&["delete-generic-password", "-s", SERVICE, "-a", name]),
        };
        program.run_silently(around).map(|()| true)
    }

    fn program(&self, arguments: &[&str]) -> SecretProgram {
        SecretProgram::new(self.program.clone(), arguments.iter().map(|argument| (*argument).to_owned()).collect())
    }
}
