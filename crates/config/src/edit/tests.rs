//! Tests of edits: expected texts, rejected texts, and preservation of everything else in generated texts.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn name(text: &str) -> ServerName {
    ServerName::new(text).unwrap()
}

fn members(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn set(text: &str, server: &str, entry: Value) -> Result<EditedText, EditRefusal> {
    set_server(text, &name(server), &members(entry))
}

fn check(edited: Result<EditedText, EditRefusal>, text: &str, change: ConfigChange) {
    let edited = edited.unwrap();
    assert_eq!(edited.text, text);
    assert_eq!(edited.change, change);
}

#[test]
fn empty_file_gets_the_standard_shape() {
    let entry = json!({"env": {"B": "2", "A": "1"}, "args": ["-y", "pkg"], "command": "npx"});
    let expected = r#"{
  "mcpServers": {
    "a": {
      "command": "npx",
      "args": ["-y", "pkg"],
      "env": {
        "A": "1",
        "B": "2"
      }
    }
  }
}
"#;
    for empty in ["", "\n", " \r\n\t"] {
        check(set(empty, "a", entry.clone()), expected, ConfigChange::Added);
    }
    check(set("{}\n", "a", entry.clone()), expected, ConfigChange::Added);
    check(set("// mine\n", "a", entry), &format!("// mine\n{expected}"), ConfigChange::Added);
}

#[test]
fn server_is_added_to_the_existing_shape() {
    let url = || json!({"url": "https://a.example"});
    for (before, after) in [
        (
            "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"a\"} // mine\n  }\n}\n",
            "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"a\"}, // mine\n    \"b\": {\n      \"url\": \"https://a.example\"\n    }\n  }\n}\n",
        ),
        (
            "{\n\t\"version\": 1,\n\t\"mcp\": {\n\t\t\"enabled\": true, // on\n\t\t\"servers\": {},\n\t},\n}\n",
            "{\n\t\"version\": 1,\n\t\"mcp\": {\n\t\t\"enabled\": true, // on\n\t\t\"servers\": {\n\t\t\t\"b\": {\n\t\t\t\t\"url\": \"https://a.example\"\n\t\t\t}\n\t\t},\n\t},\n}\n",
        ),
        (
            "{\n    \"version\": 1\n}",
            "{\n    \"version\": 1,\n    \"mcp\": {\n        \"servers\": {\n            \"b\": {\n                \"url\": \"https://a.example\"\n            }\n        }\n    }\n}",
        ),
        (
            "\u{feff}{\r\n  \"mcpServers\": {\r\n    /* first */ \"a\": {},\r\n  },\r\n}\r\n",
            "\u{feff}{\r\n  \"mcpServers\": {\r\n    /* first */ \"a\": {},\r\n    \"b\": {\r\n      \"url\": \"https://a.example\",\r\n    },\r\n  },\r\n}\r\n",
        ),
    ] {
        check(set(before, "b", url()), after, ConfigChange::Added);
    }
}

#[test]
fn replacing_a_server_writes_only_the_differences() {
    let before = r#"{
  "mcpServers": {
    "a": {
      // The one that works.
      "command": "npx", // not bunx
      "args": ["-y", /* pinned */ "pkg@1"],
      "env": {
        "KEEP": "1", // kept
        "DROP": "2"
      },
      "future": {"x": 1} // nobody knows
    }, // a
    "b": {"command": "b"}
  }
}
"#;
    let entry = json!({
        "command": "npx", "args": ["-y", "pkg@2"], "env": {"KEEP": "1"}, "future": {"x": 1}, "cwd": "/srv"
    });
    let old = json!({
        "command": "npx", "args": ["-y", "pkg@1"], "env": {"KEEP": "1", "DROP": "2"}, "future": {"x": 1}
    });
    let after = before
        .replace(r#"["-y", /* pinned */ "pkg@1"]"#, r#"["-y", "pkg@2"]"#)
        .replace("\"KEEP\": \"1\", // kept\n        \"DROP\": \"2\"", "\"KEEP\": \"1\" // kept")
        .replace("{\"x\": 1} // nobody knows", "{\"x\": 1}, // nobody knows\n      \"cwd\": \"/srv\"");
    check(set(before, "a", entry), &after, ConfigChange::Replaced(old.clone()));
    check(set(before, "a", old), before, ConfigChange::Unchanged);
    // If both shapes are present, the one that has the server is edited.
    let both = r#"{"mcpServers": {"a": {}}, "mcp": {"servers": {"b": {"url": "x"}}}}"#;
    let edited = set(both, "b", json!({"url": "y"})).unwrap();
    assert_eq!(edited.text, both.replace("\"x\"", "\"y\""));
}

