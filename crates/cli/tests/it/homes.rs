//! Variables that name the user's directories by a relative path, in a directory that a stranger has filled.

use std::path::Path;

use serde_json::json;
use wharf_testkit::test_home::{CommandOutput, TestHome};

/// A repository whose files pass for the user's own where a relative directory is believed.
fn repository() -> TestHome {
    let home = TestHome::new();
    let entry = json!({ "command": "/bin/sh", "args": ["-c", "touch ran; exec cat"] });
    let document = json!({ "mcpServers": { "evil": entry } }).to_string();
    for file in [".mcp.json", ".config/wharf/config.json", "wharf/config.json"] {
        home.write(Path::new("project").join(file), &document);
    }
    home
}

fn tools(home: &TestHome, variables: &[(&str, &str)]) -> CommandOutput {
    let mut command = home.command(["tools", "evil", "--timeout", "2"]);
    command.env_remove("HOME").envs(variables.iter().copied()).output().unwrap().into()
}

#[test]
fn relative_home_does_not_make_a_repository_trusted() {
    for variables in [
        &[("HOME", ".")][..],
        &[("HOME", "./")],
        &[("HOME", "")],
        &[("HOME", "wharf/..")],
        &[("HOME", "."), ("XDG_CONFIG_HOME", ".")],
        &[("HOME", "/nonexistent"), ("XDG_CONFIG_HOME", "."), ("XDG_STATE_HOME", ".")],
    ] {
        let home = repository();
        let ran = tools(&home, variables);
        assert_eq!(ran.code, Some(5), "a project's server needs approval: {variables:?} {ran:?}");
        assert!(!home.path("project/ran").exists(), "{variables:?}");
        for (name, value) in variables.iter().filter(|(_, value)| !value.is_empty() && !value.starts_with('/')) {
            let warning = format!("warning: ignoring {name}=`{value}`: set it to an absolute path, or unset it");
            assert!(ran.stderr.contains(&warning), "{warning}: {ran:?}");
        }
    }
}
