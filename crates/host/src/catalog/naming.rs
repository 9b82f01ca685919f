//! Names of tools for people and for models.
//!
//! Both names are a pure function of the style, the server's name and the tool's own name. They do not depend on the
//! order of connections or on other servers. Names are never parsed; the catalog's table maps them to tools.

use std::fmt::Write as _;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use wharf_spec::{ToolId, UntrustedText};

/// Maximum length of a name at model providers.
const MAX_ALIAS_LENGTH: usize = 64;
/// Maximum length of the server part in a hashed name.
const MAX_HASHED_SERVER_LENGTH: usize = 24;
/// Number of hexadecimal digits of a hash.
const HASH_DIGITS: usize = 8;
/// Maximum characters of a tool's own name in a displayed name.
const MAX_SHOWN_NAME_CHARS: usize = 128;

/// Naming style of tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum NameStyle {
    /// `mcp__<server>__<tool>`
    #[default]
    Double,
    /// `mcp_<server>_<slug>_<hash8>`
    Hashed,
    /// `<tool>@<server>`
    At,
    /// `<server>::<tool>`
    Colons,
    /// `mcp_<server>_<tool>`
    Single,
}

impl NameStyle {
    /// Returns the style of a spelling such as `<tool>@<server>`.
    pub fn from_spelling(spelling: &str) -> Option<Self> {
        Some(match spelling {
            "mcp__<server>__<tool>" => Self::Double,
            "mcp_<server>_<slug>_<hash8>" => Self::Hashed,
            "<tool>@<server>" => Self::At,
            "<server>::<tool>" => Self::Colons,
            "mcp_<server>_<tool>" => Self::Single,
            _ => return None,
        })
    }
}

/// Names of one tool. Both are unique, except for hash collisions.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ToolNames {
    /// Name for people: the style's name, or the alias if that would be ambiguous or illegible.
    pub shown: Arc<str>,
    /// Name for models: `^[a-zA-Z0-9_-]{1,64}$`.
    pub alias: Arc<str>,
}

/// Returns the names of a tool.
///
/// The alias is the style's name if providers accept it and it is unambiguous. Otherwise it is a slug with a hash over
/// both parts. A name without a hash never ends like one with a hash.
pub fn tool_names(style: NameStyle, id: &ToolId) -> ToolNames {
    match plain_name(style, id) {
        Some(plain) if is_safe(&plain) => {
            let plain: Arc<str> = plain.into();
            ToolNames { shown: plain.clone(), alias: plain }
        }
        Some(plain) => ToolNames { shown: plain.into(), alias: hashed_name(style, id).into() },
        None => {
            let hashed: Arc<str> = hashed_name(style, id).into();
            ToolNames { shown: hashed.clone(), alias: hashed }
        }
    }
}

/// Returns the style's name if it is legible and its two parts can be distinguished.
fn plain_name(style: NameStyle, id: &ToolId) -> Option<String> {
    let (server, tool) = (id.server.as_str(), &*id.tool);
    if !is_legible(tool) {
        return None;
    }
    match style {
        NameStyle::Double if has_ambiguous_end(server) || has_ambiguous_start(tool) => None,
        // The server's name ends at the first `_`.
        NameStyle::Single if server.contains('_') || has_ambiguous_start(tool) => None,
        NameStyle::Hashed => None,
        NameStyle::Double => Some(format!("mcp__{server}__{tool}")).filter(|name| !ends_like_hash(name)),
        NameStyle::Single => Some(format!("mcp_{server}_{tool}")).filter(|name| !ends_like_hash(name)),
        // Server names contain neither `@` nor colons.
        NameStyle::At => Some(format!("{tool}@{server}")),
        NameStyle::Colons => Some(format!("{server}::{tool}")),
    }
}

/// Returns a name that a hash over both parts makes unique.
fn hashed_name(style: NameStyle, id: &ToolId) -> String {
    let (start, between) = if style == NameStyle::Double { ("mcp__", "__") } else { ("mcp_", "_") };
    let room = MAX_ALIAS_LENGTH - start.len() - between.len() - 1 - HASH_DIGITS;
    let server = slug(id.server.as_str(), MAX_HASHED_SERVER_LENGTH, "server");
    let tool = slug(&id.tool, room - server.len(), "tool");
    let mut name = format!("{start}{server}{between}{tool}_");
    for byte in &digest(id)[..HASH_DIGITS / 2] {
        let _ = write!(name, "{byte:02x}");
    }
    name
}

fn digest(id: &ToolId) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for part in [id.server.as_str(), &id.tool] {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    hasher.finalize().into()
}

