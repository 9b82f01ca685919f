//! Suggestions for misspelled names ("did you mean ...?").

/// Maximum bytes of a name. Longer texts get no suggestion.
const MAX_NAME_BYTES: usize = 128;
/// Maximum number of edits for two names to be considered similar.
const MAX_EDITS: usize = 3;

/// Returns the name that is most similar to `said`, if one is similar enough: a few letters changed, added, left out or
/// swapped, or a prefix missing (`read_file` for `mcp__files__read_file`). Ties go to the first name in sort order.
pub fn closest_name<'a>(said: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if said.is_empty() || said.len() > MAX_NAME_BYTES {
        return None;
    }
    let said_letters = normalized_letters(said);
    let close = |name: &'a str| Some((edit_count(&said_letters, name)?, name));
    names.into_iter().filter_map(close).min().map(|(_, name)| name)
}

fn normalized_letters(text: &str) -> Vec<char> {
    text.chars().map(|letter| if letter == '-' { '_' } else { letter.to_ascii_lowercase() }).collect()
}

/// Returns the number of edits between `said` and a name, or `None` if there are too many.
fn edit_count(said: &[char], name: &str) -> Option<usize> {
    if name.len() > MAX_NAME_BYTES {
        return None;
    }
    let name = normalized_letters(name);
    let most = MAX_EDITS.min(said.len() / 3);
    let near = said.len().abs_diff(name.len()) <= most;
    let misspelt = if near { letter_distance(said, &name, most) } else { None };
    // A suffix match ranks after every misspelling.
    misspelt.or_else(|| is_name_suffix(said, &name).then_some(MAX_EDITS + 1))
}

fn is_name_suffix(said: &[char], name: &[char]) -> bool {
    said.len() >= 3 && name.strip_suffix(said).and_then(<[char]>::last) == Some(&'_')
}

/// Returns the edit distance of two names, with adjacent swaps as one edit, if it is at most `most`. Case and the
/// difference between `-` and `_` do not count.
pub fn edit_distance(one: &str, other: &str, most: usize) -> Option<usize> {
    if one.len().max(other.len()) > MAX_NAME_BYTES {
        return None;
    }
    letter_distance(&normalized_letters(one), &normalized_letters(other), most)
}

fn letter_distance(one: &[char], other: &[char], most: usize) -> Option<usize> {
    let (one, other) = strip_common_affixes(one, other);
    let (mut before, mut last): (Vec<usize>, Vec<usize>) = (Vec::new(), (0..=other.len()).collect());
    for (i, letter) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, against) in other.iter().enumerate() {
            let mut best = (last[j] + usize::from(letter != against)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && letter == &other[j - 1] && against == &one[i - 1] {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        if row.iter().min() > Some(&most) {
            return None;
        }
        (before, last) = (last, row);
    }
    last.last().copied().filter(|distance| *distance <= most)
}

/// Strips the common prefix and suffix, which is usually most of the text.
fn strip_common_affixes<'a>(one: &'a [char], other: &'a [char]) -> (&'a [char], &'a [char]) {
    let begin = std::iter::zip(one, other).take_while(|(letter, against)| letter == against).count();
    let (one, other) = (&one[begin..], &other[begin..]);
    let end = std::iter::zip(one.iter().rev(), other.iter().rev());
    let end = end.take_while(|(letter, against)| letter == against).count();
    (&one[..one.len() - end], &other[..other.len() - end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closest_name_is_suggested() {
        let names = ["mcp__files__read_file", "mcp__files__write_file", "mcp__git__log", "Bash", "lst", "list"];
        let long = "a".repeat(MAX_NAME_BYTES + 1);
        for (said, meant) in [
            ("mcp__files__raed_file", Some("mcp__files__read_file")),
            ("mcp-files-read-file", Some("mcp__files__read_file")),
            ("read_file", Some("mcp__files__read_file")),
            ("write_file", Some("mcp__files__write_file")),
            ("file", Some("mcp__files__read_file")),
            ("bash", Some("Bash")),
            ("lits", Some("list")),
            ("lis", Some("list")),
            ("ile", None),
            ("log", Some("mcp__git__log")),
            ("mcp__calendar__add", None),
            ("", None),
            ("é", None),
            (&long, None),
        ] {
            assert_eq!(closest_name(said, names), meant, "{said:?}");
            assert_eq!(closest_name(said, names.into_iter().rev()), meant, "{said:?}");
        }
    }
}
