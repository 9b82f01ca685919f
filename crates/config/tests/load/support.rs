//! A home and a project to lay files in.

use std::ops::Deref;
use std::path::Path;

use wharf_config::{Config, ConfigPaths, ConfigProblem, ResolveContext, load};
use wharf_spec::{Environment, ServerEntry};
use wharf_testkit::test_home::TestHome;

/// A home and the paths and environment to load its configuration with.
pub struct ConfigHome {
    home: TestHome,
    pub places: ConfigPaths,
    pub around: Environment,
}

impl Deref for ConfigHome {
    type Target = TestHome;

    fn deref(&self) -> &TestHome {
        &self.home
    }
}

impl ConfigHome {
    pub fn new() -> Self {
        let home = TestHome::new();
        std::fs::create_dir(home.path("state")).unwrap();
        let places = ConfigPaths {
            home: Some(home.path("home/.mcp.json")),
            user: home.path("home/config.json"),
            project: home.path("project"),
            approvals: home.path("state/approvals.json"),
            server_dirs: home.path("state/servers"),
            ..ConfigPaths::default()
        };
        let around = Environment { env: vec![("PATH".into(), "/usr/bin:/bin".into())], cwd: home.path("project") };
        Self { home, places, around }
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
