//! Answers given on the command line with `--answer`.

use std::path::Path;

use wharf_wire::{Elicitation, ElicitationResponse, FormRequest, JsonLimits, RawJson, object_members};

use super::field_value;
use crate::call_arguments::{ArgumentValue, TypedArgument, read_words};
use crate::failure::Failure;
use crate::suggestions::suggestion;

/// Answers an elicitation from the values of `--answer` without asking the user: `name=value`, `name:=JSON`, a JSON
/// object, `decline` or `cancel`. Later values override earlier ones, and omitted fields take the server's defaults.
///
/// An answer never opens a URL: the user must have seen the URL. A field that looks like a secret is filled, since it
/// was named explicitly.
pub fn from_answers(request: &Elicitation, answers: &[String], cwd: &Path) -> Result<ElicitationResponse, Failure> {
    match (answers, request) {
        ([word], _) if word == "decline" => Ok(ElicitationResponse::Decline),
        ([word], _) if word == "cancel" => Ok(ElicitationResponse::Cancel),
        (_, Elicitation::Form(form)) => {
            fill_form(form, answers, cwd).map(|content| ElicitationResponse::Accept(Some(content)))
        }
        (_, Elicitation::Url(_)) => Err(Failure::usage("the server asks to open a URL, which --answer cannot accept")
            .with_hint("run the command in a terminal, or use --answer decline")),
    }
}

fn fill_form(form: &FormRequest, answers: &[String], cwd: &Path) -> Result<RawJson, Failure> {
    let mut values: Vec<(String, RawJson)> = Vec::new();
    for answer in answers {
        for TypedArgument { name, value } in parse_answer(answer, cwd)? {
            let value = typed_value(form, &name, value)?;
            values.retain(|(other, _)| *other != name);
            values.push((name, value));
        }
    }
    let member =
        |(name, value): &(String, RawJson)| format!("{}:{}", serde_json::Value::from(name.as_str()), value.as_str());
    let content = format!("{{{}}}", values.iter().map(member).collect::<Vec<_>>().join(","));
    form.complete(&RawJson::parse(content).map_err(Failure::other)?).map_err(|problems| {
        let messages: Vec<String> = problems.iter().map(ToString::to_string).collect();
        Failure::usage(format_args!("the answer does not match the requested form: {}", messages.join("; ")))
            .with_hint("set each field with --answer name=value, or run the command in a terminal")
    })
}

fn parse_answer(answer: &str, cwd: &Path) -> Result<Vec<TypedArgument>, Failure> {
    if !answer.trim_start().starts_with('{') {
        return read_words(&[answer.to_owned()], cwd);
    }
    let wrong = |error: &dyn std::fmt::Display| Failure::usage(format_args!("--answer is not a JSON object: {error}"));
    let object = RawJson::parse(answer.trim().to_owned()).map_err(|error| wrong(&error))?;
    let members = object_members(&object, &JsonLimits::default()).map_err(|error| wrong(&error))?;
    Ok(members
        .into_iter()
        .map(|(name, value)| TypedArgument { name: name.into_owned(), value: ArgumentValue::Json(value) })
        .collect())
}

fn typed_value(form: &FormRequest, name: &str, value: ArgumentValue) -> Result<RawJson, Failure> {
    let Some(field) = form.field(name) else {
        let names = form.fields.iter().map(|field| field.name.as_str());
        return Err(Failure::usage(format_args!("the form has no field `{name}`")).with_hint(suggestion(name, names)));
    };
    match value {
        ArgumentValue::Json(value) | ArgumentValue::Member(value) => Ok(value),
        ArgumentValue::Text(text) => field_value::parse_value(field, &text)
            .map_err(|reason| Failure::usage(format_args!("the answer `{name}` {reason}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_wire::View as _;

    const FORM: &str = r#"{"message":"m","requestedSchema":{"properties":{"name":{"type":"string"},
        "n":{"type":"integer","default":12345678901234567890123},"c":{"enum":["red","blue"]},"b":{"type":"boolean"},
        "many":{"type":"array","items":{"enum":["x","y"]}}},"required":["name"]}}"#;
    const LINK: &str = r#"{"mode":"url","message":"m","url":"https://a.example/"}"#;

    #[track_caller]
    fn check(request: &str, answers: &[&str], expected: Result<&str, &str>) {
        let request =
            Elicitation::from_raw(RawJson::parse(request.to_owned()).unwrap(), &JsonLimits::default()).unwrap();
        let answers: Vec<String> = answers.iter().map(|answer| (*answer).to_owned()).collect();
        let answer = from_answers(&request, &answers, Path::new("/"));
        let answer = answer.map(|answer| answer.to_raw().as_str().to_owned()).map_err(|failure| failure.error.message);
        assert_eq!(answer.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn answers_become_content() {
        check(
            FORM,
            &["many=y,x", "b=yes", "name=Ada", "c=blue"],
            Ok(
                r#"{"action":"accept","content":{"name":"Ada","n":12345678901234567890123,"c":"blue","b":true,"many":["y","x"]}}"#,
            ),
        );
        check(
            FORM,
            &[r#" {"name":"Ada", "n":1}"#, "n=2", "name:=\"Bob\""],
            Ok(r#"{"action":"accept","content":{"name":"Bob","n":2}}"#),
        );
        for request in [FORM, LINK] {
            check(request, &["decline"], Ok(r#"{"action":"decline"}"#));
            check(request, &["cancel"], Ok(r#"{"action":"cancel"}"#));
        }
    }

    #[test]
    fn mismatched_answers_are_reported() {
        check(FORM, &[], Err("the answer does not match the requested form: `name` is required"));
        check(FORM, &["name=a", "n=x"], Err("the answer `n` must be a whole number"));
        check(FORM, &["nam=a"], Err("the form has no field `nam`"));
        check(FORM, &["name:=7"], Err("the answer does not match the requested form: `name` must be a string"));
        check(FORM, &["yes"], Err("`yes` is not an argument"));
        check(
            FORM,
            &["{"],
            Err("--answer is not a JSON object: not JSON: EOF while parsing an object at line 1 column 1"),
        );
        check(LINK, &["yes"], Err("the server asks to open a URL, which --answer cannot accept"));
        check(LINK, &[], Err("the server asks to open a URL, which --answer cannot accept"));
    }
}
