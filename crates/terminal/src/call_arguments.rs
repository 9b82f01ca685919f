//! Builds the JSON arguments of a call from command-line words.
//!
//! Numbers and nested values are not converted: JSON is sent exactly as typed.

mod check;
mod expression;
mod schema;
mod tool_help;
mod types;
mod words;

use std::path::Path;

use wharf_wire::{JsonLimits, RawJson, object_members};

use crate::failure::Failure;

use check::ArgumentChecker;

pub use schema::InputSchema;
pub use tool_help::{ToolHelp, example};
pub use words::TypedWords;

/// One argument as typed.
#[derive(Debug, PartialEq)]
pub struct TypedArgument {
    pub name: String,
    pub value: ArgumentValue,
}

/// The typed value of an argument.
#[derive(Debug, PartialEq)]
pub enum ArgumentValue {
    /// Text that is typed by the tool's schema.
    Text(String),
    /// JSON that is sent unchanged and not checked against the schema.
    Json(RawJson),
    /// JSON from an object or a call expression, checked against the schema.
    Member(RawJson),
}

/// Parses `k=v`, `k:=JSON`, `k=@FILE` and `k:=@FILE`.
///
/// # Errors
///
/// Fails if a word has another form, holds invalid JSON, or names an unreadable file.
pub fn read_words(words: &[String], cwd: &Path) -> Result<Vec<TypedArgument>, Failure> {
    words.iter().map(|word| read_word(word, cwd)).collect()
}

fn read_word(word: &str, cwd: &Path) -> Result<TypedArgument, Failure> {
    let Some((name, text)) = word.split_once('=').filter(|(name, _)| !name.is_empty() && *name != ":") else {
        let failure = Failure::usage(format_args!("`{word}` is not an argument"));
        return Err(failure.with_hint("write arguments as name=value, name:=JSON or name=@FILE"));
    };
    let text = match text.strip_prefix('@') {
        Some(file) => read_file(name.trim_end_matches(':'), &cwd.join(file))?,
        None => text.to_owned(),
    };
    match name.strip_suffix(':') {
        None => Ok(TypedArgument { name: name.to_owned(), value: ArgumentValue::Text(text) }),
        Some(name) => match RawJson::parse(text) {
            Ok(json) => Ok(TypedArgument { name: name.to_owned(), value: ArgumentValue::Json(json) }),
            Err(error) => Err(Failure::usage(format_args!("the value of `{name}` is {error}"))
                .with_hint(format_args!("quote it for the shell, as in '{name}:={{\"a\":[1,2]}}'"))),
        },
    }
}

fn read_file(name: &str, file: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(file).map_err(|error| {
        Failure::usage(format_args!("cannot read the file `{}` for `{name}`: {error}", file.display()))
            .with_hint(format_args!("for text that begins with @, write '{name}:=\"@…\"'"))
    })
}

/// Parses the object of `--args`.
///
/// # Errors
///
/// Fails if the text is not a JSON object, or has duplicate members.
pub fn read_object(text: String) -> Result<Vec<TypedArgument>, Failure> {
    let wrong = |error: &dyn std::fmt::Display| Failure::usage(format_args!("--args must be a JSON object: {error}"));
    let object = RawJson::parse(text.trim().to_owned()).map_err(|error| wrong(&error))?;
    let members = object_members(&object, &JsonLimits::default()).map_err(|error| wrong(&error))?;
    let given = |(name, value): (std::borrow::Cow<'_, str>, RawJson)| TypedArgument {
        name: name.into_owned(),
        value: ArgumentValue::Member(value),
    };
    Ok(members.into_iter().map(given).collect())
}

/// The composed arguments, with warnings.
#[derive(Debug)]
pub struct ComposedArguments {
    pub arguments: RawJson,
    pub warnings: Vec<String>,
}

