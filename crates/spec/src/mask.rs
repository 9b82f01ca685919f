//! Detection of secrets in names, URLs and command lines, and masking of command lines for display.
//!
//! A secret is recognized by the name before it, by its place in a URL, or by a well-known prefix. [`crate::Redactor`]
//! searches all other text for the secrets found here, so that command lines and logs mask the same values.

use std::ffi::OsString;
use std::ops::Range;

use crate::Secret;

/// Replacement for a secret.
pub(crate) const MASK: &str = "***";

/// Words that mark a name as secret if the name contains them as whole words.
const SECRET_WORDS: [&str; 25] = [
    "key",
    "keys",
    "token",
    "secret",
    "secrets",
    "password",
    "passwd",
    "passphrase",
    "pass",
    "pwd",
    "pw",
    "credential",
    "credentials",
    "creds",
    "auth",
    "authorization",
    "bearer",
    "pat",
    "cookie",
    "cookies",
    "private",
    "session",
    "jwt",
    "dsn",
    "signature",
];

/// Suffixes that mark a name as secret if one of its words ends with them, as in `PGPASSWORD`.
const SECRET_SUFFIXES: [&str; 9] =
    ["password", "passwd", "secret", "token", "apikey", "secretkey", "accesskey", "privatekey", "accountkey"];

/// Last words that describe an attribute of a secret, not the secret itself.
const ATTRIBUTE_WORDS: [&str; 15] = [
    "file", "path", "dir", "type", "url", "uri", "endpoint", "ttl", "timeout", "limit", "length", "count", "mode",
    "method", "env",
];

/// Prefixes of well-known tokens. The flag requires a digit after the prefix, because ordinary words start the same
/// way.
const TOKEN_PREFIXES: [(&str, bool); 25] = [
    ("sk-", true),
    ("sk_live_", false),
    ("sk_test_", false),
    ("rk_live_", false),
    ("ghp_", false),
    ("gho_", false),
    ("ghu_", false),
    ("ghs_", false),
    ("ghr_", false),
    ("github_pat_", false),
    ("glpat-", false),
    ("xoxb-", false),
    ("xoxp-", false),
    ("xoxa-", false),
    ("xoxs-", false),
    ("xapp-", false),
    ("AKIA", false),
    ("ASIA", true),
    ("AIza", false),
    ("eyJ", false),
    ("ya29.", false),
    ("npm_", true),
    ("pypi-", true),
    ("hf_", true),
    ("SG.", true),
];

/// Characters that quote values.
const QUOTES: [char; 3] = ['"', '\'', '`'];

/// Minimum number of characters after a token prefix.
const MIN_TOKEN_LENGTH: usize = 8;

/// Schemes of URLs that may have an `@` in the path, as in `git+https://example.org/a@v1`.
const PLAIN_SCHEMES: [&str; 8] = ["http", "https", "ws", "wss", "ssh", "git", "file", "ftp"];
/// Words before a token in a header.
const AUTH_SCHEMES: [&str; 3] = ["bearer", "basic", "token"];

/// Flags that take a name and a secret value.
const HEADER_FLAGS: [&str; 3] = ["-H", "--header", "--headers"];
/// Flags that take a user name and a password.
const CREDENTIAL_FLAGS: [&str; 3] = ["-u", "--user", "--proxy-user"];

/// Reports whether a name marks its value as secret. Applies to flags, variables, headers and object members.
///
/// Only whole words match: `api-key`, `apiKey` and `API_KEY` are secret, `keyboard` and `author` are not.
pub fn is_secret_name(name: &str) -> bool {
    let words = split_words(name);
    let tells =
        |word: &String| SECRET_WORDS.contains(&&**word) || SECRET_SUFFIXES.iter().any(|ending| word.ends_with(ending));
    let harmless = words.last().is_some_and(|last| ATTRIBUTE_WORDS.contains(&&**last));
    let connects = words.windows(2).any(|pair| pair == ["connection", "string"]);
    !harmless && (connects || words.iter().any(tells))
}

