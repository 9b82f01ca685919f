//! Tool definitions encoded for a provider, and the mapping from aliases back to names.
//!
//! A tool that cannot be encoded is withheld with a reason. It never fails the request.

mod keywords;
mod schema;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::{self, Write as _};

use sha2::{Digest, Sha256};
use wharf_json::RawJson;

use super::ApiFormat;

/// Maximum characters of a tool name accepted by all providers.
const MAX_NAME_BYTES: usize = 64;
/// Hexadecimal digits of the hash in an alias.
const HASH_DIGITS: usize = 8;

/// A tool definition before encoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelToolDefinition {
    /// Name of the tool, with any characters.
    pub name: String,
    /// Description of the tool.
    pub description: String,
    /// JSON schema of the arguments.
    pub schema: RawJson,
}

/// A tool definition as sent to a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedTool {
    /// Name of the tool as seen by the model.
    pub alias: String,
    /// Description of the tool.
    pub description: String,
    /// Schema of the arguments, restricted to the keywords that the provider supports.
    pub schema: RawJson,
}

/// A tool that is not sent to the provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnencodableTool {
    /// Name of the tool.
    pub name: String,
    /// Reason for withholding it.
    pub reason: UnencodableReason,
}

/// Reason for withholding a tool from a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnencodableReason {
    /// Another tool has the same name or alias.
    Twin,
    /// The schema is not valid JSON, or has a duplicate key.
    Invalid,
    /// The schema does not describe an object.
    NotObject,
    /// The schema is too large, or becomes too large when its references are resolved.
    TooLarge,
    /// The schema refers to itself or to a missing definition. Holds the reference: untrusted.
    Reference(String),
}

impl fmt::Display for UnencodableReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Twin => f.write_str("another tool has the same name"),
            Self::Invalid => f.write_str("schema is not valid JSON"),
            Self::NotObject => f.write_str("schema does not describe an object"),
            Self::TooLarge => f.write_str("schema is too large"),
            Self::Reference(reference) => {
                let reference = wharf_spec::EscapedText::single_line(reference, 100);
                write!(f, "schema reference `{reference}` cannot be resolved")
            }
        }
    }
}

/// Tool definitions encoded for one provider.
#[derive(Debug, Clone, Default)]
pub struct EncodedTools {
    /// Definitions sent to the provider, in order.
    pub offered: Vec<EncodedTool>,
    /// Tools not sent to the provider.
    pub withheld: Vec<UnencodableTool>,
    names: HashMap<String, String>,
}

/// Encodes definitions for a provider.
pub fn encode_tools(format: ApiFormat, definitions: &[ModelToolDefinition]) -> EncodedTools {
    let mut compiled = EncodedTools::default();
    definitions.iter().for_each(|definition| compiled.add(format, definition));
    compiled
}

impl EncodedTool {
    /// Returns the size in bytes of the definition.
    fn size_bytes(&self) -> usize {
        self.alias.len() + self.description.len() + self.schema.as_bytes().len()
    }
}

impl EncodedTools {
    /// Returns the name of the tool with this alias.
    pub fn name_of_alias(&self, alias: &str) -> Option<&str> {
        self.names.get(alias).map(String::as_str)
    }

    /// Reports whether the tool with this name is sent to the provider.
    pub(crate) fn includes(&self, name: &str) -> bool {
        self.name_of_alias(&tool_alias(name)) == Some(name)
    }

    /// Returns the size in bytes of all definitions.
    pub(crate) fn size_bytes(&self) -> usize {
        self.offered.iter().map(EncodedTool::size_bytes).sum()
    }

    /// Adds a tool, or withholds it.
    pub(crate) fn add(&mut self, format: ApiFormat, definition: &ModelToolDefinition) {
        if let Err(reason) = self.try_add(format, definition) {
            self.withheld.push(UnencodableTool { name: definition.name.clone(), reason });
        }
    }

    /// Removes all tools not accepted by `wanted`, which gets the name and the size in bytes. Also clears the withheld
    /// tools.
    pub(crate) fn retain(&mut self, mut wanted: impl FnMut(&str, usize) -> bool) {
        let Self { offered, withheld, names } = self;
        withheld.clear();
        offered.retain(|tool| names.get(&tool.alias).is_some_and(|name| wanted(name, tool.size_bytes())));
        names.retain(|alias, _| offered.iter().any(|tool| tool.alias == *alias));
    }

    fn try_add(&mut self, format: ApiFormat, definition: &ModelToolDefinition) -> Result<(), UnencodableReason> {
        let alias = tool_alias(&definition.name).into_owned();
        if self.names.contains_key(&alias) {
            return Err(UnencodableReason::Twin);
        }
        let schema = schema::compile_schema(format, &definition.schema)?;
        self.names.insert(alias.clone(), definition.name.clone());
        self.offered.push(EncodedTool { alias, description: definition.description.clone(), schema });
        Ok(())
    }
}

/// Returns the alias of a tool: its name if every provider accepts it, otherwise a sanitized prefix with a hash.
///
/// Depends only on the name, so that earlier calls keep their alias when the set of tools changes.
pub(super) fn tool_alias(name: &str) -> Cow<'_, str> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(fits) {
        return Cow::Borrowed(name);
    }
    let kept = name.chars().take(MAX_NAME_BYTES - 1 - HASH_DIGITS);
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
