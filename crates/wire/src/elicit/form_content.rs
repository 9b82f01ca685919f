//! Validation of form content, with the server's defaults for omitted fields.

use std::fmt;

use super::{Choice, FieldKind, FormField, FormRequest, JsonNumber, TextFormat};
use crate::JsonLimits;
use wharf_json::{RawJson, object_members};

/// A validation error of one form field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// Name of the field; empty if the content as a whole is invalid.
    pub field: String,
    /// The failed check.
    pub reason: FieldErrorKind,
}

/// The check that a value failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldErrorKind {
    /// The content is not an object.
    NotAnObject,
    /// The form has no such field.
    Unknown,
    /// The field is required.
    Missing,
    /// The value is not a string.
    NotText,
    /// The value is not a number.
    NotNumber,
    /// The value is not an integer.
    NotInteger,
    /// The value is not a boolean.
    NotBoolean,
    /// The value is not a list of strings.
    NotList,
    /// The string has fewer characters than this minimum.
    TooShort(u64),
    /// The string has more characters than this maximum.
    TooLong(u64),
    /// The string does not have this format.
    NotFormat(TextFormat),
    /// The number is below this minimum.
    TooSmall(JsonNumber),
    /// The number is above this maximum.
    TooLarge(JsonNumber),
    /// The value is not one of the options.
    NotOffered(String),
    /// The option is selected twice.
    Twice(String),
    /// Fewer options are selected than this minimum.
    TooFew(u64),
    /// More options are selected than this maximum.
    TooMany(u64),
}

impl FormRequest {
    /// Validates `content` and returns the object to send: fields in schema order, omitted fields with their defaults,
    /// every value byte for byte.
    ///
    /// # Errors
    ///
    /// Returns every validation error, not only the first.
    pub fn complete(&self, content: &RawJson) -> Result<RawJson, Vec<FieldError>> {
        let problem = |field: &str, reason| FieldError { field: field.to_owned(), reason };
        let given = object_members(content, &JsonLimits::default())
            .map_err(|_| vec![problem("", FieldErrorKind::NotAnObject)])?;
        let unknown = given.iter().filter(|(name, _)| self.field(name).is_none());
        let mut problems: Vec<FieldError> = unknown.map(|(name, _)| problem(name, FieldErrorKind::Unknown)).collect();
        let mut values: Vec<(&FormField, &RawJson)> = Vec::new();
        for field in &self.fields {
            let said = given.iter().find(|(name, _)| *name == field.name).map(|(_, value)| value);
            match said.or(field.default.as_ref()) {
                Some(value) => match field.check(value) {
                    Ok(()) => values.push((field, value)),
                    Err(reason) => problems.push(problem(&field.name, reason)),
                },
                None if field.required => problems.push(problem(&field.name, FieldErrorKind::Missing)),
                None => {}
            }
        }
        if problems.is_empty() { Ok(object_from_values(values.into_iter())) } else { Err(problems) }
    }
}

/// Builds a JSON object from values, keyed by field name.
pub(super) fn object_from_values<'a>(values: impl Iterator<Item = (&'a FormField, &'a RawJson)>) -> RawJson {
    let member = |(field, value): (&FormField, &RawJson)| format!("{}:{}", json_string(&field.name), value.as_str());
    let members: Vec<String> = values.map(member).collect();
    RawJson::new_unchecked(format!("{{{}}}", members.join(",")))
}

fn json_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

impl FormField {
    /// Validates one JSON value against the field.
    ///
    /// # Errors
    ///
    /// Returns the first failed check.
    pub fn check(&self, value: &RawJson) -> Result<(), FieldErrorKind> {
        match &self.kind {
            FieldKind::Text { min_length, max_length, format } => {
                check_text(value, *min_length, *max_length, format.as_ref())
            }
            FieldKind::Number { minimum, maximum } => {
                check_range(&parse_number(value).ok_or(FieldErrorKind::NotNumber)?, minimum.as_ref(), maximum.as_ref())
            }
            FieldKind::Integer { minimum, maximum } => {
                let number = parse_number(value).filter(JsonNumber::is_integer).ok_or(FieldErrorKind::NotInteger)?;
                check_range(&number, minimum.as_ref(), maximum.as_ref())
            }
            FieldKind::Boolean if matches!(value.as_str().trim(), "true" | "false") => Ok(()),
            FieldKind::Boolean => Err(FieldErrorKind::NotBoolean),
            FieldKind::Choice { options } => check_option(options, &parse_text(value).ok_or(FieldErrorKind::NotText)?),
            FieldKind::Choices { options, min, max } => check_choices(value, options, *min, *max),
        }
    }
}

