//! `cargo xtask prove package`: makes the packages, runs every case of their test, and writes `evidence/packages.md`.

use std::fs;

use serde_json::Value;

use super::targets::{PackageTarget, describe_targets};
use super::{PackageOptions, write_packages};
use crate::prove::section;
use crate::run::{MachineDescription, TaskResult, cargo, root, run, say, target as target_folder};

pub fn prove_packages(words: &[&str]) -> TaskResult {
    let options = PackageOptions::parse(words)?;
    write_packages(&options)?;
    let table = target_folder().join("package-proof.json");
    // Remove an old table, so that it is not taken for a new one.
    let _ = fs::remove_file(&table);
    let mut command = cargo();
    command.args(["test", "--package", "xtask", "--test", "packages", "--", "--proof", "--packages"]);
    command.arg(&options.folder).arg("--table").arg(&table).env("WHARF_PEERS", target_folder().join("peers"));
    let outcome = run(&mut command);
    if !table.is_file() {
        outcome?;
        return Err("the test wrote no table".into());
    }
    let table: Value = serde_json::from_str(&fs::read_to_string(&table)?)?;
    fs::write(root().join("evidence/packages.md"), page(&options, &table)?)?;
    say!("wrote evidence/packages.md");
    outcome
}

fn page(options: &PackageOptions, table: &Value) -> TaskResult<String> {
    let here = MachineDescription::detect();
    let triple = options.target.map_or_else(PackageTarget::detect, Ok)?.triple;
    let binary = match &options.binary {
        Some(_) => format!("a given binary for {triple}"),
        None => format!("a static binary for {triple}, built with the profile `{}`", options.profile),
    };
    Ok(format!(
        "# Packages\n\n\
         The packages of one `wharf`, installed without a network, used and removed. Measured on {} with `cargo xtask \
         prove package`: {binary}. Linux {}, {} cores, {}.\n\n\
         A bare root has only the binary, `/proc`, `/dev/null` and a writable `/tmp`: no `/etc`, no certificates, no \
         shell. The binary is process 1 in it.\n{}\n\
         ## Targets\n\n```text\n{}```\n",
        here.date,
        here.kernel,
        here.cores,
        here.processor,
        section(table),
        describe_targets(),
    ))
}
