//! Detection of encoded text: Base64, hexadecimal, escapes.

use super::{FindingRule, FindingSink, FindingWeight, markup, words};

/// Decodes one level of encoding and inspects the result. Instructions in it are certain, other prose is a suspicion.
pub(super) fn find_encoded(text: &str, add: &mut FindingSink<'_>) {
    for (run, hidden) in encoded_runs(text).filter_map(|run| Some((run, decode(run)?))).chain(decode_escapes(text)) {
        let mut weight = FindingWeight::Suspect;
        let mut raise = |_, found: FindingWeight, _: &str| {
            weight = if found > FindingWeight::Note { FindingWeight::Certain } else { weight }
        };
        words::find_phrases(&hidden, false, &mut raise);
        markup::find_markup(&hidden, &mut raise);
        add(FindingRule::EncodedText, weight, if weight == FindingWeight::Certain { &hidden } else { run });
    }
}

/// Returns the runs that may be Base64 or hexadecimal and are long enough to be relevant.
fn encoded_runs(text: &str) -> impl Iterator<Item = &str> {
    const MIN_ENCODED_RUN: usize = 24;
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=');
    let parts = text.as_bytes().split(move |byte| !is_part(byte)).filter(|run| run.len() >= MIN_ENCODED_RUN);
    parts.filter_map(|run| std::str::from_utf8(run).ok())
}

/// Decodes a run, if the result is prose.
fn decode(run: &str) -> Option<String> {
    [hexadecimal(run), base64(run)]
        .into_iter()
        .flatten()
        .filter_map(|bytes| String::from_utf8(bytes).ok())
        .find(|text| is_prose(text))
}

/// Reports whether a text consists of words, unlike random bytes and identifiers.
fn is_prose(text: &str) -> bool {
    let readable = text.chars().all(|character| !character.is_control() || character.is_whitespace());
    readable && text.split_whitespace().filter(|word| word.chars().all(|letter| !letter.is_ascii_digit())).count() >= 3
}

fn hexadecimal(run: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pair = |pair: &[u8]| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?);
    run.strip_prefix("0x").unwrap_or(run).as_bytes().chunks(2).map(pair).collect()
}

/// Decodes either Base64 alphabet, with or without padding. Left-over bits are ignored.
fn base64(run: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(run.len() * 3 / 4);
    let (mut bits, mut held) = (0u32, 0);
    for symbol in run.trim_end_matches('=').bytes() {
        bits = bits << 6 | u32::from(sextet(symbol)?);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    Some(bytes)
}

fn sextet(symbol: u8) -> Option<u8> {
    match symbol {
        b'A'..=b'Z' => Some(symbol - b'A'),
        b'a'..=b'z' => Some(symbol - b'a' + 26),
        b'0'..=b'9' => Some(symbol - b'0' + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    }
}

/// Decodes the escapes in a text if they spell letters: `&#105;`, `%69`, `\x69`, `\u0069`.
fn decode_escapes(text: &str) -> Option<(&str, String)> {
    const MIN_ESCAPED_LETTERS: usize = 6;
    let mut plain = String::with_capacity(text.len());
    let (mut rest, mut undone) = (text, 0);
    while let Some(at) = rest.bytes().position(|byte| matches!(byte, b'&' | b'%' | b'\\')) {
        plain.push_str(&rest[..at]);
        let (character, length) = parse_escape(&rest[at..]);
        undone += usize::from(length > 1 && character.is_ascii_alphabetic());
        plain.push(character);
        rest = &rest[at + length..];
    }
    plain.push_str(rest);
    (undone >= MIN_ESCAPED_LETTERS).then_some((text, plain))
}

/// Returns the character of an escape and the escape's length. Any other character represents itself.
fn parse_escape(rest: &str) -> (char, usize) {
    let none = (rest.chars().next().unwrap_or_default(), 1);
    let number = |from: usize, to: usize, radix| {
        let code = rest.get(from..to).and_then(|digits| u32::from_str_radix(digits, radix).ok());
        code.and_then(char::from_u32)
    };
    let fixed = |from: usize, to: usize| number(from, to, 16).map_or(none, |character| (character, to));
    match rest.as_bytes() {
        [b'%', ..] => fixed(1, 3),
        [b'\\', b'x', ..] => fixed(2, 4),
        [b'\\', b'u', ..] => fixed(2, 6),
        [b'&', b'#', sign, ..] => {
            let end = rest.bytes().take(10).position(|byte| byte == b';').unwrap_or(0);
            let (from, radix) = if *sign == b'x' { (3, 16) } else { (2, 10) };
            number(from, end, radix).map_or(none, |character| (character, end + 1))
        }
        _ => none,
    }
}
