//! What is known of a tool by whoever may call it.

use std::sync::Arc;

use wharf_json::Raw;
use wharf_spec::Fingerprint;

/// What is known of a tool by whoever may call it: a model, a person, a program.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Description {
    /// What a caller says: 1 to 64 of `[a-zA-Z0-9_-]`, or the registry withholds the tool.
    pub name: Arc<str>,
    /// What people see and type.
    pub shown: Arc<str>,
    /// What people may see beside it.
    pub title: Option<String>,
    /// What the tool does, neutralised by whoever made this.
    pub text: String,
    /// The schema of the arguments, fit for a model.
    pub schema: Raw,
    /// Whose tool it is, where it is somebody else's.
    pub origin: Option<Origin>,
    /// What its provider claims of it.
    pub hints: Hints,
    /// What it may do.
    pub risk: Risk,
    /// Whether somebody has to permit a call of it.
    pub permission: Permission,
    /// The provider that one call is about, where the tool itself is nobody's.
    pub about: Option<About>,
}

/// The provider that a call of somebody else's tool is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// The provider.
    pub provider: Arc<str>,
    /// Why the call needs permission, where there is more to say than that no rule is about it.
    pub reason: Option<&'static str>,
}

/// Where a tool comes from, and which definition of it this is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Who provides it.
    pub provider: Arc<str>,
    /// What its provider calls it: untrusted text.
    pub name: Arc<str>,
    /// Stands for its whole definition.
    pub fingerprint: Fingerprint,
}

/// What a provider claims of a tool's behaviour, `None` where it claims nothing. Shown, never a grant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hints {
    /// Changes nothing.
    pub read_only: Option<bool>,
    /// May destroy something.
    pub destructive: Option<bool>,
    /// Calling it again changes nothing more.
    pub idempotent: Option<bool>,
    /// Reaches into the world outside.
    pub open_world: Option<bool>,
}

/// How much a call may do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Risk {
    /// What it does is known and small.
    Low,
    /// Anything.
    #[default]
    High,
}

/// Whether somebody has to permit a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Permission {
    /// It may be called unless a rule denies it.
    NotNeeded,
    /// It may be called when a rule or a person allows it.
    #[default]
    Needed,
    /// The tool puts the call before the gate itself, once it knows what it is about. Until then only a deny counts.
    Deferred,
}

impl Description {
    /// Describes a tool of one's own: shown by its name, of high risk and needing permission until said otherwise.
    pub fn new(name: impl Into<Arc<str>>, text: impl Into<String>, schema: Raw) -> Self {
        let name = name.into();
        Self {
            shown: name.clone(),
            name,
            title: None,
            text: text.into(),
            schema,
            origin: None,
            hints: Hints::default(),
            risk: Risk::default(),
            permission: Permission::default(),
            about: None,
        }
    }

    /// Who provides the tool; nobody's name is empty, so a tool of one's own has the empty one.
    pub fn provider(&self) -> &str {
        self.origin.as_ref().map_or("", |origin| &origin.provider)
    }
}

/// Whether every caller can say a name: 1 to 64 of `[a-zA-Z0-9_-]`.
pub(crate) fn is_callable(name: &str) -> bool {
    let safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=64).contains(&name.len()) && name.bytes().all(safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_every_caller_can_say() {
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
            assert_eq!(is_callable(name), callable, "{name:?}");
        }
    }
}
