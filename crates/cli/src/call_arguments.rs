//! The arguments of a call, from words on the command line to one JSON object.
//!
//! Numbers and nested values are never parsed into anything: what was typed as JSON is sent as it was typed.

mod schema;

use std::path::Path;

use wharf_wire::{Bounds, Raw, members};

use crate::failure::Failure;
use crate::nearest::nearest;

pub use schema::Schema;

/// One argument as it was typed.
#[derive(Debug, PartialEq)]
pub struct Given {
    pub name: String,
    pub value: Value,
}

/// What was typed for it.
#[derive(Debug, PartialEq)]
pub enum Value {
    /// Text whose type the tool's schema decides.
    Text(String),
    /// JSON.
    Json(Raw),
}

/// Reads `k=v`, `k:=JSON`, `k=@FILE` and `k:=@FILE`.
pub fn read_words(words: &[String], cwd: &Path) -> Result<Vec<Given>, Failure> {
    words.iter().map(|word| read_word(word, cwd)).collect()
}

fn read_word(word: &str, cwd: &Path) -> Result<Given, Failure> {
    let Some((name, text)) = word.split_once('=').filter(|(name, _)| !name.is_empty() && *name != ":") else {
        let failure = Failure::usage(format_args!("`{word}` is no argument"));
        return Err(failure.hint("arguments are written name=value, name:=JSON or name=@FILE"));
    };
    let text = match text.strip_prefix('@') {
        Some(file) => read_file(name.trim_end_matches(':'), &cwd.join(file))?,
        None => text.to_owned(),
    };
    match name.strip_suffix(':') {
        None => Ok(Given { name: name.to_owned(), value: Value::Text(text) }),
        Some(name) => match Raw::parse(text) {
            Ok(json) => Ok(Given { name: name.to_owned(), value: Value::Json(json) }),
            Err(error) => Err(Failure::usage(format_args!("the value of `{name}` is {error}"))
                .hint(format_args!("quote it for the shell, as in '{name}:={{\"a\":[1,2]}}'"))),
        },
    }
}

fn read_file(name: &str, file: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(file).map_err(|error| {
        Failure::usage(format_args!("the file `{}` for `{name}` cannot be read: {error}", file.display()))
            .hint(format_args!("for a text that begins with @, write '{name}:=\"@…\"'"))
    })
}

