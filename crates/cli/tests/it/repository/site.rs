//! A home with npx and uvx on the path, and a project with a directory above it.

use std::ops::Deref;
use std::path::PathBuf;
use std::process::Command;

use wharf_testkit::test_home::{CommandOutput, TestHome};

use crate::support::installed;

/// A home whose commands run in `work/project`: the directory above the project is not above the home.
pub struct Site(TestHome);

impl Deref for Site {
    type Target = TestHome;

    fn deref(&self) -> &TestHome {
        &self.0
    }
}

impl Site {
    /// With an empty project, and launchers that use the caches and no network.
    pub fn new() -> Self {
        // Relative entries first, as an unlucky shell may have them.
        let path = format!("bin:./node_modules/.bin:{}:/usr/local/bin:/usr/bin:/bin", installed("py1/bin").display());
        let site = Self(TestHome::new().with_env("PATH", path));
        std::fs::create_dir_all(site.project()).unwrap();
        for (file, installed_as) in [("home/.npmrc", "npmrc"), ("home/.config/uv/uv.toml", "uv.toml")] {
            let settings = std::fs::read_to_string(installed("launchers").join(installed_as)).unwrap();
            site.write(file, &settings);
        }
        site
    }

    pub fn project(&self) -> PathBuf {
        self.path("work/project")
    }

    /// Makes the project a repository with one file in it, changed and not committed.
    pub fn make_repository(&self) {
        self.write("work/project/README.md", "an honest project\n");
        let made = Command::new("git").args(["init", "--quiet"]).arg(self.project()).status().unwrap();
        assert!(made.success());
    }

    pub fn run(&self, words: &[String]) -> CommandOutput {
        self.command(words).current_dir(self.project()).output().unwrap().into()
    }

    /// Approves a server as a script does that has read what would run.
    pub fn approve(&self, server: &str) {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let document = self.run(&words(&format!("approve {server} --json"))).json();
        let digest = document["items"][0]["digest"].as_str().unwrap();
        let approved = self.run(&words(&format!("approve {server} --digest {digest}")));
        assert_eq!(approved.code, Some(0), "{approved:?}");
    }
}