fn parse_text(value: &RawJson) -> Option<String> {
    value.decode_unbounded().ok()
}

fn parse_number(value: &RawJson) -> Option<JsonNumber> {
    JsonNumber::parse(value.as_str().trim())
}

fn check_text(
    value: &RawJson,
    min: Option<u64>,
    max: Option<u64>,
    format: Option<&TextFormat>,
) -> Result<(), FieldErrorKind> {
    let text = parse_text(value).ok_or(FieldErrorKind::NotText)?;
    // JSON Schema lengths are in characters, not bytes.
    let length = text.chars().count() as u64;
    match (min, max, format) {
        (Some(min), _, _) if length < min => Err(FieldErrorKind::TooShort(min)),
        (_, Some(max), _) if length > max => Err(FieldErrorKind::TooLong(max)),
        (_, _, Some(format)) if !format.matches(&text) => Err(FieldErrorKind::NotFormat(format.clone())),
        _ => Ok(()),
    }
}

fn check_range(
    number: &JsonNumber,
    minimum: Option<&JsonNumber>,
    maximum: Option<&JsonNumber>,
) -> Result<(), FieldErrorKind> {
    match (minimum, maximum) {
        (Some(least), _) if number < least => Err(FieldErrorKind::TooSmall(least.clone())),
        (_, Some(most)) if number > most => Err(FieldErrorKind::TooLarge(most.clone())),
        _ => Ok(()),
    }
}

fn check_option(options: &[Choice], value: &str) -> Result<(), FieldErrorKind> {
    let known = options.iter().any(|option| option.value == value);
    known.then_some(()).ok_or_else(|| FieldErrorKind::NotOffered(value.to_owned()))
}

fn check_choices(
    value: &RawJson,
    options: &[Choice],
    min: Option<u64>,
    max: Option<u64>,
) -> Result<(), FieldErrorKind> {
    let chosen: Vec<String> = value.decode_unbounded().map_err(|_| FieldErrorKind::NotList)?;
    for (at, value) in chosen.iter().enumerate() {
        check_option(options, value)?;
        if chosen[..at].contains(value) {
            return Err(FieldErrorKind::Twice(value.clone()));
        }
    }
    match (min, max, chosen.len() as u64) {
        (Some(min), _, count) if count < min => Err(FieldErrorKind::TooFew(min)),
        (_, Some(max), count) if count > max => Err(FieldErrorKind::TooMany(max)),
        _ => Ok(()),
    }
}

