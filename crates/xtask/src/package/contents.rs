//! The parts that all packages share: the binary, its completions and manual pages, and documents.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::rc::Rc;

use flate2::Compression;

use super::binary::{self, Linkage};
use super::dependencies::DependencyGraph;
use super::file_tree::FileTree;
use super::licences::collect_licences;
use super::targets::PackageTarget;
use crate::run::{TaskResult, capture, root};

/// Documents copied unchanged from the workspace.
const DOCUMENTS: [&str; 4] = ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "CHANGELOG.md"];
/// Licences of the dependencies.
pub const OTHER_LICENCES: &str = "LICENSES-OF-OTHERS";

const BASH: &str = "bash-completion/completions/wharf";
const FISH: &str = "fish/vendor_completions.d/wharf.fish";

/// The contents of a release for one target.
pub struct PackageContents {
    pub target: &'static PackageTarget,
    pub version: String,
    pub binary: Rc<[u8]>,
    pub linkage: Linkage,
    pub bash: String,
    pub zsh: String,
    pub fish: String,
    pub manual_pages: Vec<TextFile>,
    pub documents: Vec<TextFile>,
    pub dependencies: DependencyGraph,
    /// Time of every entry, in seconds since 1970.
    pub time: u64,
    pub compression: Compression,
}

pub struct TextFile {
    pub name: String,
    pub text: String,
}

impl PackageContents {
    /// Runs the binary for its version, completions and manual pages, and reads the documents.
    pub fn collect(binary: &Path, target: &'static PackageTarget, compression: Compression) -> TaskResult<Self> {
        let run = |words: &[&str]| capture(Command::new(binary).args(words)).map(|output| output.stdout);
        let bytes: Rc<[u8]> = fs::read(binary).map_err(|error| format!("{}: {error}", binary.display()))?.into();
        let version = run(&["--version"])?;
        let dependencies = DependencyGraph::load(target.triple)?;
        let mut documents = Vec::new();
        for name in DOCUMENTS {
            documents.push(TextFile { name: name.to_owned(), text: fs::read_to_string(root().join(name))? });
        }
        documents.push(TextFile { name: OTHER_LICENCES.to_owned(), text: collect_licences(&dependencies)? });
        Ok(Self {
            target,
            version: version.split_whitespace().nth(1).ok_or("no version in the output of --version")?.to_owned(),
            linkage: binary::inspect(&bytes, target)?,
            binary: bytes,
            bash: run(&["completions", "bash"])?,
            zsh: run(&["completions", "zsh"])?,
            fish: run(&["completions", "fish"])?,
            manual_pages: manual_pages(binary)?,
            documents,
            dependencies,
            time: source_time(),
            compression,
        })
    }

    /// Adds completions and manual pages at their usual places below a `share` folder.
    pub fn add_shared(&self, tree: &mut FileTree, share: &str) {
        tree.add_text(format!("{share}/{BASH}"), &self.bash);
        tree.add_text(format!("{share}/zsh/site-functions/_wharf"), &self.zsh);
        tree.add_text(format!("{share}/{FISH}"), &self.fish);
        for page in &self.manual_pages {
            tree.add_text(format!("{share}/man/man1/{}", page.name), &page.text);
        }
    }

    pub fn licences(&self) -> impl Iterator<Item = &TextFile> {
        self.documents.iter().filter(|document| document.name.starts_with("LICENSE"))
    }

    /// Returns the name of the archive without its extension, which is also its top folder.
    pub fn archive_name(&self) -> String {
        format!("wharf-{}-{}", self.version, self.target.triple)
    }
}

fn manual_pages(binary: &Path) -> TaskResult<Vec<TextFile>> {
    let folder = crate::run::target().join(format!("package/man-{}", std::process::id()));
    let pages = capture(Command::new(binary).arg("man").arg(&folder)).and_then(|_| read_pages(&folder));
    let _ = fs::remove_dir_all(&folder);
    pages
}

fn read_pages(folder: &Path) -> TaskResult<Vec<TextFile>> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        pages.push(TextFile { name, text: fs::read_to_string(entry.path())? });
    }
    pages.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(pages)
}

/// Returns `SOURCE_DATE_EPOCH`, or the time of the last commit, or 0.
fn source_time() -> u64 {
    let given = std::env::var("SOURCE_DATE_EPOCH").ok();
    let commit = || capture(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(root())).ok();
    let text = given.or_else(|| commit().map(|output| output.stdout));
    text.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}
