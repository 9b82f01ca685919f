//! Skill descriptions: the entries of the extension `io.modelcontextprotocol/skills` (SEP-2640).
//!
//! An entry lists every file of the skill with its size and digest. An entry that omits its `SKILL.md`, lists a file
//! twice or refers outside its own directory is malformed. This module reads no files.

use std::collections::HashSet;
use std::fmt;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{JsonLimits, View};
use wharf_json::{JsonDecodeError, RawJson, object_members};

/// Name of a skill's main file.
const ENTRY_FILE: &str = "SKILL.md";
/// Maximum bytes of a URI in an entry.
const URI_LIMIT: usize = 2048;
/// Maximum characters of a skill name, from the Agent Skills specification.
const NAME_LIMIT: usize = 64;

/// A skill as declared by its server. Every string is untrusted. The URI identifies the skill; the name is only a
/// label.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Skill {
    /// URI of its `SKILL.md`.
    pub uri: String,
    /// Name of the skill; not unique.
    pub name: String,
    /// Description of the skill.
    pub description: String,
    /// The complete front matter of `SKILL.md`, as a JSON object.
    pub frontmatter: RawJson,
    /// Files of the skill.
    pub files: SkillFiles,
    /// The complete entry as received.
    pub raw: RawJson,
}

/// The files of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkillFiles {
    /// A fixed list of files.
    Listed(Vec<SkillFile>),
    /// Files generated on each read, without digests.
    Dynamic,
}

/// A file of a skill, with its expected size and digest.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkillFile {
    /// URI of the file.
    pub uri: String,
    /// Path below the skill's directory, percent-decoded and without traversal.
    pub path: String,
    /// SHA-256 digest of the contents.
    pub digest: Sha256,
    /// Size in bytes.
    pub size: u64,
}

/// A SHA-256 digest, displayed as `sha256:` and 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Sha256(pub [u8; 32]);

impl Skill {
    /// Returns the URI of the skill's directory, with a trailing slash.
    pub fn directory(&self) -> &str {
        self.uri.strip_suffix(ENTRY_FILE).unwrap_or(&self.uri)
    }

    /// Returns the path of a URI below the skill's directory, or `None` if it is not below.
    pub fn path_of(&self, uri: &str) -> Option<String> {
        path_below(self.directory(), uri)
    }
}

impl View for Skill {
    fn from_raw(raw: RawJson, bounds: &JsonLimits) -> Result<Self, JsonDecodeError> {
        #[derive(Deserialize)]
        struct Shape<'a> {
            uri: String,
            #[serde(borrow)]
            frontmatter: &'a RawValue,
            #[serde(borrow)]
            resources: &'a RawValue,
        }
        #[derive(Deserialize)]
        struct WireFrontMatter {
            name: String,
            description: String,
        }
        let shape: Shape = raw.decode(bounds)?;
        let frontmatter = raw.slice_part(shape.frontmatter);
        // Reject duplicate keys: two parsers could see two different skills.
        object_members(&frontmatter, bounds)?;
        let WireFrontMatter { name, description } = frontmatter.decode(bounds)?;
        check_location(&shape.uri, &name)?;
        let files = parse_files(&shape.uri, shape.resources)?;
        Ok(Self { uri: shape.uri, name, description, frontmatter, files, raw })
    }
}

/// Checks that the URI ends in the skill's name and `SKILL.md`.
fn check_location(uri: &str, name: &str) -> Result<(), JsonDecodeError> {
    if !is_name(name) {
        return Err(malformed("`name` is not a valid skill name"));
    }
    let segments = parse_segments(uri).ok_or_else(|| malformed("`uri` is not a valid skill URI"))?;
    match segments.as_slice() {
        [.., directory, file] if file == ENTRY_FILE && uri.ends_with("/SKILL.md") => {
            if directory == name {
                Ok(())
            } else {
                Err(malformed("`uri` does not end in the skill's name"))
            }
        }
        _ => Err(malformed("`uri` does not end in SKILL.md")),
    }
}

