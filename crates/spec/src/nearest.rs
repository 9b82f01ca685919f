//! Which of the names that exist somebody may have meant.

/// Longer texts are no misspelt names.
const LONGEST: usize = 128;
/// More slips than this, and it is another name.
const MOST_SLIPS: usize = 3;

/// The name that is most like what was said, where one is like it at all: a few letters changed, added, left out or
/// swapped, or more said before it (`read_file` for `mcp__files__read_file`). Of equals, the first in order.
pub fn nearest<'a>(said: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if said.is_empty() || said.len() > LONGEST {
        return None;
    }
    let said_letters = letters(said);
    let close = |name: &'a str| Some((slips(&said_letters, name)?, name));
    names.into_iter().filter_map(close).min().map(|(_, name)| name)
}

fn letters(text: &str) -> Vec<char> {
    text.chars().map(|letter| if letter == '-' { '_' } else { letter.to_ascii_lowercase() }).collect()
}

/// How many slips lie between what was said and a name, or `None` where they are too many to be slips.
fn slips(said: &[char], name: &str) -> Option<usize> {
    if name.len() > LONGEST {
        return None;
    }
    let name = letters(name);
    let most = MOST_SLIPS.min(said.len() / 3);
    let near = said.len().abs_diff(name.len()) <= most;
    let misspelt = if near { distance(said, &name, most) } else { None };
    // The end of a name is worse than any misspelling.
    misspelt.or_else(|| is_end(said, &name).then_some(MOST_SLIPS + 1))
}

fn is_end(said: &[char], name: &[char]) -> bool {
    said.len() >= 3 && name.strip_suffix(said).and_then(<[char]>::last) == Some(&'_')
}

/// The edit distance with neighbours that may swap places, where it is at most `most`.
fn distance(one: &[char], other: &[char], most: usize) -> Option<usize> {
    let (one, other) = differing(one, other);
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

/// Both without what they begin and end with in common, which is mostly nearly all.
fn differing<'a>(one: &'a [char], other: &'a [char]) -> (&'a [char], &'a [char]) {
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
    fn what_was_meant() {
        let names = ["mcp__files__read_file", "mcp__files__write_file", "mcp__git__log", "Bash", "lst", "list"];
        let long = "a".repeat(LONGEST + 1);
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
            assert_eq!(nearest(said, names), meant, "{said:?}");
            assert_eq!(nearest(said, names.into_iter().rev()), meant, "{said:?}");
        }
    }
}
