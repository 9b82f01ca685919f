//! Tool metadata visible to callers.

use std::sync::Arc;

use wharf_json::RawJson;
use wharf_spec::Fingerprint;

/// Metadata of a tool, as visible to its callers (models, people, programs).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolDescription {
    /// Name used to call the tool: 1 to 64 characters of `[a-zA-Z0-9_-]`. The registry withholds a tool with any other
    /// name.
    pub name: Arc<str>,
    /// Name displayed to people and accepted from them.
    pub shown: Arc<str>,
    /// Optional title to display next to the name.
    pub title: Option<String>,
    /// Description of the tool's behaviour. Already sanitized by the creator of this value.
    pub text: String,
    /// Schema of the arguments, suitable for a model.
    pub schema: RawJson,
    /// Provider and definition of the tool. `None` for a tool of the embedding program.
    pub source: Option<ToolSource>,
    /// Behaviour hints declared by the provider.
    pub hints: ToolHints,
    /// Risk class.
    pub risk: ToolRisk,
    /// Permission requirement of a call.
    pub permission: PermissionRequirement,
    /// The provider concerned by one call of a built-in tool.
    pub subject: Option<CallSubject>,
}

/// The provider concerned by a call of a tool that belongs to another provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallSubject {
    /// The provider.
    pub provider: Arc<str>,
    /// Reason why the call needs permission, if there is a more specific one than the lack of a matching rule.
    pub reason: Option<&'static str>,
}

/// Provider of a tool, and the fingerprint of its definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSource {
    /// Name of the provider.
    pub provider: Arc<str>,
    /// The provider's own name for the tool: untrusted text.
    pub name: Arc<str>,
    /// Fingerprint of the whole definition.
    pub fingerprint: Fingerprint,
}

/// Behaviour hints declared by a provider. `None` means undeclared. Displayed, but grants no permission by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ToolHints {
    /// The tool does not modify its environment.
    pub read_only: Option<bool>,
    /// Updates may be destructive.
    pub destructive: Option<bool>,
    /// Repeating a call has no further effect.
    pub idempotent: Option<bool>,
    /// Interacts with external systems.
    pub open_world: Option<bool>,
}

/// Risk class of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ToolRisk {
    /// Known, limited effects.
    Low,
    /// Arbitrary effects.
    #[default]
    High,
}

/// Permission requirement of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PermissionRequirement {
    /// Allowed unless a rule denies it.
    NotNeeded,
    /// Needs a rule or a person to allow it.
    #[default]
    Needed,
    /// The tool consults the gate itself once it knows the subject of the call. Until then only deny rules apply.
    Deferred,
}

impl ToolDescription {
    /// Describes a tool of the embedding program: displayed by its name, high risk, permission needed.
    pub fn new(name: impl Into<Arc<str>>, text: impl Into<String>, schema: RawJson) -> Self {
        let name = name.into();
        Self {
            shown: name.clone(),
            name,
            title: None,
            text: text.into(),
            schema,
            source: None,
            hints: ToolHints::default(),
            risk: ToolRisk::default(),
            permission: PermissionRequirement::default(),
            subject: None,
        }
    }

    /// Returns the name of the provider, or the empty string for a tool of the embedding program. No provider has an
    /// empty name.
    pub fn provider(&self) -> &str {
        self.source.as_ref().map_or("", |source| &source.provider)
    }
}

/// Reports whether every caller can use a name: 1 to 64 characters of `[a-zA-Z0-9_-]`.
pub(crate) fn is_callable_name(name: &str) -> bool {
    let safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=64).contains(&name.len()) && name.bytes().all(safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callable_names_are_recognised() {
        let longest = "a".repeat(64);
        for (name, callable) in [
            ("a", true),
            ("mcp__files__read-File_2", true),
            (&longest, true),
            ("", false),
            (&format!("{longest}a"), false),
            ("a b", false),
            ("read@files", false),
            ("sеarch", false),
            ("a\n", false),
        ] {
            assert_eq!(is_callable_name(name), callable, "{name:?}");
        }
    }
}
