//! `cargo xtask package`: builds one binary and writes every package of it below `target/package`.
//!
//! The writers are pure: [`contents::PackageContents`] in, bytes out. All entries are sorted and have the time of
//! `SOURCE_DATE_EPOCH` or of the last commit, so that the same binary gives the same packages.

mod archive;
mod binary;
mod contents;
mod deb;
mod dependencies;
mod file_tree;
mod installer;
mod licences;
mod npm;
mod proof;
mod sbom;
mod sums;
mod tar;
mod targets;
mod wheel;
mod zip;

use std::fs;
use std::path::{Path, PathBuf};

use flate2::Compression;

use crate::run::{TaskResult, root, say, target as target_folder};
use contents::PackageContents;
pub use proof::prove_packages;
use targets::PackageTarget;

/// One line about Wharf, for package indexes.
const SUMMARY: &str = "Host for MCP servers: command line and agent.";
/// A few lines about Wharf, for `apt show`.
const DESCRIPTION_PARAGRAPH: &str = "\
Wharf starts or contacts Model Context Protocol servers, calls their tools
under rules, and runs an agent that uses them.";
/// The page of the package on PyPI and npm.
const DESCRIPTION: &str = include_str!("package/description.md");

/// Arguments of `cargo xtask package`.
struct PackageOptions {
    /// The build profile.
    profile: String,
    /// An existing binary, which is then not built.
    binary: Option<PathBuf>,
    target: Option<&'static PackageTarget>,
    folder: PathBuf,
    compression: Compression,
}

pub fn package(words: &[&str]) -> TaskResult {
    if words == ["--targets"] {
        print!("{}", targets::describe_targets());
        return Ok(());
    }
    write_packages(&PackageOptions::parse(words)?)
}

impl PackageOptions {
    fn parse(words: &[&str]) -> TaskResult<Self> {
        let mut options = Self {
            profile: "dist".to_owned(),
            binary: None,
            target: None,
            folder: target_folder().join("package"),
            compression: Compression::default(),
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().copied().ok_or_else(|| format!("{word} needs a value"));
            match *word {
                "--profile" => options.profile = value()?.to_owned(),
                "--binary" => options.binary = Some(root().join(value()?)),
                "--target" => options.target = Some(PackageTarget::find(value()?)?),
                "--out" => options.folder = root().join(value()?),
                "--quick" => options.compression = Compression::fast(),
                other => return Err(format!("package: unknown argument {other}").into()),
            }
        }
        Ok(options)
    }
}

/// Writes every package into the folder, which is emptied first.
fn write_packages(options: &PackageOptions) -> TaskResult {
    let target = options.target.map_or_else(PackageTarget::detect, Ok)?;
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => binary::build_static(target, &options.profile)?,
    };
    let contents = PackageContents::collect(&binary, target, options.compression)?;
    if contents.linkage != binary::Linkage::Static {
        say!("{} is not static: these packages are for tests only", binary.display());
    }
    let _ = fs::remove_dir_all(&options.folder);
    fs::create_dir_all(&options.folder)?;
    let mut output = PackageFolder { path: &options.folder, names: Vec::new() };
    write_all(&contents, &mut output)?;
    let sums = sums::write_sums(output.path, &output.names)?;
    output.write("SHA256SUMS".to_owned(), sums.as_bytes())
}

fn write_all(contents: &PackageContents, output: &mut PackageFolder<'_>) -> TaskResult {
    let version = &contents.version;
    let installer = installer::write_installer(contents);
    let sbom = sbom::write_sbom(contents)?;
    output.write(format!("{}.tar.gz", contents.archive_name()), &archive::write_archive(contents, &installer)?)?;
    let wheel = wheel::write_wheel(contents, &sbom)?;
    output.write(wheel.file_name, &wheel.bytes)?;
    output.write(format!("wharf-mcp-{version}.tgz"), &npm::write_command_package(contents)?)?;
    let platform = format!("{}-{version}.tgz", contents.target.npm_package());
    output.write(platform, &npm::write_platform_package(contents)?)?;
    output.write(deb::deb_name(contents), &deb::write_deb(contents)?)?;
    output.write(format!("wharf-{version}.cdx.json"), sbom.as_bytes())?;
    output.write("install.sh".to_owned(), installer.as_bytes())
}

/// The folder of the packages and the names written so far.
struct PackageFolder<'a> {
    path: &'a Path,
    names: Vec<String>,
}

impl PackageFolder<'_> {
    fn write(&mut self, name: String, bytes: &[u8]) -> TaskResult {
        let path = self.path.join(&name);
        fs::write(&path, bytes).map_err(|error| format!("{}: {error}", path.display()))?;
        say!("{:>9.1} KiB  {name}", bytes.len() as f64 / 1024.0);
        self.names.push(name);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_parsed() {
        let options = PackageOptions::parse(&[]).unwrap();
        assert_eq!(options.profile, "dist");
        assert!(options.binary.is_none() && options.target.is_none());
        let words = ["--profile", "release", "--target", "x86_64-unknown-linux-gnu", "--binary", "target/debug/wharf"];
        let options = PackageOptions::parse(&words).unwrap();
        assert_eq!(options.profile, "release");
        assert_eq!(options.binary, Some(root().join("target/debug/wharf")));
        assert!(PackageOptions::parse(&["--binary"]).is_err());
        assert!(PackageOptions::parse(&["--target", "riscv"]).is_err());
        assert!(PackageOptions::parse(&["everything"]).is_err());
    }

    /// The name `wharf` on PyPI and npm belongs to others.
    #[test]
    fn texts_name_only_our_packages() {
        let docs = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
        let pages = ["README.md", "CONTRIBUTING.md", "crates/xtask/src/package/description.md"];
        for path in docs.chain(pages.map(|page| root().join(page))) {
            let text = fs::read_to_string(&path).unwrap();
            for installer in ["pip install ", "uvx ", "npx ", "npm install ", "pipx run ", "apt install ", "--from "] {
                for (at, _) in text.match_indices(&format!("{installer}wharf")) {
                    let line = text[at..].lines().next().unwrap();
                    assert!(line[installer.len()..].starts_with("wharf-mcp"), "{}: {line}", path.display());
                }
            }
        }
    }
}
