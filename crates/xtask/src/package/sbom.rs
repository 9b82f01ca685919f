//! The software bill of materials: CycloneDX 1.5 as JSON, from the dependency graph and `Cargo.lock`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use wharf_spec::Timestamp;

use super::contents::PackageContents;
use super::dependencies::{DependencyGraph, text};
use super::sums::hex;
use crate::run::{TaskResult, capture, root};

pub fn write_sbom(contents: &PackageContents) -> TaskResult<String> {
    let checksums = checksums(&fs::read_to_string(root().join("Cargo.lock"))?);
    let digest = hex(&Sha256::digest(&contents.binary));
    let reference = format!("wharf@{}", contents.version);
    let mut components: Vec<Value> =
        contents.dependencies.third_party().map(|package| component(package, &checksums)).collect();
    components.push(standard_library()?);
    let sbom = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": serial_number(&digest),
        "version": 1,
        "metadata": {
            "timestamp": timestamp(contents.time),
            "component": {
                "type": "application",
                "bom-ref": reference,
                "name": "wharf",
                "version": contents.version,
                "licenses": [{ "expression": "MIT OR Apache-2.0" }],
                "hashes": [{ "alg": "SHA-256", "content": digest }],
                "properties": [{ "name": "target", "value": contents.target.triple }],
            },
        },
        "components": components,
        "dependencies": dependencies(&contents.dependencies, &reference),
    });
    Ok(serde_json::to_string_pretty(&sbom)? + "\n")
}

fn package_url(package: &Value) -> String {
    format!("pkg:cargo/{}@{}", text(&package["name"]), text(&package["version"]))
}

fn component(package: &Value, checksums: &BTreeMap<String, String>) -> Value {
    let url = package_url(package);
    let mut component = json!({
        "type": "library",
        "bom-ref": url,
        "name": package["name"],
        "version": package["version"],
        "purl": url,
    });
    if let Some(licence) = package["license"].as_str() {
        // The older notation `MIT/Apache-2.0` is not an SPDX expression.
        component["licenses"] = json!([{ "expression": licence.replace('/', " OR ") }]);
    }
    if let Some(checksum) = checksums.get(&url) {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    component
}

/// Returns the component for the standard library, which is linked from the toolchain.
fn standard_library() -> TaskResult<Value> {
    let version = capture(Command::new("rustc").arg("--version"))?.stdout;
    let version = version.split_whitespace().nth(1).ok_or("no version in the output of rustc --version")?;
    Ok(json!({
        "type": "library",
        "bom-ref": format!("rust-std@{version}"),
        "name": "rust-std",
        "version": version,
        "licenses": [{ "expression": "MIT OR Apache-2.0" }],
    }))
}

/// Returns which component needs which. The packages of the workspace are one component: the application.
fn dependencies(graph: &DependencyGraph, reference: &str) -> Vec<Value> {
    let references: BTreeMap<&str, String> = graph
        .packages
        .iter()
        .map(|package| {
            let is_own = package["source"].is_null();
            (text(&package["id"]), if is_own { reference.to_owned() } else { package_url(package) })
        })
        .collect();
    let mut edges: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for node in &graph.nodes {
        let Some(from) = references.get(text(&node["id"])) else { continue };
        let targets = node["dependencies"].as_array().into_iter().flatten();
        let targets = targets.filter_map(|id| references.get(text(id))).map(String::as_str).filter(|to| to != from);
        edges.entry(from).or_default().extend(targets);
    }
    edges.into_iter().map(|(from, to)| json!({ "ref": from, "dependsOn": to })).collect()
}

/// Reads the checksums of `Cargo.lock`, by package URL.
fn checksums(lock: &str) -> BTreeMap<String, String> {
    let mut checksums = BTreeMap::new();
    for entry in lock.split("[[package]]") {
        let field = |name: &str| {
            let start = format!("{name} = \"");
            entry.lines().find_map(|line| line.strip_prefix(&start)?.strip_suffix('"'))
        };
        if let (Some(name), Some(version), Some(checksum)) = (field("name"), field("version"), field("checksum")) {
            checksums.insert(format!("pkg:cargo/{name}@{version}"), checksum.to_owned());
        }
    }
    checksums
}

/// Derives a UUID of version 8 from the digest of the binary, so that equal binaries have equal documents.
fn serial_number(digest: &str) -> String {
    let part = |from: usize, to: usize| &digest[from..to];
    format!("urn:uuid:{}-{}-8{}-8{}-{}", part(0, 8), part(8, 12), part(13, 16), part(17, 20), part(20, 32))
}

fn timestamp(seconds: u64) -> String {
    format!("{:.0}", Timestamp(UNIX_EPOCH + Duration::from_secs(seconds)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_file_gives_checksums() {
        let lock = "[[package]]\nname = \"own\"\nversion = \"1.0.0\"\n\n[[package]]\nname = \"a\"\nversion = \
                    \"0.2.0\"\nsource = \"x\"\nchecksum = \"00ff\"\n";
        let expected = BTreeMap::from([("pkg:cargo/a@0.2.0".to_owned(), "00ff".to_owned())]);
        assert_eq!(checksums(lock), expected);
    }

    #[test]
    fn workspace_packages_are_one_component() {
        let graph = DependencyGraph {
            packages: vec![
                json!({ "id": "cli", "name": "wharf-cli", "version": "1.0.0", "source": null }),
                json!({ "id": "net", "name": "wharf-net", "version": "1.0.0", "source": null }),
                json!({ "id": "a", "name": "a", "version": "0.2.0", "source": "registry" }),
            ],
            nodes: vec![
                json!({ "id": "cli", "dependencies": ["net"] }),
                json!({ "id": "net", "dependencies": ["a", "build-only"] }),
                json!({ "id": "a", "dependencies": [] }),
                json!({ "id": "unused", "dependencies": ["a"] }),
            ],
        };
        let expected = json!([
            { "ref": "pkg:cargo/a@0.2.0", "dependsOn": [] },
            { "ref": "wharf@1.0.0", "dependsOn": ["pkg:cargo/a@0.2.0"] },
        ]);
        assert_eq!(json!(dependencies(&graph, "wharf@1.0.0")), expected);
    }

    #[test]
    fn serial_number_is_a_uuid() {
        let digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
        assert_eq!(serial_number(digest), "urn:uuid:01234567-89ab-8def-8123-456789abcdef");
        assert_eq!(timestamp(1_794_871_252), "2026-11-16T23:20:52Z");
    }
}
