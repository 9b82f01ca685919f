//! `cargo xtask lint`

use crate::run::{TaskResult, cargo, run};

pub fn lint() -> TaskResult {
    run(cargo().args(["fmt", "--all", "--check"]))?;
    run(cargo().args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))
}
