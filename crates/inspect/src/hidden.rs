//! Detection of hidden text: invisible characters, text after much white space, letters of another script.

use super::fold::{FoldedChar, fold, is_invisible};
use super::{FindingRule, FindingSink, FindingWeight};

/// Finds text that a person does not see, or sees as something else.
pub(super) fn find_hidden(text: &str, add: &mut FindingSink<'_>) {
    if let Some(end) = text_after_blank(text) {
        add(FindingRule::BuriedText, FindingWeight::Certain, &text[end..]);
    }
    if let Some(at) = text.bytes().position(|byte| matches!(byte, 0..=0x08 | 0x0b | 0x0c | 0x0e..=0x1f | 0x7f)) {
        let weight = if text.contains('\u{1b}') { FindingWeight::Certain } else { FindingWeight::Suspect };
        add(FindingRule::HiddenText, weight, &text[at..]);
    }
    if text.is_ascii() {
        return;
    }
    if let Some(at) = text.find(|character| matches!(character, '\u{80}'..='\u{9f}')) {
        add(FindingRule::HiddenText, FindingWeight::Certain, &text[at..]);
    }
    rate_invisible(text, add);
    find_look_alikes(text, add);
}

/// Returns the start of the text after so much white space that no window shows both sides.
fn text_after_blank(text: &str) -> Option<usize> {
    const MAX_SPACES: usize = 200;
    const MAX_BLANK_LINES: usize = 25;
    let (mut spaces, mut lines) = (0, 0);
    for (at, character) in text.char_indices() {
        match character {
            '!'..='~' if spaces < MAX_SPACES && lines < MAX_BLANK_LINES => (spaces, lines) = (0, 0),
            '\n' => lines += 1,
            ' ' => spaces += 1,
            _ if character.is_whitespace() || is_invisible(character) || character == '\u{2800}' => spaces += 1,
            _ if spaces >= MAX_SPACES || lines >= MAX_BLANK_LINES => return Some(at),
            _ => (spaces, lines) = (0, 0),
        }
    }
    None
}

/// Rates the invisible characters by kind and position.
fn rate_invisible(text: &str, add: &mut FindingSink<'_>) {
    let tags = tag_letters(text);
    if !tags.is_empty() {
        add(FindingRule::HiddenText, FindingWeight::Certain, &tags);
        super::words::find_phrases(&tags, false, add);
    }
    let Some(at) = text.find(is_suspicious_invisible) else { return };
    let weight = match () {
        () if text.contains(['\u{202d}', '\u{202e}']) => FindingWeight::Certain,
        () if longest_invisible_run(text) >= 4 || count_inside_words(text) >= 3 => FindingWeight::Certain,
        () if text.contains(|mark| matches!(mark, '\u{2066}'..='\u{2069}' | '\u{202a}'..='\u{202c}')) => {
            FindingWeight::Suspect
        }
        () if count_inside_words(text) > 0 => FindingWeight::Suspect,
        () => FindingWeight::Note,
    };
    add(FindingRule::HiddenText, weight, &text[at..]);
}

/// Returns the letters that tag characters encode, except those of subdivision flags.
fn tag_letters(text: &str) -> String {
    const FLAG: char = '\u{1f3f4}';
    let mut letters = String::new();
    let mut in_flag = false;
    for character in text.chars() {
        match character {
            '\u{e0000}'..='\u{e007f}' if in_flag => in_flag = character != '\u{e007f}',
            '\u{e0020}'..='\u{e007e}' => letters.extend(char::from_u32(u32::from(character) - 0xe0000)),
            '\u{e0000}'..='\u{e007f}' => letters.push('\u{fffd}'),
            _ => in_flag = character == FLAG,
        }
    }
    letters
}

/// Reports whether a character is invisible and not part of accents or emoji.
fn is_suspicious_invisible(character: char) -> bool {
    is_invisible(character)
        && !matches!(character, '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{20d0}'..='\u{20f0}' | '\u{fe0e}'
            | '\u{fe0f}' | '\u{e0000}'..='\u{e007f}')
}

fn longest_invisible_run(text: &str) -> usize {
    text.split(|character| !is_suspicious_invisible(character) && !matches!(character, '\u{fe00}'..='\u{fe0f}'))
        .map(|run| run.chars().count())
        .max()
        .unwrap_or_default()
}

/// Counts invisible characters between two Latin letters, for which no script has a use.
fn count_inside_words(text: &str) -> usize {
    let mut count = 0;
    let (mut letter_before, mut parted) = (false, false);
    for character in text.chars() {
        // A soft hyphen legitimately marks a possible line break in a long word.
        if is_suspicious_invisible(character) && character != '\u{ad}' {
            parted = true;
            continue;
        }
        let is_letter = character.is_ascii_alphabetic();
        count += usize::from(letter_before && parted && is_letter);
        (letter_before, parted) = (is_letter, false);
    }
    count
}

/// Finds words that mix letters of another script with Latin ones.
fn find_look_alikes(text: &str, add: &mut FindingSink<'_>) {
    const MIN_MIXED_WORDS: usize = 3;
    let is_mixed = |word: &&str| {
        let latin = word.chars().filter(char::is_ascii_alphabetic).count();
        latin >= 2 && word.chars().any(is_latin_look_alike)
    };
    let mut mixed = text.split(|character: char| !character.is_alphanumeric()).filter(is_mixed);
    if let Some(first) = mixed.next() {
        let weight = if mixed.take(MIN_MIXED_WORDS).count() + 1 >= MIN_MIXED_WORDS {
            FindingWeight::Certain
        } else {
            FindingWeight::Suspect
        };
        add(FindingRule::LookAlike, weight, first);
    }
}

/// Reports whether a Greek, Cyrillic or Armenian letter looks like a Latin one. Excludes symbols of units and
/// mathematics.
fn is_latin_look_alike(character: char) -> bool {
    let is_other =
        matches!(character, '\u{370}'..='\u{58f}' if !matches!(character, 'μ' | 'Ω' | 'Δ' | 'π' | 'α' | 'β' | 'σ'));
    is_other && matches!(fold(character), FoldedChar::Letter(letter) if letter.is_ascii())
}
