//! The tools of a server as last listed, read from the state directory without starting the server. Untrusted.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde::de::IgnoredAny;
use wharf::catalog::{cache_file_name, identity};
use wharf_spec::ServerEntry;

/// Maximum size of a cached catalog file.
const MAX_CATALOG_BYTES: u64 = 8 << 20;

/// The cached tools of one server.
#[derive(Debug, Deserialize)]
pub struct CachedCatalog {
    tools: Vec<CachedTool>,
}

/// A cached tool.
#[derive(Debug, Deserialize)]
pub struct CachedTool {
    name: String,
    #[serde(default, rename = "inputSchema")]
    schema: CachedSchema,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CachedSchema {
    properties: BTreeMap<String, IgnoredAny>,
}

impl CachedCatalog {
    /// Reads the cached catalog of a server as it is configured now.
    pub fn read_current(state: &Path, entry: &ServerEntry) -> Option<Self> {
        let identity = identity(&entry.settings.origin, &entry.spec);
        read_file(&state.join("catalogs").join(cache_file_name(&entry.name, &identity)))
    }

    /// Reads the newest cached catalog of a server with this name. For completion, which has only the name.
    pub fn read_newest(state: &Path, server: &str) -> Option<Self> {
        let is_its = |name: &OsStr| {
            let rest =
                name.to_str().and_then(|name| name.strip_prefix(server)?.strip_prefix('-')?.strip_suffix(".json"));
            // A digest follows the name. The file of a longer server name has another dash.
            rest.is_some_and(|rest| !rest.contains('-'))
        };
        let files = fs::read_dir(state.join("catalogs")).into_iter().flatten().flatten();
        let files = files.filter(|file| is_its(&file.file_name()));
        let newest = files.max_by_key(|file| file.metadata().and_then(|metadata| metadata.modified()).ok())?;
        read_file(&newest.path())
    }

    pub fn tool_names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.name.as_str())
    }

    pub fn tool(&self, name: &str) -> Option<&CachedTool> {
        self.tools.iter().find(|tool| tool.name == name)
    }
}

fn read_file(file: &Path) -> Option<CachedCatalog> {
    let is_small = fs::metadata(file).is_ok_and(|metadata| metadata.len() <= MAX_CATALOG_BYTES);
    is_small.then(|| serde_json::from_slice(&fs::read(file).ok()?).ok()).flatten()
}

impl CachedTool {
    /// Returns the names of the tool's arguments.
    pub fn argument_names(&self) -> impl Iterator<Item = &str> {
        self.schema.properties.keys().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_spec::{ServerName, ServerSettings, ServerSpec, StdioSpec};

    #[test]
    fn catalog_is_found_by_exact_server_name() {
        let folder = tempfile::tempdir().unwrap();
        let catalogs = folder.path().join("catalogs");
        fs::create_dir(&catalogs).unwrap();
        for (file, tool) in [("north-0a1b.json", "echo"), ("north-pole-0a1b.json", "drill"), ("north-0a1b.tmp", "no")] {
            let schema = r#"{"type":"object","properties":{"text":{"type":"string"},"count":true}}"#;
            let tool = format!(r#"{{"schema":1,"tools":[{{"name":"{tool}","x":1,"inputSchema":{schema}}}]}}"#);
            fs::write(catalogs.join(file), tool).unwrap();
        }
        let names = |server: &str| -> Option<Vec<String>> {
            Some(CachedCatalog::read_newest(folder.path(), server)?.tool_names().map(str::to_owned).collect())
        };
        for (server, expected) in [("north", Some("echo")), ("north-pole", Some("drill")), ("south", None)] {
            assert_eq!(names(server), expected.map(|tool| vec![tool.to_owned()]), "{server}");
        }
        let catalog = CachedCatalog::read_newest(folder.path(), "north").unwrap();
        assert!(catalog.tool("echo").unwrap().argument_names().eq(["count", "text"]));
        assert!(CachedCatalog::read_newest(Path::new("/nonexistent"), "north").is_none());
    }

    /// A server of the same name in another project, or with another program, has its own catalog.
    #[test]
    fn current_catalog_belongs_to_the_entry_as_configured() {
        let folder = tempfile::tempdir().unwrap();
        let name = ServerName::new("north").unwrap();
        let entry = |program: &str| {
            let spec = ServerSpec::Stdio(StdioSpec { program: program.into(), ..StdioSpec::default() });
            ServerEntry { name: name.clone(), spec, settings: ServerSettings::default() }
        };
        let mine = entry("mine");
        let file = cache_file_name(&name, &identity(&mine.settings.origin, &mine.spec));
        fs::create_dir(folder.path().join("catalogs")).unwrap();
        fs::write(folder.path().join("catalogs").join(file), r#"{"tools":[{"name":"echo"}]}"#).unwrap();
        assert!(CachedCatalog::read_current(folder.path(), &mine).is_some());
        assert!(CachedCatalog::read_current(folder.path(), &entry("other")).is_none());
    }
}
