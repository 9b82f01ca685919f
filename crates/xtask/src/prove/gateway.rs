//! `cargo xtask prove gateway`: whole gateways with many clients and servers, and clients of other makers. Writes
//! `evidence/gateway.md`.

use std::fs;

use serde_json::Value;

use crate::peers;
use crate::run::{MachineDescription, TaskResult, cargo, parse_number, root, run, say, target};

/// What is run.
struct GatewayProof {
    profile: String,
    /// Set if `wharf` is built already.
    is_built: bool,
    /// Number of kills, instead of the usual one.
    runs: Option<usize>,
    /// Filter of the cases.
    case: Option<String>,
    command: String,
}

pub fn gateway(words: &[&str]) -> TaskResult {
    let proof = GatewayProof::parse(words)?;
    let home = peers::install()?;
    peers::install_command_lines()?;
    peers::install_agents()?;
    let packages = ["--package", "wharf-cli", "--package", "wharf-peers"];
    if !proof.is_built {
        let build = ["build", "--profile", &proof.profile];
        run(cargo().args(build).args(packages).args(["--bin", "wharf", "--bin", "bench-gateway"]))?;
    }
    let table = target().join("reliability-gateway.json");
    let _ = fs::remove_file(&table);
    let mut command = cargo();
    command.args(["test", "--profile", &proof.profile]);
    // What is built already may be so without the other package.
    command.args(if proof.is_built { &packages[2..] } else { &packages }).args(["--test", "gateway", "--"]);
    command.args(&proof.case).args(["--full", "--table"]).arg(&table);
    if let Some(runs) = proof.runs {
        command.args(["--runs", &runs.to_string()]);
    }
    let outcome = run(command.env("WHARF_PEERS", home));
    if !table.is_file() {
        outcome?;
        return Err("the test wrote no table".into());
    }
    let found: Value = serde_json::from_str(&fs::read_to_string(&table)?)?;
    if proof.case.is_none() {
        fs::write(root().join("evidence/gateway.md"), proof.page(&found))?;
        say!("wrote evidence/gateway.md");
    }
    outcome
}

impl GatewayProof {
    fn parse(words: &[&str]) -> TaskResult<Self> {
        let command = [&["cargo", "xtask", "prove", "gateway"], words].concat().join(" ");
        let mut proof = Self { profile: "dist".to_owned(), is_built: false, runs: None, case: None, command };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--runs" => proof.runs = Some(parse_number("--runs", words.next())?),
                "--profile" => proof.profile = words.next().ok_or("--profile NAME")?.to_string(),
                "--built" => proof.is_built = true,
                flag if flag.starts_with('-') => return Err(format!("prove gateway: unknown argument {flag}").into()),
                case => proof.case = Some(case.to_owned()),
            }
        }
        Ok(proof)
    }

    fn page(&self, table: &Value) -> String {
        let here = MachineDescription::detect();
        format!(
            "# The gateway under load\n\n\
             Measured on {}, Linux {}, {} cores, profile `{}`, with `{}`.\n{}",
            here.date,
            here.kernel,
            here.cores,
            self.profile,
            self.command,
            super::section(table),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_parsed() {
        let proof = GatewayProof::parse(&["killed", "--runs", "3"]).unwrap();
        assert_eq!((proof.case.as_deref(), proof.runs, proof.profile.as_str()), (Some("killed"), Some(3), "dist"));
        assert!(GatewayProof::parse(&["--fast"]).is_err());
    }
}
