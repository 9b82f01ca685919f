//! A home with one protected server, and a browser that `wharf` opens.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;
use wharf_testkit::test_home::{CommandOutput, TestHome};

use crate::support::installed;

/// A home that notes the stored tokens and everything `wharf` prints.
pub struct LoginHome {
    home: TestHome,
    secrets: RefCell<BTreeSet<String>>,
    told: RefCell<String>,
}

impl LoginHome {
    /// With one server in the user's configuration.
    pub fn with_server(url: &str) -> Self {
        let home = TestHome::with_servers(&json!({"guarded": {"url": url}}));
        write_browser(&home);
        let path = format!("{}:{}", home.path("bin").display(), std::env::var("PATH").unwrap());
        Self { home: home.with_env("PATH", path), secrets: RefCell::default(), told: RefCell::default() }
    }

    /// Runs the words of a line, without any quoting.
    pub fn run(&self, line: &str) -> CommandOutput {
        let ran = self.home.run_line(line);
        self.told.borrow_mut().push_str(&format!("{}{}", ran.stdout, ran.stderr));
        ran
    }

    /// Notes the tokens that are kept now, in a file that nobody else can read.
    pub fn learns_secrets(&self) {
        let file = self.home.path("home/.config/wharf/mcp-auth.json");
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let kept: serde_json::Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        let before = self.secrets.borrow().len();
        collect(&kept, &mut self.secrets.borrow_mut());
        assert!(self.secrets.borrow().len() > before, "there are new tokens: {kept}");
    }

    /// Neither on a screen nor in anything that was written down, but for the file they are kept in.
    pub fn has_told_no_secret(&self) {
        let mut told = self.told.borrow().clone();
        let mut folders = vec![self.home.root().to_owned()];
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

/// What `wharf` opens addresses with: Chromium, from the packages, unpacked beside them.
fn write_browser(home: &TestHome) {
    let peers = installed("").canonicalize().unwrap();
    std::fs::create_dir_all(peers.join("tmp")).unwrap();
    let script = format!(
        "#!/bin/sh\nTMPDIR='{tmp}' exec node '{script}' \"$1\" >'{log}' 2>&1\n",
        tmp = peers.join("tmp").display(),
        script = peers.join("clients/browser.mjs").display(),
        log = home.path("browser.log").display(),
    );
    home.write_program("bin/xdg-open", &script);
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
