//! The packages under test.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::commands::{expect, run};

const XTASK: &str = env!("CARGO_BIN_EXE_xtask");

/// A folder with packages of one version.
pub struct Packages {
    pub folder: PathBuf,
    pub version: String,
    /// The folder if it is temporary; removed on drop.
    _temporary: Option<tempfile::TempDir>,
}

impl Packages {
    /// Opens the given folder, or makes packages of the test build's binary.
    pub fn open(given: Option<PathBuf>) -> Result<Self, String> {
        if let Some(folder) = given {
            return Self::in_folder(folder, None);
        }
        let temporary = tempfile::tempdir().map_err(|error| error.to_string())?;
        let binary = temporary.path().join("wharf");
        // Without debug information the packages are a fifth of the size.
        run(Command::new("strip").arg("-o").arg(&binary).arg(built_wharf()?))?;
        let folder = temporary.path().join("packages");
        make(&binary, &folder)?;
        Self::in_folder(folder, Some(temporary))
    }

    fn in_folder(folder: PathBuf, temporary: Option<tempfile::TempDir>) -> Result<Self, String> {
        let mut packages = Self { folder, version: String::new(), _temporary: temporary };
        let sbom = packages.find(".cdx.json")?;
        let name = sbom.file_name().unwrap().to_string_lossy().into_owned();
        name.trim_start_matches("wharf-").trim_end_matches(".cdx.json").clone_into(&mut packages.version);
        Ok(packages)
    }

    /// Returns the package whose name ends like this.
    pub fn find(&self, ending: &str) -> Result<PathBuf, String> {
        let entries = fs::read_dir(&self.folder).map_err(|error| format!("{}: {error}", self.folder.display()))?;
        let found: Vec<PathBuf> = entries
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.to_string_lossy().ends_with(ending))
            .collect();
        expect(found.len() == 1, || format!("{} files end with {ending}", found.len()))?;
        Ok(found[0].clone())
    }

    /// Returns the npm packages: the command and the binary.
    pub fn npm(&self) -> Result<[PathBuf; 2], String> {
        let names = ["wharf-mcp", "wharf-mcp-linux-x64"];
        let [command, binary] = names.map(|name| self.folder.join(format!("{name}-{}.tgz", self.version)));
        expect(command.is_file() && binary.is_file(), || "an npm package is missing".to_owned())?;
        Ok([command, binary])
    }

    /// Unpacks the archive into a folder and returns its top folder.
    pub fn unpack(&self, folder: &Path) -> Result<PathBuf, String> {
        let archive = self.find(".tar.gz")?;
        run(Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(folder))?;
        let name = archive.file_name().unwrap().to_string_lossy().into_owned();
        Ok(folder.join(name.trim_end_matches(".tar.gz")))
    }
}

/// Makes packages of a binary.
pub fn make(binary: &Path, folder: &Path) -> Result<(), String> {
    let mut command = Command::new(XTASK);
    command.args(["package", "--quick", "--binary"]).arg(binary).arg("--out").arg(folder);
    run(&mut command).map(drop)
}

/// Returns the `wharf` of the test build, in the parent of this program's directory.
fn built_wharf() -> Result<PathBuf, String> {
    let test = env::current_exe().map_err(|error| error.to_string())?;
    let path = test.parent().unwrap().with_file_name("wharf");
    expect(path.is_file(), || format!("run `cargo build` first: no {}", path.display()))?;
    Ok(path)
}
