//! Choice of the scopes to request.
//!
//! Configured scopes are used as written. Scopes named by servers are filtered: only valid scope tokens are used (RFC
//! 6749, 3.3).

/// Maximum number of scopes to request.
const MAX_SCOPES: usize = 200;
/// Requests a refresh token for offline use (OpenID Connect Core, 11).
const OFFLINE_ACCESS: &str = "offline_access";

/// Returns the scopes of a first login: the configured ones, else those of the challenge, else all that the server
/// supports, else `None`. A blank setting means that no scope is requested.
pub(crate) fn initial_scope(owner: Option<&str>, challenge: Option<&str>, supported: &[String]) -> Option<String> {
    match owner {
        Some(owner) => join_unique(owner.split_whitespace()),
        None => join_unique(valid_scopes(challenge))
            .or_else(|| join_unique(supported.iter().map(String::as_str).filter(is_valid_scope))),
    }
}

/// Returns the union of two scope lists, in order and without duplicates.
pub(crate) fn union(before: Option<&str>, wanted: Option<&str>) -> Option<String> {
    join_unique(before.unwrap_or_default().split_whitespace().chain(valid_scopes(wanted)))
}

/// Adds `offline_access` if the authorization server supports it. Nothing is added to an empty request, since then only
/// `offline_access` would be granted.
pub(crate) fn with_offline_access(asked: Option<&str>, known: &[String]) -> Option<String> {
    let offline = known.iter().any(|scope| scope == OFFLINE_ACCESS).then_some(OFFLINE_ACCESS);
    asked.and_then(|asked| union(Some(asked), offline))
}

fn valid_scopes(text: Option<&str>) -> impl Iterator<Item = &str> {
    text.unwrap_or_default().split_whitespace().filter(is_valid_scope)
}

fn is_valid_scope(word: &&str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e))
}

/// Joins the words with spaces, without duplicates.
fn join_unique<'a>(words: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut once: Vec<&str> = Vec::new();
    for word in words {
        if once.len() < MAX_SCOPES && !once.contains(&word) {
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
    fn configured_scope_precedes_challenge_and_metadata() {
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
            assert_eq!(
                initial_scope(owner, challenge, &list(supported)).as_deref(),
                expected,
                "{owner:?} {challenge:?}"
            );
        }
    }

    #[test]
    fn t48_step_up_scopes_are_added_to_earlier_ones() {
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
    fn offline_access_is_added_where_supported() {
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
    fn t49_scopes_are_limited_to_200() {
        let many: Vec<String> = (0..100_000).map(|number| format!("s{number}")).collect();
        assert_eq!(initial_scope(None, None, &many).unwrap().split(' ').count(), MAX_SCOPES);
        assert_eq!(union(Some("a"), Some(&many.join(" "))).unwrap().split(' ').count(), MAX_SCOPES);
    }
}
