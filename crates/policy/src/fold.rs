//! Folding of texts that careless parsers treat as equal.

/// Removes differences of case and width. Not for display, and not a full normalization: a non-ASCII result may still
/// resemble an ASCII text.
pub(crate) fn fold(text: &str) -> String {
    text.chars().map(narrow).flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}

/// Returns the ASCII character that corresponds to a full-width one.
fn narrow(character: char) -> char {
    match character {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(character) - 0xfee0).unwrap_or(character),
        '\u{3000}' => ' ',
        other => other,
    }
}

/// Reports whether a parser that ignores case, such as Go's, treats two keys as equal.
pub(crate) fn same_key(one: &str, other: &str) -> bool {
    one == other
        || if one.is_ascii() && other.is_ascii() { one.eq_ignore_ascii_case(other) } else { fold(one) == fold(other) }
}

/// Calls a function with the folded form of a name. Short ASCII names need no allocation.
pub(crate) fn with_folded<T>(name: &str, look: impl FnOnce(&str) -> T) -> T {
    let mut buffer = [0u8; 128];
    let Some(room) = buffer.get_mut(..name.len()).filter(|_| name.is_ascii()) else { return look(&fold(name)) };
    room.copy_from_slice(name.as_bytes());
    room.make_ascii_lowercase();
    look(std::str::from_utf8(room).unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equivalent_keys_fold_alike() {
        for (one, other) in
            [("PATH", "path"), ("ｐａｔｈ", "path"), ("paſſ", "pass"), ("\u{212a}ey", "key"), ("ÄÖ", "äö")]
        {
            assert!(same_key(one, other), "{one} {other}");
            with_folded(one, |folded| assert_eq!(folded, fold(other)));
        }
        assert!(!same_key("path", "paths"));
    }
}
