//! Parses the words after a tool's name into arguments.
//!
//! Some words depend on the tool's schema: whether `--all` takes a value, and whether `a:b` is an argument. So they are
//! parsed twice: before any server starts, to find errors that do not depend on the schema, and again with the schema.

use std::path::Path;

use super::{ArgumentValue, InputSchema, TypedArgument, expression, read_file, read_word};
use crate::failure::Failure;

/// Words parsed without a schema.
#[derive(Debug, Default)]
pub struct TypedWords {
    first: Vec<TypedArgument>,
    pieces: Vec<WordPiece>,
}

/// One word.
#[derive(Debug)]
enum WordPiece {
    /// An argument independent of the schema.
    Given(TypedArgument),
    /// `--name` or `--name=value`.
    Option { name: String, value: Option<String> },
    /// `name:value`, or possibly the value of the preceding option.
    Open(String),
}

impl TypedWords {
    /// Parses the inside of `tool(…)` and the words after it.
    ///
    /// # Errors
    ///
    /// Fails on words that are invalid with any schema.
    pub fn read(inside: Option<&str>, words: &[String], cwd: &Path) -> Result<Self, Failure> {
        let first = inside.map(expression::parse_expression).transpose()?.unwrap_or_default();
        let mut pieces: Vec<WordPiece> = Vec::new();
        for word in words {
            let may_be_value = matches!(pieces.last(), Some(WordPiece::Option { value: None, .. }));
            pieces.push(parse_piece(word, may_be_value, cwd)?);
        }
        Ok(Self { first, pieces })
    }

    /// Resolves the words with the schema.
    ///
    /// # Errors
    ///
    /// Fails on a word that is not an argument, and on an option without its value.
    pub fn resolve(self, schema: Option<&InputSchema>, cwd: &Path) -> Result<Vec<TypedArgument>, Failure> {
        let Self { first: mut given, pieces } = self;
        let mut pieces = pieces.into_iter().peekable();
        while let Some(piece) = pieces.next() {
            given.push(match piece {
                WordPiece::Given(given) => given,
                WordPiece::Open(word) => read_open(&word, schema, cwd)?,
                WordPiece::Option { name, value } => {
                    let name = schema.map_or(name.clone(), |schema| schema.resolve_spelling(&name).to_owned());
                    let is_flag = schema.is_some_and(|schema| schema.is_flag(&name));
                    let follows = |piece: &WordPiece| piece.may_follow(is_flag);
                    let value = value.or_else(|| pieces.next_if(follows).and_then(WordPiece::into_word));
                    read_option(name, value, schema, cwd)?
                }
            });
        }
        Ok(given)
    }
}

impl WordPiece {
    /// Reports whether this word can be the value of the preceding option.
    fn may_follow(&self, is_flag: bool) -> bool {
        matches!(self, Self::Open(word) if !is_flag || matches!(word.as_str(), "true" | "false"))
    }

    fn into_word(self) -> Option<String> {
        if let Self::Open(word) = self { Some(word) } else { None }
    }
}

fn parse_piece(word: &str, may_be_value: bool, cwd: &Path) -> Result<WordPiece, Failure> {
    if let Some(option) = word.strip_prefix("--").filter(|option| !option.is_empty() && !option.starts_with('=')) {
        return Ok(match option.split_once('=') {
            Some((name, value)) => WordPiece::Option { name: name.to_owned(), value: Some(value.to_owned()) },
            None => WordPiece::Option { name: option.to_owned(), value: None },
        });
    }
    if may_be_value || split_at_colon(word).is_some() {
        return Ok(WordPiece::Open(word.to_owned()));
    }
    read_word(word, cwd).map(WordPiece::Given)
}

fn read_option(
    name: String,
    value: Option<String>,
    schema: Option<&InputSchema>,
    cwd: &Path,
) -> Result<TypedArgument, Failure> {
    let value = match value {
        Some(text) => from_file(&name, text, cwd)?,
        None if schema.is_none_or(|schema| schema.may_be_flag(&name)) => "true".to_owned(),
        None => return Err(missing_value(&name)),
    };
    Ok(TypedArgument { name, value: ArgumentValue::Text(value) })
}

