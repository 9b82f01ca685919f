//! A home and a project to lay files in.

use std::path::{Path, PathBuf};

use wharf_config::{Config, ConfigPaths, ConfigProblem, ResolveContext, load};
use wharf_spec::{Environment, ServerEntry};

pub struct World {
    directory: tempfile::TempDir,
    pub places: ConfigPaths,
    pub around: Environment,
}

impl World {
    pub fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        for name in ["home", "project", "state"] {
            std::fs::create_dir(root.join(name)).unwrap();
        }
        let places = ConfigPaths {
            home: Some(root.join("home/.mcp.json")),
            user: root.join("home/config.json"),
            project: root.join("project"),
            approvals: root.join("state/approvals.json"),
            server_dirs: root.join("state/servers"),
            ..ConfigPaths::default()
        };
        let around = Environment { env: vec![("PATH".into(), "/usr/bin:/bin".into())], cwd: root.join("project") };
        Self { directory, places, around }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    pub fn set(&mut self, name: &str, value: &str) {
        self.around.env.push((name.into(), value.into()));
    }

    pub fn load(&self) -> Config {
        load(&self.places, &self.around)
    }

    /// The server, expanded.
    pub fn resolve(&self, name: &str) -> Result<ServerEntry, Vec<ConfigProblem>> {
        let config = self.load();
        let secrets = |name: &str| Err(format!("nobody keeps {name}"));
        let with = ResolveContext {
            around: &self.around,
            settings: &config.settings,
            secrets: &secrets,
            places: &self.places,
        };
        config.server(name).unwrap_or_else(|| panic!("no {name}: {:?}", config.problems)).resolve(&with)
    }
}

/// What is wrong, in short: `code line:column [server]`.
pub fn told(problems: &[ConfigProblem]) -> Vec<String> {
    problems
        .iter()
        .map(|problem| {
            let at = problem.place.as_ref().map(|place| place.at.to_string()).unwrap_or_default();
            let server = problem.server.as_ref().map(|server| format!(" {server}")).unwrap_or_default();
            format!("{} {at}{server}", problem.code)
        })
        .collect()
}

pub fn file_name(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}
