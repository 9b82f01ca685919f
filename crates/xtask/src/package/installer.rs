//! `install.sh`: the installer for people without a package manager.

use super::contents::PackageContents;

const SCRIPT: &str = include_str!("install.sh");

/// Returns the script with the version and the archive for this target.
pub fn write_installer(contents: &PackageContents) -> String {
    let target = contents.target;
    let archive = format!("    {}-{}) echo '{}' ;;", target.uname, target.machine, contents.archive_name());
    SCRIPT.replace("@VERSION@", &contents.version).replace("    @ARCHIVES@) ;;", &archive)
}