/// Reads the object of `--args`.
pub fn read_object(text: String) -> Result<Vec<Given>, Failure> {
    let wrong = |error: &dyn std::fmt::Display| Failure::usage(format_args!("--args must be a JSON object: {error}"));
    let object = Raw::parse(text.trim().to_owned()).map_err(|error| wrong(&error))?;
    let members = members(&object, &Bounds::default()).map_err(|error| wrong(&error))?;
    let given =
        |(name, value): (std::borrow::Cow<'_, str>, Raw)| Given { name: name.into_owned(), value: Value::Json(value) };
    Ok(members.into_iter().map(given).collect())
}

/// Puts everything together; what comes later goes before what came earlier. What the schema forbids or misses is an
/// error by name.
pub fn compose(given: Vec<Given>, tool: &str, schema: Option<&Schema>) -> Result<Raw, Failure> {
    let mut arguments: Vec<(String, Raw)> = Vec::new();
    for Given { name, value } in given {
        check_name(&name, tool, schema)?;
        let value = match value {
            Value::Json(value) => value,
            Value::Text(text) => typed(&name, text, schema)?,
        };
        arguments.retain(|(other, _)| *other != name);
        arguments.push((name, value));
    }
    check_required(&arguments, tool, schema)?;
    let mut object = String::from("{");
    for (name, value) in &arguments {
        let comma = if object.len() > 1 { "," } else { "" };
        let name = serde_json::to_string(name).map_err(Failure::other)?;
        object.push_str(&format!("{comma}{name}:{}", value.get()));
    }
    object.push('}');
    Raw::parse(object).map_err(Failure::other)
}

fn typed(name: &str, text: String, schema: Option<&Schema>) -> Result<Raw, Failure> {
    let types = schema.map(|schema| schema.types_of(name)).unwrap_or_default();
    types.read(&text).map_err(|wanted| {
        Failure::usage(format_args!("`{name}` must be {wanted}, not `{text}`"))
            .hint(format_args!("to send other JSON all the same, write {name}:=JSON"))
    })
}

fn check_name(name: &str, tool: &str, schema: Option<&Schema>) -> Result<(), Failure> {
    let Some(schema) = schema.filter(|schema| schema.is_closed() && !schema.has(name)) else { return Ok(()) };
    let failure = Failure::usage(format_args!("the tool `{tool}` takes no argument `{name}`"));
    let close = nearest(name, schema.names());
    Err(match close.first() {
        Some(close) => failure.hint(format_args!("did you mean `{close}`?")),
        None => failure.hint(schema.usage()),
    })
}

fn check_required(arguments: &[(String, Raw)], tool: &str, schema: Option<&Schema>) -> Result<(), Failure> {
    let Some(schema) = schema else { return Ok(()) };
    let is_missing = |name: &&str| !arguments.iter().any(|(given, _)| given == name);
    let missing: Vec<String> = schema.required().filter(is_missing).map(|name| format!("`{name}`")).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let failure = Failure::usage(format_args!("the tool `{tool}` needs {}", missing.join(", ")));
    Err(failure.hint(schema.usage()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r##"{"type":"object","required":["text"],"additionalProperties":false,
        "$defs":{"Color":{"enum":["red","blue"]}},
        "properties":{"text":{"type":"string"},"n":{"type":"integer"},"x":{"type":"number"},"b":{"type":"boolean"},
        "l":{"type":"array"},"o":{"type":"object"},"z":{"type":["null","integer"]},"c":{"$ref":"#/$defs/Color"},
        "any":{"anyOf":[{"type":"integer"},{"type":"null"}]},"free":{}}}"##;

    #[track_caller]
    fn check(words: &[&str], expected: Result<&str, &str>) {
        let schema = Schema::read(&Raw::parse(SCHEMA).unwrap());
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let composed = read_words(&words, Path::new("/"))
            .and_then(|given| compose(given, "tool", Some(&schema)))
            .map(|raw| raw.get().to_owned())
            .map_err(|failure| failure.error.message);
        assert_eq!(composed.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn the_schema_decides_what_a_text_is() {
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
    fn mistakes_are_named_before_anything_is_sent() {
        check(&["text=t", "n=seven"], Err("`n` must be an integer, not `seven`"));
        check(&["text=t", "n=7.5"], Err("`n` must be an integer, not `7.5`"));
        check(&["text=t", "b=yes"], Err("`b` must be true or false, not `yes`"));
        check(&["text=t", "z=x"], Err("`z` must be null or an integer, not `x`"));
        check(&["n=1"], Err("the tool `tool` needs `text`"));
        check(&["txt=a"], Err("the tool `tool` takes no argument `txt`"));
        check(&["text"], Err("`text` is no argument"));
        check(&["=x"], Err("`=x` is no argument"));
        check(&["o:={"], Err("the value of `o` is not JSON: EOF while parsing an object at line 1 column 1"));
        check(
            &["text=@/no/such/file"],
            Err("the file `/no/such/file` for `text` cannot be read: No such file or directory (os error 2)"),
        );
    }

    #[test]
    fn words_go_before_the_object() {
        let mut given = read_object(" {\"a\": 12345678901234567890123, \"b\":[1 ,2]}\n".to_owned()).unwrap();
        given.extend(read_words(&["b=x".to_owned()], Path::new("/")).unwrap());
        let composed = compose(given, "tool", None).unwrap();
        assert_eq!(composed.get(), r#"{"a":12345678901234567890123,"b":"x"}"#);
        assert!(read_object("[1]".to_owned()).is_err());
        assert!(read_object("{\"a\":1,\"a\":2}".to_owned()).is_err());
    }
}
