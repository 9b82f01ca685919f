//! The help of every command: it fits the terminal, and the options that commands share take effect wherever it offers
//! them.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use wharf_testkit::test_home::{CommandOutput, TestHome};

use crate::support::{WHARF, shell, wharf, working};

/// A width at which every text stays on its line.
const UNBOUNDED: usize = 1_000;

fn help(path: &[String], columns: usize) -> String {
    let mut command = wharf(path);
    let ran = CommandOutput::from(command.arg("--help").env("COLUMNS", columns.to_string()).output().unwrap());
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{path:?}");
    ran.stdout
}

/// Returns the paths of all commands: `wharf` itself, its commands, theirs, and the hidden ones.
fn commands() -> Vec<Vec<String>> {
    let mut all = vec![Vec::new(), vec!["hold".to_owned()], vec!["complete-names".to_owned()]];
    let mut next = 0;
    while let Some(path) = all.get(next).cloned() {
        let below = subcommands(&help(&path, UNBOUNDED));
        all.extend(below.into_iter().map(|name| [path.as_slice(), &[name]].concat()));
        next += 1;
    }
    assert!(all.len() > 35, "{all:?}");
    all
}

/// Returns the names of the commands in a help text, which stand above the arguments and options.
fn subcommands(help: &str) -> Vec<String> {
    let (_, lists) = help.split_once("Usage: ").unwrap();
    let lists = lists.lines().skip(1).skip_while(|line| line.starts_with("       "));
    let lists = lists.take_while(|line| !["Arguments:", "Options:"].contains(line));
    let names = lists.filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next());
    names.map(str::to_owned).collect()
}

/// Returns the lines below `Examples:`.
fn examples(help: &str) -> Vec<&str> {
    let lines = help.lines().skip_while(|line| *line != "Examples:").skip(1);
    lines.take_while(|line| !line.is_empty()).collect()
}

#[test]
fn help_fits_terminals_of_60_and_80_columns() {
    for path in commands() {
        let whole = help(&path, UNBOUNDED);
        for columns in [60, 80] {
            let text = help(&path, columns);
            for line in text.lines() {
                assert!(line.chars().count() <= columns, "{path:?} at {columns} columns: {line}");
            }
            let same_words = text.split_whitespace().eq(whole.split_whitespace());
            assert!(same_words, "{path:?} at {columns} columns breaks a word:\n{text}");
            assert_eq!(examples(&text), examples(&whole), "{path:?} at {columns} columns wraps an example");
        }
    }
}

#[test]
fn examples_are_indented_alike() {
    for path in commands() {
        let text = help(&path, UNBOUNDED);
        let mut continues = false;
        for line in examples(&text) {
            let indent = if continues { 6 } else { 2 };
            assert_eq!(line.len() - line.trim_start().len(), indent, "{path:?}: {line}");
            assert_eq!(line, line.trim_end(), "{path:?}");
            continues = line.ends_with('\\');
        }
        assert!(!continues, "{path:?}");
    }
}

#[test]
fn short_help_is_shorter_than_long_help() {
    let short = CommandOutput::from(wharf(["-h"]).output().unwrap()).stdout;
    let long = help(&[], UNBOUNDED);
    assert!(short.len() < long.len() && !short.contains("Examples:") && long.contains("Examples:"), "{short}");
    assert!(short.contains("\nUse:\n  tools ") && short.contains("\nTalk:\n  run "), "{short}");
}

