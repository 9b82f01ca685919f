//! A home of the test's own, `wharf` run in it, and a browser that it opens.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::desk::peers;

pub struct Harbour {
    directory: tempfile::TempDir,
    secrets: RefCell<BTreeSet<String>>,
    told: RefCell<String>,
}

#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Harbour {
    /// With one server in the user's configuration.
    pub fn with_server(url: &str) -> Self {
        let harbour =
            Self { directory: tempfile::tempdir().unwrap(), secrets: RefCell::default(), told: RefCell::default() };
        for folder in ["home/.config/wharf", "project", "bin", "state"] {
            std::fs::create_dir_all(harbour.path(folder)).unwrap();
        }
        let config = serde_json::json!({"mcp": {"servers": {"guarded": {"url": url}}}});
        std::fs::write(harbour.path("home/.config/wharf/config.json"), config.to_string()).unwrap();
        harbour.put_browser();
        harbour
    }

    /// What `wharf` opens addresses with: Chromium, from the packages, unpacked beside them.
    fn put_browser(&self) {
        let (peers, opener) = (peers(), self.path("bin/xdg-open"));
        std::fs::create_dir_all(peers.join("tmp")).unwrap();
        let script = format!(
            "#!/bin/sh\nTMPDIR='{tmp}' exec node '{script}' \"$1\" >'{log}' 2>&1\n",
            tmp = peers.join("tmp").display(),
            script = peers.join("clients/browser.mjs").display(),
            log = self.path("browser.log").display(),
        );
        std::fs::write(&opener, script).unwrap();
        std::fs::set_permissions(&opener, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(name)
    }

    /// Runs the words of a line, without any quoting.
    pub fn run(&self, line: &str) -> Ran {
        let path = format!("{}:{}", self.path("bin").display(), std::env::var("PATH").unwrap());
        let output = Command::new(env!("CARGO_BIN_EXE_wharf"))
            .args(line.split_whitespace())
            .env_clear()
            .envs([("PATH", path), ("HOME", self.path("home").display().to_string())])
            .current_dir(self.path("project"))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let ran = Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) };
        self.told.borrow_mut().push_str(&format!("{}{}", ran.stdout, ran.stderr));
        ran
    }

    /// Notes the tokens that are kept now, in a file that nobody else can read.
    pub fn learns_secrets(&self) {
        let file = self.path("home/.config/wharf/mcp-auth.json");
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let kept: serde_json::Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        let before = self.secrets.borrow().len();
        collect(&kept, &mut self.secrets.borrow_mut());
        assert!(self.secrets.borrow().len() > before, "there are new tokens: {kept}");
    }

    /// Neither on a screen nor in anything that was written down, but for the file they are kept in.
    pub fn has_told_no_secret(&self) {
        let mut told = self.told.borrow().clone();
        let mut folders = vec![self.directory.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
                match entry.file_type().unwrap() {
                    kind if kind.is_dir() => folders.push(entry.path()),
                    _ => told.push_str(&String::from_utf8_lossy(&std::fs::read(entry.path()).unwrap())),
                }
            }
        }
        for secret in self.secrets.borrow().iter() {
            assert!(!told.contains(secret.as_str()), "a token was told");
        }
    }
}

/// Every token in a document.
fn collect(value: &serde_json::Value, found: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::Object(members) => {
            for (name, value) in members {
                match value.as_str() {
                    Some(token) if name.ends_with("_token") => drop(found.insert(token.to_owned())),
                    _ => collect(value, found),
                }
            }
        }
        serde_json::Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        _ => {}
    }
}