/// Composes the arguments. Later values override earlier ones. Values of `name:=JSON` are sent unchanged.
///
/// # Errors
///
/// Fails with all problems at once if the schema rejects arguments or requires others.
pub fn compose(
    given: Vec<TypedArgument>,
    tool: &str,
    schema: Option<&InputSchema>,
) -> Result<ComposedArguments, Failure> {
    let mut last: Vec<TypedArgument> = Vec::new();
    for next in given {
        last.retain(|other| other.name != next.name);
        last.push(next);
    }
    let mut check = ArgumentChecker::new(tool, schema);
    let mut object = String::from("{");
    for given in last {
        let comma = if object.len() > 1 { "," } else { "" };
        let name = serde_json::to_string(&given.name).map_err(Failure::other)?;
        if let Some(value) = check.check_argument(given) {
            object.push_str(&format!("{comma}{name}:{}", value.as_str()));
        }
    }
    object.push('}');
    let warnings = check.finish()?;
    Ok(ComposedArguments { arguments: RawJson::parse(object).map_err(Failure::other)?, warnings })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r##"{"type":"object","required":["text"],"additionalProperties":false,
        "$defs":{"Color":{"enum":["red","blue"]}},
        "properties":{"text":{"type":"string"},"n":{"type":"integer"},"x":{"type":"number"},"b":{"type":"boolean"},
        "l":{"type":"array"},"o":{"type":"object"},"z":{"type":["null","integer"]},"c":{"$ref":"#/$defs/Color"},
        "any":{"anyOf":[{"type":"integer"},{"type":"null"}]},"free":{},
        "low":{"type":"integer","minimum":1,"maximum":10}}}"##;

    #[track_caller]
    fn check(words: &[&str], expected: Result<&str, &str>) {
        let schema = InputSchema::decode(&RawJson::parse(SCHEMA).unwrap());
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let composed = read_words(&words, Path::new("/"))
            .and_then(|given| compose(given, "tool", Some(&schema)))
            .map(|composed| composed.arguments.as_str().to_owned())
            .map_err(|failure| failure.error.message);
        assert_eq!(composed.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn schema_determines_the_argument_type() {
        check(&["text=7", "n=7"], Ok(r#"{"text":"7","n":7}"#));
        check(&["text=a=b", "n=12345678901234567890123"], Ok(r#"{"text":"a=b","n":12345678901234567890123}"#));
        check(&["text=", "x=1.50", "b=true"], Ok(r#"{"text":"","x":1.50,"b":true}"#));
        check(&["text=t", "l=[1, 2]", "o={}"], Ok(r#"{"text":"t","l":[1, 2],"o":{}}"#));
        check(&["text=t", "z=null", "any=3", "c=red"], Ok(r#"{"text":"t","z":null,"any":3,"c":"red"}"#));
        check(&["text=t", "free=3"], Ok(r#"{"text":"t","free":"3"}"#));
        check(&["text:=7", "n:=\"x\""], Ok(r#"{"text":7,"n":"x"}"#));
        check(&["text=old", "text=new"], Ok(r#"{"text":"new"}"#));
    }

    #[test]
    fn argument_errors_are_reported_before_sending() {
        check(&["text=t", "n=seven"], Err("`n` must be a whole number, not `seven`"));
        check(&["text=t", "n=7.5"], Err("`n` must be a whole number, not `7.5`"));
        check(&["text=t", "b=yes"], Err("`b` must be true or false, not `yes`"));
        check(&["text=t", "z=x"], Err("`z` must be null or a whole number, not `x`"));
        check(&["n=1"], Err("the tool `tool` needs `text`"));
        check(&["txt=a"], Err("the tool `tool` takes no argument `txt`"));
        check(
            &["text=t", "n=x", "b=1", "c=green"],
            Err("`n` must be a whole number, not `x`; `b` must be true or false, not `1`; \
                 `c` must be one of `red`, `blue`, not `green`"),
        );
        check(&["n=1", "zzz=1"], Err("the tool `tool` takes no argument `zzz`; the tool `tool` needs `text`"));
        check(&["text=t", "low=0"], Err("`low` must be at least 1, not `0`"));
        check(&["text=t", "low=11"], Err("`low` must be at most 10, not `11`"));
        check(&["text"], Err("`text` is not an argument"));
        check(&["=x"], Err("`=x` is not an argument"));
        check(&["o:={"], Err("the value of `o` is not JSON: EOF while parsing an object at line 1 column 1"));
        check(
            &["text=@/no/such/file"],
            Err("cannot read the file `/no/such/file` for `text`: No such file or directory (os error 2)"),
        );
    }

    #[test]
    fn words_override_the_object() {
        let mut given = read_object(" {\"a\": 12345678901234567890123, \"b\":[1 ,2]}\n".to_owned()).unwrap();
        given.extend(read_words(&["b=x".to_owned()], Path::new("/")).unwrap());
        let composed = compose(given, "tool", None).unwrap();
        assert_eq!(composed.arguments.as_str(), r#"{"a":12345678901234567890123,"b":"x"}"#);
        let schema = InputSchema::decode(&RawJson::parse(SCHEMA).unwrap());
        let mistyped = compose(read_object(r#"{"text":1,"n":"x"}"#.to_owned()).unwrap(), "tool", Some(&schema));
        let message = "`text` must be a string, not `1`; `n` must be a whole number, not `\"x\"`";
        assert_eq!(mistyped.unwrap_err().error.message, message);
        assert!(read_object("[1]".to_owned()).is_err());
        assert!(read_object("{\"a\":1,\"a\":2}".to_owned()).is_err());
    }

    #[test]
    fn undeclared_argument_is_warned_about() {
        for (schema, warns) in [
            (r#"{"properties":{"text":{}}}"#, true),
            (r#"{"properties":{"text":{}},"additionalProperties":true}"#, false),
            (r#"{"properties":{}}"#, false),
            (r#"{"properties":{"text":{}},"anyOf":[{}]}"#, false),
        ] {
            let given = read_words(&["txt=a".to_owned()], Path::new("/")).unwrap();
            let warnings =
                compose(given, "tool", Some(&InputSchema::decode(&RawJson::parse(schema).unwrap()))).unwrap().warnings;
            let expected = "the tool `tool` does not declare an argument `txt`; did you mean `text`?";
            assert_eq!(warnings, if warns { vec![expected] } else { Vec::new() }, "{schema}");
        }
    }
}