/// Reduces a text to the characters that every provider accepts.
fn slug(text: &str, room: usize, otherwise: &str) -> String {
    let mut slug = String::new();
    for character in text.chars() {
        let fits = character.is_ascii_alphanumeric() || character == '-';
        match if fits { character } else { '_' } {
            '_' if slug.is_empty() || slug.ends_with('_') => {}
            letter => slug.push(letter),
        }
        if slug.len() == room {
            break;
        }
    }
    slug.truncate(slug.trim_end_matches('_').len());
    if slug.is_empty() { otherwise.to_owned() } else { slug }
}

/// Reports whether a person can read and type the name: no hidden characters, no spaces, limited length.
fn is_legible(tool: &str) -> bool {
    let short = tool.len() <= MAX_SHOWN_NAME_CHARS || tool.chars().count() <= MAX_SHOWN_NAME_CHARS;
    let plain = tool.bytes().all(|byte| byte.is_ascii_graphic());
    short && (plain || !tool.contains(char::is_whitespace) && UntrustedText::new(tool).to_string() == tool)
}

/// Reports whether model providers accept the name.
fn is_safe(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=MAX_ALIAS_LENGTH).contains(&name.len()) && name.bytes().all(fits)
}

fn has_ambiguous_end(server: &str) -> bool {
    server.contains("__") || server.ends_with('_')
}

fn has_ambiguous_start(tool: &str) -> bool {
    tool.contains("__") || tool.starts_with('_')
}

fn ends_like_hash(name: &str) -> bool {
    let Some((_, end)) = name.rsplit_once('_') else { return false };
    end.len() == HASH_DIGITS && end.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use wharf_spec::ServerName;

    use super::*;

    fn names(style: NameStyle, server: &str, tool: &str) -> (String, String) {
        let id = ToolId::new(&ServerName::new(server).unwrap(), tool);
        let ToolNames { shown, alias } = tool_names(style, &id);
        assert!(is_safe(&alias), "{alias}");
        (shown.to_string(), alias.to_string())
    }

    #[test]
    fn unambiguous_names_follow_their_style() {
        use NameStyle::{At, Colons, Double, Hashed, Single};
        for (style, server, tool, shown, alias) in [
            (Double, "git", "status", "mcp__git__status", "mcp__git__status"),
            (Double, "git", "log-all_x", "mcp__git__log-all_x", "mcp__git__log-all_x"),
            (Double, "_git", "a_", "mcp___git__a_", "mcp___git__a_"),
            (Double, "git", "a.b", "mcp__git__a.b", "mcp__git__a_b_9b58997d"),
            (Double, "git", "größe", "mcp__git__größe", "mcp__git__gr_e_3bf4919b"),
            (Single, "git", "log_all", "mcp_git_log_all", "mcp_git_log_all"),
            (At, "git", "status", "status@git", "mcp_git_status_a29aa33e"),
            (Colons, "git", "status", "git::status", "mcp_git_status_a29aa33e"),
            (Hashed, "git", "status", "mcp_git_status_a29aa33e", "mcp_git_status_a29aa33e"),
        ] {
            assert_eq!(names(style, server, tool), (shown.to_owned(), alias.to_owned()), "{style:?} {server} {tool}");
        }
    }

    #[test]
    fn ambiguous_names_get_a_hash() {
        use NameStyle::{Double, Single};
        for (style, server, tool) in [
            (Double, "a__b", "c"),
            (Double, "a", "b__c"),
            (Double, "a_", "b"),
            (Double, "a", "_b"),
            (Double, "a", "b_deadbeef"),
            (Double, "a", "deadbeef"),
            (Single, "a_b", "c"),
            (Single, "a", "_c"),
            (Single, "a", "deadbeef"),
            (Double, "a", "b c"),
            (Double, "a", "b\u{200b}"),
            (Double, "a", "b\n"),
        ] {
            let (shown, alias) = names(style, server, tool);
            assert!(ends_like_hash(&alias) && shown == alias, "{style:?} {server} {tool}: {alias}");
        }
    }

    #[test]
    fn long_names_keep_the_start_of_both_parts() {
        let (shown, alias) = names(NameStyle::Double, &"s".repeat(64), &"t".repeat(100));
        assert_eq!(shown, format!("mcp__{}__{}", "s".repeat(64), "t".repeat(100)));
        assert!(alias.starts_with(&format!("mcp__{}__{}_", "s".repeat(24), "t".repeat(24))), "{alias}");
        assert_eq!(alias.len(), MAX_ALIAS_LENGTH);
        let (shown, alias) = names(NameStyle::Double, "s", &"t".repeat(129));
        assert_eq!(shown, alias);
        let (_, alias) = names(NameStyle::Hashed, "___", "日本語");
        assert!(alias.starts_with("mcp_server_tool_"), "{alias}");
    }
}
