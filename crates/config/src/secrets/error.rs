//! Why a secret was not found or not kept.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use wharf_spec::Untrusted;
use wharf_store::{LoadError, SaveError};

/// Why a secret was not found or not kept. What a program printed as the secret is never in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// It cannot be called that.
    #[error("`{}` is no name of a secret", Untrusted::new(name.as_str()).shortened(80))]
    BadName {
        /// What it was to be called.
        name: String,
    },
    /// Nobody has it.
    #[error("there is no secret `{name}`{}", keyring.as_ref().map(|said| format!("; the keyring says: {said}")).unwrap_or_default())]
    Unknown {
        /// What it is called.
        name: String,
        /// What the keyring complained of, escaped.
        keyring: Option<String>,
    },
    /// Secrets come from a command, which keeps them itself.
    #[error("secrets come from `secretCommand`, so `{name}` is not kept here")]
    Elsewhere {
        /// What it is called.
        name: String,
    },
    /// A program could not be started.
    #[error("cannot start `{}`", Untrusted::new(program.as_str()))]
    NotStarted {
        /// Which.
        program: String,
        /// Why not.
        source: io::Error,
    },
    /// A program failed.
    #[error("`{}` failed ({status}){}", Untrusted::new(program.as_str()), after_colon(complaint))]
    Failed {
        /// Which.
        program: String,
        /// How it ended, in words.
        status: String,
        /// What it wrote to its standard error, escaped.
        complaint: String,
    },
    /// A program took too long and was ended.
    #[error("`{}` did not answer within {} s", Untrusted::new(program.as_str()), limit.as_secs())]
    TooSlow {
        /// Which.
        program: String,
        /// How long it had.
        limit: Duration,
    },
    /// What a program answered is too long, empty or no text.
    #[error("what `{}` answered is {what}", Untrusted::new(program.as_str()))]
    BadAnswer {
        /// Which.
        program: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The private file holds something else.
    #[error("`{}` holds no secrets", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// A newer Wharf has written the private file.
    #[error("`{}` is of schema {found}, and only 1 is known here", .path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// What it says.
        found: u64,
    },
    /// The private file was not read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The private file was not written.
    #[error(transparent)]
    Save(SaveError),
}

impl SecretError {
    /// What to do about it.
    pub fn fix(&self) -> String {
        match self {
            Self::BadName { .. } => "use letters, digits, `_`, `.` and `-`, at most 64 of them".to_owned(),
            Self::Unknown { name, .. } => format!("keep it with: wharf secret set {name}"),
            Self::Elsewhere { .. } => "keep it where that command looks, or remove `secretCommand`".to_owned(),
            Self::NotStarted { .. } | Self::Failed { .. } | Self::TooSlow { .. } | Self::BadAnswer { .. } => {
                "run the program by hand and see what it says".to_owned()
            }
            Self::Damaged { path } => format!("repair it by hand, or move it away: mv {0} {0}.old", path.display()),
            Self::Newer { .. } => "use the newer Wharf that wrote it".to_owned(),
            Self::Load(LoadError::Unsafe(flaw)) | Self::Save(SaveError::Load(LoadError::Unsafe(flaw))) => flaw.fix(),
            Self::Load(_) | Self::Save(_) => {
                "see that you may read and write it, and that the disk has room".to_owned()
            }
        }
    }

    /// Whether a keyring merely does not know it. `secret-tool` says nothing then, `security` that it was not found.
    pub(super) fn is_missing(&self) -> bool {
        self.complaint().is_none_or(|complaint| complaint.contains("could not be found"))
    }

    /// What is worth saying of a keyring that did not have it: nothing if it merely does not know it.
    pub(super) fn complaint(&self) -> Option<String> {
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