/// Accepts lower-case letters, digits and single hyphens between them, as the Agent Skills specification requires.
fn is_name(name: &str) -> bool {
    let plain = |character: char| character == '-' || character.is_alphanumeric() && !character.is_uppercase();
    !name.is_empty()
        && name.chars().count() <= NAME_LIMIT
        && name.chars().all(plain)
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--")
}

fn parse_files(uri: &str, resources: &RawValue) -> Result<SkillFiles, JsonDecodeError> {
    #[derive(Deserialize)]
    struct WireSkillFile {
        uri: String,
        digest: String,
        size: u64,
    }
    if let Ok(word) = serde_json::from_str::<String>(resources.get()) {
        return if word == "dynamic" {
            Ok(SkillFiles::Dynamic)
        } else {
            Err(malformed("`resources` is neither a list nor `dynamic`"))
        };
    }
    let directory = uri.strip_suffix(ENTRY_FILE).unwrap_or(uri);
    let entries: Vec<WireSkillFile> = serde_json::from_str(resources.get()).map_err(JsonDecodeError::Shape)?;
    let mut files = Vec::with_capacity(entries.len());
    let mut seen = HashSet::new();
    for WireSkillFile { uri, digest, size } in entries {
        let path = path_below(directory, &uri)
            .ok_or_else(|| malformed(format!("file outside the skill's directory: `{uri}`")))?;
        let digest = Sha256::parse(&digest).ok_or_else(|| malformed(format!("`{path}` has no SHA-256 digest")))?;
        if !seen.insert(path.clone()) {
            return Err(malformed(format!("`{path}` is listed twice")));
        }
        files.push(SkillFile { uri, path, digest, size });
    }
    if !files.iter().any(|file| file.uri == uri) {
        return Err(malformed("SKILL.md is missing from `resources`"));
    }
    Ok(SkillFiles::Listed(files))
}

fn malformed(problem: impl fmt::Display) -> JsonDecodeError {
    JsonDecodeError::Shape(serde::de::Error::custom(problem))
}

fn path_below(directory: &str, uri: &str) -> Option<String> {
    let below = uri.strip_prefix(directory).filter(|_| uri.len() <= URI_LIMIT)?;
    let segments: Option<Vec<String>> = below.split('/').map(decode_segment).collect();
    segments.map(|segments| segments.join("/"))
}

/// Returns the decoded segments after the scheme; the first is in the position of a host.
fn parse_segments(uri: &str) -> Option<Vec<String>> {
    let (scheme, rest) = uri.split_once("://").filter(|_| uri.len() <= URI_LIMIT)?;
    let plain = scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    if scheme.is_empty() || !plain {
        return None;
    }
    rest.split('/').map(decode_segment).collect()
}

/// Percent-decodes one segment. Rejects traversal, separators and control characters in every encoding.
fn decode_segment(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte == b'%' {
            let (digits, after) = rest.split_at_checked(2)?;
            bytes.push(hex(digits[0])? << 4 | hex(digits[1])?);
            rest = after;
        } else if matches!(byte, b'?' | b'#') {
            return None;
        } else {
            bytes.push(byte);
        }
    }
    let name = String::from_utf8(bytes).ok()?;
    let leads_away = matches!(name.as_str(), "" | "." | "..") || name.contains(['/', '\\']);
    (!leads_away && !name.chars().any(char::is_control)).then_some(name)
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

