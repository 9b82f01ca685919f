//! Texts made alike where careless readers take them for the same.

/// A text without differences of case and of width. Not for showing, and not a full normalisation: what is not ASCII
/// afterwards may still have a twin that is.
pub(crate) fn fold(text: &str) -> String {
    text.chars().map(narrow).flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}

/// The ASCII character that a full-width one stands for.
fn narrow(character: char) -> char {
    match character {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(character) - 0xfee0).unwrap_or(character),
        '\u{3000}' => ' ',
        other => other,
    }
}

/// Whether two keys are one to a reader that does not look at case, as Go's does not.
pub(crate) fn same_key(one: &str, other: &str) -> bool {
    one == other
        || if one.is_ascii() && other.is_ascii() { one.eq_ignore_ascii_case(other) } else { fold(one) == fold(other) }
}

/// Lends the folded form of a name; a short one in ASCII costs no allocation.
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
    fn twins_fold_alike() {
        for (one, other) in
            [("PATH", "path"), ("ｐａｔｈ", "path"), ("paſſ", "pass"), ("\u{212a}ey", "key"), ("ÄÖ", "äö")]
        {
            assert!(same_key(one, other), "{one} {other}");
            with_folded(one, |folded| assert_eq!(folded, fold(other)));
        }
        assert!(!same_key("path", "paths"));
    }
}
