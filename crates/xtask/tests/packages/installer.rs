//! `install.sh`.

use std::fs;
use std::path::Path;
use std::process::Command;

use wharf_testkit::test_home::TestHome;

use crate::commands::{check_files, check_unchanged, check_wharf, command_in, entries, expect, run};
use crate::fixture::Packages;
use crate::{CaseOutcome, CaseResult};

const FILES: [&str; 6] = [
    "share/bash-completion/completions/wharf",
    "share/zsh/site-functions/_wharf",
    "share/fish/vendor_completions.d/wharf.fish",
    "share/man/man1/wharf.1",
    "share/doc/wharf/LICENSE-MIT",
    "share/wharf/install.sh",
];

fn script(home: &TestHome, folder: &Path) -> Command {
    let mut command = command_in(home, "/bin/sh");
    command.arg(folder.join("install.sh"));
    command
}

/// Installs twice into the default prefix, and from a `file://` address into another with a space in its name.
pub fn install_and_uninstall(packages: &Packages) -> CaseResult {
    let home = TestHome::new();
    let before = entries(home.root());
    let prefix = home.path("home/.local");
    run(&mut script(&home, &packages.folder))?;
    check_files(&prefix, &FILES)?;
    run(&mut script(&home, &packages.folder))?;
    let installed = entries(home.root());
    run(script(&home, &prefix.join("share/wharf")).arg("--uninstall"))?;
    check_unchanged(&before, &entries(home.root()))?;

    let prefix = home.path("other prefix/below");
    let address = format!("file://{}", packages.folder.display());
    run(script(&home, &packages.folder).arg("--prefix").arg(&prefix).args(["--from", &address]))?;
    let caller = TestHome::new();
    check_wharf(&caller, &prefix.join("bin/wharf"), &packages.version)?;
    run(script(&home, &packages.folder).arg("--uninstall").arg("--prefix").arg(&prefix))?;
    check_unchanged(&before, &entries(home.root()))?;
    CaseOutcome::passed(format!("{} files and directories", installed.len() - before.len()))
}

pub fn damaged_archive(packages: &Packages) -> CaseResult {
    let home = TestHome::new();
    let copy = home.path("copy");
    fs::create_dir(&copy).unwrap();
    for name in ["install.sh", "SHA256SUMS"] {
        fs::copy(packages.folder.join(name), copy.join(name)).unwrap();
    }
    let archive = packages.find(".tar.gz")?;
    let mut bytes = fs::read(&archive).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(copy.join(archive.file_name().unwrap()), bytes).unwrap();
    let before = entries(home.root());
    let failure = run(&mut script(&home, &copy)).err().ok_or("a damaged archive was installed")?;
    expect(failure.contains("does not match SHA256SUMS"), || failure.clone())?;
    check_unchanged(&before, &entries(home.root()))?;
    CaseOutcome::passed("")
}

/// Files that the script did not install are neither overwritten nor removed.
pub fn files_of_others(packages: &Packages) -> CaseResult {
    let home = TestHome::new();
    let other = home.write("home/.local/bin/wharf", "another program\n");
    let before = entries(home.root());
    let failure = run(&mut script(&home, &packages.folder)).err().ok_or("another program was overwritten")?;
    expect(failure.contains("use --force"), || failure.clone())?;
    check_unchanged(&before, &entries(home.root()))?;
    fs::remove_file(other).unwrap();
    home.write("home/.local/share/man/man1/other.1", "a page\n");
    let before = entries(home.root());
    run(&mut script(&home, &packages.folder))?;
    run(script(&home, &packages.folder).arg("--uninstall"))?;
    check_unchanged(&before, &entries(home.root()))?;
    CaseOutcome::passed("")
}
