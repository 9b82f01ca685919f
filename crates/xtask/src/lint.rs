//! `cargo xtask lint`

use crate::run::{Outcome, cargo, run};

pub fn lint() -> Outcome {
    run(cargo().args(["fmt", "--all", "--check"]))?;
    run(cargo().args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))
}
