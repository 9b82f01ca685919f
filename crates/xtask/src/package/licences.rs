//! The licences of the dependencies, which every package includes.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::dependencies::{DependencyGraph, text};
use crate::run::TaskResult;

/// Returns the licences of all dependencies of the binary, with their texts where the packages include them.
pub fn collect_licences(dependencies: &DependencyGraph) -> TaskResult<String> {
    let licences: Vec<String> = dependencies.third_party().map(licence).collect();
    if licences.is_empty() { Err("no dependencies found".into()) } else { Ok(licences.join("\n")) }
}

fn licence(package: &Value) -> String {
    let (name, version) = (text(&package["name"]), text(&package["version"]));
    let mut section = format!("==== {name} {version}: {}\n", text(&package["license"]));
    let folder = Path::new(text(&package["manifest_path"])).parent().map(fs::read_dir);
    let mut files: Vec<PathBuf> = folder
        .into_iter()
        .flatten()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| is_licence(path))
        .collect();
    files.sort();
    for file in files {
        let text = fs::read_to_string(&file).unwrap_or_default();
        let name = file.file_name().unwrap_or_default().display();
        let _ = write!(section, "\n---- {name}\n\n{}\n", text.trim_end());
    }
    section
}

fn is_licence(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
    path.is_file() && ["LICENSE", "LICENCE", "COPYING", "NOTICE"].iter().any(|word| name.starts_with(word))
}
