//! Parses the inside of a call expression such as `tool(a: 1, b: "x")`.

use wharf_wire::RawJson;

use super::{ArgumentValue, TypedArgument};
use crate::failure::Failure;

/// Parses comma-separated `name: value` or `name = value`. A value is JSON, a text in single quotes, or a bare word
/// typed by the schema.
///
/// # Errors
///
/// Fails at the first part that has another form.
pub fn parse_expression(inside: &str) -> Result<Vec<TypedArgument>, Failure> {
    let mut given = Vec::new();
    let mut rest = inside.trim();
    while !rest.is_empty() {
        let end = rest.find([':', '=']).ok_or_else(|| syntax_failure(rest))?;
        let name = rest[..end].trim().trim_matches(['"', '\'']);
        if name.is_empty() || name.contains([',', '(', '{']) {
            return Err(syntax_failure(rest));
        }
        let after = rest[end + 1..].trim_start();
        let length = value_length(after).ok_or_else(|| syntax_failure(after))?;
        given.push(TypedArgument {
            name: name.to_owned(),
            value: value(after[..length].trim()).ok_or_else(|| syntax_failure(after))?,
        });
        rest = after[length..].strip_prefix(',').unwrap_or_default().trim_start();
    }
    Ok(given)
}

/// Returns the length of a value: up to the next comma outside quotes and brackets.
fn value_length(text: &str) -> Option<usize> {
    let (mut depth, mut quote, mut escaped) = (0_usize, None, false);
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), _) if open == letter => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(letter),
            (None, '[' | '{' | '(') => depth += 1,
            (None, ']' | '}' | ')') => depth = depth.checked_sub(1)?,
            (None, ',') if depth == 0 => return Some(at),
            (None, _) => {}
        }
    }
    (depth == 0 && quote.is_none()).then_some(text.len())
}

fn value(text: &str) -> Option<ArgumentValue> {
    if let Some(quoted) = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')) {
        return Some(ArgumentValue::Text(quoted.replace("\\'", "'").replace("\\\\", "\\")));
    }
    match RawJson::parse(text.to_owned()) {
        Ok(json) => Some(ArgumentValue::Member(json)),
        Err(_) if text.is_empty() || text.starts_with(['"', '[', '{']) => None,
        Err(_) => Some(ArgumentValue::Text(text.to_owned())),
    }
}

fn syntax_failure(at: &str) -> Failure {
    let shown: String = at.chars().take(40).collect();
    Failure::usage(format_args!("syntax error in the call at `{shown}`"))
        .with_hint("write it as 'tool(name: \"text\", count: 3, list: [1, 2])', quoted for the shell")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(inside: &str, expected: Option<&[(&str, &str)]>) {
        let shown = |given: TypedArgument| match given.value {
            ArgumentValue::Text(text) => (given.name, format!("text {text}")),
            ArgumentValue::Json(json) | ArgumentValue::Member(json) => (given.name, json.as_str().to_owned()),
        };
        let read = parse_expression(inside).ok().map(|given| given.into_iter().map(shown).collect::<Vec<_>>());
        let read = read.as_ref().map(|given| given.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect());
        assert_eq!(read, expected.map(<[_]>::to_vec), "{inside}");
    }

    #[test]
    fn call_expressions_are_parsed() {
        check("", Some(&[]));
        check(r#"a: 1, b: "x, y""#, Some(&[("a", "1"), ("b", r#""x, y""#)]));
        check(
            r#"a=[1, {"b": 2}], 'c': 'it\'s',"d":word"#,
            Some(&[("a", r#"[1, {"b": 2}]"#), ("c", "text it's"), ("d", "text word")]),
        );
        check("url: https://x/y?a=b", Some(&[("url", "text https://x/y?a=b")]));
        for inside in ["1", "a:", "a: [1", "a: \"x", ": 1", "a: {b: 1}", "a: 1)"] {
            check(inside, None);
        }
    }
}