/// Command lines that reach the end of their command, in the home of [`furnished`].
const SAMPLES: [(&str, &[&str]); 42] = [
    ("tools", &["harbour"]),
    ("call", &["harbour.echo", "text=ahoy"]),
    ("resources", &["harbour"]),
    ("templates", &["harbour"]),
    ("read", &["harbour", "demo://greeting"]),
    ("prompts", &["harbour"]),
    ("prompt", &["harbour", "welcome", "name=Ada"]),
    ("subscribe", &["harbour", "--uri", "harbour://tide", "--count", "1"]),
    ("serve", &["--status"]),
    ("key", &["list"]),
    ("key add", &["ci"]),
    ("key list", &[]),
    ("key revoke", &["ci"]),
    ("questions", &[]),
    ("answer", &["0a1b2c", "allow"]),
    ("list", &[]),
    ("get", &["harbour"]),
    ("add", &["other", "--", "true"]),
    ("add-json", &["other", r#"{"command":"true"}"#]),
    ("remove", &["spare"]),
    ("enable", &["spare"]),
    ("disable", &["spare"]),
    ("validate", &[]),
    ("import", &["cursor", "--file", "cursor.json", "--all"]),
    ("export", &["cursor"]),
    ("secret", &["list"]),
    ("secret set", &["key"]),
    ("secret list", &[]),
    ("secret remove", &["key"]),
    ("auth", &["docs"]),
    ("auth status", &[]),
    ("logout", &["docs"]),
    ("approve", &[]),
    ("release", &["harbour", "echo"]),
    ("revoke", &["spare"]),
    ("status", &["harbour"]),
    ("test", &["harbour"]),
    ("why", &["harbour"]),
    ("logs", &["harbour"]),
    ("stats", &[]),
    ("run", &["say ahoy"]),
    ("demo", &[]),
];

/// Commands that cannot reach a server here: one needs a login page, the other a model.
const UNCONNECTED: [&str; 2] = ["auth", "run"];

/// Commands for which `--config` selects a running process or an entry's effect, so that a missing file is no error.
const NOT_LOADING: [&str; 4] = ["add", "add-json", "cancel", "reload"];

/// Creates a home with a server that works, others that are off, and a configuration with a warning.
fn furnished() -> TestHome {
    let mut harbour = working();
    harbour["args"] = json!(["demo-server", "--stdio", "--tide", "30"]);
    harbour["unheardOf"] = json!(true);
    let docs = json!({ "url": "http://127.0.0.1:1/mcp" , "enabled": false });
    let home = TestHome::with_servers(
        &json!({ "harbour": harbour, "docs": docs, "spare": { "command": "true", "enabled": false } }),
    );
    home.write("project/cursor.json", r#"{"mcpServers":{"found":{"command":"true"}}}"#);
    home
}

/// Returns the long options that a help text offers.
fn offered(help: &str) -> BTreeSet<String> {
    let lines = help.lines().filter(|line| line.trim_start().starts_with('-') && line.starts_with(' '));
    let words = lines.flat_map(|line| line.split_whitespace().take(2));
    words.filter(|word| word.starts_with("--")).map(|word| word.trim_end_matches("...").to_owned()).collect()
}

fn run_sample(home: &TestHome, path: &[String], options: &[&str]) -> CommandOutput {
    let name = path.join(" ");
    let sample = SAMPLES.iter().find(|(known, _)| *known == name).map_or(&[][..], |(_, sample)| sample);
    let mut words: Vec<&str> = path.iter().map(String::as_str).collect();
    words.extend(options);
    words.extend(sample);
    home.run(words)
}

#[test]
fn shared_options_take_effect_wherever_help_offers_them() {
    for path in commands().into_iter().filter(|path| !path.is_empty()) {
        let name = path.join(" ");
        let options = offered(&help(&path, UNBOUNDED));
        let has = |option: &str| options.contains(option);
        if ["hold", "complete-names"].contains(&name.as_str()) {
            continue;
        }
        assert_eq!(has("--config"), has("--only-config"), "{name}");
        if has("--json") {
            check_json(&name, &run_sample(&furnished(), &path, &["--json"]));
        }
        if has("--color") {
            check_color(&path);
        }
        if has("--config") && !NOT_LOADING.contains(&name.as_str()) {
            let ran = run_sample(&furnished(), &path, &["--config", "missing.json"]);
            let told = ran.stdout.contains("missing.json") || ran.stderr.contains("missing.json");
            assert!(ran.code == Some(2) && told, "{name} ignores --config: {ran:?}");
        }
        if has("--strict-config") {
            let ran = run_sample(&furnished(), &path, &["--strict-config"]);
            let is_error = |line: &str| line.starts_with("error: ") && line.contains("unheardOf");
            let told = ran.stderr.lines().any(is_error) || name == "validate";
            assert!(ran.code == Some(2) && told, "{name} ignores --strict-config: {ran:?}");
        }
        if !UNCONNECTED.contains(&name.as_str()) {
            check_server_options(&path, &options);
        }
    }
}

/// Checks that every line on stdout is a JSON document.
fn check_json(name: &str, ran: &CommandOutput) {
    assert!(!ran.stdout.is_empty(), "{name} ignores --json: {ran:?}");
    for line in ran.stdout.lines() {
        assert!(serde_json::from_str::<Value>(line).is_ok(), "{name} ignores --json: {ran:?}");
    }
}

fn check_color(path: &[String]) {
    let home = furnished();
    if path == ["stats"] {
        home.run(["call", "harbour.echo", "text=ahoy"]);
    }
    let ran = run_sample(&home, path, &["--color", "always"]);
    assert!(format!("{}{}", ran.stdout, ran.stderr).contains('\u{1b}'), "{path:?} ignores --color: {ran:?}");
    let ran = run_sample(&furnished(), path, &["--color", "never"]);
    assert!(!format!("{}{}", ran.stdout, ran.stderr).contains('\u{1b}'), "{path:?} ignores --color: {ran:?}");
}

/// Checks the options of commands that use servers.
fn check_server_options(path: &[String], options: &BTreeSet<String>) {
    let has = |option: &str| options.contains(option);
    assert_eq!(has("--trace"), has("--debug"), "{path:?}");
    if path == ["list"] || path == ["approve"] {
        // They use servers only with `--probe` and `--tool`, which `--timeout` requires.
        return;
    }
    assert_eq!(has("--trace"), has("--timeout"), "{path:?}");
    if has("--trace") {
        let home = furnished();
        let ran = run_sample(&home, path, &["--trace", "trace.jsonl"]);
        let trace = std::fs::read_to_string(home.path("project/trace.jsonl")).unwrap();
        assert!(trace.contains("\"method\""), "{path:?} ignores --trace: {ran:?}");
        let ran = run_sample(&furnished(), path, &["--debug"]);
        assert!(ran.stderr.contains("\"method\""), "{path:?} ignores --debug: {ran:?}");
        let silent = TestHome::with_servers(&json!({ "harbour": shell("sleep 60") }));
        let ran = run_sample(&silent, path, &["--timeout", "50ms"]);
        assert_eq!(ran.code, Some(7), "{path:?} ignores --timeout: {ran:?}");
    }
}

#[test]
fn options_without_effect_are_rejected() {
    let home = furnished();
    for line in [
        "stats --timeout 5",
        "stats --config x.json",
        "export cursor --trace x",
        "import --debug",
        "approve --account a",
        "approve --timeout 5",
        "revoke --all --timeout 5",
        "auth status --timeout 5",
        "logout docs --trace x",
        "auth --stdio x",
        "schema --json",
        "man --config x.json",
        "completions bash --color never",
        "demo --strict-config",
        "list --timeout 5",
        "--validate-config tools",
        "--validate-config --model a/b",
    ] {
        let ran = home.run(line.split(' '));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{line}: {ran:?}");
        assert!(ran.stderr.starts_with("error: "), "{line}: {ran:?}");
    }
}

#[test]
fn options_of_wharf_stand_before_or_after_the_command() {
    let home = furnished();
    let file = home.write("one.json", &json!({ "mcpServers": { "one": { "command": WHARF } } }).to_string());
    let other = home.write("two.json", &json!({ "mcpServers": { "two": { "command": WHARF } } }).to_string());
    let (file, other) = (file.to_str().unwrap(), other.to_str().unwrap());
    for line in [
        ["--only-config", "--config", file, "--config", other, "list", "--json"],
        ["list", "--only-config", "--json", "--config", file, "--config", other],
        ["--config", file, "list", "--json", "--config", other, "--only-config"],
    ] {
        let found = home.run(line).json();
        let ids: Vec<&str> =
            found["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect();
        assert_eq!(ids, ["one", "two"], "{line:?}");
    }
}
