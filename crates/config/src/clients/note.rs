//! Notes about the conversion of an entry.

use wharf_spec::UntrustedText;

/// A difference between the original and the converted entry. Contains names of keys and variables, never values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversionNote {
    /// Severity.
    pub severity: NoteSeverity,
    /// Description: a lower-case fragment, escaped.
    pub text: String,
    /// Suggested fix.
    pub fix: Option<String>,
}

/// Severity of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoteSeverity {
    /// Information only.
    Hint,
    /// A value is expressed differently and may have a different meaning.
    Changed,
    /// A value is lost.
    Lost,
}

impl ConversionNote {
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

/// Escapes and shortens a name for display.
pub(super) fn displayed_name(name: &str) -> String {
    UntrustedText::new(name).truncate(64).to_string()
}
