use proptest::prelude::*;
use serde_json::Value;

use super::*;

fn compiled_text(text: &str) -> (String, Vec<ToolWarning>) {
    let CompiledSchema { schema, marks } = compile_schema(Some(&RawJson::new_unchecked(text.to_owned())));
    (schema.as_str().to_owned(), marks)
}

const ANY: &str = r#"{"type":"object","additionalProperties":true}"#;

#[test]
fn valid_schema_keeps_its_bytes() {
    let text = r#"{ "type": "object", "properties": {"z": {"type":"integer", "maximum": 12345678901234567890123},
        "a": {"enum": ["x", 1.0, null]}}, "required": ["z"], "additionalProperties": false }"#;
    let raw = RawJson::parse(text.to_owned()).unwrap();
    let CompiledSchema { schema, marks } = compile_schema(Some(&raw));
    assert!(marks.is_empty());
    assert_eq!(schema.as_bytes().as_ptr(), raw.as_bytes().as_ptr());
}

#[test]
fn invalid_or_non_object_schemas_are_replaced() {
    for (text, fault) in [
        ("null", SchemaError::NotObject),
        ("true", SchemaError::NotObject),
        ("[]", SchemaError::NotObject),
        (r#"{"type":"string"}"#, SchemaError::NotObject),
        (r#"{"type":["string","null"]}"#, SchemaError::NotObject),
        (r#"{"type":7}"#, SchemaError::NotObject),
        ("{", SchemaError::Invalid),
        (r#"{"type":"object","properties":{"a":{},"a":{}}}"#, SchemaError::Invalid),
        (&format!(r#"{{"description":"{}"}}"#, "x".repeat(256 * 1024)), SchemaError::TooLarge),
        (&format!(r#"{{"default":{}{}}}"#, "[".repeat(200), "]".repeat(200)), SchemaError::TooDeep),
        (&format!(r#"{{"default":[1{}]}}"#, ",1".repeat(100_000)), SchemaError::TooMany),
    ] {
        let shown = &text[..text.len().min(60)];
        assert_eq!(compiled_text(text), (ANY.to_owned(), vec![ToolWarning::SchemaReplaced(fault)]), "{shown}");
    }
    let missing = compile_schema(None);
    assert_eq!(missing.schema.as_str(), ANY);
    assert_eq!(missing.marks, [ToolWarning::SchemaReplaced(SchemaError::Missing)]);
}

#[test]
fn top_level_type_is_object() {
    for (text, expected) in [
        ("{}", r#"{"type":"object"}"#),
        (r#"{"properties":{}}"#, r#"{"type":"object","properties":{}}"#),
        (r#"{"title":"x","type":["object","null"]}"#, r#"{"title":"x","type":"object"}"#),
        (r#"{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}"#, r#"{"type":"object"}"#),
    ] {
        assert_eq!(compiled_text(text), (expected.to_owned(), vec![]), "{text}");
    }
}

#[test]
fn local_references_are_inlined_and_others_dropped() {
    for (text, expected) in [
        (
            r##"{"type":"object","$defs":{"p":{"type":"number"}},"properties":{"a":{"$ref":"#/$defs/p","title":"A"}}}"##,
            r##"{"type":"object","properties":{"a":{"type":"number","title":"A"}}}"##,
        ),
        (
            r##"{"type":"object","properties":{"a":{"type":"string"},"b":{"title":"B","$ref":"#/properties/a"}}}"##,
            r##"{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string","title":"B"}}}"##,
        ),
        (
            r##"{"$ref":"#/definitions/top","definitions":{"top":{"type":"object","properties":{"x":{}}}}}"##,
            r##"{"type":"object","properties":{"x":{}}}"##,
        ),
        (
            r##"{"type":"object","properties":{"n":{"$ref":"#/$defs/n"}},"$defs":{"n":{"items":{"$ref":"#/$defs/n"}}}}"##,
            r##"{"type":"object","properties":{"n":{"$ref":"#/$defs/n"}},"$defs":{"n":{"items":{"$ref":"#/$defs/n"}}}}"##,
        ),
        (
            r##"{"$ref":"#/$defs/n","$defs":{"n":{"properties":{"next":{"$ref":"#/$defs/n"}}}}}"##,
            r##"{"type":"object","properties":{"next":{"$ref":"#/$defs/n"}},"$defs":{"n":{"properties":{"next":{"$ref":"#/$defs/n"}}}}}"##,
        ),
        (
            r##"{"type":"object","properties":{"child":{"$ref":"#"}}}"##,
            r##"{"type":"object","properties":{"child":{"$ref":"#"}}}"##,
        ),
    ] {
        assert_eq!(compiled_text(text), (expected.to_owned(), vec![]), "{text}");
    }
    for reference in ["file:///etc/passwd", "http://127.0.0.1:9/x", "other.json#/a", "#/$defs/none", "#anchor", ""] {
        for keyword in ["$ref", "$dynamicRef"] {
            let text = format!(r#"{{"type":"object","properties":{{"a":{{"{keyword}":"{reference}"}}}}}}"#);
            let expected = r#"{"type":"object","properties":{"a":{}}}"#.to_owned();
            assert_eq!(compiled_text(&text), (expected, vec![ToolWarning::ReferenceDropped(reference.to_owned())]));
        }
    }
    let (in_data, marks) = compiled_text(r##"{"type":"object","default":{"$ref":"file:///x","a":{"$ref":"#"}}}"##);
    assert_eq!(in_data, r##"{"type":"object","default":{"a":{"$ref":"#"}}}"##);
    assert_eq!(marks, [ToolWarning::ReferenceDropped("file:///x".to_owned())]);
    let itself = compiled_text(r##"{"$ref":"#"}"##);
    assert_eq!(itself, (r#"{"type":"object"}"#.to_owned(), vec![ToolWarning::ReferenceDropped("#".to_owned())]));
}

#[test]
fn costly_expansion_keeps_references_or_is_replaced() {
    let doubling = |levels: usize| {
        let level =
            |n: usize| format!(r##""d{n}":{{"anyOf":[{{"$ref":"#/$defs/d{0}"}},{{"$ref":"#/$defs/d{0}"}}]}}"##, n + 1);
        let all: Vec<String> = (0..levels).map(level).collect();
        format!(
            r##"{{"type":"object","properties":{{"a":{{"$ref":"#/$defs/d0"}}}},"$defs":{{{},"d{levels}":{{}}}}}}"##,
            all.join(",")
        )
    };
    let (text, marks) = compiled_text(&doubling(12));
    assert!(text.len() < 100_000 && text.contains("$ref") && marks.is_empty(), "{} {marks:?}", text.len());
    for levels in [20, 40, 64] {
        let expected = (ANY.to_owned(), vec![ToolWarning::SchemaReplaced(SchemaError::TooCostly)]);
        assert_eq!(compiled_text(&doubling(levels)), expected, "{levels}");
    }
}

#[test]
fn escaped_reference_spellings_do_not_evade_cost_limit() {
    let spelt = |n: usize| (0..11).map(|bit| if n >> bit & 1 == 1 { "%78" } else { "x" }).collect::<String>();
    let references: Vec<String> = (0..2_000).map(|n| format!(r##"{{"$ref":"#/$defs/{}"}}"##, spelt(n))).collect();
    let data = format!("[1{}]", ",1".repeat(70_000));
    let text = format!(r#"{{"allOf":[{}],"$defs":{{"xxxxxxxxxxx":{{"default":{data}}}}}}}"#, references.join(","));
    assert!(text.len() < MAX_SCHEMA_BYTES);
    assert_eq!(compiled_text(&text).1, [ToolWarning::SchemaReplaced(SchemaError::TooCostly)]);
}

#[test]
fn top_level_alternatives_are_merged_into_one_object() {
    for (text, expected) in [
        (
            r#"{"type":"object","properties":{"k":{}},"required":["k"],"anyOf":[
                {"properties":{"a":{"type":"string"},"k":{"const":1}},"required":["a","c"]},
                {"properties":{"b":{},"a":{"type":"number"}},"required":["c","b"]},
                {"type":"null"}]}"#,
            r#"{"type":"object","properties":{"k":{},"a":{"anyOf":[{"type":"string"},{"type":"number"}]},"b":{}},"required":["k","c"]}"#,
        ),
        (
            r#"{"oneOf":[{"properties":{"a":{}},"required":["a"]},{"properties":{"a":{}},"required":["a"]}]}"#,
            r#"{"type":"object","properties":{"a":{}},"required":["a"]}"#,
        ),
        (
            r#"{"allOf":[{"properties":{"a":{}},"required":["a"]},{"oneOf":[{"properties":{"b":{}}}]}],"not":{"required":["z"]}}"#,
            r#"{"type":"object","properties":{"a":{},"b":{}},"required":["a"]}"#,
        ),
        (
            r#"{"type":"object","if":{"properties":{"x":{}}},"then":{"properties":{"a":{}},"required":["a"]}}"#,
            r#"{"type":"object","properties":{"a":{}}}"#,
        ),
        (
            r##"{"anyOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"type":"object","properties":{"x":{"anyOf":[{}]}}}}}"##,
            r##"{"type":"object","properties":{"x":{"anyOf":[{}]}}}"##,
        ),
        (r#"{"anyOf":[{"properties":{"a":{}},"required":["a"]},true]}"#, r#"{"type":"object","properties":{"a":{}}}"#),
        (r#"{"enum":[{}],"const":{},"anyOf":[7]}"#, r#"{"type":"object","properties":{}}"#),
    ] {
        assert_eq!(compiled_text(text), (expected.to_owned(), vec![ToolWarning::SchemaFlattened]), "{text}");
    }
}

#[test]
fn references_to_flattened_parts_are_dropped() {
    let cyclic = r##"{"anyOf":[{"properties":{"a":{"$ref":"#/anyOf/0"}}}]}"##;
    let dropped = |reference: &str| ToolWarning::ReferenceDropped(reference.to_owned());
    let expected = r#"{"type":"object","properties":{"a":{}}}"#.to_owned();
    assert_eq!(compiled_text(cyclic), (expected, vec![ToolWarning::SchemaFlattened, dropped("#/anyOf/0")]));
    let at_the_top = r##"{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}"##;
    let (text, marks) = compiled_text(at_the_top);
    assert!(
        !text.starts_with(r#"{"$ref""#) && marks.iter().any(|mark| matches!(mark, ToolWarning::ReferenceDropped(_))),
        "{text}"
    );
}

#[test]
fn invalid_keywords_are_dropped() {
    for (text, keyword, expected) in [
        (r#"{"properties":{"a":{"type":"string","required":true}}}"#, "required", r#"{"a":{"type":"string"}}"#),
        (r#"{"properties":{"a":{"type":7,"title":"A"}}}"#, "type", r#"{"a":{"title":"A"}}"#),
        (r#"{"properties":{"a":{"type":"text"}}}"#, "type", r#"{"a":{}}"#),
        (r#"{"properties":{"a":{"type":["string","text"]}}}"#, "type", r#"{"a":{}}"#),
        (r#"{"properties":{"a":{"type":[]}}}"#, "type", r#"{"a":{}}"#),
        (r#"{"properties":{"a":{"properties":[]}}}"#, "properties", r#"{"a":{}}"#),
        (r#"{"properties":{"a":{"items":"string"}}}"#, "items", r#"{"a":{}}"#),
        (r#"{"properties":{"a":{"enum":"x"},"b":7}}"#, "enum", r#"{"a":{}}"#),
        (r#"{"properties":{"a":{"description":{}}}}"#, "description", r#"{"a":{}}"#),
    ] {
        let expected = format!(r#"{{"type":"object","properties":{expected}}}"#);
        assert_eq!(compiled_text(text), (expected, vec![ToolWarning::KeywordDropped(keyword.to_owned())]), "{text}");
    }
}

#[test]
fn strings_are_sanitized_but_argument_names_are_not() {
    let places = r#"{"type":"object","title":"@","description":"@","x-note":{"k":["@"]},"properties":{
        "a":{"description":"@","title":"@","enum":["@"],"default":{"x":"@"},"examples":["@"],"const":"@","format":"@",
        "pattern":"@","items":{"description":"@"},"anyOf":[{"description":"@"}]}},"required":["a","@"],
        "dependencies":{"a":["@"]}}"#;
    let places = places.replace('\n', " ");
    for (nth, (at, _)) in places.match_indices('@').enumerate() {
        let text = format!("{}h\u{202e}i{}", &places[..at], &places[at + 1..]);
        let (copied, marks) = compiled_text(&text);
        assert!(copied.contains("h\\\\u{202e}i") && !copied.contains('\u{202e}'), "{nth}: {copied}");
        assert_eq!(marks, [ToolWarning::Neutralised], "{nth}");
    }
    let odd = "{\"type\":\"object\",\"properties\":{\"a\u{200b}\":{}},\"required\":[\"a\u{200b}\"]}";
    assert_eq!(compiled_text(odd), (odd.to_owned(), vec![ToolWarning::OddArgument("a\\u{200b}".to_owned())]));
    let long = format!(r#"{{"type":"object","description":"{}"}}"#, "x".repeat(10_000));
    let (copied, marks) = compiled_text(&long);
    assert!(copied.len() < 4200 && marks == [ToolWarning::Shortened]);
}

/// Generates values that contain schema keywords, also in invalid positions.
fn schema_like() -> impl Strategy<Value = Value> {
    const WORDS: [&str; 16] = [
        "type",
        "properties",
        "required",
        "anyOf",
        "oneOf",
        "allOf",
        "not",
        "if",
        "then",
        "items",
        "$ref",
        "$defs",
        "enum",
        "description",
        "a",
        "b\u{200b}",
    ];
    const TEXTS: [&str; 9] =
        ["object", "string", "#", "#/$defs/a", "#/properties/a", "#/anyOf/0", "https://example.org", "a", "x\u{202e}y"];
    let leaf = prop_oneof![
        prop::sample::select(&TEXTS[..]).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 120, 6, |inner| {
        let members = prop::collection::btree_map(prop::sample::select(&WORDS[..]), inner.clone(), 0..8);
        let object = members.prop_map(|members| {
            Value::from(serde_json::Map::from_iter(members.into_iter().map(|(key, value)| (key.to_owned(), value))))
        });
        prop_oneof![1 => prop::collection::vec(inner, 0..4).prop_map(Value::from), 3 => object]
    })
}

fn every_reference_leads_somewhere(value: &Value, top: &Value) -> bool {
    let leads = |reference: &Value| {
        reference.as_str().is_none_or(|text| text.strip_prefix('#').is_some_and(|path| top.pointer(path).is_some()))
    };
    match value {
        Value::Array(items) => items.iter().all(|item| every_reference_leads_somewhere(item, top)),
        Value::Object(members) => {
            members.get("$ref").is_none_or(leads)
                && members.values().all(|value| every_reference_leads_somewhere(value, top))
        }
        _ => true,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn any_schema_compiles_to_a_plain_object(schema in schema_like()) {
        let (text, _) = compiled_text(&schema.to_string());
        let copied: serde_json::Map<String, Value> = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(copied.get("type"), Some(&Value::from("object")));
        for refused in ["anyOf", "oneOf", "allOf", "not", "if", "then", "else", "enum", "const"] {
            prop_assert!(!copied.contains_key(refused), "{}", text);
        }
        prop_assert!(!text.contains('\u{202e}') && !text.contains(r#""$ref":"https"#), "{}", text);
        prop_assert!(copied.get("properties").is_none_or(Value::is_object), "{}", text);
        prop_assert!(!copied.contains_key("$ref"), "{}", text);
        let copied = Value::from(copied);
        prop_assert!(every_reference_leads_somewhere(&copied, &copied), "{}", text);
    }
}
