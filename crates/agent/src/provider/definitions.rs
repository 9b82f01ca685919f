//! The definitions of tools as a provider takes them, and the way back from the names it is given.
//!
//! One tool that cannot be defined is withheld with a reason; a request is never refused for it.

mod dialect;
mod schema;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::{self, Write as _};

use sha2::{Digest, Sha256};
use wharf_json::Raw;

use super::Format;

/// The most characters a provider takes in a name.
const LONGEST_NAME: usize = 64;
/// Hexadecimal digits of a hash.
const HASH_DIGITS: usize = 8;

/// A tool as the caller knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// Its name, of any characters.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The JSON schema of its arguments.
    pub schema: Raw,
}

/// A tool as a provider is told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered {
    /// What the model calls it.
    pub alias: String,
    /// What it does.
    pub description: String,
    /// The schema of its arguments, in what the provider understands of JSON schema.
    pub schema: Raw,
}

/// A tool the provider is not told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Withheld {
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: WithheldReason,
}

/// Why a provider is not told of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WithheldReason {
    /// Another one has its name.
    Twin,
    /// Its schema is no JSON, or holds a key twice.
    Invalid,
    /// Its schema describes something else than an object.
    NotObject,
    /// Its schema is too large, or grows too large when what it refers to is put in.
    TooLarge,
    /// Its schema refers to itself, or to something that is not in it; the reference, untrusted.
    Reference(String),
}

impl fmt::Display for WithheldReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Twin => f.write_str("another tool has its name"),
            Self::Invalid => f.write_str("its schema cannot be read"),
            Self::NotObject => f.write_str("its schema does not describe an object"),
            Self::TooLarge => f.write_str("its schema is too large"),
            Self::Reference(reference) => {
                let reference = wharf_spec::Shown::line(reference, 100);
                write!(f, "its schema refers to `{reference}`, which cannot be put in its place")
            }
        }
    }
}

/// Tools as one provider is told of them.
#[derive(Debug, Clone, Default)]
pub struct Compiled {
    /// Those it is told of, in their order.
    pub offered: Vec<Offered>,
    /// Those it is not.
    pub withheld: Vec<Withheld>,
    names: HashMap<String, String>,
}

/// Makes definitions fit for a provider.
pub fn compile(format: Format, definitions: &[Definition]) -> Compiled {
    let mut compiled = Compiled::default();
    definitions.iter().for_each(|definition| compiled.add(format, definition));
    compiled
}

impl Offered {
    /// Bytes of what the provider is told.
    fn size(&self) -> usize {
        self.alias.len() + self.description.len() + self.schema.as_bytes().len()
    }
}

impl Compiled {
    /// The tool that a model means, if it was told of one by that name.
    pub fn name(&self, alias: &str) -> Option<&str> {
        self.names.get(alias).map(String::as_str)
    }

    /// Whether the provider is told of the tool of this name.
    pub(crate) fn tells_of(&self, name: &str) -> bool {
        self.name(&alias(name)) == Some(name)
    }

    /// Bytes of what the provider is told.
    pub(crate) fn size(&self) -> usize {
        self.offered.iter().map(Offered::size).sum()
    }

    /// Adds one more, or withholds it.
    pub(crate) fn add(&mut self, format: Format, definition: &Definition) {
        if let Err(reason) = self.offer(format, definition) {
            self.withheld.push(Withheld { name: definition.name.clone(), reason });
        }
    }

    /// Leaves those of which this holds, by name and bytes. All the others are as if they had never been added.
    pub(crate) fn keep(&mut self, mut wanted: impl FnMut(&str, usize) -> bool) {
        let Self { offered, withheld, names } = self;
        withheld.clear();
        offered.retain(|tool| names.get(&tool.alias).is_some_and(|name| wanted(name, tool.size())));
        names.retain(|alias, _| offered.iter().any(|tool| tool.alias == *alias));
    }

    fn offer(&mut self, format: Format, definition: &Definition) -> Result<(), WithheldReason> {
        let alias = alias(&definition.name).into_owned();
        if self.names.contains_key(&alias) {
            return Err(WithheldReason::Twin);
        }
        let schema = schema::compile(format, &definition.schema)?;
        self.names.insert(alias.clone(), definition.name.clone());
        self.offered.push(Offered { alias, description: definition.description.clone(), schema });
        Ok(())
    }
}

/// What a model calls a tool: its name where every provider takes it, else what can be kept of it and a hash.
///
/// Depends on nothing but the name, so that calls of long ago are called the same, whichever tools there are now.
pub(super) fn alias(name: &str) -> Cow<'_, str> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(fits) {
        return Cow::Borrowed(name);
    }
    let kept = name.chars().take(LONGEST_NAME - 1 - HASH_DIGITS);
    let mut alias: String =
        kept.map(|letter| if letter.is_ascii() && fits(letter as u8) { letter } else { '_' }).collect();
    alias.push('_');
    let digest: [u8; 32] = Sha256::digest(name).into();
    for byte in &digest[..HASH_DIGITS / 2] {
        let _ = write!(alias, "{byte:02x}");
    }
    Cow::Owned(alias)
}

#[cfg(test)]
mod tests;