/// Splits a name into lower-case words, at non-letters and at camel-case boundaries.
fn split_words(name: &str) -> Vec<String> {
    let letters: Vec<char> = name.chars().take(200).collect();
    let mut words = vec![String::new()];
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| letters[before]);
        let rises = letter.is_uppercase() && before.is_some_and(char::is_lowercase);
        let is_last_capital = letter.is_uppercase()
            && before.is_some_and(char::is_uppercase)
            && letters.get(at + 1).is_some_and(|next| next.is_lowercase());
        if rises || is_last_capital || !letter.is_alphabetic() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphabetic()) {
            word.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns the arguments with secrets masked as `***`.
pub fn mask_arguments(arguments: &[OsString]) -> Vec<String> {
    mask_arguments_and_values(arguments, &[])
}

/// Masks arguments like [`mask_arguments`], and also every occurrence of these values. Both searches run on the
/// original text, so that neither mask hides a match of the other.
pub(crate) fn mask_arguments_and_values(arguments: &[OsString], values: &[Secret]) -> Vec<String> {
    let texts = to_strings(arguments);
    let values = || values.iter().map(Secret::reveal).filter(|value| is_long_enough_to_mask(value));
    let show = |(text, mut ranges): (&String, Vec<Range<usize>>)| {
        ranges.extend(values().flat_map(|value| text.match_indices(value).map(|(at, _)| at..at + value.len())));
        mask_ranges(text, &merge_ranges(ranges))
    };
    texts.iter().zip(find_secret_ranges(&texts)).map(show).collect()
}

/// Reports whether a value is long enough to mask. Masking shorter values would make the rest unreadable.
pub(crate) fn is_long_enough_to_mask(value: &str) -> bool {
    value.chars().nth(2).is_some()
}

/// Returns the secrets in the arguments, as written there.
pub(crate) fn find_argument_secrets(arguments: &[OsString]) -> Vec<String> {
    let texts = to_strings(arguments);
    let hidden = find_secret_ranges(&texts);
    let cut = |(text, ranges): (&String, Vec<Range<usize>>)| -> Vec<String> {
        ranges.into_iter().map(|range| text[range].to_owned()).collect()
    };
    texts.iter().zip(hidden).flat_map(cut).collect()
}

fn to_strings(arguments: &[OsString]) -> Vec<String> {
    arguments.iter().map(|argument| argument.to_string_lossy().into_owned()).collect()
}

/// Replaces these ranges with the mask. The ranges must be sorted and disjoint.
pub(crate) fn mask_ranges(text: &str, ranges: &[Range<usize>]) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut from = 0;
    for range in ranges {
        shown.push_str(&text[from..range.start]);
        shown.push_str(MASK);
        from = range.end;
    }
    shown.push_str(&text[from..]);
    shown
}

/// Sorts ranges and merges those that touch or overlap.
pub(crate) fn merge_ranges(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_by_key(|range| range.start);
    let mut apart: Vec<Range<usize>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match apart.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => apart.push(range),
        }
    }
    apart
}

/// Kind of value that a flag announces for the next argument.
#[derive(Clone, Copy)]
enum FlagValueKind {
    Nothing,
    Secret,
    Header,
    Login,
}

/// Returns the ranges to mask in each argument.
fn find_secret_ranges(arguments: &[String]) -> Vec<Vec<Range<usize>>> {
    let mut announced = FlagValueKind::Nothing;
    let mut all = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let mut hidden = word_secret_ranges(argument);
        let is_flag = argument.starts_with("--") || (argument.starts_with('-') && argument.len() == 2);
        if !is_flag {
            hidden.extend(announced_secret_range(announced, argument, 0));
        }
        // `-token` may be a flag too, even if it follows a flag that takes a value.
        let may_announce = argument.starts_with('-') && !argument.contains('=');
        announced = if may_announce { flag_value_kind(argument) } else { FlagValueKind::Nothing };
        all.push(merge_ranges(hidden));
    }
    all
}

fn flag_value_kind(flag: &str) -> FlagValueKind {
    match flag {
        _ if HEADER_FLAGS.contains(&flag) => FlagValueKind::Header,
        _ if CREDENTIAL_FLAGS.contains(&flag) => FlagValueKind::Login,
        _ if is_secret_name(flag) && !flag.trim_start_matches('-').starts_with("no-") => FlagValueKind::Secret,
        _ => FlagValueKind::Nothing,
    }
}