#[test]
fn server_is_removed_with_its_line() {
    let before = "{\n  // all\n  \"mcpServers\": {\n    // about a\n    \"a\": {\"command\": \"a\"}, // a\n    \"b\": {\"command\": \"b\"}\n  },\n  \"other\": [1, 2,],\n}\n";
    let check_gone = |server: &str, after: &str| {
        check(remove_server(before, &name(server)), after, ConfigChange::Removed(json!({"command": server})));
    };
    check_gone("a", &before.replace("    \"a\": {\"command\": \"a\"}, // a\n", ""));
    check_gone("b", &before.replace(", // a\n    \"b\": {\"command\": \"b\"}\n", " // a\n"));
    check(remove_server(before, &name("c")), before, ConfigChange::NotThere);
    check(remove_server("", &name("c")), "", ConfigChange::NotThere);
    check(
        remove_server("{\"mcp\": {\"servers\": {\"c\": 1}}}", &name("c")),
        "{\"mcp\": {\"servers\": {}}}",
        ConfigChange::Removed(json!(1)),
    );
}

#[test]
fn server_is_enabled_and_disabled() {
    let on = "{\"mcpServers\": {\"a\": {\"url\": \"x\"}}}";
    let off = "{\"mcpServers\": {\"a\": {\"url\": \"x\",\n  \"enabled\": false /* for now */}}}";
    let only_off = "{\"mcpServers\": {\"a\": {\"enabled\": false}, \"b\": 1}}";
    let switch = |text, enabled| set_enabled(text, &name("a"), enabled);
    check(switch(on, true), on, ConfigChange::Unchanged);
    check(switch(off, false), off, ConfigChange::Unchanged);
    check(switch("{}", true), "{}", ConfigChange::NotThere);
    check(
        switch(off, true),
        &off.replace("false", "true"),
        ConfigChange::Replaced(json!({"url": "x", "enabled": false})),
    );
    check(switch(only_off, true), "{\"mcpServers\": { \"b\": 1}}", ConfigChange::Removed(json!({"enabled": false})));
    let foreign = "{\"mcpServers\": {\"a\": {\"url\": \"x\", \"disabled\": true}}}";
    check(switch(foreign, false), foreign, ConfigChange::Unchanged);
    let switched = switch(foreign, true).unwrap();
    assert_eq!(switched.change, ConfigChange::Replaced(json!({"url": "x", "disabled": true})));
    assert_eq!(plain(&switched.text), json!({"a": {"url": "x"}}));
    let only_off = only_off.replace("\"enabled\": false", "\"disabled\": true");
    check(switch(&only_off, true), "{\"mcpServers\": { \"b\": 1}}", ConfigChange::Removed(json!({"disabled": true})));
    let switched = switch(on, false).unwrap();
    assert_eq!(switched.change, ConfigChange::Replaced(json!({"url": "x"})));
    check(switch(&switched.text, false), &switched.text, ConfigChange::Unchanged);
}

#[test]
fn rule_is_added_once_and_removed() {
    let rule = |tool: &str| members(json!({"action": "allow", "tool": tool}));
    let before = "{\n  \"model\": \"m\" // mine\n}\n";
    let first = add_rule(before, &rule("a")).unwrap();
    let expected = "{\n  \"model\": \"m\", // mine\n  \"permissions\": [\n    {\n      \"tool\": \"a\",\n      \"action\": \"allow\"\n    }\n  ]\n}\n";
    assert_eq!((first.text.as_str(), first.change), (expected, ConfigChange::Added));
    check(add_rule(&first.text, &rule("a")), &first.text, ConfigChange::Unchanged);
    let second = add_rule(&first.text, &rule("b")).unwrap();
    check(remove_rule(&second.text, &rule("b")), &first.text, ConfigChange::Removed(Value::Object(rule("b"))));
    check(remove_rule(before, &rule("b")), before, ConfigChange::NotThere);
}

#[test]
fn setting_is_written_and_removed() {
    let before = "{\n  \"mcp\": {\"enabled\": true}\n}\n";
    let path = ["mcp", "globalSettings", "timeout"];
    let after = set_setting(before, &path, &json!(5000)).unwrap();
    assert_eq!(after.change, ConfigChange::Added);
    check(set_setting(&after.text, &path, &json!(5000)), &after.text, ConfigChange::Unchanged);
    let other = after.text.replace("5000", "7");
    check(set_setting(&after.text, &path, &json!(7)), &other, ConfigChange::Replaced(json!(5000)));
    let gone = remove_setting(&after.text, &path).unwrap();
    assert_eq!(gone.change, ConfigChange::Removed(json!(5000)));
    check(remove_setting(before, &path), before, ConfigChange::NotThere);
    check(set_setting(before, &[], &json!(1)), before, ConfigChange::NotThere);
}

