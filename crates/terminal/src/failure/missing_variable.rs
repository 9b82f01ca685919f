//! Recognizes errors about a missing environment variable.

/// Words of an error about a missing variable.
const VARIABLE_WORDS: [&str; 14] = [
    "api key",
    "apikey",
    "api-key",
    "credential",
    "environ",
    "env var",
    "must be set",
    "not set",
    "password",
    "secret",
    "token",
    "unbound variable",
    "undefined variable",
    "unset",
];

/// Reports whether the output of a server that exited may be about a missing variable: it names one, as in
/// `GITHUB_TOKEN`, or uses a word of such errors.
pub fn mentions_variable(stderr: &[String]) -> bool {
    let is_variable = |word: &str| {
        word.len() > 3 && word.contains('_') && word.chars().all(|char| char.is_ascii_uppercase() || char == '_')
    };
    stderr.iter().any(|line| {
        let lower = line.to_ascii_lowercase();
        let mut words = line.split(|char: char| !char.is_ascii_alphanumeric() && char != '_');
        VARIABLE_WORDS.iter().any(|word| lower.contains(word)) || words.any(is_variable)
    })
}
