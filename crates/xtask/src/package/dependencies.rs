//! The packages that are linked into the binary, from `cargo metadata` and `cargo tree`.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::run::{TaskResult, capture, cargo};

/// The packages of the binary, its own included.
pub struct DependencyGraph {
    /// Descriptions from `cargo metadata`, sorted by name and version.
    pub packages: Vec<Value>,
    /// Resolved dependencies of each package, with those of other workspace members.
    pub nodes: Vec<Value>,
}

impl DependencyGraph {
    /// Asks cargo. `cargo metadata` also lists the packages of other workspace members; `cargo tree` knows which ones
    /// the binary uses.
    pub fn load(platform: &str) -> TaskResult<Self> {
        let filter = ["metadata", "--format-version", "1", "--locked", "--filter-platform", platform];
        let mut metadata: Value = serde_json::from_str(&capture(cargo().args(filter))?.stdout)?;
        let tree = ["tree", "--locked", "--package", "wharf-cli", "--edges", "normal", "--target", platform];
        let tree = capture(cargo().args(tree).args(["--prefix", "none", "--format", "{p}"]))?.stdout;
        let used: BTreeSet<&str> = tree.lines().map(|line| line.split(" (").next().unwrap_or(line)).collect();
        let name = |package: &Value| format!("{} v{}", text(&package["name"]), text(&package["version"]));
        let mut packages = take_array(&mut metadata["packages"])?;
        packages.retain(|package| used.contains(&*name(package)));
        packages.sort_by_cached_key(name);
        Ok(Self { packages, nodes: take_array(&mut metadata["resolve"]["nodes"])? })
    }

    /// Returns the packages that are not part of the workspace.
    pub fn third_party(&self) -> impl Iterator<Item = &Value> {
        self.packages.iter().filter(|package| !package["source"].is_null())
    }
}

fn take_array(value: &mut Value) -> TaskResult<Vec<Value>> {
    value.as_array_mut().map(std::mem::take).ok_or_else(|| "cargo metadata has another format".into())
}

pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
