//! Builds the programs of the forms, if anything has changed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// The built programs.
pub struct FormPrograms(Vec<(String, PathBuf)>);

impl FormPrograms {
    pub fn path(&self, name: &str) -> Result<&Path, String> {
        let found = self.0.iter().find(|(built, _)| built == name);
        found.map(|(_, path)| path.as_path()).ok_or_else(|| format!("cargo built no `{name}`"))
    }
}

pub fn build_forms() -> Result<FormPrograms, String> {
    let examples = ["multi_thread", "current_thread", "plain_main"];
    let mut programs = run_cargo(&["build"], &examples.map(|name| format!("--example=embedding_{name}")))?;
    programs.extend(run_cargo(&["test", "--no-run"], &["--test=embedding_in_tests".to_owned()])?);
    Ok(FormPrograms(programs))
}

/// Returns the executables that cargo reports, by the name of their target.
fn run_cargo(command: &[&str], targets: &[String]) -> Result<Vec<(String, PathBuf)>, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let profile = own.parent().and_then(Path::parent).ok_or("no target directory")?;
    let mut cargo = Command::new(env!("CARGO"));
    // With the features of the whole workspace, as the test command has built them.
    cargo.args(command).args(["--quiet", "--workspace", "--message-format=json"]).args(targets);
    cargo.env("CARGO_TARGET_DIR", profile.parent().ok_or("no target directory")?);
    if profile.ends_with("release") {
        cargo.arg("--release");
    }
    let built = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).stderr(Stdio::inherit()).output();
    let built = built.map_err(|error| format!("cargo: {error}"))?;
    if !built.status.success() {
        return Err("the forms do not build".to_owned());
    }
    let messages = built.stdout.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
    Ok(messages.filter_map(|message: Value| executable(&message)).collect())
}

fn executable(message: &Value) -> Option<(String, PathBuf)> {
    let path = message["executable"].as_str()?.into();
    Some((message["target"]["name"].as_str()?.to_owned(), path))
}
