//! `cargo xtask audit`: checks licences, sources and advisories of the dependencies against `deny.toml`.

use std::path::PathBuf;
use std::process::Command;

use crate::run::{TaskResult, capture, cargo, on_path, root, run, say, target};

const VERSION: &str = "0.20.2";

pub fn audit() -> TaskResult {
    let program = cargo_deny()?;
    let deny = || {
        let mut command = Command::new(&program);
        command.current_dir(root());
        command
    };
    let quiet = ["check", "--hide-inclusion-graph"];
    run(deny().args(quiet).args(["licenses", "bans", "sources"]))?;
    match capture(deny().args(["fetch", "db"])) {
        Ok(_) => run(deny().args(quiet).arg("advisories")),
        Err(failure) => {
            say!("advisories SKIPPED: the database could not be fetched\n{failure}");
            Ok(())
        }
    }
}

/// Returns the `cargo-deny` on the search path, or installs a private copy if it is missing.
fn cargo_deny() -> TaskResult<PathBuf> {
    if on_path("cargo-deny") {
        return Ok("cargo-deny".into());
    }
    let tools = target().join("tools");
    let program = tools.join("bin/cargo-deny");
    if !program.is_file() {
        say!("installing cargo-deny {VERSION}(takes a few minutes)");
        let what = ["install", "--locked", "cargo-deny", "--version", VERSION, "--root"];
        run(cargo().args(what).arg(&tools))?;
    }
    Ok(program)
}
