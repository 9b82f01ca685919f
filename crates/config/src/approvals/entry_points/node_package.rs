//! The members of a `package.json` that select files to run.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use serde_json::Value;

use super::command_words::command_of_package;

/// Maximum bytes of a `package.json` that is read.
const MAX_PACKAGE_JSON_BYTES: u64 = 1 << 20;
/// Maximum number of commands of a package.
const MAX_COMMANDS: usize = 64;

/// A package of Node, as described by its `package.json`. Members of another type than expected are empty.
pub(super) struct NodePackage {
    name: String,
    /// Entry point of the directory.
    pub main: String,
    /// Commands and their files, from `bin`.
    pub commands: Vec<(String, String)>,
    /// Scripts of `npm run`, by name.
    pub scripts: BTreeMap<String, String>,
}

impl NodePackage {
    /// Reads a regular file. Returns `None` if it is too large or not JSON. Blocks.
    pub(super) fn read(file: &Path) -> Option<Self> {
        // Opening a pipe would block until there is a writer.
        if !file.is_file() {
            return None;
        }
        let mut text = Vec::new();
        File::open(file).ok()?.take(MAX_PACKAGE_JSON_BYTES).read_to_end(&mut text).ok()?;
        // npm ignores a byte order mark.
        let package: Value = serde_json::from_slice(text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text)).ok()?;
        let member = |key: &str| package.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let scripts = package.get("scripts").and_then(Value::as_object).into_iter().flatten();
        let name = member("name");
        Some(Self {
            main: member("main"),
            commands: read_commands(&package, &name),
            scripts: scripts.filter_map(|(key, script)| Some((key.clone(), script.as_str()?.to_owned()))).collect(),
            name,
        })
    }

    /// Reports whether `npx` runs this package for a package name: its own, or that of one of its commands.
    pub(super) fn provides(&self, package: &str) -> bool {
        let command = command_of_package(package);
        self.name == package || self.commands.iter().any(|(known, _)| known == command)
    }
}

/// Returns the commands of `bin`: a file named after the package, or several by name.
fn read_commands(package: &Value, name: &str) -> Vec<(String, String)> {
    let without_scope = |key: &str| key.rsplit('/').next().unwrap_or(key).to_owned();
    match package.get("bin") {
        Some(Value::String(file)) => vec![(without_scope(name), file.clone())],
        Some(Value::Object(files)) => {
            let named = files.iter().filter_map(|(key, file)| Some((without_scope(key), file.as_str()?.to_owned())));
            named.take(MAX_COMMANDS).collect()
        }
        _ => Vec::new(),
    }
}