/// Returns the range to mask in the value that starts at `from`, given the kind that was announced.
fn announced_secret_range(announced: FlagValueKind, text: &str, from: usize) -> Option<Range<usize>> {
    let value = &text[from..];
    let behind = |separators: &[char]| value.find(separators).map(|at| from + at + 1..text.len());
    match announced {
        FlagValueKind::Nothing => None,
        FlagValueKind::Secret => Some(from..text.len()),
        FlagValueKind::Header => behind(&['=', ':']).map(|range| trim_range_start(text, range)),
        FlagValueKind::Login => behind(&[':']),
    }
}

/// Returns the ranges to mask in a word, independent of the word before it.
fn word_secret_ranges(word: &str) -> Vec<Range<usize>> {
    let mut hidden = Vec::new();
    add_url_secrets(word, &mut hidden);
    add_known_tokens(word, &mut hidden);
    if let Some(at) = word.find(['=', ':']).filter(|_| word.starts_with("--")) {
        hidden.extend(announced_secret_range(flag_value_kind(&word[..at]), word, at + 1));
    }
    hidden.extend(word.match_indices(['=', ':']).filter_map(|(at, _)| named_secret_range(word, at)));
    hidden
}

/// Returns the range to mask after the `=` or `:` at `at`, if the name before it is secret.
fn named_secret_range(word: &str, at: usize) -> Option<Range<usize>> {
    let before = word[..at].trim_end_matches(QUOTES).trim_end_matches('\\');
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let name = &before[before.trim_end_matches(is_name).len()..];
    if !matches!(flag_value_kind(name), FlagValueKind::Secret) {
        return None;
    }
    let ahead = &before[..before.len() - name.len()];
    let value = trim_range_start(word, at + 1..word.len());
    // `NAME=value` is a whole argument, or the value of a flag.
    let begins = ahead.is_empty() || (ahead.starts_with('-') && ahead.find('=') == Some(ahead.len() - 1));
    if begins {
        return Some(value);
    }
    let around = ahead.chars().next_back().filter(|quote| QUOTES.contains(quote) && before.len() == at);
    value_range(word, value, around)
}

/// Returns the range of the value at the start of a text. It ends at the closing quote, at the quote around the whole
/// pair, or at a usual separator.
fn value_range(word: &str, value: Range<usize>, around: Option<char>) -> Option<Range<usize>> {
    let text = &word[value.clone()];
    let inside = text.trim_start_matches('\\');
    let quote = inside.chars().next().filter(|first| QUOTES.contains(first));
    let from = quote.map_or(0, |quote| text.len() - inside.len() + quote.len_utf8());
    let rest = &text[from..];
    let length = match quote.or(around) {
        // Inside a quoted text the quotes themselves are escaped.
        Some(quote) if from > quote.len_utf8() => rest.find(quote).unwrap_or(rest.len()),
        Some(quote) => quoted_length(rest, quote),
        // An object has member names of its own.
        None if rest.starts_with('{') => return None,
        None if rest.starts_with('[') => rest.find(']').unwrap_or(rest.len()),
        None => unquoted_length(rest),
    };
    Some(value.start + from..value.start + from + length)
}

/// Returns the length up to the first unescaped quote.
fn quoted_length(text: &str, quote: char) -> usize {
    let ends = |at: &usize| !text[..*at].ends_with('\\');
    let mut quotes = text.match_indices(quote).map(|(at, _)| at);
    quotes.find(ends).unwrap_or(text.len())
}

/// Returns the length up to the next separator. An authentication scheme and the token after it count as one value.
fn unquoted_length(text: &str) -> usize {
    let ends = |letter: char| letter.is_whitespace() || QUOTES.contains(&letter) || ";&,".contains(letter);
    let length = text.find(ends).unwrap_or(text.len());
    let token = text[length..].trim_start();
    if !AUTH_SCHEMES.contains(&text[..length].to_ascii_lowercase().as_str()) || token.is_empty() {
        return length;
    }
    text.len() - token.len() + token.find(ends).unwrap_or(token.len())
}

fn trim_range_start(text: &str, range: Range<usize>) -> Range<usize> {
    let value = &text[range.clone()];
    range.start + (value.len() - value.trim_start().len())..range.end
}

