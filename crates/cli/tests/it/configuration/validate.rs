//! `validate` and `schema`.

use serde_json::json;
use wharf_testkit::test_home::{PROJECT_CONFIG, TestHome, USER_CONFIG};

#[test]
fn every_problem_is_listed_under_its_file() {
    let home = TestHome::new();
    home.write(
        USER_CONFIG,
        "{\n\"mcpServers\": {\n  \"x\": {\"args\": []},\n  \"y\": {\"command\": \"a\", \"env\": {\"A\": \"${NONE}\", \"B\": \"${secret:s}\"}}\n},\n\
         \"permissions\": [{\"tool\": \"mcp__\", \"action\": \"deny\"}]}",
    );
    home.write(PROJECT_CONFIG, "{\"mcpServers\": }");
    let ran = home.run(["validate"]);
    assert_eq!(ran.code, Some(2));
    let lines: Vec<String> =
        ran.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for expected in [
        "~/.config/wharf/config.json",
        "3:8 error `x` has neither `command` nor `url`",
        "fix set `command` (and `args`) for a local server, or `url` for a remote one",
        "4:38 error the variable `NONE` is not set",
        ".wharf/config.json",
    ] {
        assert!(lines.iter().any(|line| line == expected), "{expected}: {}", ran.stdout);
    }
    assert!(lines.iter().any(|line| line.starts_with("6:17 error the rule on `mcp__`: ")), "{}", ran.stdout);
    assert!(lines.iter().any(|line| line.starts_with("1:16 error ")), "{}", ran.stdout);
    assert!(ran.stderr.starts_with("2 servers: 4 errors, 0 warnings ("), "{}", ran.stderr);
}

#[test]
fn warnings_fail_only_with_strict_config() {
    let home = TestHome::new();
    home.write(USER_CONFIG, r#"{"mcpServers": {"x": {"command": "a", "comand": "b"}}}"#);
    assert_eq!(home.run_ok(&["validate"]).stderr.split('(').next(), Some("1 server: 1 warning "));
    assert_eq!(home.run(["validate", "--strict-config"]).code, Some(2));
    let document = home.run_ok(&["validate", "--json"]).json();
    assert_eq!(
        (&document["success"], &document["errors"], &document["warnings"]),
        (&json!(true), &json!(0), &json!(1))
    );
    let item = &document["items"][0];
    assert_eq!(
        (&item["code"], &item["server"], &item["line"], &item["column"]),
        (&json!("unknown_key"), &json!("x"), &json!(1), &json!(39))
    );
    assert_eq!(item["fix"], "did you mean `command`?");
}

#[test]
fn validate_config_flag_equals_the_command() {
    let home = TestHome::new();
    home.write(USER_CONFIG, "{");
    let (flag, command) = (home.run(["--validate-config"]), home.run(["validate"]));
    assert_eq!((flag.code, &flag.stdout, &flag.stderr), (Some(2), &command.stdout, &command.stderr));
    assert_eq!(TestHome::new().run_ok(&["--validate-config"]).stderr, "0 servers: no problems (no file found)\n");
}

#[test]
fn single_file_is_validated_alone() {
    let home = TestHome::new();
    home.write(USER_CONFIG, "{");
    home.write("project/team.yaml", "mcpServers: {x: {command: a}}\n");
    assert_eq!(home.run_ok(&["validate", "team.yaml"]).stderr, "1 server: no problems (team.yaml)\n");
    let ran = home.run(["validate", "none.json"]);
    assert!(ran.code == Some(2) && ran.stdout.contains("file not found"), "{ran:?}");
}

#[test]
fn schema_is_one_json_document() {
    let ran = TestHome::new().run_ok(&["schema"]);
    let schema: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(schema["$defs"]["server"]["properties"]["timeout"]["minimum"], 1);
    assert_eq!(schema["$defs"]["server"]["properties"]["transport"]["description"], "The same as `type`.");
}
