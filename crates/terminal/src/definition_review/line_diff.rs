//! Difference of two texts by lines.

use std::collections::VecDeque;

/// Maximum cells of the comparison table. Beyond it, the differing parts are shown one after the other.
const MAX_TABLE_CELLS: usize = 4 << 20;
/// Number of unchanged lines shown around a change.
const CONTEXT_LINES: usize = 3;

/// Mark of an unchanged, removed or added line.
const SAME: &str = "  ";
const REMOVED: &str = "- ";
const ADDED: &str = "+ ";

/// Returns the changed lines with their marks, and the unchanged lines around them. Omitted lines are counted.
pub fn changed_lines(before: &str, after: &str) -> Vec<(&'static str, String)> {
    let (before, after): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let mut shown = Vec::new();
    let mut waiting: VecDeque<&str> = VecDeque::new();
    let (mut omitted, mut after_change) = (0, 0);
    for (mark, line) in diff(&before, &after) {
        if mark != SAME {
            push_omitted(&mut shown, &mut omitted);
            shown.extend(waiting.drain(..).map(|line| (SAME, line.to_owned())));
            shown.push((mark, line.to_owned()));
            after_change = CONTEXT_LINES;
        } else if after_change > 0 {
            shown.push((SAME, line.to_owned()));
            after_change -= 1;
        } else {
            waiting.push_back(line);
            if waiting.len() > CONTEXT_LINES {
                waiting.pop_front();
                omitted += 1;
            }
        }
    }
    omitted += waiting.len();
    push_omitted(&mut shown, &mut omitted);
    shown
}

fn push_omitted(shown: &mut Vec<(&'static str, String)>, omitted: &mut usize) {
    match std::mem::take(omitted) {
        0 => {}
        1 => shown.push((SAME, "(1 unchanged line)".to_owned())),
        count => shown.push((SAME, format!("({count} unchanged lines)"))),
    }
}

fn diff<'a>(before: &[&'a str], after: &[&'a str]) -> Vec<(&'static str, &'a str)> {
    let head = before.iter().zip(after).take_while(|(one, other)| one == other).count();
    let (old, new) = (&before[head..], &after[head..]);
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(|(one, other)| one == other).count();
    let (old, new) = (&old[..old.len() - tail], &new[..new.len() - tail]);
    let same = |lines: &[&'a str]| lines.iter().map(|line| (SAME, *line)).collect::<Vec<_>>();
    let mut all = same(&before[..head]);
    all.extend(diff_middle(old, new));
    all.extend(same(&before[before.len() - tail..]));
    all
}

/// Compares by the longest common subsequence.
fn diff_middle<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(&'static str, &'a str)> {
    let width = new.len() + 1;
    if (old.len() + 1).saturating_mul(width) > MAX_TABLE_CELLS {
        return old.iter().map(|line| (REMOVED, *line)).chain(new.iter().map(|line| (ADDED, *line))).collect();
    }
    // `lengths[i * width + j]` is the length of the longest common subsequence of `old[i..]` and `new[j..]`.
    let mut lengths = vec![0_u32; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            lengths[i * width + j] = match old[i] == new[j] {
                true => lengths[(i + 1) * width + j + 1] + 1,
                false => lengths[(i + 1) * width + j].max(lengths[i * width + j + 1]),
            };
        }
    }
    let (mut i, mut j, mut lines) = (0, 0, Vec::new());
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            lines.push((SAME, old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || i < old.len() && lengths[(i + 1) * width + j] >= lengths[i * width + j + 1] {
            lines.push((REMOVED, old[i]));
            i += 1;
        } else {
            lines.push((ADDED, new[j]));
            j += 1;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(before: &str, after: &str) -> String {
        let lines = changed_lines(&before.replace(' ', "\n"), &after.replace(' ', "\n"));
        lines.iter().map(|(mark, line)| format!("{}{line}", mark.trim())).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn changes_are_shown_with_the_lines_around_them() {
        for (before, after, expected) in [
            ("a b c", "a b c", "(3 unchanged lines)"),
            ("a b c", "a x c", "a -b +x c"),
            ("", "a", "+a"),
            ("a", "", "-a"),
            ("1 2 3 4 5 a 6 7 8 9", "1 2 3 4 5 b 6 7 8 9", "(2 unchanged lines) 3 4 5 -a +b 6 7 8 (1 unchanged line)"),
            ("a b c d", "b c d a", "-a b c d +a"),
        ] {
            assert_eq!(shown(before, after), expected, "{before} / {after}");
        }
    }

    #[test]
    fn large_differences_are_not_compared_line_by_line() {
        let lines = |prefix: &str| (0..3000).map(|n| format!("{prefix}{n}")).collect::<Vec<_>>().join("\n");
        let all = changed_lines(&lines("a"), &lines("b"));
        assert_eq!((all.len(), all[0].0, all[5999].0), (6000, REMOVED, ADDED));
    }
}
