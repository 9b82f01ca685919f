//! Secrets by reference: what `${secret:NAME}` stands for.
//!
//! A command of the user's is asked if there is one; otherwise a private file, and then the system's keyring, through
//! the program that comes with it. A value is never an argument of a program, and never part of an error.

mod error;
mod file;
mod keyring;
mod program;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use wharf_spec::{Secret, Surroundings};

pub use error::SecretError;

use file::SecretFile;
pub use keyring::Keyring;
use program::Program;

/// The longest name.
const LONGEST_NAME: usize = 64;

/// Where secrets are kept. Blocks, up to ten seconds for each program that is asked.
#[derive(Debug, Clone)]
pub struct SecretStore {
    command: Option<Vec<String>>,
    keyring: Option<Keyring>,
    file: SecretFile,
    around: Surroundings,
}

/// A secret, and where it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSecret {
    /// What it is.
    pub value: Secret,
    /// Where it comes from.
    pub from: SecretPlace,
}

/// A place that secrets come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretPlace {
    /// The command of `secretCommand`.
    Command,
    /// The system's keyring.
    Keyring,
    /// The private file.
    File(PathBuf),
}

impl SecretStore {
    /// A store whose file is this one. The keyring is used where its program is on the path.
    pub fn new(file: impl Into<PathBuf>, around: Surroundings) -> Self {
        let keyring = Keyring::find(&around);
        Self { command: None, keyring, file: SecretFile::at(file.into()), around }
    }

    /// Asks this program instead, with the name in place of `{name}` in its arguments. No shell takes part.
    pub fn with_command(self, command: Vec<String>) -> Self {
        Self { command: Some(command).filter(|command| !command.is_empty()), ..self }
    }

    /// Leaves the keyring alone.
    pub fn without_keyring(self) -> Self {
        Self { keyring: None, ..self }
    }

    /// Looks a secret up. A command that does not know it is the end of it; a keyring that does not is not.
    pub fn lookup(&self, name: &str) -> Result<FoundSecret, SecretError> {
        check_name(name)?;
        if let Some(command) = &self.command {
            let value = Program::of_command(command, name).run(&self.around)?;
            return Ok(FoundSecret { value, from: SecretPlace::Command });
        }
        // It is in the file only if the keyring did not take it, and then may hold an older one.
        if let Some(value) = self.file.lookup(name)? {
            return Ok(FoundSecret { value, from: self.file_place() });
        }
        let complaint = match self.keyring.as_ref().map(|keyring| keyring.lookup(name, &self.around)) {
            Some(Ok(value)) => return Ok(FoundSecret { value, from: SecretPlace::Keyring }),
            Some(Err(error)) => error.complaint(),
            None => None,
        };
        Err(SecretError::Unknown { name: name.to_owned(), keyring: complaint })
    }

    /// Keeps a secret in the keyring, or in the file where there is none that works, and says where.
    pub fn set(&self, name: &str, value: &Secret) -> Result<SecretPlace, SecretError> {
        check_name(name)?;
        self.check_own(name)?;
        if let Some(keyring) = &self.keyring
            && keyring.set(name, value, &self.around).is_ok()
        {
            self.file.note(name)?;
            return Ok(SecretPlace::Keyring);
        }
        self.file.set(name, value)?;
        Ok(self.file_place())
    }

    /// Forgets a secret wherever it is kept, and says whether there was one. Where the keyring keeps it all the same,
    /// nothing is forgotten.
    pub fn remove(&self, name: &str) -> Result<bool, SecretError> {
        check_name(name)?;
        self.check_own(name)?;
        let was_in_keyring = match self.keyring.as_ref().map(|keyring| keyring.remove(name, &self.around)) {
            // One that does not answer is nobody's concern if it was never given this.
            Some(Err(error)) if self.file.is_noted(name)? => return Err(error),
            Some(removed) => removed.unwrap_or(false),
            None => false,
        };
        Ok(self.file.remove(name)? || was_in_keyring)
    }

    /// The names of the secrets that were set here, sorted.
    pub fn names(&self) -> Result<Vec<String>, SecretError> {
        self.file.names()
    }

    /// The private file, whether it is there or not.
    pub fn file(&self) -> &Path {
        self.file.path()
    }

    fn file_place(&self) -> SecretPlace {
        SecretPlace::File(self.file.path().to_owned())
    }

    /// What is kept here would never be looked up while a command is asked.
    fn check_own(&self, name: &str) -> Result<(), SecretError> {
        match self.command {
            Some(_) => Err(SecretError::Elsewhere { name: name.to_owned() }),
            None => Ok(()),
        }
    }
}

/// Whether this is a secret's name: letters, digits, `_`, `.` and `-`, at most 64 of them.
pub fn is_secret_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(is_plain)
}

fn check_name(name: &str) -> Result<(), SecretError> {
    if is_secret_name(name) { Ok(()) } else { Err(SecretError::BadName { name: name.to_owned() }) }
}
