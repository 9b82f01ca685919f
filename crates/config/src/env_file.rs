//! Env files: one `NAME=value` per line.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// Maximum bytes of an env file.
const MAX_ENV_FILE_BYTES: u64 = 1 << 20;

/// Reads an env file.
///
/// # Errors
/// Returns the reason if the file cannot be read or parsed.
pub(crate) fn read(path: &Path) -> Result<Vec<(String, String)>, String> {
    // Opening a pipe would block until there is a writer.
    let metadata = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("not a regular file".to_owned());
    }
    let mut text = String::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    file.take(MAX_ENV_FILE_BYTES + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    if text.len() as u64 > MAX_ENV_FILE_BYTES {
        return Err(format!("larger than {MAX_ENV_FILE_BYTES} bytes"));
    }
    parse(&text)
}

/// Parses lines of `NAME=value`. Comments start with `#`. Quotes around a value are removed, and double quotes allow
/// the escapes `\n`, `\"` and `\\`.
fn parse(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut found = Vec::new();
    for (number, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").unwrap_or(line);
        let name = line.split_once('=').map(|(name, value)| (name.trim(), value.trim()));
        match name {
            Some((name, value)) if is_name(name) => found.push((name.to_owned(), unquote_value(value))),
            // Do not include the line: it may hold a secret.
            _ => return Err(format!("line {} is not NAME=value", number + 1)),
        }
    }
    Ok(found)
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

fn unquote_value(value: &str) -> String {
    let plain = || value.split(" #").next().unwrap_or(value).trim_end().to_owned();
    parse_quoted(value).unwrap_or_else(plain)
}

/// Returns the text between quotes, if only a comment follows. Reads in one pass, so that the result of an escape does
/// not start another one.
fn parse_quoted(value: &str) -> Option<String> {
    let mut letters = value.chars();
    let quote = letters.next().filter(|first| matches!(first, '"' | '\''))?;
    let mut inside = String::new();
    loop {
        match letters.next()? {
            letter if letter == quote => break,
            '\\' if quote == '"' => match letters.next()? {
                'n' => inside.push('\n'),
                letter @ ('"' | '\\') => inside.push(letter),
                letter => inside.extend(['\\', letter]),
            },
            letter => inside.push(letter),
        }
    }
    let rest = letters.as_str();
    (rest.is_empty() || rest.trim_start().starts_with('#') && rest.starts_with(char::is_whitespace)).then_some(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn env_file_lines_are_parsed() {
        let text = "\u{feff}# comment\n\nA=1\r\nexport B = two words # not this\nC=\"a \\\"b\\\"\\nc\"\nD='#$x'\nE=\n";
        let expected = [("A", "1"), ("B", "two words"), ("C", "a \"b\"\nc"), ("D", "#$x"), ("E", "")];
        let found = parse(text).unwrap();
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let values = [
            (r#""C:\\new""#, r"C:\new"),
            (r#""x" # "c""#, "x"),
            ("'y'\t# it's", "y"),
            (r#""a\tb""#, r"a\tb"),
            (r#""open"#, r#""open"#),
        ];
        for (value, expected) in values {
            assert_eq!(unquote_value(value), expected, "{value}");
        }
        for bad in ["hush", "=x", "A B=1"] {
            let error = parse(bad).unwrap_err();
            assert!(error.starts_with("line 1") && !error.contains("hush"), "{error}");
        }
    }
}