impl fmt::Display for FieldErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnObject => f.write_str("is not a JSON object"),
            Self::Unknown => f.write_str("is not a field of the form"),
            Self::Missing => f.write_str("is required"),
            Self::NotText => f.write_str("must be a string"),
            Self::NotNumber => f.write_str("must be a number"),
            Self::NotInteger => f.write_str("must be a whole number"),
            Self::NotBoolean => f.write_str("must be true or false"),
            Self::NotList => f.write_str("must be a list of options"),
            Self::TooShort(1) => f.write_str("must not be empty"),
            Self::TooShort(least) => write!(f, "must have at least {least} characters"),
            Self::TooLong(most) => write!(f, "must have at most {most} characters"),
            Self::NotFormat(format) => write!(f, "must be {format}"),
            Self::TooSmall(least) => write!(f, "must be at least {least}"),
            Self::TooLarge(most) => write!(f, "must be at most {most}"),
            Self::NotOffered(value) => write!(f, "`{value}` is not one of the options"),
            Self::Twice(value) => write!(f, "`{value}` is selected twice"),
            Self::TooFew(least) => write!(f, "needs at least {least} selected"),
            Self::TooMany(most) => write!(f, "allows at most {most} selected"),
        }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field.as_str() {
            "" => write!(f, "the content {}", self.reason),
            field => write!(f, "`{field}` {}", self.reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::View as _;

    const PROPERTIES: &str = r#"{
        "name":{"type":"string","minLength":1,"maxLength":4},
        "mail":{"type":"string","format":"email","default":"a@b.example"},
        "age":{"type":"integer","minimum":0,"maximum":18446744073709551616,"default":30},
        "score":{"type":"number","minimum":-0.5,"default":95.50},
        "status":{"type":"string","enum":["active","inactive"],"default":"active"},
        "tags":{"type":"array","minItems":1,"maxItems":2,"items":{"enum":["x","y","z"]}},
        "verified":{"type":"boolean","default":true}}"#;

    fn form(properties: &str, required: &str) -> FormRequest {
        let text = format!(
            r#"{{"message":"m","requestedSchema":{{"type":"object","properties":{properties},"required":[{required}]}}}}"#
        );
        FormRequest::from_raw(RawJson::parse(text).unwrap(), &JsonLimits::default()).unwrap()
    }

    fn complete(content: &str) -> Result<String, String> {
        let content = RawJson::parse(content.to_owned()).unwrap();
        let completed = form(PROPERTIES, r#""name""#).complete(&content);
        completed
            .map(|raw| raw.as_str().to_owned())
            .map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
    }

    const FILLED: &str = r#""mail":"a@b.example","age":30,"score":95.50,"status":"active","verified":true}"#;

    #[test]
    fn omitted_fields_take_defaults_in_schema_order() {
        assert_eq!(complete(r#"{"name":"x"}"#).unwrap(), format!(r#"{{"name":"x",{FILLED}"#));
        assert_eq!(
            complete(r#"{"verified":false,"tags":["z","x"],"name":"\u0078","age":18446744073709551616}"#).unwrap(),
            r#"{"name":"\u0078","mail":"a@b.example","age":18446744073709551616,"score":95.50,"status":"active","tags":["z","x"],"verified":false}"#
        );
        let defaults = form(PROPERTIES, "").defaults();
        assert_eq!(defaults.as_str(), format!("{{{FILLED}"));
        assert_eq!(form("{}", "").complete(&RawJson::empty_object()).unwrap().as_str(), "{}");
    }

    #[test]
    fn every_validation_error_is_reported() {
        for (content, expected) in [
            ("{}", "`name` is required"),
            (r#"{"name":""}"#, "`name` must not be empty"),
            (r#"{"name":"üüüüü"}"#, "`name` must have at most 4 characters"),
            (r#"{"name":7}"#, "`name` must be a string"),
            (r#"{"name":null}"#, "`name` must be a string"),
            (r#"{"name":"x","mail":"nobody"}"#, "`mail` must be an email address"),
            (r#"{"name":"x","age":-1}"#, "`age` must be at least 0"),
            (r#"{"name":"x","age":18446744073709551617}"#, "`age` must be at most 18446744073709551616"),
            (r#"{"name":"x","age":1.5}"#, "`age` must be a whole number"),
            (r#"{"name":"x","age":"7"}"#, "`age` must be a whole number"),
            (r#"{"name":"x","score":-0.50001}"#, "`score` must be at least -0.5"),
            (r#"{"name":"x","score":"1"}"#, "`score` must be a number"),
            (r#"{"name":"x","status":"gone"}"#, "`status` `gone` is not one of the options"),
            (r#"{"name":"x","tags":"x"}"#, "`tags` must be a list of options"),
            (r#"{"name":"x","tags":[]}"#, "`tags` needs at least 1 selected"),
            (r#"{"name":"x","tags":["x","y","z"]}"#, "`tags` allows at most 2 selected"),
            (r#"{"name":"x","tags":["x","x"]}"#, "`tags` `x` is selected twice"),
            (r#"{"name":"x","tags":["x","w"]}"#, "`tags` `w` is not one of the options"),
            (r#"{"name":"x","verified":"true"}"#, "`verified` must be true or false"),
            (
                r#"{"more":1,"verified":0}"#,
                "`more` is not a field of the form; `name` is required; `verified` must be true or false",
            ),
            ("[]", "the content is not a JSON object"),
            (r#"{"name":"x","name":"y"}"#, "the content is not a JSON object"),
        ] {
            assert_eq!(complete(content).unwrap_err(), expected, "{content}");
        }
    }

    #[test]
    fn names_are_quoted_as_json() {
        let odd = form(r#"{"a\"\n\\":{"type":"boolean","default":true}}"#, "");
        assert_eq!(odd.defaults().as_str(), r#"{"a\"\n\\":true}"#);
    }
}
