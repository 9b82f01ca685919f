//! Suggests similar names.

use std::collections::HashSet;

use wharf_spec::edit_distance;

/// Maximum number of names listed if none is similar.
const MAX_LISTED: usize = 12;
/// Minimum number of letters for a part of a name to be similar to the name.
const MIN_PART_LEN: usize = 3;

/// Returns a hint for an unknown name: similar names, or else the existing ones.
pub fn suggestion<'a>(wanted: &str, names: impl Iterator<Item = &'a str> + Clone) -> String {
    let close = similar_names(wanted, names.clone());
    if !close.is_empty() {
        return format!("did you mean {}?", quote_names(&close));
    }
    let mut seen = HashSet::new();
    let all: Vec<&str> = names.filter(|name| seen.insert(*name)).collect();
    let (listed, more) = all.split_at(all.len().min(MAX_LISTED));
    match (listed, more.len()) {
        ([], _) => "there are none".to_owned(),
        (listed, 0) => format!("known names: {}", quote_names(listed)),
        (listed, more) => format!("known names: {} and {more} more", quote_names(listed)),
    }
}

/// Formats names in backquotes, separated by commas.
pub fn quote_names(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Returns up to three similar names, most similar first.
pub fn similar_names<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted_lower = wanted.to_lowercase();
    let tolerance = (wanted.chars().count() / 3).max(1);
    let rank = |name: &'a str| {
        let lower = name.to_lowercase();
        let (letters, wanted_letters) = (lower.chars().count(), wanted_lower.chars().count());
        let part = letters.min(wanted_letters) >= MIN_PART_LEN
            && (lower.contains(&wanted_lower) || wanted_lower.contains(&lower));
        // A part ranks by the number of letters that it lacks.
        let missing = part.then(|| letters.abs_diff(wanted_letters));
        Some((edit_distance(&wanted_lower, &lower, tolerance).or(missing)?, name))
    };
    let mut close: Vec<(usize, &str)> = names.into_iter().filter_map(rank).collect();
    close.sort();
    close.dedup();
    close.into_iter().take(3).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unknown_name_has_a_suggestion() {
        let names = ["echo", "add"].into_iter();
        assert_eq!(suggestion("eco", names.clone()), "did you mean `echo`?");
        assert_eq!(suggestion("zzz", names), "known names: `echo`, `add`");
        assert_eq!(suggestion("zzz", [].into_iter()), "there are none");
    }

    /// G8: several servers may have tools of the same name.
    #[test]
    fn equal_names_are_suggested_once() {
        let names = ["echo", "add", "echo"].into_iter();
        assert_eq!(suggestion("eco", names.clone()), "did you mean `echo`?");
        assert_eq!(suggestion("zzz", names), "known names: `echo`, `add`");
    }

    /// U10.
    #[test]
    fn names_beyond_the_limit_are_counted() {
        let names: Vec<String> = (0..MAX_LISTED + 23).map(|number| format!("tool-{number}")).collect();
        let hint = suggestion("zebra", names.iter().map(String::as_str));
        assert!(hint.ends_with("`tool-11` and 23 more"), "{hint}");
    }

    #[test]
    fn closest_name_is_suggested_first() {
        let names = ["echo", "add", "json_response", "slow"];
        for (wanted, expected) in [
            ("ecko", &["echo"][..]),
            ("Echo", &["echo"]),
            ("json", &["json_response"]),
            ("ad", &["add"]),
            ("xyz", &[]),
            ("", &[]),
        ] {
            assert_eq!(similar_names(wanted, names), expected, "{wanted}");
        }
        assert_eq!(similar_names("nosuch", ["s", "no"]), [""; 0], "a few letters are no name to mean");
    }
}