#[test]
fn unparsable_text_is_rejected_with_its_position() {
    for (text, at, part) in [
        ("{\n  \"mcpServers\": {\n", (2, 17), "unterminated object"),
        ("{\"a\": 1 \"b\": 2}", (1, 8), "expected comma"),
        ("{'a': 1}", (1, 2), "single-quoted strings are not allowed"),
        ("{a: 1}", (1, 2), "expected string for object property"),
        ("{\"a\": 0x10}", (1, 7), "hexadecimal numbers are not allowed"),
        ("{} {}", (1, 4), "text cannot contain more than one JSON value"),
        ("[1]", (1, 1), "the file is not an object"),
        ("\n{\"mcpServers\": []}", (2, 16), "`mcpServers` is not an object"),
        ("{\"mcp\":\n {\"servers\": 7}}", (2, 14), "`servers` is not an object"),
        ("{\n  \"mcpServers\": {\n    \"é\": 1,\n\"é\": 2}}", (4, 1), "`é` occurs twice, first at 3:5"),
        ("{\"mcpServers\": {\"b\": {}}, \"mcp\": {\"servers\": {\"b\": {}}}}", (1, 47), "`b` occurs twice"),
        ("{\"mcpServers\": {}, \"mcp\\u0053ervers\": {}}", (1, 20), "`mcpServers` occurs twice"),
        ("{\"mcpServers\": {\"x\": {\"a\": 1, \"a\": 2}}}", (1, 31), "`a` occurs twice"),
        ("{\"version\": 2, \"mcp\": {}}", (1, 2), "has `version: 2`, but this version supports only 1"),
        ("{\n\"schema\": 9}", (2, 1), "has `schema: 9`"),
    ] {
        let refusal = set(text, "x", json!({"command": "x"})).unwrap_err();
        let found = refusal.position();
        assert_eq!((found.line, found.column), at, "{text}: {refusal}");
        assert!(refusal.to_string().contains(part), "{text}: {refusal}");
    }
    // A `version` that is a string and a supported number are both accepted.
    assert!(set("{\"version\": \"2.0\", \"mcpServers\": {}}", "x", json!({})).is_ok());
    assert!(set("{\"version\": 1, \"schema\": 1}", "x", json!({})).is_ok());
    assert!(set(&"[".repeat(100_000), "x", json!({})).is_err());
}

/// Generates a text with comments in many places, in one of several styles.
fn any_text() -> impl Strategy<Value = String> {
    let style =
        (prop::sample::select(vec!["\n", "\r\n"]), prop::sample::select(vec!["  ", "    ", "\t"]), any::<[bool; 6]>());
    (style, prop::collection::btree_map("[a-d]", 0..3u8, 0..4)).prop_map(|((line, indent, flags), servers)| {
        let comment = |flag: usize, text: &str| if flags[flag] { format!(" // {text}") } else { String::new() };
        let mut text = String::from(if flags[0] { "// head\n{\n" } else { "{\n" });
        text += &format!(
            "\t\"before\": [1, /* two */ 2],{}\n\t\"mcpServers\": {{{}\n",
            comment(1, "list"),
            comment(2, "open")
        );
        let last = servers.len().saturating_sub(1);
        for (n, (server, kind)) in servers.iter().enumerate() {
            let entry = ["{}", "{\"command\": \"x\" /* why */}", "{\n\t\t\t\"args\": [\n\t\t\t\t\"1\"\n\t\t\t]\n\t\t}"]
                [usize::from(*kind)];
            let comma = if n < last || flags[3] { "," } else { "" };
            text += &format!("\t\t// about {server}\n\t\t\"{server}\": {entry}{comma}{}\n", comment(4, server));
        }
        text += &format!(
            "\t}},\n\t\"unknown\": {{\"deep\": null}}{}\n}}{}\n",
            if flags[3] { "," } else { "" },
            comment(5, "end")
        );
        text.replace('\t', indent).replace('\n', line)
    })
}

fn comments(text: &str) -> Vec<&str> {
    let found = text.lines().filter_map(|line| line.find("//").map(|start| &line[start..]));
    found.chain(text.matches("/* two */")).collect()
}

fn plain(text: &str) -> Value {
    let read = set_setting(text, &["mcpServers", "probe"], &json!(1)).unwrap();
    let whole = remove_setting(&read.text, &["mcpServers"]).unwrap();
    let ConfigChange::Removed(mut servers) = whole.change else { panic!("{text}") };
    servers.as_object_mut().unwrap().remove("probe");
    servers
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn edit_changes_only_the_named_server(text in any_text(), server in "[a-e]", kind in 0..2u8) {
        let entry = json!({"command": "new", "args": ["1"]});
        let mut expected = plain(&text);
        let mut kept = comments(&text);
        let edited = if kind == 0 {
            expected[&server] = entry.clone();
            set(&text, &server, entry).unwrap()
        } else {
            expected.as_object_mut().unwrap().remove(&server);
            let own = format!("// {server}");
            kept.retain(|comment| *comment != own);
            remove_server(&text, &name(&server)).unwrap()
        };
        prop_assert_eq!(plain(&edited.text), expected);
        let mut found = comments(&edited.text);
        kept.sort_unstable();
        found.sort_unstable();
        prop_assert_eq!(found, kept);
        let line = if text.contains("\r\n") { "\r\n" } else { "\n" };
        prop_assert_eq!(edited.text.matches(line).count(), edited.text.matches('\n').count());
        let is_kept = edited.text.contains(r#""unknown": {"deep": null}"#);
        prop_assert!(is_kept);
    }
}
