//! Front matter of a `SKILL.md`: extracted, parsed and compared with the entry.
//!
//! The parser accepts a safe subset of YAML: no anchors, aliases, tags or directives, one document, and bounds on size,
//! depth and number of values. Plain scalars follow the core schema of YAML 1.2.

use granit_parser::{Event, Options, Parser, ScalarStyle};
use serde_json::{Map, Number, Value};
use wharf_wire::{JsonLimits, Skill};

use super::SkillError;

/// Maximum bytes of a front matter.
const MAX_FRONT_MATTER_BYTES: usize = 64 << 10;
/// Maximum nesting of lists and mappings.
const MAX_NESTING: usize = 32;
/// Maximum parser events, including the ends of lists and mappings.
const MAX_EVENTS: usize = 4096;

/// Compares the front matter of a `SKILL.md` with the entry, field by field (SEP-2640, frontmatter verification).
pub(super) fn verify_front_matter(skill: &Skill, text: &str, bounds: &JsonLimits) -> Result<(), SkillError> {
    let unreadable = |problem: &str| SkillError::content(&skill.uri, &format!("front matter: {problem}"));
    let head = extract_front_matter(text).map_err(unreadable)?;
    let found = parse_front_matter(head).map_err(|problem| unreadable(&problem))?;
    let expected: Map<String, Value> = skill.frontmatter.decode(bounds).map_err(crate::CallError::from)?;
    let Some(field) = first_difference(&expected, &found) else { return Ok(()) };
    let text = |fields: &Map<String, Value>| fields.get(field).map_or("absent".to_owned(), Value::to_string);
    let what = format!("front matter field `{field}`");
    Err(SkillError::mismatch(&skill.uri, &what, &text(&expected), &text(&found)))
}

fn first_difference<'a>(expected: &'a Map<String, Value>, found: &'a Map<String, Value>) -> Option<&'a String> {
    let mut fields = expected.keys().chain(found.keys());
    fields.find(|&field| match (expected.get(field), found.get(field)) {
        (Some(expected), Some(found)) => !values_equal(expected, found),
        _ => true,
    })
}

/// Compares values as data: `1` and `1.0` are equal, as in JSON.
fn values_equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| values_equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, one)| other.get(key).is_some_and(|other| values_equal(one, other)))
        }
        _ => one == other,
    }
}

/// Returns the text between the first line, which must be `---`, and the next such line.
fn extract_front_matter(text: &str) -> Result<&str, &'static str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split_inclusive('\n');
    if !lines.next().is_some_and(is_fence) {
        return Err("missing");
    }
    let start = text.find('\n').map_or(text.len(), |at| at + 1);
    let mut end = start;
    for line in lines {
        if is_fence(line) {
            return Ok(&text[start..end]);
        }
        end += line.len();
        if end - start > MAX_FRONT_MATTER_BYTES {
            return Err("too long");
        }
    }
    Err("missing closing `---`")
}

fn is_fence(line: &str) -> bool {
    line.trim_end() == "---"
}

fn parse_front_matter(text: &str) -> Result<Map<String, Value>, String> {
    let mut options = Options::default();
    options.disallow_directives = true;
    let mut reader = FrontMatterBuilder::default();
    for (count, event) in Parser::new_from_str_with_options(text, options).enumerate() {
        if count > MAX_EVENTS {
            return Err(format!("more than {MAX_EVENTS} values"));
        }
        let (event, _) = event.map_err(|error| error.to_string())?;
        reader.handle_event(event)?;
    }
    match reader.root {
        Some(Value::Object(fields)) => Ok(fields),
        _ => Err("not a mapping".to_owned()),
    }
}

/// Builds one value from the parser's events, without recursion.
#[derive(Default)]
struct FrontMatterBuilder {
    open: Vec<OpenCollection>,
    root: Option<Value>,
}

/// An open list or mapping.
enum OpenCollection {
    List(Vec<Value>),
    Fields { fields: Map<String, Value>, key: Option<String> },
}

