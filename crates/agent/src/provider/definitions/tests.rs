use super::*;

fn tool(name: &str, schema: &str) -> ModelToolDefinition {
    ModelToolDefinition {
        name: name.into(),
        description: "Does it.".into(),
        schema: RawJson::new_unchecked(schema.to_owned()),
    }
}

fn encode_schema(format: ApiFormat, schema: &str) -> Result<String, UnencodableReason> {
    let EncodedTools { offered, withheld, .. } = encode_tools(format, &[tool("t", schema)]);
    match (offered.first(), withheld.into_iter().next()) {
        (Some(offered), None) => Ok(offered.schema.as_str().to_owned()),
        (None, Some(withheld)) => Err(withheld.reason),
        other => panic!("{other:?}"),
    }
}

#[test]
fn invalid_tool_names_are_aliased_and_resolved_back() {
    let long = "t".repeat(65);
    let names = ["add", "mcp__git__log-all", "größe", "a b", "a.b", "", &long, "日本語"];
    let tools: Vec<ModelToolDefinition> = names.iter().map(|name| tool(name, r#"{"type":"object"}"#)).collect();
    let compiled = encode_tools(ApiFormat::ChatCompletions, &tools);
    assert!(compiled.withheld.is_empty());
    for (name, EncodedTool { alias, .. }) in names.iter().zip(&compiled.offered) {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        assert!((1..=64).contains(&alias.len()) && alias.bytes().all(fits), "{alias}");
        assert_eq!(compiled.name_of_alias(alias), Some(*name));
    }
    assert_eq!((&*compiled.offered[0].alias, &*compiled.offered[1].alias), ("add", "mcp__git__log-all"));
    assert_ne!(compiled.offered[3].alias, compiled.offered[4].alias);
    assert_eq!(compiled.name_of_alias("a b"), None);
}

#[test]
fn unencodable_tool_is_withheld_from_the_offer() {
    let good = r#"{"type":"object"}"#;
    let tools = [tool("a", good), tool("b", r#"{"type":"string"}"#), tool("a", good), tool("c", good)];
    let compiled = encode_tools(ApiFormat::Anthropic, &tools);
    let offered: Vec<&str> = compiled.offered.iter().map(|tool| tool.alias.as_str()).collect();
    assert_eq!(offered, ["a", "c"]);
    let withheld: Vec<(&str, &UnencodableReason)> =
        compiled.withheld.iter().map(|tool| (tool.name.as_str(), &tool.reason)).collect();
    assert_eq!(withheld, [("b", &UnencodableReason::NotObject), ("a", &UnencodableReason::Twin)]);
}

#[test]
fn schemas_are_encoded_per_api_format() {
    use ApiFormat::{Anthropic, ChatCompletions, Responses};
    for (format, schema, expected) in [
        (Anthropic, "{}", r#"{"type":"object","properties":{}}"#),
        (
            Anthropic,
            r#"{"$schema":"x","type":["object","null"],"properties":{"z":{"const":1.50},"$id":{"$id":"y"}},"required":["z"]}"#,
            r#"{"type":"object","properties":{"z":{"const":1.50},"$id":{}},"required":["z"]}"#,
        ),
        (
            Anthropic,
            r#"{"properties":{"a":{"pattern":"x","type":"array"}}}"#,
            r#"{"type":"object","properties":{"a":{"pattern":"x","type":"array"}}}"#,
        ),
        (
            ChatCompletions,
            r#"{"properties":{"a":{"pattern":"x","type":"array"},"pattern":{"type":"string"}}}"#,
            r#"{"type":"object","properties":{"a":{"type":"array","items":{}},"pattern":{"type":"string"}}}"#,
        ),
        (
            Responses,
            r#"{"properties":{"a":true},"oneOf":[{"properties":{"a":{},"b":{}}},{"allOf":[{"properties":{"c":{}}}]}]}"#,
            r#"{"type":"object","properties":{"a":true,"b":{},"c":{}}}"#,
        ),
        (
            Anthropic,
            r##"{"properties":{"a":{"$ref":"#/$defs/P","title":"mine"}},"$defs":{"P":{"title":"P","anyOf":[{"$ref":"#/$defs/Q~1q"}]},"Q/q":{"enum":["$ref"]}}}"##,
            r#"{"type":"object","properties":{"a":{"title":"mine","anyOf":[{"enum":["$ref"]}]}}}"#,
        ),
        (
            Anthropic,
            r##"{"$ref":"#/definitions/In","definitions":{"In":{"type":"object","properties":{"x":{"default":{"$ref":1}}}}}}"##,
            r#"{"type":"object","properties":{"x":{"default":{"$ref":1}}}}"#,
        ),
    ] {
        assert_eq!(encode_schema(format, schema).as_deref(), Ok(expected), "{schema}");
    }
}

#[test]
fn unencodable_schema_has_a_reason() {
    let bomb = (0..20)
        .map(|n| format!(r##""d{n}":{{"items":{{"$ref":"#/$defs/d{0}"}},"not":{{"$ref":"#/$defs/d{0}"}}}}"##, n + 1));
    let bomb = bomb.collect::<Vec<_>>().join(",");
    let bomb = format!(r##"{{"properties":{{"a":{{"$ref":"#/$defs/d0"}}}},"$defs":{{{bomb},"d20":{{}}}}}}"##);
    let deep = format!("{}1{}", r#"{"not":"#.repeat(200), "}".repeat(200));
    let reference = |text: &str| UnencodableReason::Reference(text.to_owned());
    for (schema, expected) in [
        ("[]", UnencodableReason::NotObject),
        ("true", UnencodableReason::NotObject),
        (r#"{"type":"array"}"#, UnencodableReason::NotObject),
        (r#"{"type":"object","type":"object"}"#, UnencodableReason::Invalid),
        (r#"{"type":}"#, UnencodableReason::Invalid),
        (r#"{"properties":[]}"#, UnencodableReason::Invalid),
        (r##"{"properties":{"a":{"$ref":"#"}}}"##, reference("#")),
        (r##"{"$defs":{"A":{"items":{"$ref":"#/$defs/A"}}},"items":{"$ref":"#/$defs/A"}}"##, reference("#/$defs/A")),
        (r##"{"items":{"$ref":"#/$defs/B"}}"##, reference("#/$defs/B")),
        (r#"{"items":{"$ref":"https://x.example/s.json"}}"#, reference("https://x.example/s.json")),
        (&bomb, UnencodableReason::TooLarge),
        (&deep, UnencodableReason::TooLarge),
        (&format!(r#"{{"title":"{}"}}"#, "x".repeat(300_000)), UnencodableReason::TooLarge),
    ] {
        assert_eq!(encode_schema(ApiFormat::Anthropic, schema), Err(expected), "{schema:.80}");
    }
}
