//! Operations on glob patterns: inclusion of one pattern in another, and matching of a prefix.

/// One element of a glob pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GlobPiece {
    One(char),
    AnyOne,
    AnyRun,
}

/// Splits a pattern into elements with their byte offsets. Same syntax as [`wharf_spec::Glob`].
pub(crate) fn glob_pieces(text: &str) -> Vec<(usize, GlobPiece)> {
    let mut characters = text.char_indices();
    let mut list = Vec::new();
    while let Some((at, character)) = characters.next() {
        let piece = match character {
            '*' => GlobPiece::AnyRun,
            '?' => GlobPiece::AnyOne,
            '\\' => GlobPiece::One(characters.next().map_or('\\', |(_, escaped)| escaped)),
            other => GlobPiece::One(other),
        };
        list.push((at, piece));
    }
    list
}

/// Reports whether `general` matches every text that `specific` matches. May return false negatives, never false
/// positives.
pub(crate) fn glob_covers(general: &str, specific: &str) -> bool {
    let (general, specific) = (glob_pieces(general), glob_pieces(specific));
    let (mut at, mut seen) = (0, 0);
    // Backtracking point: the positions after the last run.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        match (general.get(at).map(|piece| piece.1), specific.get(seen).map(|piece| piece.1)) {
            (Some(GlobPiece::AnyRun), _) => {
                at += 1;
                retry = Some((at, seen));
            }
            (Some(GlobPiece::AnyOne), Some(GlobPiece::One(_) | GlobPiece::AnyOne)) => (at, seen) = (at + 1, seen + 1),
            (Some(GlobPiece::One(wanted)), Some(GlobPiece::One(found))) if wanted == found => {
                (at, seen) = (at + 1, seen + 1)
            }
            (None, None) => return true,
            _ => {
                let Some((part, longer)) = &mut retry else { return false };
                if *longer >= specific.len() {
                    return false;
                }
                *longer += 1;
                (at, seen) = (*part, *longer);
            }
        }
    }
}

/// Returns the possible rests of a pattern after it has matched a prefix. Each rest is a pattern.
pub(crate) fn rests_after_prefix<'a>(pattern: &'a str, beginning: &str) -> Vec<&'a str> {
    let list = glob_pieces(pattern);
    let mut places = vec![0];
    add_positions_after_runs(&list, &mut places);
    for character in beginning.chars() {
        let step = |&at: &usize| match list.get(at)?.1 {
            GlobPiece::One(wanted) => (wanted == character).then_some(at + 1),
            GlobPiece::AnyOne => Some(at + 1),
            GlobPiece::AnyRun => Some(at),
        };
        places = places.iter().filter_map(step).collect();
        add_positions_after_runs(&list, &mut places);
    }
    // The rest that starts at a run includes the rest that starts right after it.
    let after_run = |at: usize| at > 0 && list[at - 1].1 == GlobPiece::AnyRun;
    places.iter().filter(|&&at| !after_run(at)).filter_map(|&at| Some(&pattern[list.get(at)?.0..])).collect()
}

/// Adds the positions after runs, which may be empty, then sorts and removes duplicates.
fn add_positions_after_runs(list: &[(usize, GlobPiece)], places: &mut Vec<usize>) {
    let mut next = 0;
    while let Some(&at) = places.get(next) {
        next += 1;
        if matches!(list.get(at), Some((_, GlobPiece::AnyRun))) {
            places.push(at + 1);
        }
    }
    places.sort_unstable();
    places.dedup();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn general_globs_cover_specific_ones() {
        for (general, specific, expected) in [
            ("*", "", true),
            ("*", "a*b?", true),
            ("a*", "ab*", true),
            ("ab*", "a*", false),
            ("a?", "ab", true),
            ("a?", "a?", true),
            ("a?", "a*", false),
            ("ab", "a?", false),
            ("*x", "*yx", true),
            ("*x*", "a*x", true),
            ("*x", "x*", false),
            (r"\*", "*", false),
            (r"\*", r"\*", true),
            ("*", r"\*", true),
            ("", "", true),
            ("", "a", false),
            ("a*b*c", "ab*bc", true),
        ] {
            assert_eq!(glob_covers(general, specific), expected, "{general} over {specific}");
        }
    }

    #[test]
    fn glob_remainders_after_a_prefix_are_found() {
        for (pattern, expected) in [
            ("*", &["*"][..]),
            ("mcp*", &["*"]),
            ("*__del", &["*__del", "_del", "del"]),
            ("mcp__x__?el", &["?el"]),
            ("Bash", &[]),
            ("mcp__y*", &[]),
        ] {
            assert_eq!(rests_after_prefix(pattern, "mcp__x__"), expected, "{pattern}");
        }
    }
}
