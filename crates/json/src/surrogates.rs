//! Lone surrogates: `\ud83d` without its second half, as a program writes it that cuts inside an emoji. JSON permits
//! them, Rust strings do not.

/// Replaces the escapes of lone surrogates by `\ufffd`, which has the same length. Returns `None` if there are none.
pub(crate) fn replace_lone_surrogates(json: &str) -> Option<String> {
    let mut text = None;
    let bytes = json.as_bytes();
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &bytes[at..]) {
        at += found;
        at += match (surrogate_at(bytes, at), surrogate_at(bytes, at + 6)) {
            (Some(SurrogateHalf::High), Some(SurrogateHalf::Low)) => 12,
            (Some(_), _) => {
                text.get_or_insert_with(|| bytes.to_vec())[at + 2..at + 6].copy_from_slice(b"fffd");
                6
            }
            // An escape of two characters, or the beginning of a longer one.
            (None, _) => 2,
        };
        if at >= bytes.len() {
            break;
        }
    }
    text.and_then(|text| String::from_utf8(text).ok())
}

#[derive(Clone, Copy)]
enum SurrogateHalf {
    High,
    Low,
}

/// Reads the escape `\uXXXX` at a position, if it is a surrogate.
fn surrogate_at(bytes: &[u8], at: usize) -> Option<SurrogateHalf> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    let unit = u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    match unit {
        0xd800..=0xdbff => Some(SurrogateHalf::High),
        0xdc00..=0xdfff => Some(SurrogateHalf::Low),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lone_surrogates_are_replaced() {
        for (json, expected) in [
            (r#""a\ud83d""#, Some(r#""a\ufffd""#)),
            (r#""\uDE00b""#, Some(r#""\ufffdb""#)),
            (r#""\ud83d\ud83d\ude00""#, Some(r#""\ufffd\ud83d\ude00""#)),
            (r#""\ude00\ud83d""#, Some(r#""\ufffd\ufffd""#)),
            (r#""\\ud83d\ud83dx""#, Some(r#""\\ud83d\ufffdx""#)),
            (r#""\ud83d\n""#, Some(r#""\ufffd\n""#)),
            (r#""\ud83d\ude00 \\ud83d \u0041 é""#, None),
            (r#""\ud83"#, None),
            (r"\", None),
            ("", None),
        ] {
            assert_eq!(replace_lone_surrogates(json).as_deref(), expected, "{json}");
        }
    }
}
