//! The script for bash asks a program for names, and offers them without ever running them.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::place::WHARF;

/// What bash does when somebody presses the key, and what it would then offer.
const PRESS: &str = r#"
source ./wharf.bash
COMP_WORDS=(./wharf "$@"); COMP_CWORD=$#
_wharf_named ./wharf "${!#}" "${COMP_WORDS[COMP_CWORD-1]}"
printf '%s\n' "${COMPREPLY[@]}"
"#;

/// A program that has names for `call` alone, and notes what it was asked.
const NAMES: &str = r#"#!/bin/sh
printf '%s ' "$@" > asked
case "$*" in *" call"*) printf '%s\n' north northeast south '$(touch harm)' ;; esac
"#;

#[test]
fn bash_completes_names_without_running_them() {
    let folder = tempfile::tempdir().unwrap();
    let script = Command::new(WHARF).args(["completions", "bash"]).env_clear().output().unwrap();
    fs::write(folder.path().join("wharf.bash"), script.stdout).unwrap();
    fs::create_dir(folder.path().join("bin")).unwrap();
    for (file, text) in [("bin/wharf", NAMES), ("wharf", "#!/bin/sh\ntouch harm\n")] {
        fs::write(folder.path().join(file), text).unwrap();
        fs::set_permissions(folder.path().join(file), Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:{}", folder.path().join("bin").display(), std::env::var("PATH").unwrap());
    let press = |words: &[&str]| {
        let mut bash = Command::new("bash");
        bash.args(["--norc", "-c", PRESS, "bash"]).args(words).current_dir(folder.path()).env("PATH", &path);
        String::from_utf8(bash.output().unwrap().stdout).unwrap()
    };
    for (words, offered, asked) in [
        (&["call", "nor"][..], "north\nnortheast\n", "complete-names -- call "),
        (&["--color", "never", "call", "s"], "south\n", "complete-names -- --color never call "),
        (&["call", "$("], "$(touch harm)\n", "complete-names -- call "),
        (&["comple"], "completions\n", "complete-names -- "),
    ] {
        assert_eq!(press(words), offered, "{words:?}");
        assert_eq!(fs::read_to_string(folder.path().join("asked")).unwrap(), asked);
    }
    // Nor is the file that is typed, or one in a relative directory of PATH.
    let output = {
        let mut bash = Command::new("bash");
        bash.args(["--norc", "-c", PRESS, "bash", "call", "nor"])
            .current_dir(folder.path())
            .env("PATH", ".:/usr/bin:/bin");
        bash.output().unwrap()
    };
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), "");
    assert!(!folder.path().join("harm").exists());
}
