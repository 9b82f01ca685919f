//! A home, a project, and `wharf` run there as a person with npx and uvx on the path would run it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

pub const WHARF: &str = env!("CARGO_BIN_EXE_wharf");

pub struct Site {
    folder: tempfile::TempDir,
}

/// A command that has ended.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    /// Shown where an assertion fails.
    #[expect(dead_code, reason = "read by Debug")]
    pub stderr: String,
}

impl Site {
    /// With an empty project, and launchers that use the caches and no network.
    pub fn new() -> Self {
        let site = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir_all(site.project()).unwrap();
        for (file, installed_as) in [("home/.npmrc", "npmrc"), ("home/.config/uv/uv.toml", "uv.toml")] {
            let settings = std::fs::read_to_string(installed("launchers").join(installed_as)).unwrap();
            site.write(file, &settings);
        }
        site
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    pub fn project(&self) -> PathBuf {
        self.path("work/project")
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    pub fn write_program(&self, name: &str, text: &str) -> PathBuf {
        let path = self.write(name, text);
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        path
    }

    /// Makes these the user's own servers.
    pub fn configure(&self, servers: &Value) {
        self.write("home/.config/wharf/config.json", &json!({ "mcpServers": servers }).to_string());
    }

    /// Makes the project a repository with one file in it, changed and not committed.
    pub fn make_repository(&self) {
        self.write("work/project/README.md", "an honest project\n");
        let made = Command::new("git").args(["init", "--quiet"]).arg(self.project()).status().unwrap();
        assert!(made.success());
    }

    pub fn command(&self, words: &[String]) -> Command {
        let launchers = installed("py1/bin");
        let mut command = Command::new(WHARF);
        // Relative entries first, as an unlucky shell may have them.
        let path = format!("bin:./node_modules/.bin:{}:/usr/local/bin:/usr/bin:/bin", launchers.display());
        command.args(words).env_clear().env("PATH", path).env("HOME", self.path("home"));
        command.current_dir(self.project());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn run(&self, words: &[String]) -> Ran {
        let Output { status, stdout, stderr } = self.command(words).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ran { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
    }

    /// Approves a server as a script does that has read what would run.
    pub fn approve(&self, server: &str) {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let asked = self.run(&words(&format!("approve {server} --json")));
        let document: Value = serde_json::from_str(&asked.stdout).unwrap();
        let digest = document["items"][0]["digest"].as_str().unwrap();
        let approved = self.run(&words(&format!("approve {server} --digest {digest}")));
        assert_eq!(approved.code, Some(0), "{approved:?}");
    }
}

/// A file among what `cargo xtask peers` installs.
pub fn installed(file: &str) -> PathBuf {
    let beside = || Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("peers");
    let path = std::env::var_os("WHARF_PEERS").map_or_else(beside, PathBuf::from).join(file);
    assert!(path.exists(), "run `cargo xtask peers` first: no {}", path.display());
    path
}
