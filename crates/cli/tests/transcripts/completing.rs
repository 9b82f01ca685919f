//! The script for bash asks a program for names, and offers them without ever running them.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::place::WHARF;

/// What bash does when somebody presses the key, and what it would then offer.
const PRESS: &str = r#"
source ./wharf.bash
COMP_WORDS=(./names "$@"); COMP_CWORD=$#
_wharf_named ./names "${!#}" "${COMP_WORDS[COMP_CWORD-1]}"
printf '%s\n' "${COMPREPLY[@]}"
"#;

/// A program that has names for `call` alone, and notes what it was asked.
const NAMES: &str = r#"#!/bin/sh
printf '%s ' "$@" > asked
case "$*" in *" call"*) printf '%s\n' north northeast south '$(touch harm)' ;; esac
"#;

#[test]
fn bash_offers_names_and_runs_none() {
    let folder = tempfile::tempdir().unwrap();
    let script = Command::new(WHARF).args(["completions", "bash"]).env_clear().output().unwrap();
    fs::write(folder.path().join("wharf.bash"), script.stdout).unwrap();
    fs::write(folder.path().join("names"), NAMES).unwrap();
    fs::set_permissions(folder.path().join("names"), Permissions::from_mode(0o755)).unwrap();
    let press = |words: &[&str]| {
        let mut bash = Command::new("bash");
        bash.args(["--norc", "-c", PRESS, "bash"]).args(words).current_dir(folder.path());
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
    assert!(!folder.path().join("harm").exists());
}
