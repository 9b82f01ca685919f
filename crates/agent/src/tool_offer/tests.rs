use std::sync::Arc;

use serde_json::{Value, json};
use wharf_tools::{AllowAllGate, BoxFuture, Fingerprint, Registry, Tool, ToolError, ToolInvocation, ToolSource};

use super::*;
use crate::provider::UnencodableReason;

/// A tool that is never called.
struct UncalledTool(Arc<ToolDescription>);

impl Tool for UncalledTool {
    fn description(&self) -> &Arc<ToolDescription> {
        &self.0
    }

    fn call(&self, _: ToolInvocation) -> BoxFuture<'_, Result<ToolOutcome, ToolError>> {
        Box::pin(std::future::ready(Ok(ToolOutcome::default())))
    }
}

fn tool(provider: &str, name: &str, text: &str, schema: &Value) -> Arc<dyn Tool> {
    let full = if provider.is_empty() { name.to_owned() } else { format!("mcp__{provider}__{name}") };
    let mut description = ToolDescription::new(full, text, RawJson::new_unchecked(schema.to_string()));
    let source = ToolSource { provider: provider.into(), name: name.into(), fingerprint: Fingerprint([0; 32]) };
    description.source = (!provider.is_empty()).then_some(source);
    Arc::new(UncalledTool(Arc::new(description)))
}

