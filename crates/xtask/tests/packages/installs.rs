//! The archive, the Debian package, and the files about all packages.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use wharf_testkit::test_home::TestHome;

use crate::commands::{check_files, check_unchanged, check_wharf, entries, expect, find_program, run};
use crate::fixture::Packages;
use crate::{CaseOutcome, CaseResult};

const ARCHIVE_FILES: [&str; 10] = [
    "completions/wharf.bash",
    "completions/_wharf",
    "completions/wharf.fish",
    "man/man1/wharf.1",
    "man/man1/wharf-call.1",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "LICENSES-OF-OTHERS",
    "README.md",
    "install.sh",
];

const DEB_FILES: [&str; 6] = [
    "usr/share/bash-completion/completions/wharf",
    "usr/share/zsh/vendor-completions/_wharf",
    "usr/share/fish/vendor_completions.d/wharf.fish",
    "usr/share/man/man1/wharf.1.gz",
    "usr/share/doc/wharf-mcp/copyright",
    "usr/share/doc/wharf-mcp/changelog.gz",
];

pub fn archive(packages: &Packages) -> CaseResult {
    let home = TestHome::new();
    let folder = packages.unpack(home.root())?;
    check_wharf(&home, &folder.join("wharf"), &packages.version)?;
    check_files(&folder, &ARCHIVE_FILES)?;
    CaseOutcome::passed("")
}

/// Installs into a root directory of its own, with an empty package database.
pub fn deb(packages: &Packages) -> CaseResult {
    if find_program("dpkg").is_none() {
        return Ok(CaseOutcome::NotRun("dpkg is not installed".to_owned()));
    }
    let home = TestHome::new();
    let root = home.path("root");
    for folder in ["info", "updates", "triggers"] {
        fs::create_dir_all(root.join("var/lib/dpkg").join(folder)).unwrap();
    }
    fs::write(root.join("var/lib/dpkg/status"), "").unwrap();
    let before = without_database(&root);
    // The C library of a dynamic test binary is not in the empty database.
    run(dpkg(&home, &root).args(["--force-depends", "--install"]).arg(packages.find(".deb")?))?;
    check_wharf(&home, &root.join("usr/bin/wharf"), &packages.version)?;
    check_files(&root, &DEB_FILES)?;
    run(dpkg(&home, &root).args(["--purge", "wharf-mcp"]))?;
    check_unchanged(&before, &without_database(&root))?;
    CaseOutcome::passed("")
}

fn dpkg(home: &TestHome, root: &Path) -> Command {
    let is_root = run(Command::new("id").arg("-u")).is_ok_and(|id| id == "0");
    let mut command = Command::new(if is_root { "dpkg" } else { "unshare" });
    if !is_root {
        command.args(["--map-root-user", "dpkg"]);
    }
    command.arg(format!("--root={}", root.display())).arg(format!("--log={}", home.path("dpkg.log").display()));
    command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    command
}

fn without_database(root: &Path) -> BTreeSet<std::path::PathBuf> {
    entries(root).into_iter().filter(|path| !path.starts_with("var/lib/dpkg")).collect()
}

pub fn sums_and_sbom(packages: &Packages) -> CaseResult {
    let sums = fs::read_to_string(packages.folder.join("SHA256SUMS")).map_err(|error| error.to_string())?;
    let others = entries(&packages.folder).len() - 1;
    expect(sums.lines().count() == others, || format!("SHA256SUMS has not {others} lines"))?;
    run(Command::new("sha256sum").args(["--check", "--strict", "SHA256SUMS"]).current_dir(&packages.folder))?;
    let text = fs::read_to_string(packages.find(".cdx.json")?).map_err(|error| error.to_string())?;
    let sbom: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let components = sbom["components"].as_array().ok_or("the SBOM has no components")?;
    let references: BTreeSet<&str> = components.iter().filter_map(|component| component["bom-ref"].as_str()).collect();
    expect(references.len() == components.len() && references.len() > 50, || "components are not distinct".to_owned())?;
    for component in components {
        expect(component["licenses"].is_array(), || format!("{} has no licence", component["name"]))?;
    }
    for edge in sbom["dependencies"].as_array().ok_or("the SBOM has no dependencies")? {
        let targets = edge["dependsOn"].as_array().ok_or("dependsOn is missing")?;
        for target in targets.iter().filter_map(Value::as_str) {
            expect(references.contains(target), || format!("{target} is not a component"))?;
        }
    }
    CaseOutcome::passed(format!("{} components", components.len()))
}