impl FrontMatterBuilder {
    fn handle_event(&mut self, event: Event<'_>) -> Result<(), String> {
        match event {
            Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(..) if self.root.is_none() => Ok(()),
            Event::DocumentStart(..) => Err("more than one document".to_owned()),
            Event::Scalar(text, style, 0, None) => match self.open.last_mut() {
                Some(OpenCollection::Fields { key: key @ None, .. }) => {
                    *key = Some(text.into_owned());
                    Ok(())
                }
                _ => self.insert_value(parse_scalar(&text, style)),
            },
            Event::SequenceStart(_, 0, None) => self.open_collection(OpenCollection::List(Vec::new())),
            Event::MappingStart(_, 0, None) => {
                self.open_collection(OpenCollection::Fields { fields: Map::new(), key: None })
            }
            Event::SequenceEnd | Event::MappingEnd => self.close_collection(),
            _ => Err("anchors, aliases and tags are not allowed".to_owned()),
        }
    }

    fn open_collection(&mut self, new: OpenCollection) -> Result<(), String> {
        if matches!(self.open.last(), Some(OpenCollection::Fields { key: None, .. })) {
            return Err("a key is not a plain scalar".to_owned());
        }
        if self.open.len() == MAX_NESTING {
            return Err(format!("nested deeper than {MAX_NESTING} levels"));
        }
        self.open.push(new);
        Ok(())
    }

    fn close_collection(&mut self) -> Result<(), String> {
        match self.open.pop() {
            Some(OpenCollection::List(items)) => self.insert_value(Value::Array(items)),
            Some(OpenCollection::Fields { fields, key: None }) => self.insert_value(Value::Object(fields)),
            _ => Err("a key has no value".to_owned()),
        }
    }

    fn insert_value(&mut self, value: Value) -> Result<(), String> {
        match self.open.last_mut() {
            None => self.root = Some(value),
            Some(OpenCollection::List(items)) => items.push(value),
            Some(OpenCollection::Fields { fields, key }) => {
                let key = key.take().ok_or("a value has no key")?;
                if fields.contains_key(&key) {
                    return Err(format!("duplicate key `{key}`"));
                }
                fields.insert(key, value);
            }
        }
        Ok(())
    }
}

fn parse_scalar(text: &str, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return text.into();
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => true.into(),
        "false" | "False" | "FALSE" => false.into(),
        _ => parse_number(text).map_or_else(|| text.into(), Value::Number),
    }
}

