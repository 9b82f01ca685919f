//! The fields of a form.

use super::{Number, TextFormat};
use crate::Raw;

/// One field of a form. Every string is untrusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its key in the content.
    pub name: String,
    /// What people should see instead.
    pub title: Option<String>,
    /// What it means.
    pub description: Option<String>,
    /// Whether the content must have it.
    pub required: bool,
    /// What it takes.
    pub kind: FieldKind,
    /// What the server filled in, as JSON. One that does not fit its own field counts as none.
    pub default: Option<Raw>,
}

/// What a field takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldKind {
    /// A text.
    Text {
        /// The fewest characters.
        min_length: Option<u64>,
        /// The most characters.
        max_length: Option<u64>,
        /// What it should look like.
        format: Option<TextFormat>,
    },
    /// A number.
    Number {
        /// The least value.
        minimum: Option<Number>,
        /// The greatest value.
        maximum: Option<Number>,
    },
    /// A number without a fraction.
    Integer {
        /// The least value.
        minimum: Option<Number>,
        /// The greatest value.
        maximum: Option<Number>,
    },
    /// Yes or no.
    Boolean,
    /// One of several texts.
    Choice {
        /// What there is to choose from.
        options: Vec<Choice>,
    },
    /// Several of several texts.
    Choices {
        /// What there is to choose from.
        options: Vec<Choice>,
        /// The fewest to choose.
        min: Option<u64>,
        /// The most to choose.
        max: Option<u64>,
    },
}

/// An option of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// What is sent.
    pub value: String,
    /// What people should see instead.
    pub title: Option<String>,
}

impl Field {
    /// Whether it asks for a password, a key, a card's number or the like, whatever letters that is spelt with.
    pub fn asks_for_secret(&self) -> bool {
        super::secret::is_asked_by(self)
    }

    /// What to show a person: the title, or the name.
    pub fn display_name(&self) -> &str {
        self.title.as_deref().filter(|title| !title.trim().is_empty()).unwrap_or(&self.name)
    }
}
