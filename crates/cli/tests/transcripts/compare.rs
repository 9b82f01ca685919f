//! Whether what was printed is what the page says, apart from what is different every time.

/// Any lines, or none.
const ANY: &str = "…";

/// What follows a number that is a time.
const UNITS: [&str; 9] = ["ns", "µs", "ms", "s", "m", "min", "h", "seconds", "minutes"];

/// Words before a number that is different every time, and what it is then called.
const AFTER: [(&str, &str); 5] = [
    ("127.0.0.1:", "[port]"),
    ("localhost:", "[port]"),
    ("pid ", "[pid]"),
    ("process ", "[pid]"),
    ("_ms\":", "[time]"),
];

/// Whether every line is as expected.
pub fn matches(expected: &[String], printed: &[String]) -> bool {
    let expected: Vec<String> = expected.iter().map(|line| settled(line)).collect();
    let printed: Vec<String> = printed.iter().map(|line| settled(line)).collect();
    fits(&expected, &printed)
}

/// Whether every word is as expected, wherever the lines break: a terminal wraps what a pipe does not.
pub fn flows(expected: &[String], printed: &[String]) -> bool {
    matches(&words(expected), &words(printed))
}

fn words(lines: &[String]) -> Vec<String> {
    let settled: Vec<String> = lines.iter().map(|line| settled(line)).collect();
    settled.join("\n").split_whitespace().map(str::to_owned).collect()
}

fn fits(expected: &[String], printed: &[String]) -> bool {
    match expected.split_first() {
        None => printed.is_empty(),
        Some((line, rest)) if line == ANY => (0..=printed.len()).any(|from| fits(rest, &printed[from..])),
        Some((line, rest)) => printed.split_first().is_some_and(|(first, others)| first == line && fits(rest, others)),
    }
}

/// The new output for a page: a line that only differs in what always differs stays as the page had it.
pub fn kept(page: &[String], printed: &[String]) -> Vec<String> {
    let old = |line: &String| page.iter().find(|old| settled(old) == settled(line)).cloned();
    printed.iter().map(|line| old(line).unwrap_or_else(|| line.clone())).collect()
}

/// Both, as far as they differ: what is alike at the beginning and the end is left out.
pub fn difference(expected: &[String], printed: &[String]) -> String {
    let alike = |one: &&String, other: &&String| settled(one) == settled(other);
    let head = expected.iter().zip(printed).take_while(|(one, other)| alike(one, other)).count();
    let ends = expected[head..].iter().rev().zip(printed[head..].iter().rev());
    let tail = ends.take_while(|(one, other)| alike(one, other)).count();
    let part = |mark: &str, lines: &[String]| -> String {
        lines[head..lines.len() - tail].iter().map(|line| format!("  {mark} {line}\n")).collect()
    };
    let same = |count: usize| if count > 0 { format!("    ({count} lines alike)\n") } else { String::new() };
    format!("{}{}{}{}", same(head), part("-", expected), part("+", printed), same(tail))
}

/// A line with the times, ports, process ids and dates in it named instead.
fn settled(line: &str) -> String {
    let mut settled = String::new();
    let mut rest = line.trim_end();
    while let Some(at) = rest.find(|letter: char| letter.is_ascii_digit()) {
        let (before, from) = rest.split_at(at);
        settled.push_str(before);
        let (name, length) = named(&settled, from);
        settled.push_str(name.unwrap_or(&from[..length]));
        rest = &from[length..];
    }
    settled + rest
}

/// What begins at a digit: its name if it is different every time, and how long it is.
fn named(before: &str, from: &str) -> (Option<&'static str>, usize) {
    let length = from.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(from.len());
    if is_like(from, "0000-00-00T00:00") || is_like(from, "00:00:00") {
        let length = from.find(|letter: char| !letter.is_ascii_digit() && !"-T:.Z+".contains(letter));
        return (Some("[when]"), length.unwrap_or(from.len()));
    }
    for (words, name) in AFTER {
        if before.ends_with(words) {
            return (Some(name), length);
        }
    }
    let inside_a_word = before.ends_with(|letter: char| letter.is_alphanumeric() || "-_.".contains(letter));
    let unit = unit(&from[length..]);
    match unit {
        Some(more) if !inside_a_word => (Some("[time]"), length + more),
        _ => (None, length),
    }
}

/// The length of a unit of time, with the space before it.
fn unit(rest: &str) -> Option<usize> {
    let letters = rest.strip_prefix(' ').unwrap_or(rest);
    let word = letters.split(|letter: char| !letter.is_alphanumeric()).next()?;
    UNITS.contains(&word).then_some(rest.len() - letters.len() + word.len())
}

/// Whether it begins like a form in which every digit is 0. A day alone is none: it is a revision of the protocol.
fn is_like(text: &str, form: &str) -> bool {
    let like = |(letter, form): (char, char)| if form == '0' { letter.is_ascii_digit() } else { letter == form };
    text.chars().count() >= form.len() && text.chars().zip(form.chars()).all(like)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variable_values_are_replaced_by_placeholders() {
        for (line, expected) in [
            ("ready in 12 ms, 1.5s ago", "ready in [time], [time] ago"),
            ("http://127.0.0.1:40113/mcp", "http://127.0.0.1:[port]/mcp"),
            ("pid 4711 and 24 tools", "pid [pid] and 24 tools"),
            (r#""duration_ms":7}"#, r#""duration_ms":[time]}"#),
            ("16:16:29 changed, high water 14:32", "[when] changed, high water 14:32"),
            ("2026-07-28 · 2026-11-15T16:08:05.123Z", "2026-07-28 · [when]"),
            ("exit 3, berth-1 s, 10 cm, 0.1.0", "exit 3, berth-1 s, 10 cm, 0.1.0"),
        ] {
            assert_eq!(settled(line), expected);
        }
    }

    #[test]
    fn transcript_differences_are_detected() {
        let lines = |text: &str| text.split_terminator('/').map(str::to_owned).collect::<Vec<_>>();
        for (expected, printed, same) in [
            ("a/b", "a/b", true),
            ("took 1 ms", "took 12 ms", true),
            ("a", "a/b", false),
            ("a/b", "a", false),
            ("a/…/d", "a/b/c/d", true),
            ("…", "", true),
            ("a/…", "b/a", false),
            ("a", "a/[exit 3]", false),
        ] {
            assert_eq!(matches(&lines(expected), &lines(printed)), same, "{expected} {printed}");
        }
        assert!(flows(&lines("one two/three"), &lines("one/  two three")));
        assert!(!flows(&lines("one two"), &lines("one")));
        assert_eq!(
            difference(&lines("a/b/c"), &lines("a/x/y/c")),
            "    (1 lines alike)\n  - b\n  + x\n  + y\n    (1 lines alike)\n"
        );
        assert_eq!(kept(&lines("old/took 1 ms"), &lines("new/took 9 ms")), lines("new/took 1 ms"));
    }
}