/// Adds the ranges of credentials, query values and fragments of every URL in a text.
pub(crate) fn add_url_secrets(text: &str, hidden: &mut Vec<Range<usize>>) {
    for (at, mark) in text.match_indices("://") {
        let from = at + mark.len();
        let ends = |letter: char| letter.is_whitespace() || "\"'<>`".contains(letter);
        let end = text[from..].find(ends).map_or(text.len(), |length| from + length);
        let authority = text[from..end].find(['/', '?', '#']).map_or(end, |length| from + length);
        // An unescaped password may contain any character.
        let anywhere = text[from..end]
            .rfind('@')
            .filter(|length| text[from..from + length].contains(':') && !has_plain_scheme(&text[..at]));
        let login = anywhere.or_else(|| text[from..authority].rfind('@')).unwrap_or(0);
        hidden.push(from..from + login);
        let from = from + login;
        let fragment = text[from..end].find('#').map_or(end, |length| from + length);
        if let Some(length) = text[from..fragment].find('?') {
            add_query_secrets(text, from + length + 1..fragment, hidden);
        }
        hidden.push((fragment + 1).min(end)..end);
    }
}

/// Reports whether a text ends with one of [`PLAIN_SCHEMES`].
fn has_plain_scheme(text: &str) -> bool {
    let others = text.trim_end_matches(|letter: char| letter.is_ascii_alphanumeric());
    PLAIN_SCHEMES.iter().any(|scheme| text[others.len()..].eq_ignore_ascii_case(scheme))
}

fn add_query_secrets(text: &str, query: Range<usize>, hidden: &mut Vec<Range<usize>>) {
    let mut from = query.start;
    for pair in text[query].split('&') {
        let value = pair.find('=').map_or(0, |length| length + 1);
        hidden.push(from + value..from + pair.len());
        from += pair.len() + 1;
    }
}

