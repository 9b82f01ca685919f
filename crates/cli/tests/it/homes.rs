//! Variables that name the user's directories by a relative path, in a directory that a stranger has filled.

use std::fs;

use serde_json::json;
use tempfile::TempDir;

use crate::support::{Ran, finished, wharf};

/// A repository whose files pass for the user's own where a relative directory is believed.
fn repository() -> TempDir {
    let repository = TempDir::new().unwrap();
    let entry = json!({ "command": "/bin/sh", "args": ["-c", "touch ran; exec cat"] });
    let document = json!({ "mcpServers": { "evil": entry } }).to_string();
    for file in [".mcp.json", ".config/wharf/config.json", "wharf/config.json"] {
        let file = repository.path().join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, &document).unwrap();
    }
    repository
}

fn tools(repository: &TempDir, variables: &[(&str, &str)]) -> Ran {
    let mut command = wharf(["tools", "evil", "--timeout", "2"]);
    command.current_dir(repository.path()).env_remove("HOME").envs(variables.iter().copied());
    finished(command.output().unwrap())
}

#[test]
fn a_relative_directory_does_not_make_a_repository_the_users_own() {
    for variables in [
        &[("HOME", ".")][..],
        &[("HOME", "./")],
        &[("HOME", "")],
        &[("HOME", "wharf/..")],
        &[("HOME", "."), ("XDG_CONFIG_HOME", ".")],
        &[("HOME", "/nonexistent"), ("XDG_CONFIG_HOME", "."), ("XDG_STATE_HOME", ".")],
    ] {
        let repository = repository();
        let ran = tools(&repository, variables);
        assert_eq!(ran.code, Some(5), "a project's server needs approval: {variables:?} {ran:?}");
        assert!(!repository.path().join("ran").exists(), "{variables:?}");
        for (name, value) in variables.iter().filter(|(_, value)| !value.is_empty() && !value.starts_with('/')) {
            let warning = format!("warning: ignoring {name}=`{value}`: set it to an absolute path, or unset it");
            assert!(ran.stderr.contains(&warning), "{warning}: {ran:?}");
        }
    }
}
