//! `wharf reload`: a running `wharf` looks at its files again. What cannot be read or looked up costs nothing of what was
//! there before, and is told.

use std::process::Child;

use serde_json::{Value, json};
use wharf_testkit::modeld::Answer;
use wharf_testkit::test_home::CommandOutput;

use crate::run::Stage;
use crate::support::working;

const CONFIG: &str = "home/.config/wharf/config.json";

/// A run that waits for the model. Dropped, it is ended.
struct Running {
    stage: Stage,
    child: Option<Child>,
}

impl Running {
    /// With this configuration, and a model that echoes once it may.
    #[track_caller]
    fn with(stage: Stage, config: &Value) -> Self {
        stage.home.write(CONFIG, &config.to_string());
        let run = ["run", "--json", "--dangerously-skip-permissions", "wait"];
        let child = Some(stage.command(&run).spawn().unwrap());
        let running = Self { stage, child };
        running.stage.model.expect_request(1);
        running
    }

    fn write(&self, name: &str, text: &str) {
        self.stage.home.write(name, text);
    }

    /// What `wharf reload` ends with, and says on stdout.
    #[track_caller]
    fn reload(&self, code: i32, told: &str, warned: &[&str]) {
        let ran = self.stage.home.run(["reload"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), told), "{ran:?}");
        for part in warned {
            assert!(ran.stderr.contains(part), "{part}: {ran:?}");
        }
        assert_eq!(ran.stderr.is_empty(), warned.is_empty(), "{ran:?}");
    }

    #[track_caller]
    fn is_ready(&self, server: &str) {
        let ran = self.stage.home.run(["status", server]);
        assert!(ran.stderr.contains("asked the running wharf") && ran.stdout.contains("✓ ready"), "{ran:?}");
    }

    /// Lets the model go on, and the run come to its end.
    fn ended(mut self) -> CommandOutput {
        self.stage.model.open_gate("gate");
        CommandOutput::from(self.child.take().unwrap().wait_with_output().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn stage() -> Stage {
    let echo = Answer::call("echo", json!({"text": "ahoy"})).held_at("gate", 0);
    Stage::with(&working(), [echo, Answer::text("Done.")])
}

#[test]
fn broken_file_preserves_servers_and_rules() {
    let config = json!({
        "mcpServers": {"demo": working()}, "permissions": [{"tool": "mcp__demo__echo", "action": "deny"}],
    });
    let running = Running::with(stage(), &config);
    running.write(CONFIG, &config.to_string()[..40]);
    // As often as somebody looks.
    for _ in 0..2 {
        running.reload(2, "no servers changed\n", &["using its last valid content"]);
    }
    let ran = running.ended();
    assert!(ran.stdout.contains("denied: rule deny"), "{ran:?}");
}

#[test]
fn unresolved_reference_preserves_an_unchanged_server() {
    let stage = stage();
    let key = stage.home.write("keys/key", "hush");
    let command = json!(["cat", key.with_file_name("{name}")]);
    let mut demo = working();
    demo["env"] = json!({"KEY": "${secret:key}"});
    let config = |servers: Value| json!({"secretCommand": command, "mcpServers": servers});
    let running = Running::with(stage, &config(json!({"demo": demo})));
    std::fs::remove_file(&key).unwrap();
    let bare = json!({"command": "x", "args": ["${NOT_THERE}"]});
    running.write(CONFIG, &config(json!({"bare": bare, "demo": demo})).to_string());
    running.reload(
        2,
        "no servers changed\n",
        &["demo: ", " (previous configuration stays active)", "bare: ", "NOT_THERE"],
    );
    running.is_ready("demo");
    // Another text is another server, which cannot be had.
    demo["args"][1] = json!("--http");
    running.write(CONFIG, &config(json!({"demo": demo})).to_string());
    running.reload(2, "removed demo\n", &["demo: "]);
}

#[test]
fn invalid_rule_rejects_the_whole_configuration() {
    let running = Running::with(stage(), &json!({"mcpServers": {"demo": working()}}));
    let rule = json!({"tool": "mcp__demo__echo", "pattern": "=x", "action": "deny"});
    let config = json!({"mcpServers": {"demo": working(), "more": working()}, "permissions": [rule]});
    running.write(CONFIG, &config.to_string());
    running.reload(2, "no servers changed\n", &["configuration not applied: "]);
    running.is_ready("demo");
}

#[test]
fn unapproved_project_server_is_reported_once() {
    let running = Running::with(stage(), &json!({"mcpServers": {"demo": working()}}));
    for arguments in ["one", "two"] {
        let docs = json!({"mcpServers": {"docs": {"command": "x", "args": [arguments]}}});
        running.write("project/.mcp.json", &docs.to_string());
        running.reload(0, "docs needs approval: wharf approve docs\n", &[]);
        running.reload(0, "no servers changed\n", &[]);
    }
    let ran = running.stage.home.run(["reload", "--json"]);
    let expected = json!({
        "schema": 1, "ok": true, "process": running.child.as_ref().unwrap().id(), "added": [], "removed": [], "changed": [],
        "unapproved": [], "problems": [], "success": true,
    });
    assert_eq!(ran.json(), expected);
}