/// Parses a word that is not an option's value: `name:value` or one of the plain forms.
fn read_open(word: &str, schema: Option<&InputSchema>, cwd: &Path) -> Result<TypedArgument, Failure> {
    let is_known = |name: &str| schema.is_some_and(|schema| schema.has(name));
    let plain = word.split_once('=').is_some_and(|(name, _)| is_known(name.trim_end_matches(':')));
    match split_at_colon(word) {
        Some((name, text)) if !plain && (is_known(name) || (is_identifier(name) && !text.starts_with("//"))) => {
            Ok(TypedArgument {
                name: name.to_owned(),
                value: ArgumentValue::Text(from_file(name, text.to_owned(), cwd)?),
            })
        }
        _ => read_word(word, cwd),
    }
}

/// Splits `name:value`. `None` for `name:=JSON` and for `name=value` with a colon in the value.
fn split_at_colon(word: &str) -> Option<(&str, &str)> {
    let (name, text) = word.split_once(':')?;
    (!name.is_empty() && !name.contains('=') && !text.starts_with('=')).then_some((name, text))
}

fn is_identifier(name: &str) -> bool {
    let begins = name.starts_with(|letter: char| letter.is_alphabetic() || letter == '_');
    begins && name.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '-'))
}

fn from_file(name: &str, text: String, cwd: &Path) -> Result<String, Failure> {
    match text.strip_prefix('@') {
        Some(file) => read_file(name, &cwd.join(file)),
        None => Ok(text),
    }
}

fn missing_value(name: &str) -> Failure {
    Failure::usage(format_args!("`--{name}` needs a value"))
        .with_hint(format_args!("write --{name} VALUE or {name}=VALUE"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_wire::RawJson;

    const SCHEMA: &str = r#"{"type":"object","properties":{"text":{"type":"string"},"all":{"type":"boolean"},
        "maxItems":{"type":"integer"},"a:b":{},"either":{"type":["boolean","string"]}}}"#;

    #[track_caller]
    fn check(line: &str, expected: Result<&[(&str, &str)], &str>) {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let schema = InputSchema::decode(&RawJson::parse(SCHEMA).unwrap());
        let settled = TypedWords::read(None, &words, Path::new("/"))
            .and_then(|typed| typed.resolve(Some(&schema), Path::new("/")));
        let shown = |given: &TypedArgument| match &given.value {
            ArgumentValue::Text(text) => (given.name.clone(), text.clone()),
            ArgumentValue::Json(json) | ArgumentValue::Member(json) => {
                (given.name.clone(), format!("JSON {}", json.as_str()))
            }
        };
        let settled =
            settled.map(|given| given.iter().map(shown).collect::<Vec<_>>()).map_err(|failure| failure.error.message);
        let borrowed = settled
            .as_ref()
            .map(|given| given.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect::<Vec<_>>());
        assert_eq!(borrowed.as_deref().map_err(|error| error.as_str()), expected, "{line}");
    }

    #[test]
    fn every_word_form_is_parsed() {
        check("text=a text:b --text c --text=d", Ok(&[("text", "a"), ("text", "b"), ("text", "c"), ("text", "d")]));
        check("text:=\"a\" a:b=c other:d", Ok(&[("text", "JSON \"a\""), ("a:b", "c"), ("other", "d")]));
        check("--all text=a", Ok(&[("all", "true"), ("text", "a")]));
        check("--all false --all", Ok(&[("all", "false"), ("all", "true")]));
        check("--max-items 3 --text k=v", Ok(&[("maxItems", "3"), ("text", "k=v")]));
        check("--either --all", Ok(&[("either", "true"), ("all", "true")]));
        check("--unknown x --other", Ok(&[("unknown", "x"), ("other", "true")]));
        check("text=http://x?a=b text:http://x", Ok(&[("text", "http://x?a=b"), ("text", "http://x")]));
    }

    #[test]
    fn non_arguments_are_named() {
        check("word", Err("`word` is not an argument"));
        check("https://x/y", Err("`https://x/y` is not an argument"));
        check("--all word", Err("`word` is not an argument"));
        check("--text", Err("`--text` needs a value"));
        check(
            "--text=@/no/such",
            Err("cannot read the file `/no/such` for `text`: No such file or directory (os error 2)"),
        );
    }
}
