//! Errors of the secret store.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use wharf_spec::UntrustedText;
use wharf_store::{DocumentLoadError, DocumentSaveError};

/// Error from reading or storing a secret. Never contains the output of a program that may be the secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// The name is invalid.
    #[error("`{}` is not a valid secret name", UntrustedText::new(name.as_str()).truncate(80))]
    BadName {
        /// The rejected name.
        name: String,
    },
    /// The secret does not exist.
    #[error("secret `{name}` not found{}", keyring.as_ref().map(|said| format!(" (keyring error: {said})")).unwrap_or_default())]
    Unknown {
        /// Name of the secret.
        name: String,
        /// Error of the keyring, escaped.
        keyring: Option<String>,
    },
    /// Secrets are managed by a command, so they cannot be stored here.
    #[error("cannot store `{name}`: secrets are provided by `secretCommand`")]
    Elsewhere {
        /// Name of the secret.
        name: String,
    },
    /// A program could not be started.
    #[error("cannot start `{}`", UntrustedText::new(program.as_str()))]
    NotStarted {
        /// Name of the program.
        program: String,
        /// Reason from the system.
        source: io::Error,
    },
    /// A program failed.
    #[error("`{}` failed ({status}){}", UntrustedText::new(program.as_str()), after_colon(complaint))]
    Failed {
        /// Name of the program.
        program: String,
        /// Exit status, as text.
        status: String,
        /// Its standard error output, escaped.
        complaint: String,
    },
    /// A program exceeded the time limit and was killed.
    #[error("`{}` did not finish within {} s", UntrustedText::new(program.as_str()), limit.as_secs())]
    TooSlow {
        /// Name of the program.
        program: String,
        /// The time limit.
        limit: Duration,
    },
    /// The output of a program is too long, empty or not UTF-8.
    #[error("the output of `{}` is {what}", UntrustedText::new(program.as_str()))]
    BadAnswer {
        /// Name of the program.
        program: String,
        /// Description of the problem.
        what: &'static str,
    },
    /// The private file does not contain secrets.
    #[error("`{}` is not a valid secrets file", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// The private file was written by a newer version of Wharf.
    #[error("`{}` has schema {found}, but this version supports only schema 1", .path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Schema version found in the file.
        found: u64,
    },
    /// The private file cannot be read.
    #[error(transparent)]
    Load(#[from] DocumentLoadError),
    /// The private file cannot be written.
    #[error(transparent)]
    Save(DocumentSaveError),
}

impl SecretError {
    /// Returns a suggested fix.
    pub fn fix(&self) -> String {
        match self {
            Self::BadName { .. } => "use 1 to 64 letters, digits, `_`, `.` and `-`".to_owned(),
            Self::Unknown { name, .. } => format!("store it with: wharf secret set {name}"),
            Self::Elsewhere { .. } => "store it in the source of that command, or remove `secretCommand`".to_owned(),
            Self::NotStarted { .. } | Self::Failed { .. } | Self::TooSlow { .. } | Self::BadAnswer { .. } => {
                "run the program manually to see its error".to_owned()
            }
            Self::Damaged { path } => format!("fix the file manually, or move it away: mv {0} {0}.old", path.display()),
            Self::Newer { .. } => "use the newer version of Wharf that wrote it".to_owned(),
            Self::Load(DocumentLoadError::Unsafe(flaw))
            | Self::Save(DocumentSaveError::Load(DocumentLoadError::Unsafe(flaw))) => flaw.fix(),
            Self::Load(_) | Self::Save(_) => "check the file's permissions and the free disk space".to_owned(),
        }
    }

    /// Reports whether the keyring works but does not have the secret. `secret-tool` prints nothing then, `security`
    /// reports that it was not found.
    pub(super) fn is_missing(&self) -> bool {
        self.error_text().is_none_or(|complaint| complaint.contains("could not be found"))
    }

    /// Returns the keyring's error text. `None` if the output shows that the secret is merely missing.
    pub(super) fn error_text(&self) -> Option<String> {
        match self {
            Self::Failed { complaint, .. } if complaint.is_empty() => None,
            Self::Failed { complaint, .. } => Some(complaint.clone()),
            Self::BadAnswer { what: "empty", .. } => None,
            other => Some(other.to_string()),
        }
    }
}

fn after_colon(complaint: &str) -> String {
    if complaint.is_empty() { String::new() } else { format!(": {complaint}") }
}