impl Sha256 {
    /// Parses `sha256:` and 64 lower-case hex digits; accepts no other form.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("sha256:")?.as_bytes();
        if digits.len() != 64 || digits.iter().any(u8::is_ascii_uppercase) {
            return None;
        }
        let mut digest = [0; 32];
        for (byte, pair) in digest.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = hex(pair[0])? << 4 | hex(pair[1])?;
        }
        Some(Self(digest))
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const URI: &str = "skill://acme/refunds/SKILL.md";

    fn file(uri: &str) -> Value {
        json!({ "uri": uri, "digest": format!("sha256:{}", "0a".repeat(32)), "size": 3 })
    }

    fn entry(uri: &str, name: &str, resources: Value) -> Value {
        json!({ "uri": uri, "frontmatter": { "name": name, "description": "d" }, "resources": resources })
    }

    fn view(entry: &Value) -> Result<Skill, JsonDecodeError> {
        Skill::from_raw(RawJson::from_value(entry).unwrap(), &JsonLimits::default())
    }

    #[test]
    fn complete_entry_is_read() {
        let resources = json!([file(URI), file("skill://acme/refunds/a%20b/c.md")]);
        let skill = view(&entry(URI, "refunds", resources)).unwrap();
        assert_eq!((skill.name.as_str(), skill.directory()), ("refunds", "skill://acme/refunds/"));
        let SkillFiles::Listed(files) = &skill.files else { panic!("listed") };
        assert_eq!(files[1].path, "a b/c.md");
        assert_eq!(files[1].digest.to_string(), format!("sha256:{}", "0a".repeat(32)));
        assert_eq!(view(&entry(URI, "refunds", json!("dynamic"))).unwrap().files, SkillFiles::Dynamic);
        assert!(view(&entry("github://o/r/refunds/SKILL.md", "refunds", json!("dynamic"))).is_ok());
    }

    #[test]
    fn path_traversal_is_rejected() {
        for path in [
            "../other/SKILL.md",
            "a/../../b",
            "./a",
            "a//b",
            "",
            "a/",
            "%2e%2e/b",
            "%2E./b",
            "a%2fb",
            "a%5cb",
            "a\\b",
            "a%00b",
            "a\nb",
            "a?b",
            "a#b",
            "%zz",
            "a%2",
            "%ff",
        ] {
            let resources = json!([file(URI), file(&format!("skill://acme/refunds/{path}"))]);
            assert!(view(&entry(URI, "refunds", resources)).is_err(), "{path:?}");
        }
        for uri in ["skill://acme/refunds", "skill://acme/refunds2/x", "file:///etc/passwd", "https://x/y", "x"] {
            assert!(view(&entry(URI, "refunds", json!([file(URI), file(uri)]))).is_err(), "{uri}");
        }
    }

    #[test]
    fn incomplete_entries_are_malformed() {
        let upper = json!([{ "uri": URI, "digest": format!("sha256:{}", "0A".repeat(32)), "size": 3 }]);
        let negative = json!([{ "uri": URI, "digest": format!("sha256:{}", "0a".repeat(32)), "size": -1 }]);
        for resources in [
            json!([]),
            json!([file("skill://acme/refunds/a.md")]),
            json!([file(URI), file(URI)]),
            json!([file(URI), file("skill://acme/refunds/SKILL%2emd")]),
            json!([{ "uri": URI, "digest": "sha256:00", "size": 3 }]),
            json!([{ "uri": URI, "digest": format!("sha512:{}", "0a".repeat(32)), "size": 3 }]),
            upper,
            negative,
            json!("static"),
            json!(null),
            json!({}),
        ] {
            assert!(view(&entry(URI, "refunds", resources.clone())).is_err(), "{resources}");
        }
        assert!(view(&json!({ "uri": URI, "frontmatter": { "name": "refunds", "description": "d" } })).is_err());
        assert!(view(&json!({ "uri": URI, "frontmatter": { "name": "refunds" }, "resources": "dynamic" })).is_err());
        let twice = r#"{"uri":"skill://a/SKILL.md","frontmatter":{"name":"a","description":"x","description":"y"},"resources":"dynamic"}"#;
        assert!(Skill::from_raw(RawJson::parse(twice).unwrap(), &JsonLimits::default()).is_err());
    }

    #[test]
    fn name_must_match_uri() {
        for (uri, name) in [
            (URI, "refund"),
            (URI, "acme"),
            ("skill://Refunds/SKILL.md", "Refunds"),
            ("skill://a--b/SKILL.md", "a--b"),
            ("skill://-a/SKILL.md", "-a"),
            ("skill:///SKILL.md", ""),
            ("skill://a/skill.md", "a"),
            ("SKILL.md", "a"),
            ("skill://a b/SKILL.md", "a b"),
            ("skill://x/../a/SKILL.md", "a"),
            ("://a/SKILL.md", "a"),
        ] {
            assert!(view(&entry(uri, name, json!("dynamic"))).is_err(), "{uri} {name}");
        }
        assert!(view(&entry("skill://caf%C3%A9/SKILL.md", "café", json!("dynamic"))).is_ok());
    }
}