fn add_known_tokens(text: &str, hidden: &mut Vec<Range<usize>>) {
    let belongs = |letter: char| letter.is_ascii_alphanumeric() || "-_.+/=".contains(letter);
    for (beginning, wants_digit) in TOKEN_PREFIXES {
        for (at, _) in text.match_indices(beginning) {
            let inside = text[..at].chars().next_back().is_some_and(|before| before.is_ascii_alphanumeric());
            let rest = &text[at + beginning.len()..];
            let length = rest.find(|letter| !belongs(letter)).unwrap_or(rest.len());
            let has_digit = rest[..length].bytes().any(|byte| byte.is_ascii_digit());
            if !inside && length >= MIN_TOKEN_LENGTH && (has_digit || !wants_digit) {
                hidden.push(at..at + beginning.len() + length);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_names_are_detected_by_whole_words() {
        let telling = [
            "key",
            "--api-key",
            "apiKey",
            "API_KEY",
            "APIKey",
            "GITHUB_PAT",
            "x.auth",
            "Authorization",
            "PGPASSWORD",
            "client_secret",
            "accessToken",
            "TOKEN2",
            "Set-Cookie",
            "private-key",
            "session_id",
            "DB_PASS",
            "db.pwd",
            "--api-keys",
            "accesskey",
            "AccountKey",
            "--connection-string",
        ];
        for name in telling {
            assert!(is_secret_name(name), "{name}");
        }
        let harmless = [
            "",
            "keyboard",
            "--author",
            "monkey",
            "max_tokens",
            "tokenizer",
            "pattern",
            "path",
            "compass",
            "privately",
            "sessions",
            "authority",
            "keyFile",
            "--token-url",
            "AUTH_TYPE",
            "passive",
            "bearing",
            "--string",
            "hotkeys",
        ];
        for name in harmless {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[track_caller]
    fn check(line: &[&str], expected: &[&str]) {
        let arguments: Vec<OsString> = line.iter().map(OsString::from).collect();
        assert_eq!(mask_arguments(&arguments), expected);
    }

    #[test]
    fn values_of_secret_flags_and_names_are_masked() {
        check(&["--api-key", "hush", "x"], &["--api-key", "***", "x"]);
        check(&["--token=hush", "--name=x"], &["--token=***", "--name=x"]);
        check(&["-H", "Authorization: Bearer hush"], &["-H", "Authorization: ***"]);
        check(&["--header", "k=hush", "--header=X-Id: hush"], &["--header", "k=***", "--header=X-Id: ***"]);
        check(&["-e", "GITHUB_TOKEN=hush", "-e", "MODE=fast"], &["-e", "GITHUB_TOKEN=***", "-e", "MODE=fast"]);
        check(&["Cookie: a=hush"], &["Cookie: ***"]);
        check(&["-u", "me:hush", "--user", "me"], &["-u", "me:***", "--user", "me"]);
        check(&["--token", "-hush"], &["--token", "***"]);
    }

    #[test]
    fn values_of_single_dash_flags_are_masked() {
        check(&["-token", "hushhush", "x"], &["-token", "***", "x"]);
        check(&["--private", "-token", "hushhush"], &["--private", "***", "***"]);
        check(&["--accesskey", "hushhush", "--api-keys", "hushhush"], &["--accesskey", "***", "--api-keys", "***"]);
        check(&["--connection-string", "x;AccountKey=hush"], &["--connection-string", "***"]);
    }

    #[test]
    fn secret_names_inside_an_argument_are_masked() {
        for (word, shown) in [
            ("--env=GITHUB_TOKEN=hush,hush", "--env=GITHUB_TOKEN=***"),
            (r#"{"apiKey":"hush, hush","n":1}"#, r#"{"apiKey":"***","n":1}"#),
            (r#"{"password": "hu\"sh", "n": "x"}"#, r#"{"password": "***", "n": "x"}"#),
            (r#"{"pin":1,"password":12345,"auth":{"type":"x"}}"#, r#"{"pin":1,"password":***,"auth":{"type":"x"}}"#),
            (r#"{"keys":["hush","hush"],"n":[1]}"#, r#"{"keys":***],"n":[1]}"#),
            (r#"{\"token\":\"hush\"}"#, r#"{\"token\":\"***"}"#),
            ("export API_KEY=hush; run", "export API_KEY=***; run"),
            ("export API_KEY='hush; hush'; run", "export API_KEY='***'; run"),
            ("Server=x;Password=hush;", "Server=x;Password=***;"),
            ("curl -H 'Authorization: Bearer hush' x", "curl -H 'Authorization: ***' x"),
            ("say Authorization: Bearer hush now", "say Authorization: *** now"),
        ] {
            check(&[word], &[shown]);
        }
    }

    #[test]
    fn url_credentials_and_parameters_are_masked() {
        check(&["https://me:hush@example.org/a?b=1"], &["https://***@example.org/a?b=***"]);
        check(&["--db=postgres://u:p@ss@h/db"], &["--db=postgres://***@h/db"]);
        check(&["http://h/?hush#x", "http://h/?a=&b=hush"], &["http://h/?***#***", "http://h/?a=&b=***"]);
        check(&["http://h/#access_token=hush", "http://h/#"], &["http://h/#***", "http://h/#"]);
        check(&["postgres://u:hush/hu#sh@h/db"], &["postgres://***@h/db"]);
    }

    #[test]
    fn tokens_are_detected_by_prefix() {
        check(&["sk-proj-1234567890", "ghp_abcdefgh", "eyJhbGciOi.J9.x"], &["***", "***", "***"]);
        check(&["key(AKIAIOSFODNN7EXAMPLE)"], &["key(***)"]);
        check(&["see xoxb-12345678, please"], &["see ***, please"]);
    }

    #[test]
    fn ordinary_arguments_are_unchanged() {
        for line in [
            &["-y", "@scope/server-github", "--keyboard", "us", "--author=me"][..],
            &["--no-auth", "server.js", "--key-file", "./a.pem", "sk-learn-server", "risk-1234567890"],
            &["--private", "--verbose", "run", "C:\\x", "a:b", "https://example.org/mcp", "--max-tokens", "100"],
            &["npm_config_registry", "", "=", ":", "--", "-", "-xvf", "a", "-no-auth", "x", "\"=", "é:=\\"],
            &["git+https://example.org:1/a@v1", "npm://@scope/a@1", "Server=x;Port=1;", "{\"keyboard\":\"us\"}"],
        ] {
            check(line, line);
        }
    }

    #[test]
    fn argument_secrets_are_extracted() {
        let arguments = ["--api-key", "one", "http://a:two@h/?q=three&r=four"].map(OsString::from);
        assert_eq!(find_argument_secrets(&arguments), ["one", "a:two", "three", "four"]);
    }
}
