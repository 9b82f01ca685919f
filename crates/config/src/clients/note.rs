//! What somebody should know about an entry that was carried over.

use wharf_spec::Untrusted;

/// Something that is not the same on the other side. It holds names of keys and variables, and never a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// How much it matters.
    pub severity: NoteSeverity,
    /// What is not the same: a lower-case fragment, escaped.
    pub text: String,
    /// What to do about it.
    pub fix: Option<String>,
}

/// How much a note matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoteSeverity {
    /// Something to know.
    Hint,
    /// Something is said in another way, and may not mean quite the same.
    Changed,
    /// Something is not there any more.
    Lost,
}

impl Note {
    pub(super) fn lost(text: impl Into<String>) -> Self {
        Self { severity: NoteSeverity::Lost, text: text.into(), fix: None }
    }

    pub(super) fn changed(text: impl Into<String>) -> Self {
        Self { severity: NoteSeverity::Changed, text: text.into(), fix: None }
    }

    pub(super) fn hint(text: impl Into<String>) -> Self {
        Self { severity: NoteSeverity::Hint, text: text.into(), fix: None }
    }

    pub(super) fn fix(self, fix: impl Into<String>) -> Self {
        Self { fix: Some(fix.into()), ..self }
    }
}

/// A name out of a file, fit to be shown.
pub(super) fn shown(name: &str) -> String {
    Untrusted::new(name).shortened(64).to_string()
}
