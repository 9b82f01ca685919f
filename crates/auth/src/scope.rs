//! Which scopes are asked for.
//!
//! What the owner says is taken as it is. What others say is taken word by word, as far as it consists of words that a
//! scope may have (RFC 6749, 3.3).

/// How many words are asked for at most.
const MOST_WORDS: usize = 200;
/// Asks for tokens that can be renewed while nobody is there (OpenID Connect Core, 11).
const OFFLINE_ACCESS: &str = "offline_access";

/// What to ask for at the first login: what the owner says, else the challenge, else all the server knows, else
/// nothing. An owner who says nothing but blanks wants nothing asked for.
pub(crate) fn chosen(owner: Option<&str>, challenge: Option<&str>, supported: &[String]) -> Option<String> {
    match owner {
        Some(owner) => joined(owner.split_whitespace()),
        None => joined(words(challenge)).or_else(|| joined(supported.iter().map(String::as_str).filter(is_word))),
    }
}

/// What was asked for before and what is wanted now, each once, in that order.
pub(crate) fn union(before: Option<&str>, wanted: Option<&str>) -> Option<String> {
    joined(before.unwrap_or_default().split_whitespace().chain(words(wanted)))
}

/// What is asked for where tokens should last without a person: `offline_access` too, if the authorization server is
/// known to know it. Where nothing is asked for nothing is added, because that would be all that is granted.
pub(crate) fn with_offline_access(asked: Option<&str>, known: &[String]) -> Option<String> {
    let offline = known.iter().any(|scope| scope == OFFLINE_ACCESS).then_some(OFFLINE_ACCESS);
    asked.and_then(|asked| union(Some(asked), offline))
}

fn words(text: Option<&str>) -> impl Iterator<Item = &str> {
    text.unwrap_or_default().split_whitespace().filter(is_word)
}

fn is_word(word: &&str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e))
}

/// The words, each once, with a blank between them.
fn joined<'a>(words: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut once: Vec<&str> = Vec::new();
    for word in words {
        if once.len() < MOST_WORDS && !once.contains(&word) {
            once.push(word);
        }
    }
    (!once.is_empty()).then(|| once.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(words: &str) -> Vec<String> {
        words.split('|').filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }

    #[test]
    fn the_first_who_says_something_decides() {
        for (owner, challenge, supported, expected) in [
            (None, None, "", None),
            (None, None, "a|b|a", Some("a b")),
            (None, Some("c  d c"), "a|b", Some("c d")),
            (None, Some(" "), "a", Some("a")),
            (None, Some("c\u{1b}[2J"), "a", Some("a")),
            (None, None, "two words|quo\"te|a", Some("a")),
            (Some("o\u{fc} p"), Some("c"), "a", Some("o\u{fc} p")),
            (Some(""), Some("c"), "a", None),
        ] {
            assert_eq!(chosen(owner, challenge, &list(supported)).as_deref(), expected, "{owner:?} {challenge:?}");
        }
    }

    #[test]
    fn t48_more_is_added_to_what_was_asked_before() {
        for (before, wanted, expected) in [
            (None, None, None),
            (Some("a b"), None, Some("a b")),
            (None, Some("b c"), Some("b c")),
            (Some("a b"), Some("c b"), Some("a b c")),
            (Some("a"), Some("\\ \u{202e}"), Some("a")),
        ] {
            assert_eq!(union(before, wanted).as_deref(), expected, "{before:?} {wanted:?}");
        }
    }

    #[test]
    fn offline_access_is_asked_for_where_it_is_known() {
        for (asked, known, expected) in [
            (Some("a"), "offline_access|a", Some("a offline_access")),
            (Some("offline_access a"), "offline_access", Some("offline_access a")),
            (Some("a"), "a|OFFLINE_ACCESS", Some("a")),
            (Some("a"), "", Some("a")),
            (None, "offline_access", None),
        ] {
            assert_eq!(with_offline_access(asked, &list(known)).as_deref(), expected, "{asked:?} {known}");
        }
    }

    #[test]
    fn t49_a_hundred_thousand_scopes_are_two_hundred() {
        let many: Vec<String> = (0..100_000).map(|number| format!("s{number}")).collect();
        assert_eq!(chosen(None, None, &many).unwrap().split(' ').count(), MOST_WORDS);
        assert_eq!(union(Some("a"), Some(&many.join(" "))).unwrap().split(' ').count(), MOST_WORDS);
    }
}
