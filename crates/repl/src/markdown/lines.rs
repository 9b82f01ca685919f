//! Classification of single Markdown lines without lookahead.

/// Kind of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineKind {
    Blank,
    /// Opens a code fence.
    Fence(CodeFence),
    /// A heading, which ends with its line.
    Heading,
    /// Begins a top-level list item.
    Item,
    /// Begins with whitespace: inside an item, if one is open.
    Indented,
    Text,
}

/// An open code fence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeFence {
    mark: char,
    length: usize,
    pub indent: usize,
    pub language: String,
}

/// Maximum indent of a top-level block.
const MAX_TOP_INDENT: usize = 3;
/// Maximum digits of a list number.
const MAX_LIST_DIGITS: usize = 9;

/// Classifies a line.
pub fn classify_line(line: &str) -> LineKind {
    let text = line.trim_start();
    let indent = line.len() - text.len();
    if text.is_empty() {
        return LineKind::Blank;
    }
    if let Some(fence) = parse_fence(text, indent) {
        return LineKind::Fence(fence);
    }
    match indent {
        0..2 if is_item(text) => LineKind::Item,
        0..=MAX_TOP_INDENT if is_heading(text) => LineKind::Heading,
        0..2 => LineKind::Text,
        _ => LineKind::Indented,
    }
}

/// Reports whether a line closes a fence.
pub fn closes_fence(fence: &CodeFence, line: &str) -> bool {
    let text = line.trim();
    text.chars().all(|letter| letter == fence.mark) && text.len() >= fence.length
}

fn parse_fence(text: &str, indent: usize) -> Option<CodeFence> {
    let mark = text.chars().next().filter(|mark| "`~".contains(*mark))?;
    let language = text.trim_start_matches(mark);
    let length = text.len() - language.len();
    let language = language.trim();
    let is_fence = length >= 3 && !(mark == '`' && language.contains('`'));
    is_fence.then(|| CodeFence { mark, length, indent, language: language.to_owned() })
}

fn is_heading(text: &str) -> bool {
    let rest = text.trim_start_matches('#');
    (1..=6).contains(&(text.len() - rest.len())) && rest.chars().next().is_none_or(char::is_whitespace)
}

fn is_item(text: &str) -> bool {
    let digits = text.len() - text.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
    let (marks, length) = if digits == 0 { ("-*+", 1) } else { (".)", digits + 1) };
    let is_marked = digits <= MAX_LIST_DIGITS && text[digits..].starts_with(|mark| marks.contains(mark));
    is_marked && text[length..].starts_with(char::is_whitespace) && !is_rule(text)
}

/// Reports whether the line is a thematic break such as `* * *`.
fn is_rule(text: &str) -> bool {
    let mut marks = text.chars().filter(|letter| !letter.is_whitespace());
    let first = marks.next();
    marks.clone().count() >= 2 && marks.all(|mark| Some(mark) == first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_classified() {
        for (line, expected) in [
            ("", LineKind::Blank),
            ("  \n", LineKind::Blank),
            ("text", LineKind::Text),
            ("# one", LineKind::Heading),
            ("  ###### six", LineKind::Heading),
            ("####### seven", LineKind::Text),
            ("#tag", LineKind::Text),
            ("- a", LineKind::Item),
            ("12. a", LineKind::Item),
            ("1) a", LineKind::Item),
            ("1234567890. a", LineKind::Text),
            ("-a", LineKind::Text),
            ("**a**", LineKind::Text),
            ("* * *", LineKind::Text),
            ("   - a", LineKind::Indented),
            ("    code", LineKind::Indented),
        ] {
            assert_eq!(classify_line(line), expected, "{line:?}");
        }
    }

    #[test]
    fn fences_open_and_close() {
        let LineKind::Fence(fence) = classify_line("  ```` rust\n") else { panic!() };
        assert_eq!((fence.language.as_str(), fence.indent, fence.length), ("rust", 2, 4));
        for (line, expected) in
            [("````", true), ("  ````` \n", true), ("```", false), ("~~~~", false), ("```` x", false)]
        {
            assert_eq!(closes_fence(&fence, line), expected, "{line}");
        }
        assert_eq!(classify_line("```a``` b"), LineKind::Text);
        assert!(matches!(classify_line("~~~ a`b"), LineKind::Fence(_)));
    }
}
