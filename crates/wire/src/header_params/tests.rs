use super::*;
use crate::JsonDecodeError;

/// Returns the annotations of a schema as `Header=path.to.property`, or the error.
fn check(schema: &str) -> Result<Vec<String>, String> {
    let found = header_params(&RawJson::parse(schema.to_owned()).unwrap(), &JsonLimits::default());
    let found = found.map_err(|fault| fault.to_string())?;
    Ok(found.iter().map(|one| format!("{}={}", one.header, one.path.join("."))).collect())
}

/// Returns a schema with this schema as its one property `p`.
fn property(schema: &str) -> String {
    format!(r#"{{"type":"object","properties":{{"p":{schema}}}}}"#)
}

#[test]
fn plain_properties_are_found_at_any_depth() {
    for (schema, expected) in [
        ("{}", vec![]),
        ("true", vec![]),
        (r#"{"type":"object","properties":{"a":{"type":"number"}}}"#, vec![]),
        (&property(r#"{"type":"string","x-mcp-header":"Region"}"#), vec!["Region=p"]),
        (&property(r#"{"type":"integer","x-mcp-header":"Method"}"#), vec!["Method=p"]),
        (&property(r#"{"type":"boolean","x-mcp-header":"!#$%&'*+-.^_`|~09azAZ"}"#), vec!["!#$%&'*+-.^_`|~09azAZ=p"]),
        (&property(r#"{"type":"string","\u0078-mcp-header":"A"}"#), vec!["A=p"]),
        (&property(r#"{"type":"string","x\u002dmcp-h\u0065ader":"A"}"#), vec!["A=p"]),
        (
            &property(r#"{"properties":{"q":{"properties":{"r":{"type":"string","x-mcp-header":"A"}}}}}"#),
            vec!["A=p.q.r"],
        ),
        // A property with this name, and text that mentions it, are not annotations.
        (r#"{"properties":{"x-mcp-header":{"type":"number"}}}"#, vec![]),
        (r#"{"properties":{"x-mcp-header":{"type":"string","x-mcp-header":"A"}}}"#, vec!["A=x-mcp-header"]),
        (
            r#"{"properties":{"properties":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}}"#,
            vec!["A=properties.a"],
        ),
        (r#"{"description":"x-mcp-header","required":["x-mcp-header"]}"#, vec![]),
        (&property(r#"{"default":{"x-mcp-header":1},"const":{"x-mcp-header":1}}"#), vec![]),
        (&property(r#"{"enum":[{"x-mcp-header":1}],"examples":[{"x-mcp-header":1}]}"#), vec![]),
        (r#"{"$defs":{"x-mcp-header":{"type":"string"}},"patternProperties":{"x-mcp-header":{}}}"#, vec![]),
        // Properties may have the names of keywords.
        (r#"{"properties":{"items":{"type":"string","x-mcp-header":"A"}}}"#, vec!["A=items"]),
        (r#"{"properties":{"enum":{"type":"string","x-mcp-header":"A"}}}"#, vec!["A=enum"]),
    ] {
        assert_eq!(check(schema), Ok(expected.into_iter().map(str::to_owned).collect()), "{schema}");
    }
}

/// The tools that the published conformance suite requires clients to withhold.
#[test]
fn invalid_conformance_suite_tools_are_rejected() {
    let two = |first: &str, second: &str| {
        let schema = |header| format!(r#"{{"type":"string","x-mcp-header":"{header}"}}"#);
        format!(r#"{{"properties":{{"a":{},"b":{}}}}}"#, schema(first), schema(second))
    };
    let typed = |kind: &str| property(&format!(r#"{{"type":"{kind}","x-mcp-header":"A"}}"#));
    let headed = |name: &str| property(&format!(r#"{{"type":"string","x-mcp-header":"{name}"}}"#));
    for (what, schema, fault) in [
        ("empty", headed(""), "header annotation of `p` is empty"),
        ("object", typed("object"), "header annotation of `p`: the type must be string, integer or boolean"),
        ("array", typed("array"), "header annotation of `p`: the type must be string, integer or boolean"),
        ("null", typed("null"), "header annotation of `p`: the type must be string, integer or boolean"),
        ("number", typed("number"), "header annotation of `p`: the type must be string, integer or boolean"),
        ("twice", two("Region", "Region"), "header annotation of `b`: `Region` is already used by another property"),
        (
            "twice in other case",
            two("Region", "REGION"),
            "header annotation of `b`: `REGION` is already used by another property",
        ),
        ("space", headed("My Region"), "header annotation of `p`: `My Region` is not a valid header name"),
        ("colon", headed("Region:A"), "header annotation of `p`: `Region:A` is not a valid header name"),
        ("non-ASCII", headed("Région"), r"header annotation of `p`: `R\u{e9}gion` is not a valid header name"),
        ("control", headed(r"Region\t1"), r"header annotation of `p`: `Region\t1` is not a valid header name"),
    ] {
        assert_eq!(check(&schema), Err(fault.to_owned()), "{what}: {schema}");
    }
}

#[test]
fn type_must_be_a_single_primitive() {
    for kind in [r#"["string"]"#, r#"["string","null"]"#, r#""String""#, r#""float""#, "null", "{}"] {
        let schema = property(&format!(r#"{{"type":{kind},"x-mcp-header":"A"}}"#));
        assert!(check(&schema).unwrap_err().contains("the type must be"), "{schema}");
    }
    for schema in [
        property(r#"{"x-mcp-header":"A"}"#),
        property(r##"{"$ref":"#/$defs/a","x-mcp-header":"A"}"##),
        property(r#"{"anyOf":[{"type":"string"}],"x-mcp-header":"A"}"#),
        r#"{"type":"object","x-mcp-header":"A"}"#.to_owned(),
    ] {
        assert!(check(&schema).unwrap_err().contains("the type must be"), "{schema}");
    }
}

#[test]
fn header_name_must_be_a_valid_string() {
    for name in ["null", "true", "7", "[]", "{}", r#"["A"]"#] {
        let schema = property(&format!(r#"{{"type":"string","x-mcp-header":{name}}}"#));
        assert!(check(&schema).unwrap_err().contains("not a string"), "{schema}");
    }
    for name in ["\\r\\nX", "a/b", "a\\\"", "(a)", "a,b", "a;b", "a=b", "\\u0000", "\\u007f", &"a".repeat(257)] {
        let schema = property(&format!(r#"{{"type":"string","x-mcp-header":"{name}"}}"#));
        assert!(check(&schema).unwrap_err().contains("not a valid header name"), "{schema}");
    }
    assert!(check(&property(&format!(r#"{{"type":"string","x-mcp-header":"{}"}}"#, "a".repeat(256)))).is_ok());
}

#[test]
fn annotations_outside_properties_are_rejected() {
    let annotated = r#"{"type":"string","x-mcp-header":"A"}"#;
    let nested = format!(r#"{{"properties":{{"q":{annotated}}}}}"#);
    for keyword in [
        "items",
        "additionalItems",
        "contains",
        "additionalProperties",
        "propertyNames",
        "unevaluatedItems",
        "unevaluatedProperties",
        "not",
        "if",
        "then",
        "else",
        "contentSchema",
        "x-unknown",
    ] {
        for inner in [annotated, &nested] {
            let schema = property(&format!(r#"{{"{keyword}":{inner}}}"#));
            assert!(check(&schema).unwrap_err().starts_with(&format!("header annotation at `p.{keyword}")), "{schema}");
        }
    }
    for keyword in ["oneOf", "anyOf", "allOf", "prefixItems", "items", "x-unknown", "properties"] {
        let schema = format!(r#"{{"{keyword}":[true,{nested}]}}"#);
        assert_eq!(
            check(&schema),
            Err(format!("header annotation at `{keyword}.q`, which is not a plain property")),
            "{schema}"
        );
    }
    for keyword in ["$defs", "definitions", "dependentSchemas", "dependencies", "patternProperties"] {
        let schema = format!(r#"{{"{keyword}":{{"k":{annotated}}}}}"#);
        assert!(
            check(&schema).unwrap_err().starts_with(&format!("header annotation at `{keyword}.k`, which")),
            "{schema}"
        );
    }
    // One invalid annotation invalidates the tool.
    let mixed =
        format!(r#"{{"properties":{{"a":{annotated},"b":{{"items":{{"type":"string","x-mcp-header":"B"}}}}}}}}"#);
    assert!(check(&mixed).is_err());
}

#[test]
fn header_count_is_limited() {
    let schema = |count: usize| {
        let properties: Vec<String> =
            (0..count).map(|n| format!(r#""p{n}":{{"type":"string","x-mcp-header":"H{n}"}}"#)).collect();
        format!(r#"{{"properties":{{{}}}}}"#, properties.join(","))
    };
    assert_eq!(check(&schema(MAX_HEADERS)).unwrap().len(), MAX_HEADERS);
    assert_eq!(check(&schema(MAX_HEADERS + 1)).unwrap_err(), "more than 64 properties have a header annotation");
}

#[test]
fn errors_are_short_and_escaped() {
    let name = format!("\\u001b[2J\\u202e\\u3164{}", "x".repeat(10_000));
    let deep = format!(r#"{{"properties":{{"{name}":{{"type":"string","x-mcp-header":"{name}"}}}}}}"#);
    let fault = check(&deep).unwrap_err();
    assert!(fault.starts_with(r"header annotation of `\u{1b}[2J\u{202e}\u{3164}xxx") && fault.contains('…'), "{fault}");
    assert!(fault.len() < 400 && !fault.contains('\u{1b}'), "{fault}");
    let schema = RawJson::parse(property(r#"{"type":"string","x-mcp-header":"A"}"#)).unwrap();
    let fault = header_params(&schema, &JsonLimits { depth: 2, nodes: 100 }).unwrap_err();
    assert_eq!(fault.to_string(), "the input schema cannot be read");
    assert!(matches!(fault, HeaderAnnotationError::Unreadable(JsonDecodeError::TooComplex(_))));
}

#[test]
fn schemas_without_annotations_are_not_decoded() {
    let schema = RawJson::parse(r#"{"properties":{"a":{"description":"caf\u1234 \\ \" \n"}}}"#).unwrap();
    let none = JsonLimits { depth: 0, nodes: 0 };
    assert_eq!(header_params(&schema, &none).unwrap(), []);
}

fn value(path: &[&str], arguments: &str) -> Result<Option<String>, String> {
    let path = path.iter().map(|&name| name.to_owned()).collect();
    let param = HeaderParam { header: "A".to_owned(), path };
    let arguments = RawJson::parse(arguments.to_owned()).unwrap();
    param.value(&arguments, &JsonLimits::default()).map_err(|error| error.to_string())
}

#[test]
fn values_are_read_at_their_exact_path() {
    for (path, arguments, expected) in [
        (&["p"] as &[&str], r#"{"p":"us-west1"}"#, Some("us-west1")),
        (&["p"], r#" {"p":"us-west1"}"#, Some("us-west1")),
        (&["p"], r#"{"\u0070":"\u00e9\n"}"#, Some("é\n")),
        (&["p"], r#"{"p":""}"#, Some("")),
        (&["p"], r#"{"p":" 1 "}"#, Some(" 1 ")),
        (&["p"], r#"{"p":true}"#, Some("true")),
        (&["p"], r#"{"p":false}"#, Some("false")),
        (&["p"], r#"{"p":42}"#, Some("42")),
        (&["p"], r#"{"p":-7}"#, Some("-7")),
        (&["p"], r#"{"p":-0}"#, Some("0")),
        (&["p"], r#"{"p":42.0}"#, Some("42")),
        (&["p"], r#"{"p":1e3}"#, Some("1000")),
        (&["p"], r#"{"p":9007199254740991}"#, Some("9007199254740991")),
        (&["p"], r#"{"p":-9007199254740991}"#, Some("-9007199254740991")),
        (&["p"], r#"{"p":null}"#, None),
        (&["p"], "{}", None),
        (&["p"], "null", None),
        (&["p"], r#"{"P":"other"}"#, None),
        (&["p", "q"], r#"{"p":{"q":"deep"},"q":"shallow"}"#, Some("deep")),
        (&["p", "q"], r#"{"p.q":"dotted","q":"shallow"}"#, None),
        (&["p", "q"], r#"{"p":null}"#, None),
        (&["p", "q"], r#"{"p":"q"}"#, None),
        (&["p", "q"], r#"{"p":[{"q":1}]}"#, None),
    ] {
        assert_eq!(value(path, arguments), Ok(expected.map(str::to_owned)), "{path:?} of {arguments}");
    }
}

#[test]
fn unsupported_values_are_rejected() {
    let kind = "`p` is sent in a header and must be a string, an integer, a boolean or null";
    let range = "`p` is sent in a header and must be within ±9007199254740991";
    let unreadable = "the arguments cannot be read";
    for (arguments, expected) in [
        (r#"{"p":{}}"#, kind),
        (r#"{"p":["a"]}"#, kind),
        (r#"{"p":1.5}"#, kind),
        (r#"{"p":-1e-3}"#, kind),
        (r#"{"p":9007199254740992}"#, range),
        (r#"{"p":-9007199254740992}"#, range),
        (r#"{"p":18446744073709551615}"#, range),
        (r#"{"p":123456789012345678901234567890}"#, range),
        (r#"{"p":1e300}"#, range),
        (r#"{"p":-1e300}"#, range),
        (r#"{"p":"a","\u0070":"b"}"#, unreadable),
    ] {
        assert_eq!(value(&["p"], arguments), Err(expected.to_owned()), "{arguments}");
    }
}

#[test]
fn mcp_name_parameter_per_method() {
    for (method, key) in [
        ("tools/call", Some("name")),
        ("prompts/get", Some("name")),
        ("resources/read", Some("uri")),
        ("tasks/get", Some("taskId")),
        ("tasks/update", Some("taskId")),
        ("tasks/cancel", Some("taskId")),
        ("tasks/list", None),
        ("tools/list", None),
        ("resources/subscribe", None),
        ("Tools/Call", None),
        ("", None),
    ] {
        assert_eq!(mcp_name_param(method), key, "{method}");
    }
}