fn snapshot(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Arc<RegistrySnapshot> {
    let registry = Registry::new(Arc::new(AllowAllGate));
    tools.into_iter().for_each(|tool| registry.register(tool));
    registry.snapshot()
}

/// Returns the offer for a model with this token limit for definitions.
fn offer_with_limit(tools: impl IntoIterator<Item = Arc<dyn Tool>>, most_tokens: u64) -> ToolOffer {
    ToolOffer::from_snapshot(&snapshot(tools), ApiFormat::Anthropic, most_tokens, |_| true)
}

fn names(tool_offer: &ToolOffer) -> Vec<&str> {
    tool_offer.definitions.offered.iter().map(|definition| definition.alias.as_str()).collect()
}

#[track_caller]
fn answer(tool_offer: &ToolOffer, name: &str, arguments: &Value) -> ToolOutcome {
    match tool_offer.resolve(name, &RawJson::new_unchecked(arguments.to_string())) {
        ResolvedCall::Answer(outcome) => outcome,
        ResolvedCall::Call { tool, .. } => panic!("calls {tool}"),
    }
}

/// Returns the called tool and its arguments, or the outcome text as an error.
fn resolve(tool_offer: &ToolOffer, name: &str, arguments: &str) -> Result<(String, String), String> {
    match tool_offer.resolve(name, &RawJson::new_unchecked(arguments.to_owned())) {
        ResolvedCall::Call { tool, arguments } => Ok((tool, arguments.as_str().to_owned())),
        ResolvedCall::Answer(outcome) => {
            assert!(outcome.is_error, "{outcome:?}");
            Err(outcome.text())
        }
    }
}

const THINGS: [&str; 25] = [
    "invoice",
    "customer",
    "ticket",
    "branch",
    "deployment",
    "message",
    "channel",
    "calendar",
    "meeting",
    "contract",
    "shipment",
    "warehouse",
    "employee",
    "payment",
    "subscription",
    "report",
    "dashboard",
    "alert",
    "incident",
    "backup",
    "domain",
    "certificate",
    "database",
    "volume",
    "network",
];

/// Returns twenty providers with twenty-five tools each, with realistic schemas.
fn many_tools() -> Vec<Arc<dyn Tool>> {
    let verbs = ["create", "delete", "list", "update", "get"];
    let one = |provider: usize, at: usize| {
        let (verb, thing) = (verbs[(provider + at) % verbs.len()], THINGS[at]);
        let schema = json!({
            "type": "object",
            "properties": {
                format!("{thing}_id"): { "type": "string", "description": format!("The identifier of the {thing}, as listed.") },
                "filter": { "type": "object", "properties": {
                    "since": { "type": "string", "format": "date-time", "description": "Only what is newer than this." },
                    "status": { "type": "string", "enum": ["open", "closed", "all"], "default": "all" },
                    "labels": { "type": "array", "items": { "type": "string" }, "description": "All of these." },
                }},
                "page": { "type": "integer", "minimum": 1, "default": 1, "description": "Which page of the results." },
            },
            "required": [format!("{thing}_id")],
        });
        let text =
            format!("{verb} one or more of the {thing}s of the workspace. Needs the right to do so; see the handbook.");
        tool(&format!("service{provider}"), &format!("{verb}_{thing}"), &text, &schema)
    };
    (0..20).flat_map(|provider| (0..THINGS.len()).map(move |at| one(provider, at))).collect()
}

#[test]
fn deferred_tools_fit_the_budget_and_are_callable() {
    let own = ["Agent", "ListMcpResources"].map(|name| tool("", name, "Does it.", &json!({ "type": "object" })));
    let snapshot = snapshot(many_tools().into_iter().chain(own));
    let of = |format, most_tokens| ToolOffer::from_snapshot(&snapshot, format, most_tokens, |_| true);
    for format in [ApiFormat::Anthropic, ApiFormat::ChatCompletions, ApiFormat::Responses] {
        let tool_offer = of(format, 10_000);
        assert_eq!(names(&tool_offer), ["Agent", "ListMcpResources", "SearchTools", "CallTool"]);
        let bytes = tool_offer.definitions.size_bytes();
        assert!(tool_offer.definitions.withheld.is_empty() && bytes <= MAX_SEARCH_AND_CALL_BYTES, "{bytes}");
        assert!(of(format, u64::MAX).tokens() > 50_000);
    }
    let tool_offer = of(ApiFormat::Anthropic, 10_000);
    for tool in snapshot.iter().map(|tool| tool.description()).filter(|tool| tool.source.is_some()) {
        let found = answer(&tool_offer, "SearchTools", &json!({ "query": &*tool.name, "limit": 1 })).text();
        assert!(found.contains(&format!("\n{}: ", tool.name)) && found.contains(tool.schema.as_str()), "{found}");
        let call = format!(r#"{{"name":"{}","arguments":{{"a":1}}}}"#, tool.name);
        assert_eq!(resolve(&tool_offer, "CallTool", &call), Ok((tool.name.to_string(), r#"{"a":1}"#.to_owned())));
    }
}

#[test]
fn tools_within_the_budget_are_all_offered() {
    let tools = ["b", "a", "SearchTools"].map(|name| tool("", name, "Does it.", &json!({ "type": "object" })));
    let tool_offer = ToolOffer::from_snapshot(&snapshot(tools), ApiFormat::Anthropic, 100, |name| name != "b");
    assert_eq!(names(&tool_offer), ["SearchTools", "a"]);
    assert_eq!(resolve(&tool_offer, "a", "{}"), Ok(("a".to_owned(), "{}".to_owned())));
    assert_eq!(resolve(&tool_offer, "SearchTools", "{}"), Ok(("SearchTools".to_owned(), "{}".to_owned())));
    assert_eq!(resolve(&tool_offer, "b", "{}"), Err("unknown tool b".to_owned()));
}

#[test]
fn offered_tools_fit_the_token_limit() {
    let of = |bytes: usize| {
        let own = tool("", "Own", &"x".repeat(bytes), &json!({ "type": "object" }));
        names(&offer_with_limit(many_tools().into_iter().chain([own]), 10_000)).len()
    };
    assert_eq!((of(1_000), of(33_000), of(40_000)), (3, 3, 2));
}

#[test]
fn search_tool_avoids_existing_tool_names() {
    let takers = ["SearchTools", "CallTool", "CallTool2"].map(|name| tool("", name, &"x".repeat(60_000), &json!({})));
    let tool_offer = offer_with_limit(many_tools().into_iter().chain(takers), 10_000);
    assert_eq!(names(&tool_offer), ["SearchTools2", "CallTool3"]);
    let about = &tool_offer.definitions.offered[0].description;
    assert!(about.contains("CallTool3"), "{about}");
    assert_eq!(resolve(&tool_offer, "CallTool", "{}"), Ok(("CallTool".to_owned(), "{}".to_owned())));
}

#[test]
fn call_tool_passes_arguments_verbatim() {
    let tool_offer = ToolOffer::from_snapshot(&snapshot(many_tools()), ApiFormat::Anthropic, 10_000, |name| {
        !name.ends_with("delete_invoice")
    });
    let name = "mcp__service0__create_invoice";
    let odd = r#"{ "b":1.50, "a":12345678901234567890123 }"#;
    for (call, expected) in [
        (format!(r#"{{"name":"{name}","arguments":{odd}}}"#), Ok(odd)),
        (format!(r#"{{"arguments":{odd} , "name":"{name}"}}"#), Ok(odd)),
        (format!(r#"{{"name":"{name}"}}"#), Ok("{}")),
        (format!(r#"{{"name":"{name}","arguments":"{{\"a\": 1}}"}}"#), Ok(r#"{"a": 1}"#)),
        (
            r#"{"name":"mcp__service0__craete_invoice","arguments":{}}"#.to_owned(),
            Err("did you mean mcp__service0__create_invoice?"),
        ),
        (
            r#"{"name":"mcp__service4__delete_invoice","arguments":{}}"#.to_owned(),
            Err("unknown tool mcp__service4__delete_invoice"),
        ),
        (r#"{"name":"CallTool","arguments":{}}"#.to_owned(), Err("unknown tool CallTool")),
        (r#"{"name":"\u001b[31m","arguments":{}}"#.to_owned(), Err(r"unknown tool \u{1b}[31m")),
        (format!(r#"{{"name":"{name}","arguments":[1]}}"#), Err("`arguments` is not an object. Expected")),
        (format!(r#"{{"name":"{name}","arguments":"[1]"}}"#), Err("`arguments` is not an object. Expected")),
        (format!(r#"{{"name":"{name}","invoice_id":"7"}}"#), Err("unknown field `invoice_id`")),
        ("[]".to_owned(), Err("Expected")),
        (format!(r#"{{"name":{}}}"#, "[".repeat(200) + &"]".repeat(200)), Err("nested deeper than")),
    ] {
        match (resolve(&tool_offer, "CallTool", &call), expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, (name.to_owned(), expected.to_owned()), "{call}"),
            (Err(found), Err(expected)) => assert!(found.contains(expected), "{call}: {found}"),
            (found, _) => panic!("{call}: {found:?}"),
        }
    }
    assert_eq!(resolve(&tool_offer, name, odd), Ok((name.to_owned(), odd.to_owned())));
}

#[test]
fn search_describes_deferred_tools_and_ranks_matches() {
    let tool_offer = offer_with_limit(many_tools(), 10_000);
    let about = &tool_offer.definitions.offered[0].description;
    assert!(about.contains("500 further tools are available") && about.contains("service19 (25)"), "{about}");
    let found = answer(&tool_offer, "SearchTools", &json!({ "query": "make a new invoice" })).text();
    let first = found.lines().nth(2).unwrap_or_default();
    assert!(found.starts_with("5 of 500 tools") && first.contains("__create_invoice: create one or more"), "{found}");
    for (limit, expected) in [(json!(3), 3), (json!(0), 1), (json!(99), 10), (json!(2.5), 5), (json!(null), 5)] {
        let found = answer(&tool_offer, "SearchTools", &json!({ "query": "invoice", "limit": limit })).text();
        assert_eq!(found.matches("arguments: {").count(), expected, "{limit}: {found}");
    }
    let nothing = answer(&tool_offer, "SearchTools", &json!({ "query": "zebra" }));
    assert!(!nothing.is_error && nothing.text().starts_with("No matching tools."), "{nothing:?}");
    assert!(answer(&tool_offer, "SearchTools", &json!({ "q": "zebra" })).is_error);
}

#[test]
fn server_text_in_definitions_and_results_is_truncated() {
    let large = |at: usize| {
        let properties: serde_json::Map<String, Value> =
            (0..200).map(|n| (format!("field_{n}"), json!({ "description": "x".repeat(100) }))).collect();
        let schema = json!({ "type": "object", "properties": properties });
        tool(&format!("{at:03}{}", "p".repeat(40)), "tide", &"tide\n".repeat(10_000), &schema)
    };
    let own = |at: usize| tool("", &format!("Own{at}"), "Does it.", &json!({ "type": "object" }));
    let tools = (0..100).map(large).chain((0..2_000).map(own));
    let mut tool_offer = offer_with_limit(tools, 10_000);
    assert!(tool_offer.tokens() <= 10_000);
    let two = Arc::make_mut(&mut tool_offer.definitions);
    two.retain(|name, _| ["SearchTools", "CallTool"].contains(&name));
    assert!((1..=MAX_SEARCH_AND_CALL_BYTES).contains(&two.size_bytes()), "{}", two.size_bytes());
    let found = answer(&tool_offer, "SearchTools", &json!({ "query": "tide", "limit": 10 })).text();
    assert!(found.len() < 48 * 1024 && found.contains("search for this exact name"), "{}", found.len());
}

#[test]
fn definition_size_includes_expanded_references() {
    let part = json!({ "type": "object", "description": "x".repeat(9_000) });
    let properties = |count: usize| -> serde_json::Map<String, Value> {
        (0..count).map(|n| (format!("field_{n}"), json!({ "$ref": "#/$defs/part" }))).collect()
    };
    let referring = |count: usize| {
        let schema = json!({ "type": "object", "properties": properties(count), "$defs": { "part": part } });
        [tool("docs", "write", "Writes.", &schema)]
    };
    let few = offer_with_limit(referring(3), 10_000);
    assert_eq!((names(&few), few.tokens() > 6_000), (vec!["mcp__docs__write"], true));
    assert_eq!(names(&offer_with_limit(referring(28), 10_000)), ["SearchTools", "CallTool"]);
}

#[test]
fn unencodable_tool_is_withheld_unless_deferred() {
    let tools = || {
        ["good", "bad"].map(|name| {
            let schema = if name == "bad" { json!({ "type": "string" }) } else { json!({ "type": "object" }) };
            tool("docs", name, "Does it.", &schema)
        })
    };
    let all = offer_with_limit(tools(), 10_000);
    let withheld: Vec<(&str, &UnencodableReason)> =
        all.definitions.withheld.iter().map(|tool| (&*tool.name, &tool.reason)).collect();
    assert_eq!(
        (names(&all), withheld),
        (vec!["mcp__docs__good"], vec![("mcp__docs__bad", &UnencodableReason::NotObject)])
    );
    let found = offer_with_limit(tools(), 0);
    assert!(found.definitions.withheld.is_empty());
    assert!(answer(&found, "SearchTools", &json!({ "query": "bad" })).text().contains("mcp__docs__bad"));
}

#[test]
fn oversized_schema_is_truncated_in_search_results() {
    let large = json!({ "type": "object", "properties": { "tide": { "description": "x".repeat(100_000) } } });
    let tools = [tool("sea", "tide", "The tide.", &large), tool("sea", "tides", "The tides.", &large)];
    let tool_offer = offer_with_limit(tools, 0);
    for (query, limit, without) in [("mcp__sea__tide", 1, 0), ("tide", 2, 1)] {
        let found = answer(&tool_offer, "SearchTools", &json!({ "query": query, "limit": limit })).text();
        assert!(found.contains("arguments: tide (schema of ") && found.contains(&"x".repeat(20_000)), "{query}");
        assert_eq!(found.matches("search for this exact name").count(), without, "{query}");
        assert!(found.len() < 26 * 1024, "{}", found.len());
    }
}

#[test]
fn schema_whitespace_is_removed_outside_strings() {
    assert_eq!(
        search_tool::compact_json("{ \"a b\" :\t\"c \\\" d\\\\\" , \"e\": [ 1 ] }"),
        r#"{"a b":"c \" d\\","e":[1]}"#
    );
}
