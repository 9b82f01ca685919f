//! Parser of a form's schema.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::{Choice, FieldKind, FormField, JsonNumber, MAX_FIELDS, MAX_OPTIONS, TextFormat, shape_error};
use crate::JsonLimits;
use wharf_json::{JsonDecodeError, RawJson, object_members};

/// Returns the fields of a schema, in schema order.
pub(super) fn read_fields(schema: &RawJson, bounds: &JsonLimits) -> Result<Vec<FormField>, JsonDecodeError> {
    #[derive(Deserialize)]
    struct WireObjectSchema<'a> {
        #[serde(rename = "type", default)]
        kind: Option<String>,
        #[serde(borrow, default)]
        properties: Option<&'a RawValue>,
        #[serde(default)]
        required: Option<Vec<String>>,
    }
    let shape: WireObjectSchema = schema.decode(bounds)?;
    if shape.kind.is_some_and(|kind| kind != "object") {
        return Err(shape_error("the requested schema is not of type `object`"));
    }
    let properties = match shape.properties {
        Some(properties) => schema.slice_part(properties),
        None => RawJson::empty_object(),
    };
    let properties = object_members(&properties, bounds)?;
    if properties.len() > MAX_FIELDS {
        return Err(shape_error(format_args!("more than {MAX_FIELDS} fields")));
    }
    let required = shape.required.unwrap_or_default();
    if let Some(name) = required.iter().find(|name| properties.iter().all(|(known, _)| known != *name)) {
        return Err(shape_error(format_args!("the required field `{name}` is not in `properties`")));
    }
    let is_required = |name: &str| required.iter().any(|needed| needed == name);
    properties.iter().map(|(name, property)| read_field(name, property, is_required(name))).collect()
}

fn read_field(name: &str, property: &RawJson, required: bool) -> Result<FormField, JsonDecodeError> {
    // The bounds were checked for the whole request.
    let field = property.decode_unbounded().map_err(|error| error.to_string());
    let field = field.and_then(|shape: WireProperty| shape.into_field(name, required, property));
    field.map_err(|reason| shape_error(format_args!("the field `{name}` is not supported: {reason}")))
}

/// A property as written in the schema. Unlisted keywords are ignored: they do not affect the prompt, and the server
/// validates the response.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireProperty<'a> {
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(rename = "$ref")]
    reference: Option<IgnoredAny>,
    title: Option<String>,
    description: Option<String>,
    format: Option<String>,
    min_length: Option<u64>,
    max_length: Option<u64>,
    min_items: Option<u64>,
    max_items: Option<u64>,
    #[serde(borrow)]
    minimum: Option<&'a RawValue>,
    #[serde(borrow)]
    maximum: Option<&'a RawValue>,
    #[serde(borrow)]
    default: Option<&'a RawValue>,
    #[serde(rename = "enum")]
    values: Option<Vec<String>>,
    /// Titles parallel to `enum`, from 2025-06-18.
    enum_names: Option<Vec<String>>,
    one_of: Option<Vec<WireTitledOption>>,
    any_of: Option<Vec<WireTitledOption>>,
    items: Option<WireItems>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireItems {
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(rename = "enum")]
    values: Option<Vec<String>>,
    one_of: Option<Vec<WireTitledOption>>,
    any_of: Option<Vec<WireTitledOption>>,
}

/// An option with its own title.
#[derive(Deserialize)]
struct WireTitledOption {
    #[serde(rename = "const")]
    value: String,
    #[serde(default)]
    title: Option<String>,
}

impl WireProperty<'_> {
    fn into_field(mut self, name: &str, required: bool, whole: &RawJson) -> Result<FormField, String> {
        if self.reference.is_some() {
            return Err("`$ref` is not supported".to_owned());
        }
        let (title, description) = (self.title.take(), self.description.take());
        let default = self.default.map(|value| whole.slice_part(value));
        let kind = self.into_kind()?;
        let mut field = FormField { name: name.to_owned(), title, description, required, kind, default: None };
        field.default = default.filter(|value| field.check(value).is_ok());
        Ok(field)
    }

    fn into_kind(mut self) -> Result<FieldKind, String> {
        let titled = self.one_of.take().or(self.any_of.take());
        let chosen = self.values.is_some() || titled.is_some();
        match self.kind.as_deref() {
            Some("string") | None if chosen => {
                Ok(FieldKind::Choice { options: options(self.values, self.enum_names, titled)? })
            }
            _ if chosen => Err("options must be strings".to_owned()),
            Some("string") => Ok(FieldKind::Text {
                min_length: self.min_length,
                max_length: self.max_length,
                format: self.format.map(TextFormat::from_name),
            }),
            Some("number") => {
                Ok(FieldKind::Number { minimum: parse_bound(self.minimum)?, maximum: parse_bound(self.maximum)? })
            }
            Some("integer") => {
                Ok(FieldKind::Integer { minimum: parse_bound(self.minimum)?, maximum: parse_bound(self.maximum)? })
            }
            Some("boolean") => Ok(FieldKind::Boolean),
            Some("array") => self.into_choices(),
            Some(kind) => Err(format!("unsupported type `{kind}`")),
            None => Err("the type is missing".to_owned()),
        }
    }

    fn into_choices(self) -> Result<FieldKind, String> {
        let items = self.items.filter(|items| items.kind.as_deref().is_none_or(|kind| kind == "string"));
        let items = items.ok_or("an array must have string options")?;
        let options = options(items.values, None, items.one_of.or(items.any_of))?;
        Ok(FieldKind::Choices { options, min: self.min_items, max: self.max_items })
    }
}

