//! The skills extension (SEP-2640): two skills, each with one additional file.

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::message::RpcError;

pub const EXTENSION: &str = "io.modelcontextprotocol/skills";

struct DemoSkill {
    /// URI of the skill's directory, without a trailing slash.
    root: &'static str,
    /// Frontmatter of SKILL.md, as pairs of plain strings.
    frontmatter: &'static [(&'static str, &'static str)],
    /// Body of SKILL.md.
    body: &'static str,
    /// Name, media type and text of the additional file.
    other: (&'static str, &'static str, &'static str),
}

const SKILLS: [DemoSkill; 2] = [
    DemoSkill {
        root: "skill://mooring",
        frontmatter: &[
            ("name", "mooring"),
            ("description", "Moor a ship: use when somebody wants a berth."),
            ("license", "MIT"),
        ],
        body: "# Mooring\n\n1. Ask which ship it is.\n2. Call `book_berth`.\n3. Follow references/KNOTS.md.\n",
        other: (
            "references/KNOTS.md",
            "text/markdown",
            "# Knots\n\nA bowline holds. So do two half hitches — twice.\n",
        ),
    },
    DemoSkill {
        root: "skill://port/cargo/unloading",
        frontmatter: &[("name", "unloading"), ("description", "Unload a ship, container by container.")],
        body: "# Unloading\n\nCall `unload_ship`, then tick off templates/list.csv.\n",
        other: ("templates/list.csv", "text/csv", "container,weight\n1,\n2,\n"),
    },
];

impl DemoSkill {
    fn uri(&self) -> String {
        format!("{}/SKILL.md", self.root)
    }

    fn document(&self) -> String {
        // JSON strings are valid YAML strings.
        let lines: String = self.frontmatter.iter().map(|(key, value)| format!("{key}: {}\n", json!(value))).collect();
        format!("---\n{lines}---\n\n{}", self.body)
    }

    /// Returns URI, media type and text of each file.
    fn files(&self) -> [(String, &'static str, String); 2] {
        let (name, mime_type, text) = self.other;
        [(self.uri(), "text/markdown", self.document()), (format!("{}/{name}", self.root), mime_type, text.to_owned())]
    }

    fn entry(&self) -> Value {
        let frontmatter: Map<_, _> =
            self.frontmatter.iter().map(|(key, value)| ((*key).to_owned(), (*value).into())).collect();
        let resources = self
            .files()
            .map(|(uri, _, text)| json!({"uri": uri, "digest": digest_text(text.as_bytes()), "size": text.len()}));
        json!({"uri": self.uri(), "frontmatter": frontmatter, "resources": resources})
    }
}

/// Returns the entries of `skills/list`.
pub fn entries() -> Vec<Value> {
    SKILLS.iter().map(DemoSkill::entry).collect()
}

/// Answers `skills/get`.
///
/// # Errors
///
/// Fails with invalid params for an unknown skill.
pub fn find(params: &Map<String, Value>) -> Result<Value, RpcError> {
    let uri = params.get("uri").and_then(Value::as_str);
    let uri = uri.ok_or_else(|| RpcError::invalid_params("`uri` must be a string"))?;
    let skill = SKILLS.iter().find(|skill| skill.uri() == uri);
    let skill = skill.ok_or_else(|| RpcError::invalid_params(format!("unknown skill `{uri}`")))?;
    Ok(json!({"skill": skill.entry()}))
}

/// Returns the contents of a skill's file.
pub fn contents(uri: &str) -> Option<Value> {
    let (_, mime_type, text) = SKILLS.iter().flat_map(DemoSkill::files).find(|(known, ..)| known == uri)?;
    Some(json!({"uri": uri, "mimeType": mime_type, "text": text}))
}

fn digest_text(bytes: &[u8]) -> String {
    let digits: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_match_the_files() {
        for entry in entries() {
            let document = contents(entry["uri"].as_str().unwrap()).unwrap();
            let name = entry["frontmatter"]["name"].as_str().unwrap();
            let text = document["text"].as_str().unwrap();
            assert!(text.starts_with(&format!("---\nname: \"{name}\"\ndescription: \"")), "{text}");
            assert!(entry["uri"].as_str().unwrap().ends_with(&format!("/{name}/SKILL.md")));
            let resources = entry["resources"].as_array().unwrap();
            assert_eq!((resources.len(), &resources[0]["uri"]), (2, &entry["uri"]));
            for resource in resources {
                let text = contents(resource["uri"].as_str().unwrap()).unwrap()["text"].take();
                let bytes = text.as_str().unwrap().as_bytes();
                assert_eq!(resource["size"], bytes.len());
                assert_eq!(resource["digest"], digest_text(bytes));
            }
        }
    }

    #[test]
    fn skill_is_found_by_its_document_uri_only() {
        let found = |uri: &str| find(json!({"uri": uri}).as_object().unwrap());
        assert_eq!(found("skill://mooring/SKILL.md").unwrap()["skill"], entries()[0]);
        assert_eq!(found("skill://mooring/references/KNOTS.md").unwrap_err().code, -32602);
        assert_eq!(contents("skill://mooring/nothing"), None);
    }
}