fn parse_number(text: &str) -> Option<Number> {
    let based = |digits: &str, radix| {
        let plain = digits.bytes().all(|digit| char::from(digit).is_digit(radix));
        u64::from_str_radix(digits, radix).ok().filter(|_| plain).map(Number::from)
    };
    if let Some(digits) = text.strip_prefix("0x") {
        return based(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return based(digits, 8);
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let begins = unsigned.starts_with(|first: char| first.is_ascii_digit())
        || unsigned.strip_prefix('.').is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()));
    let plain = unsigned.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    if !begins || !plain {
        return None;
    }
    let whole = text.strip_prefix('+').unwrap_or(text);
    let integer = whole.parse::<i64>().map(Number::from).or_else(|_| whole.parse::<u64>().map(Number::from));
    integer.ok().or_else(|| Number::from_f64(text.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wharf_wire::{RawJson, View};

    use super::*;

    fn check(text: &str) -> Result<Value, String> {
        parse_front_matter(extract_front_matter(text)?).map(Value::Object)
    }

    #[test]
    fn common_yaml_forms_are_parsed() {
        let text = "\u{feff}---\r\nname: refunds # a comment\r\ndescription: >-\r\n  Pays\r\n  back: all.\r\n\
            note: |\r\n  one\r\n  --- two\r\nlist: [a, 'b: c', \"\\u00e9\"]\r\nmetadata:\r\n  version: \"1.0\"\r\n  \
            n: 1.50\r\n  deep:\r\n  - x: ~\r\n  - true\r\nlong: some\r\n  more\r\n--- \r\nbody\r\n---\r\n";
        let expected = json!({
            "name": "refunds", "description": "Pays back: all.", "note": "one\n--- two\n", "list": ["a", "b: c", "é"],
            "metadata": { "version": "1.0", "n": 1.5, "deep": [{ "x": null }, true] }, "long": "some more",
        });
        assert_eq!(check(text).unwrap(), expected);
    }

    #[test]
    fn plain_scalars_follow_yaml_core_schema() {
        for (text, expected) in [
            ("7", json!(7)),
            ("-7", json!(-7)),
            ("+7", json!(7)),
            ("0x1F", json!(31)),
            ("0o17", json!(15)),
            ("007", json!(7)),
            ("1e3", json!(1000.0)),
            (".5", json!(0.5)),
            ("5.", json!(5.0)),
            ("18446744073709551615", json!(u64::MAX)),
            ("1.2.3", json!("1.2.3")),
            ("1_000", json!("1_000")),
            ("0x", json!("0x")),
            ("0x+1", json!("0x+1")),
            ("-", json!(["x"])),
            ("2024-01-02", json!("2024-01-02")),
            (".inf", json!(".inf")),
            ("yes", json!("yes")),
            ("True", json!(true)),
            ("NULL", json!(null)),
            ("'7'", json!("7")),
            ("\"true\"", json!("true")),
            ("\"\"", json!("")),
            ("", json!(null)),
        ] {
            let value = if text == "-" { "\n  - x" } else { text };
            assert_eq!(check(&format!("---\na: {value}\n---\n")).unwrap()["a"], expected, "{text}");
        }
    }

    #[test]
    fn unsafe_or_ambiguous_front_matter_is_rejected() {
        let deep = format!("---\na: {}1{}\n---\n", "[".repeat(MAX_NESTING), "]".repeat(MAX_NESTING));
        let wide = format!("---\na: [{}]\n---\n", "1,".repeat(MAX_EVENTS));
        let long = format!("---\na: {}\n---\n", "x".repeat(MAX_FRONT_MATTER_BYTES));
        let abyss = format!("---\na: {}\n---\n", "[".repeat(MAX_FRONT_MATTER_BYTES - 10));
        let stairs = format!("---\n{}\n---\n", "- ".repeat(MAX_FRONT_MATTER_BYTES / 4));
        for text in [
            "",
            "name: a\n",
            "---\nname: a\n",
            "--- name: a\n---\n",
            "---\n---\n",
            "---\n- a\n---\n",
            "---\nplain\n---\n",
            "---\na: &x 1\nb: *x\n---\n",
            "---\na: &x 1\n---\n",
            "---\na: *x\n---\n",
            "---\na: !!str 1\n---\n",
            "---\na: !x {}\n---\n",
            "---\n%YAML 1.2\n--- \n---\n",
            "---\na: 1\na: 2\n---\n",
            "---\nb: {a: 1, a: 1}\n---\n",
            "---\n? [a]\n: 1\n---\n",
            "---\na: 1\n...\nb: 2\n---\n",
            "---\na: [1\n---\n",
            "---\na: \"\\q\"\n---\n",
            "---\na: 'x\n---\n",
            "---\na:\n\tb: 1\n---\n",
            "---\na: b: c\n---\n",
            &deep,
            &wide,
            &long,
            &abyss,
            &stairs,
        ] {
            let shown: String = text.chars().take(40).collect();
            assert!(check(text).is_err(), "{shown:?} gave {:?}", check(text));
        }
    }

    #[test]
    fn first_mismatching_field_is_reported() {
        let entry = |frontmatter: Value| {
            let entry = json!({ "uri": "skill://a/SKILL.md", "frontmatter": frontmatter, "resources": "dynamic" });
            Skill::from_raw(RawJson::from_value(&entry).unwrap(), &JsonLimits::default()).unwrap()
        };
        let text = "---\nname: a\ndescription: d\nmetadata: {n: 1.0, tags: [x]}\n---\n";
        for (frontmatter, expected) in [
            (json!({ "name": "a", "description": "d", "metadata": { "n": 1, "tags": ["x"] } }), None),
            (json!({ "name": "a", "description": "e", "metadata": { "n": 1, "tags": ["x"] } }), Some("description")),
            (json!({ "name": "a", "description": "d", "metadata": { "n": 1, "tags": ["y"] } }), Some("metadata")),
            (json!({ "name": "a", "description": "d", "metadata": { "n": "1", "tags": ["x"] } }), Some("metadata")),
            (
                json!({ "name": "a", "description": "d", "metadata": { "n": 1, "m": 1, "tags": ["x"] } }),
                Some("metadata"),
            ),
            (json!({ "name": "a", "description": "d" }), Some("metadata")),
            (
                json!({ "name": "a", "description": "d", "license": "MIT", "metadata": { "n": 1, "tags": ["x"] } }),
                Some("license"),
            ),
        ] {
            let found = match verify_front_matter(&entry(frontmatter.clone()), text, &JsonLimits::default()) {
                Ok(()) => None,
                Err(SkillError::Mismatch(mismatch)) => Some(mismatch.what),
                Err(other) => panic!("{other}"),
            };
            assert_eq!(found, expected.map(|field| format!("front matter field `{field}`")), "{frontmatter}");
        }
    }
}