fn options(
    values: Option<Vec<String>>,
    names: Option<Vec<String>>,
    titled: Option<Vec<WireTitledOption>>,
) -> Result<Vec<Choice>, String> {
    let mut names = names.unwrap_or_default().into_iter();
    let options: Vec<Choice> = match (values, titled) {
        (_, Some(titled)) => {
            titled.into_iter().map(|WireTitledOption { value, title }| Choice { value, title }).collect()
        }
        (Some(values), None) => values.into_iter().map(|value| Choice { value, title: names.next() }).collect(),
        (None, None) => Vec::new(),
    };
    match options.len() {
        0 => Err("it has no options".to_owned()),
        count if count > MAX_OPTIONS => Err(format!("more than {MAX_OPTIONS} options")),
        _ => Ok(options),
    }
}

fn parse_bound(value: Option<&RawValue>) -> Result<Option<JsonNumber>, String> {
    let read = |value: &RawValue| JsonNumber::parse(value.get()).ok_or("a bound is not a number");
    value.map(read).transpose().map_err(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(properties: &str) -> Result<Vec<FormField>, String> {
        let schema = format!(r#"{{"type":"object","properties":{properties},"required":[]}}"#);
        read_fields(&RawJson::parse(schema).unwrap(), &JsonLimits::default()).map_err(|error| error.to_string())
    }

    #[track_caller]
    fn check(property: &str, expected: FieldKind) {
        let fields = read(&format!(r#"{{"x":{property}}}"#)).unwrap();
        assert_eq!(fields[0].kind, expected, "{property}");
    }

    fn choices(options: &[(&str, Option<&str>)]) -> Vec<Choice> {
        let choice = |(value, title): &(&str, Option<&str>)| Choice {
            value: (*value).to_owned(),
            title: title.map(str::to_owned),
        };
        options.iter().map(choice).collect()
    }

    #[test]
    fn every_field_kind_is_parsed() {
        check(
            r#"{"type":"string","minLength":1,"maxLength":9,"format":"email"}"#,
            FieldKind::Text { min_length: Some(1), max_length: Some(9), format: Some(TextFormat::Email) },
        );
        check(
            r#"{"type":"number","minimum":-1.5}"#,
            FieldKind::Number { minimum: JsonNumber::parse("-1.5"), maximum: None },
        );
        check(
            r#"{"type":"integer","maximum":18446744073709551616}"#,
            FieldKind::Integer { minimum: None, maximum: JsonNumber::parse("18446744073709551616") },
        );
        check(r#"{"type":"boolean","x-unknown":{"a":1}}"#, FieldKind::Boolean);
        let plain = choices(&[("a", None), ("b", None)]);
        let titled = choices(&[("a", Some("A")), ("b", None)]);
        check(r#"{"type":"string","enum":["a","b"]}"#, FieldKind::Choice { options: plain.clone() });
        check(r#"{"enum":["a","b"],"enumNames":["A"]}"#, FieldKind::Choice { options: titled.clone() });
        check(
            r#"{"type":"string","oneOf":[{"const":"a","title":"A"},{"const":"b"}]}"#,
            FieldKind::Choice { options: titled.clone() },
        );
        check(
            r#"{"type":"array","minItems":1,"maxItems":2,"items":{"type":"string","enum":["a","b"]}}"#,
            FieldKind::Choices { options: plain, min: Some(1), max: Some(2) },
        );
        check(
            r#"{"type":"array","items":{"anyOf":[{"const":"a","title":"A"},{"const":"b"}]}}"#,
            FieldKind::Choices { options: titled, min: None, max: None },
        );
    }

    #[test]
    fn order_titles_and_required_are_preserved() {
        let schema = r#"{"properties":{"z":{"type":"boolean","title":"Z?","description":"d"},"a":{"type":"string"}},
            "required":["a"]}"#;
        let fields = read_fields(&RawJson::parse(schema).unwrap(), &JsonLimits::default()).unwrap();
        let shown: Vec<_> =
            fields.iter().map(|field| (field.name.as_str(), field.display_name(), field.required)).collect();
        assert_eq!(shown, [("z", "Z?", false), ("a", "a", true)]);
        assert_eq!(fields[0].description.as_deref(), Some("d"));
    }

    #[test]
    fn invalid_defaults_are_dropped() {
        for (property, default) in [
            (r#"{"type":"string","default":"a"}"#, Some(r#""a""#)),
            (r#"{"type":"string","default":null}"#, None),
            (r#"{"type":"string","default":7}"#, None),
            (r#"{"type":"string","format":"email","default":""}"#, None),
            (r#"{"type":"integer","default":12345678901234567890123}"#, Some("12345678901234567890123")),
            (r#"{"type":"integer","default":1.5}"#, None),
            (r#"{"type":"boolean","default":false}"#, Some("false")),
            (r#"{"type":"string","enum":["a"],"default":"a"}"#, Some(r#""a""#)),
            (r#"{"type":"string","enum":["a"],"default":"b"}"#, None),
            (r#"{"type":"array","items":{"enum":["a","b"]},"default":["b", "a"]}"#, Some(r#"["b", "a"]"#)),
        ] {
            let fields = read(&format!(r#"{{"x":{property}}}"#)).unwrap();
            assert_eq!(fields[0].default.as_ref().map(RawJson::as_str), default, "{property}");
        }
    }

    #[test]
    fn unsupported_schemas_fail_with_a_reason() {
        for (property, reason) in [
            (r#"{"type":"object","properties":{}}"#, "unsupported type `object`"),
            (r##"{"$ref":"#/$defs/x"}"##, "`$ref` is not supported"),
            (r#"{}"#, "the type is missing"),
            (r#"{"type":"null"}"#, "unsupported type `null`"),
            (r#"{"type":["string","null"]}"#, "expected a string"),
            (r#"{"anyOf":[{"type":"string"},{"type":"null"}]}"#, "missing field `const`"),
            (r#"{"type":"array","items":{"type":"string"}}"#, "it has no options"),
            (r#"{"type":"array","items":{"type":"object"}}"#, "an array must have string options"),
            (r#"{"type":"array"}"#, "an array must have string options"),
            (r#"{"type":"string","enum":[]}"#, "it has no options"),
            (r#"{"type":"integer","enum":["1"]}"#, "options must be strings"),
            (r#"{"enum":[1,2]}"#, "expected a string"),
            (r#"{"type":"number","minimum":"1"}"#, "a bound is not a number"),
            (r#"{"type":"string","minLength":-1}"#, "invalid value"),
            ("true", "invalid type"),
        ] {
            let error = read(&format!(r#"{{"ok":{{"type":"boolean"}},"x":{property}}}"#)).unwrap_err();
            assert!(error.contains("`x`") && error.contains(reason), "{property}: {error}");
        }
        for (schema, reason) in [
            (r#"{"type":"array"}"#, "not of type `object`"),
            (r#"{"properties":{},"required":["x"]}"#, "`x` is not in `properties`"),
            (r#"{"properties":{"x":{"type":"boolean"},"x":{"type":"string"}}}"#, "duplicate key"),
            ("7", "invalid type"),
        ] {
            let error = read_fields(&RawJson::parse(schema).unwrap(), &JsonLimits::default()).unwrap_err().to_string();
            assert!(error.contains(reason), "{schema}: {error}");
        }
    }

    #[test]
    fn field_and_option_counts_are_limited() {
        let fields = |count: usize| {
            let list: Vec<_> = (0..count).map(|n| format!(r#""f{n}":{{"type":"boolean"}}"#)).collect();
            read(&format!("{{{}}}", list.join(",")))
        };
        assert_eq!(fields(MAX_FIELDS).unwrap().len(), MAX_FIELDS);
        assert!(fields(MAX_FIELDS + 1).unwrap_err().contains("more than 64 fields"));
        let options = |count: usize| {
            let list: Vec<_> = (0..count).map(|n| format!(r#""{n}""#)).collect();
            read(&format!(r#"{{"x":{{"enum":[{}]}}}}"#, list.join(",")))
        };
        assert!(options(MAX_OPTIONS).is_ok());
        assert!(options(MAX_OPTIONS + 1).unwrap_err().contains("more than 256 options"));
    }
}
