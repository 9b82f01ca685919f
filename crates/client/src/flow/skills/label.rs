//! Labels for skills that share a name.

use std::collections::{HashMap, HashSet};

use wharf_spec::UntrustedText;
use wharf_wire::Skill;

/// Returns a unique label for each skill of one listing: its name, or if that is ambiguous also the parent directory,
/// or the whole URI of its directory. Labels are escaped and for display; the URI identifies a skill.
pub fn skill_labels(skills: &[Skill]) -> Vec<String> {
    let tiers = [name, name_and_parent, directory_uri].map(|tier| skills.iter().map(tier).collect::<Vec<_>>());
    let counts = tiers.each_ref().map(|labels| count_labels(labels));
    let mut taken = HashSet::new();
    (0..skills.len())
        .map(|n| {
            let unique = (0..tiers.len()).find(|&tier| counts[tier][tiers[tier][n]] == 1).unwrap_or(tiers.len() - 1);
            make_unique(&mut taken, UntrustedText::new(tiers[unique][n]).to_string())
        })
        .collect()
}

fn name(skill: &Skill) -> &str {
    &skill.name
}

fn name_and_parent(skill: &Skill) -> &str {
    let root = directory_uri(skill);
    let path = root.find("://").map_or(0, |at| at + 3);
    let start = root[path..].rmatch_indices('/').nth(1).map_or(path, |(at, _)| path + at + 1);
    &root[start..]
}

fn directory_uri(skill: &Skill) -> &str {
    skill.directory().trim_end_matches('/')
}

fn count_labels<'a>(labels: &[&'a str]) -> HashMap<&'a str, usize> {
    let mut counts = HashMap::new();
    labels.iter().for_each(|label| *counts.entry(*label).or_default() += 1);
    counts
}

/// Appends a number to labels of entries with the same URI.
fn make_unique(taken: &mut HashSet<String>, label: String) -> String {
    let mut candidate = label.clone();
    let mut number = 2;
    while !taken.insert(candidate.clone()) {
        candidate = format!("{label} #{number}");
        number += 1;
    }
    candidate
}

#[cfg(test)]
mod tests {
    use wharf_wire::{JsonLimits, RawJson, View};

    use super::*;

    fn skill(root: &str) -> Skill {
        let name = root.rsplit('/').next().unwrap();
        let entry = serde_json::json!({
            "uri": format!("{root}/SKILL.md"),
            "frontmatter": { "name": name, "description": "d" },
            "resources": "dynamic",
        });
        Skill::from_raw(RawJson::from_value(&entry).unwrap(), &JsonLimits::default()).unwrap()
    }

    #[test]
    fn labels_are_short_and_unique() {
        for (roots, expected) in [
            (&["skill://a", "skill://b"][..], &["a", "b"][..]),
            (&["skill://x/billing/r", "skill://x/support/r", "skill://s"], &["billing/r", "support/r", "s"]),
            (&["skill://r", "skill://x/r"], &["r", "x/r"]),
            (&["skill://x/y/r", "skill://z/y/r"], &["skill://x/y/r", "skill://z/y/r"]),
            (&["skill://r", "github://r"], &["skill://r", "github://r"]),
            (&["skill://r", "skill://r", "skill://r"], &["skill://r", "skill://r #2", "skill://r #3"]),
            (&["skill://\u{202e}/r", "skill://y/r"], &["\\u{202e}/r", "y/r"]),
        ] {
            let skills: Vec<Skill> = roots.iter().map(|root| skill(root)).collect();
            assert_eq!(skill_labels(&skills), expected, "{roots:?}");
        }
    }
}
