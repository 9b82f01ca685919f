//! `cargo xtask lint`

use crate::run::{TaskResult, cargo, root, run};
use crate::{api, voice};

pub fn lint() -> TaskResult {
    run(cargo().args(["fmt", "--all", "--check"]))?;
    run(cargo().args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    check_api()?;
    voice::check(&root())
}

/// Builds the documentation, and compares the public API in it with the recorded one.
pub fn check_api() -> TaskResult {
    document()?;
    api::check()
}

/// Builds the documentation of every library with warnings denied. The programs are not documented: the page of the
/// binary `wharf` would overwrite that of the library of the same name.
fn document() -> TaskResult {
    run(cargo().args(["doc", "--workspace", "--lib", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_path_in_architecture_names_existing_files() {
        let page = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
        let (_, after) = page.split_once("## The way of a call").unwrap();
        let (list, _) = after.split_once("## ").unwrap();
        let steps: Vec<&str> = list.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).collect();
        assert!((8..=12).contains(&steps.len()), "{} steps", steps.len());
        for step in steps {
            let file = step.split('`').nth(1).unwrap();
            assert!(file.starts_with("crates/") && root().join(file).is_file(), "{file} is gone");
        }
    }
}
