//! The wheel `wharf-mcp` for PyPI: the binary as a script, without Python code.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use super::binary::Linkage;
use super::contents::PackageContents;
use super::file_tree::FileTree;
use super::zip::write_zip;
use super::{DESCRIPTION, SUMMARY};
use crate::run::TaskResult;

/// A wheel and its file name, which states the platform.
pub struct Wheel {
    pub file_name: String,
    pub bytes: Vec<u8>,
}

pub fn write_wheel(contents: &PackageContents, sbom: &str) -> TaskResult<Wheel> {
    let name = format!("wharf_mcp-{}", contents.version);
    let tags = platform_tags(contents.linkage, contents.target.machine);
    let (data, info) = (format!("{name}.data"), format!("{name}.dist-info"));
    let mut tree = FileTree::default();
    tree.add_program(format!("{data}/scripts/wharf"), contents.binary.clone());
    contents.add_shared(&mut tree, &format!("{data}/data/share"));
    for licence in contents.licences() {
        tree.add_text(format!("{info}/licenses/{}", licence.name), &licence.text);
    }
    tree.add_text(format!("{info}/sboms/wharf.cdx.json"), sbom);
    tree.add_text(format!("{info}/METADATA"), &metadata(contents));
    tree.add_text(format!("{info}/WHEEL"), &wheel_file(&tags));
    let record = record(&tree, &format!("{info}/RECORD"));
    tree.add_text(format!("{info}/RECORD"), &record);
    Ok(Wheel {
        file_name: format!("{name}-py3-none-{}.whl", tags.join(".")),
        bytes: write_zip(&tree, contents.time, contents.compression)?,
    })
}

/// Returns the platforms that pip installs the wheel on. A static binary needs neither glibc nor musl, but the formats
/// name one: the oldest that installers in use know.
fn platform_tags(linkage: Linkage, machine: &str) -> Vec<String> {
    match linkage {
        Linkage::Static => ["manylinux2014", "manylinux_2_17", "musllinux_1_1"]
            .iter()
            .map(|platform| format!("{platform}_{machine}"))
            .collect(),
        Linkage::Glibc(minor) => vec![format!("manylinux_2_{}_{machine}", minor.max(17))],
    }
}

/// Returns the file `METADATA` (core metadata 2.4).
fn metadata(contents: &PackageContents) -> String {
    let mut text = format!(
        "Metadata-Version: 2.4\nName: wharf-mcp\nVersion: {}\nSummary: {SUMMARY}\n\
         License-Expression: MIT OR Apache-2.0\n",
        contents.version
    );
    for licence in contents.licences() {
        let _ = writeln!(text, "License-File: {}", licence.name);
    }
    let _ = write!(
        text,
        "Classifier: Environment :: Console\nClassifier: Operating System :: POSIX :: Linux\n\
         Classifier: Programming Language :: Rust\nRequires-Python: >=3.8\n\
         Description-Content-Type: text/markdown\n\n{DESCRIPTION}"
    );
    text
}

fn wheel_file(tags: &[String]) -> String {
    let mut text = "Wheel-Version: 1.0\nGenerator: wharf-xtask\nRoot-Is-Purelib: false\n".to_owned();
    for tag in tags {
        let _ = writeln!(text, "Tag: py3-none-{tag}");
    }
    text
}

/// Returns the file `RECORD`: every file with its hash and size, and itself without.
fn record(tree: &FileTree, own_path: &str) -> String {
    let mut text = String::new();
    for (path, file) in tree.iter() {
        let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(&file.bytes));
        let _ = writeln!(text, "{path},sha256={hash},{}", file.bytes.len());
    }
    let _ = writeln!(text, "{own_path},,");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_follow_the_linkage() {
        let tags = platform_tags(Linkage::Static, "x86_64");
        assert_eq!(tags, ["manylinux2014_x86_64", "manylinux_2_17_x86_64", "musllinux_1_1_x86_64"]);
        assert_eq!(platform_tags(Linkage::Glibc(34), "x86_64"), ["manylinux_2_34_x86_64"]);
    }

    #[test]
    fn record_lists_hash_and_size() {
        let mut tree = FileTree::default();
        tree.add_text("a", "");
        let empty = "a,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\nx/RECORD,,\n";
        assert_eq!(record(&tree, "x/RECORD"), empty);
    }
}
