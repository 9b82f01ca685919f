//! Parses text typed for a form field into JSON.

use wharf_wire::{Choice, FieldErrorKind, FieldKind, FormField, RawJson};

/// Converts a text to the field's JSON value.
///
/// # Errors
///
/// Returns the reason if the text is not a valid value.
pub fn parse_value(field: &FormField, text: &str) -> Result<RawJson, FieldErrorKind> {
    let value = match &field.kind {
        FieldKind::Text { .. } => to_raw_json(text),
        FieldKind::Number { .. } => RawJson::parse(text.trim().to_owned()).map_err(|_| FieldErrorKind::NotNumber)?,
        FieldKind::Integer { .. } => RawJson::parse(text.trim().to_owned()).map_err(|_| FieldErrorKind::NotInteger)?,
        FieldKind::Boolean => to_raw_json(&parse_boolean(text).ok_or(FieldErrorKind::NotBoolean)?),
        FieldKind::Choice { options } => to_raw_json(choose_option(options, text)?),
        FieldKind::Choices { .. } if text.trim_start().starts_with('[') => {
            RawJson::parse(text.trim().to_owned()).map_err(|_| FieldErrorKind::NotList)?
        }
        FieldKind::Choices { options, .. } => {
            let picked: Result<Vec<&str>, FieldErrorKind> =
                text.split(',').map(|part| choose_option(options, part)).collect();
            to_raw_json(&picked?)
        }
    };
    field.check(&value).map(|()| value)
}

/// Reports whether options can be chosen by number: only if no option's value is itself a number.
pub fn can_choose_by_number(options: &[Choice]) -> bool {
    options.iter().all(|option| option.value.parse::<usize>().is_err())
}

fn choose_option<'a>(options: &'a [Choice], text: &str) -> Result<&'a str, FieldErrorKind> {
    let text = text.trim();
    let by_number = || {
        let number: usize = text.parse().ok().filter(|_| can_choose_by_number(options))?;
        options.get(number.checked_sub(1)?)
    };
    let wanted = text.to_lowercase();
    let is_meant = |option: &&Choice| {
        option.value.to_lowercase() == wanted
            || option.title.as_ref().is_some_and(|title| title.to_lowercase() == wanted)
    };
    let exact = options.iter().find(|option| option.value == text);
    let option = exact.or_else(by_number).or_else(|| options.iter().find(is_meant));
    option.map(|option| option.value.as_str()).ok_or_else(|| FieldErrorKind::NotOffered(text.to_owned()))
}

fn parse_boolean(text: &str) -> Option<bool> {
    match text.trim().to_lowercase().as_str() {
        "y" | "yes" | "true" => Some(true),
        "n" | "no" | "false" => Some(false),
        _ => None,
    }
}

fn to_raw_json<T: serde::Serialize + ?Sized>(value: &T) -> RawJson {
    RawJson::from_value(value).expect("strings, booleans and string lists serialize to JSON")
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_wire::{FormRequest, JsonLimits, View as _};

    fn field(property: &str) -> FormField {
        let text = format!(r#"{{"message":"m","requestedSchema":{{"properties":{{"x":{property}}}}}}}"#);
        FormRequest::from_raw(RawJson::parse(text).unwrap(), &JsonLimits::default()).unwrap().fields.remove(0)
    }

    #[track_caller]
    fn check(property: &str, table: &[(&str, Result<&str, &str>)]) {
        let field = field(property);
        for (text, expected) in table {
            let value =
                parse_value(&field, text).map(|raw| raw.as_str().to_owned()).map_err(|reason| reason.to_string());
            assert_eq!(value.as_deref().map_err(String::as_str), *expected, "{text}");
        }
    }

    #[test]
    fn field_kind_determines_the_json_value() {
        check(r#"{"type":"string"}"#, &[("7", Ok(r#""7""#)), (" a ", Ok(r#"" a ""#))]);
        check(
            r#"{"type":"integer","maximum":12345678901234567890123}"#,
            &[
                (" 12345678901234567890123 ", Ok("12345678901234567890123")),
                ("12345678901234567890124", Err("must be at most 12345678901234567890123")),
                ("1.5", Err("must be a whole number")),
                ("x", Err("must be a whole number")),
                ("", Err("must be a whole number")),
            ],
        );
        check(
            r#"{"type":"number"}"#,
            &[("1.50", Ok("1.50")), ("1,5", Err("must be a number")), ("[1]", Err("must be a number"))],
        );
        check(r#"{"type":"boolean"}"#, &[("Y", Ok("true")), ("no", Ok("false")), ("1", Err("must be true or false"))]);
    }

    #[test]
    fn options_are_chosen_by_number_value_or_title() {
        let one = r#"{"oneOf":[{"const":"r","title":"Red"},{"const":"g"}]}"#;
        let picks = [("1", Ok(r#""r""#)), ("g", Ok(r#""g""#)), ("G ", Ok(r#""g""#)), ("red", Ok(r#""r""#))];
        check(one, &picks);
        check(one, &[("3", Err("`3` is not one of the options")), ("0", Err("`0` is not one of the options"))]);
        check(r#"{"enum":["2","1"]}"#, &[("1", Ok(r#""1""#)), ("2", Ok(r#""2""#))]);
        check(r#"{"enum":["10","20"]}"#, &[("1", Err("`1` is not one of the options"))]);
        check(
            r#"{"type":"array","maxItems":2,"items":{"enum":["a","b","c"]}}"#,
            &[
                ("1, c", Ok(r#"["a","c"]"#)),
                (r#"["b"]"#, Ok(r#"["b"]"#)),
                ("1,1", Err("`a` is selected twice")),
                ("1,2,3", Err("allows at most 2 selected")),
                ("1,,2", Err("`` is not one of the options")),
            ],
        );
    }
}
