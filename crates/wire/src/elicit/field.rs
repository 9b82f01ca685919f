//! Fields of a form.

use super::{JsonNumber, TextFormat};
use crate::RawJson;

/// One field of a form. Every string is untrusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormField {
    /// Key of the field in the content.
    pub name: String,
    /// Display name.
    pub title: Option<String>,
    /// Description for the user.
    pub description: Option<String>,
    /// Set if the content must include the field.
    pub required: bool,
    /// Type and constraints of the value.
    pub kind: FieldKind,
    /// Default value as JSON. A default that fails the field's own validation is dropped.
    pub default: Option<RawJson>,
}

/// Type and constraints of a field's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldKind {
    /// A string.
    Text {
        /// Minimum number of characters.
        min_length: Option<u64>,
        /// Maximum number of characters.
        max_length: Option<u64>,
        /// Required format.
        format: Option<TextFormat>,
    },
    /// A number.
    Number {
        /// Minimum value.
        minimum: Option<JsonNumber>,
        /// Maximum value.
        maximum: Option<JsonNumber>,
    },
    /// An integer.
    Integer {
        /// Minimum value.
        minimum: Option<JsonNumber>,
        /// Maximum value.
        maximum: Option<JsonNumber>,
    },
    /// A boolean.
    Boolean,
    /// A single selection.
    Choice {
        /// Available options.
        options: Vec<Choice>,
    },
    /// A multiple selection.
    Choices {
        /// Available options.
        options: Vec<Choice>,
        /// Minimum number of selected options.
        min: Option<u64>,
        /// Maximum number of selected options.
        max: Option<u64>,
    },
}

/// An option of a selection field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The value to send.
    pub value: String,
    /// Display name.
    pub title: Option<String>,
}

impl FormField {
    /// Reports whether the field asks for a password, key, card number or similar secret, also in look-alike letters.
    pub fn asks_for_secret(&self) -> bool {
        super::secret_detection::asks_for_secret(self)
    }

    /// Returns the display name: the title, or the name if the title is missing or blank.
    pub fn display_name(&self) -> &str {
        self.title.as_deref().filter(|title| !title.trim().is_empty()).unwrap_or(&self.name)
    }
}
