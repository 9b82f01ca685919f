//! The system's keyring, through the program that comes with it.

use std::path::PathBuf;

use wharf_spec::{Secret, Surroundings};

use super::SecretError;
use super::program::Program;
use crate::approvals::look::on_path;

/// What our secrets are filed under.
const SERVICE: &str = "wharf";

/// The system's keyring, reached through the program that comes with it. Everything here blocks, for 10 s at most.
///
/// What things are called goes to that program: letters, digits and `_.:%-` only.
#[derive(Debug, Clone)]
pub struct Keyring {
    kind: Kind,
    program: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `secret-tool` of libsecret.
    SecretTool,
    /// `security` of macOS.
    Security,
}

impl Keyring {
    /// The keyring of this system, if its program is on the path.
    pub fn find(around: &Surroundings) -> Option<Self> {
        let kind = if cfg!(target_os = "macos") { Kind::Security } else { Kind::SecretTool };
        Self::find_kind(kind, around)
    }

    pub(super) fn find_kind(kind: Kind, around: &Surroundings) -> Option<Self> {
        let name = match kind {
            Kind::SecretTool => "secret-tool",
            Kind::Security => "security",
        };
        let program = on_path(name, around.var("PATH")?, around)?;
        Some(Self { kind, program })
    }

    /// Looks a value up; nothing where the keyring merely does not know it.
    pub fn find_value(&self, name: &str, around: &Surroundings) -> Result<Option<Secret>, SecretError> {
        match self.lookup(name, around) {
            Err(error) if error.is_missing() => Ok(None),
            found => found.map(Some),
        }
    }

    pub(super) fn lookup(&self, name: &str, around: &Surroundings) -> Result<Secret, SecretError> {
        match self.kind {
            Kind::SecretTool => self.program(&["lookup", "service", SERVICE, "name", name]),
            Kind::Security => self.program(&["find-generic-password", "-s", SERVICE, "-a", name, "-w"]),
        }
        .run(around)
    }

    /// Keeps a value in the place of any before it.
    pub fn set(&self, name: &str, value: &Secret, around: &Surroundings) -> Result<(), SecretError> {
        match self.kind {
            Kind::SecretTool => {
                let label = format!("Wharf: {name}");
                let program = self.program(&["store", "--label", &label, "service", SERVICE, "name", name]);
                program.with_input(value.reveal().to_owned()).run_silently(around)
            }
            // Read from its input, since everybody sees arguments; -X takes digits, which need no quotes.
            Kind::Security => {
                let digits: String = value.reveal().bytes().map(|byte| format!("{byte:02x}")).collect();
                let line = format!("add-generic-password -U -s {SERVICE} -a {name} -X {digits}\n");
                self.program(&["-i"]).with_input(line).run_silently(around)?;
                // It ends well even where the line did not.
                self.lookup(name, around).map(drop)
            }
        }
    }

    /// Forgets a value and says whether there was one; fails where it may still be there.
    pub fn remove(&self, name: &str, around: &Surroundings) -> Result<bool, SecretError> {
        // `secret-tool clear` does not say whether there was anything.
        match self.lookup(name, around) {
            Err(error) if error.is_missing() => return Ok(false),
            found => found.map(drop)?,
        }
        let program = match self.kind {
            Kind::SecretTool => self.program(&["clear", "service", SERVICE, "name", name]),
            Kind::Security => self.program(&["delete-generic-password", "-s", SERVICE, "-a", name]),
        };
        program.run_silently(around).map(|()| true)
    }

    fn program(&self, arguments: &[&str]) -> Program {
        Program::new(self.program.clone(), arguments.iter().map(|argument| (*argument).to_owned()).collect())
    }
}
