//! Secrets for `${secret:NAME}` references.
//!
//! A secret comes from the user's `secretCommand` if it is set. Otherwise it comes from a private file, or else from
//! the system's keyring through its command-line program. A value is never passed as a program argument and never
//! included in an error.

mod error;
mod file;
mod keyring;
mod program;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use wharf_spec::{Environment, Secret};

pub use error::SecretError;

use file::SecretFile;
pub use keyring::Keyring;
pub(crate) use program::SecretProgram;

/// Maximum length of a secret's name.
const MAX_NAME_LENGTH: usize = 64;

/// A store for secrets. Operations block, up to ten seconds for each program that runs.
#[derive(Debug, Clone)]
pub struct SecretStore {
    command: Option<Vec<String>>,
    keyring: Option<Keyring>,
    file: SecretFile,
    around: Environment,
}

/// A secret and its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedSecret {
    /// The secret.
    pub value: Secret,
    /// Source of the secret.
    pub from: SecretOrigin,
}

/// Source of a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretOrigin {
    /// The command of `secretCommand`.
    Command,
    /// The system's keyring.
    Keyring,
    /// The private file.
    File(PathBuf),
}

impl SecretStore {
    /// Creates a store with this file. Uses the keyring if its program is on the search path.
    pub fn new(file: impl Into<PathBuf>, around: Environment) -> Self {
        let keyring = Keyring::detect(&around);
        Self { command: None, keyring, file: SecretFile::new(file.into()), around }
    }

    /// Uses this program instead, with the name in place of `{name}` in its arguments. Does not involve a shell.
    pub fn with_command(self, command: Vec<String>) -> Self {
        Self { command: Some(command).filter(|command| !command.is_empty()), ..self }
    }

    /// Disables the keyring.
    pub fn without_keyring(self) -> Self {
        Self { keyring: None, ..self }
    }

    /// Looks up a secret. If a command is set, only the command is used. Otherwise the file is tried before the
    /// keyring.
    ///
    /// # Errors
    /// Returns [`SecretError::Unknown`] if the secret does not exist, or another [`SecretError`] if a source fails.
    pub fn lookup(&self, name: &str) -> Result<ResolvedSecret, SecretError> {
        check_name(name)?;
        if let Some(command) = &self.command {
            let value = SecretProgram::from_command(command, name).run(&self.around)?;
            return Ok(ResolvedSecret { value, from: SecretOrigin::Command });
        }
        // The file has a secret only if the keyring rejected it. The keyring may then have an older value.
        if let Some(value) = self.file.lookup(name)? {
            return Ok(ResolvedSecret { value, from: self.file_origin() });
        }
        let complaint = match self.keyring.as_ref().map(|keyring| keyring.lookup(name, &self.around)) {
            Some(Ok(value)) => return Ok(ResolvedSecret { value, from: SecretOrigin::Keyring }),
            Some(Err(error)) => error.error_text(),
            None => None,
        };
        Err(SecretError::Unknown { name: name.to_owned(), keyring: complaint })
    }

    /// Stores a secret in the keyring, or in the file if there is no working keyring. Returns the place.
    pub fn set(&self, name: &str, value: &Secret) -> Result<SecretOrigin, SecretError> {
        check_name(name)?;
        self.check_writable(name)?;
        if let Some(keyring) = &self.keyring
            && keyring.set(name, value, &self.around).is_ok()
        {
            self.file.record_in_keyring(name)?;
            return Ok(SecretOrigin::Keyring);
        }
        self.file.set(name, value)?;
        Ok(self.file_origin())
    }

    /// Removes a secret from the keyring and the file. Returns whether it existed. If the keyring fails to remove it,
    /// the file stays unchanged as well.
    pub fn remove(&self, name: &str) -> Result<bool, SecretError> {
        check_name(name)?;
        self.check_writable(name)?;
        let was_in_keyring = match self.keyring.as_ref().map(|keyring| keyring.remove(name, &self.around)) {
            // Ignore a failing keyring if the secret was never stored there.
            Some(Err(error)) if self.file.is_in_keyring(name)? => return Err(error),
            Some(removed) => removed.unwrap_or(false),
            None => false,
        };
        Ok(self.file.remove(name)? || was_in_keyring)
    }

    /// Returns the sorted names of the secrets stored here.
    pub fn names(&self) -> Result<Vec<String>, SecretError> {
        self.file.names()
    }

    /// Returns the path of the private file, which may not exist.
    pub fn file(&self) -> &Path {
        self.file.path()
    }

    fn file_origin(&self) -> SecretOrigin {
        SecretOrigin::File(self.file.path().to_owned())
    }

    /// Rejects changes while a command is set, because a stored secret would never be looked up.
    fn check_writable(&self, name: &str) -> Result<(), SecretError> {
        match self.command {
            Some(_) => Err(SecretError::Elsewhere { name: name.to_owned() }),
            None => Ok(()),
        }
    }
}

/// Reports whether this is a valid secret name: 1 to 64 letters, digits, `_`, `.` and `-`.
pub fn is_secret_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    (1..=MAX_NAME_LENGTH).contains(&name.len()) && name.bytes().all(is_plain)
}

fn check_name(name: &str) -> Result<(), SecretError> {
    if is_secret_name(name) { Ok(()) } else { Err(SecretError::BadName { name: name.to_owned() }) }
}
