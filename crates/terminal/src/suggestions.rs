//! Suggests similar names.

/// Maximum number of names listed if none is similar.
const MAX_LISTED: usize = 12;

/// Returns a hint for an unknown name: similar names, or else the existing ones.
pub fn suggestion<'a>(wanted: &str, names: impl Iterator<Item = &'a str> + Clone) -> String {
    let close = similar_names(wanted, names.clone());
    if !close.is_empty() {
        return format!("did you mean {}?", quote_names(&close));
    }
    match names.take(MAX_LISTED).collect::<Vec<_>>().as_slice() {
        [] => "there are none".to_owned(),
        all => format!("known names: {}", quote_names(all)),
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
    let mut close: Vec<(usize, &str)> = names
        .into_iter()
        .filter_map(|name| {
            let lower = name.to_lowercase();
            let part = wanted_lower.len() >= 3 && (lower.contains(&wanted_lower) || wanted_lower.contains(&lower));
            let distance = edit_distance(&wanted_lower, &lower);
            (part || distance <= tolerance).then_some((distance, name))
        })
        .collect();
    close.sort();
    close.into_iter().take(3).map(|(_, name)| name).collect()
}

/// Levenshtein distance. Compares only the first 64 characters.
fn edit_distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().take(64).collect(), to.chars().take(64).collect());
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (line, letter) in from.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, other) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != other);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_always_a_next_step() {
        let names = ["echo", "add"].into_iter();
        assert_eq!(suggestion("eco", names.clone()), "did you mean `echo`?");
        assert_eq!(suggestion("zzz", names), "known names: `echo`, `add`");
        assert_eq!(suggestion("zzz", [].into_iter()), "there are none");
    }

    #[test]
    fn the_closest_comes_first() {
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
    }
}
