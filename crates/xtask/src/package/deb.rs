//! The Debian package: an `ar` archive of two compressed tar archives (deb(5), format 2.0).

use std::fmt::Write as _;

use super::binary::Linkage;
use super::contents::{OTHER_LICENCES, PackageContents};
use super::file_tree::FileTree;
use super::tar::{DirectoryEntries, TarOptions, gzip, write_tar_gz};
use super::{DESCRIPTION_PARAGRAPH, SUMMARY};
use crate::run::TaskResult;

const DOCUMENTS: &str = "usr/share/doc/wharf-mcp";
const MAINTAINER: &str = "The Wharf contributors <contributors@wharf-mcp.invalid>";

pub fn write_deb(contents: &PackageContents) -> TaskResult<Vec<u8>> {
    let data = data_tree(contents)?;
    let mut control = FileTree::default();
    control.add_text("control", &control_file(contents, data.total_bytes()));
    let options = TarOptions {
        prefix: "./",
        directories: DirectoryEntries::Included,
        time: contents.time,
        compression: contents.compression,
    };
    let members = [
        ArMember { name: "debian-binary", bytes: b"2.0\n".to_vec() },
        ArMember { name: "control.tar.gz", bytes: write_tar_gz(&control, options)? },
        ArMember { name: "data.tar.gz", bytes: write_tar_gz(&data, options)? },
    ];
    Ok(write_ar(&members, contents.time))
}

/// Returns the file name that Debian's tools expect.
pub fn deb_name(contents: &PackageContents) -> String {
    format!("wharf-mcp_{}_{}.deb", contents.version, contents.target.debian)
}

/// Returns the installed files. Debian compresses manual pages and changelogs.
fn data_tree(contents: &PackageContents) -> TaskResult<FileTree> {
    let mut tree = FileTree::default();
    tree.add_program("usr/bin/wharf", contents.binary.clone());
    tree.add_text("usr/share/bash-completion/completions/wharf", &contents.bash);
    tree.add_text("usr/share/zsh/vendor-completions/_wharf", &contents.zsh);
    tree.add_text("usr/share/fish/vendor_completions.d/wharf.fish", &contents.fish);
    for page in &contents.manual_pages {
        let page_path = format!("usr/share/man/man1/{}.gz", page.name);
        tree.add(page_path, gzip(page.text.as_bytes(), contents.compression)?);
    }
    let mut copyright = "Wharf is licensed under MIT or Apache-2.0, at your choice.\n".to_owned();
    for document in &contents.documents {
        match document.name.as_str() {
            "LICENSE-APACHE" => copyright.push_str("Apache-2.0: /usr/share/common-licenses/Apache-2.0\n"),
            "LICENSE-MIT" => copyright = format!("{copyright}\n{}", document.text),
            "CHANGELOG.md" => {
                let changelog = gzip(document.text.as_bytes(), contents.compression)?;
                tree.add(format!("{DOCUMENTS}/changelog.gz"), changelog);
            }
            OTHER_LICENCES => {
                let licences = gzip(document.text.as_bytes(), contents.compression)?;
                tree.add(format!("{DOCUMENTS}/{OTHER_LICENCES}.gz"), licences);
            }
            name => tree.add_text(format!("{DOCUMENTS}/{name}"), &document.text),
        }
    }
    tree.add_text(format!("{DOCUMENTS}/copyright"), &copyright);
    Ok(tree)
}

fn control_file(contents: &PackageContents, installed_bytes: usize) -> String {
    let mut text = format!(
        "Package: wharf-mcp\nVersion: {}\nArchitecture: {}\nMaintainer: {MAINTAINER}\nInstalled-Size: {}\n",
        contents.version,
        contents.target.debian,
        installed_bytes.div_ceil(1024),
    );
    if let Linkage::Glibc(minor) = contents.linkage {
        let _ = writeln!(text, "Depends: libc6 (>= 2.{minor}), libgcc-s1");
    }
    text.push_str("Recommends: ca-certificates\nSection: utils\nPriority: optional\n");
    let _ = writeln!(text, "Description: {}", SUMMARY.trim_end_matches('.'));
    for line in DESCRIPTION_PARAGRAPH.lines() {
        let _ = writeln!(text, " {line}");
    }
    text
}

struct ArMember {
    name: &'static str,
    bytes: Vec<u8>,
}

fn write_ar(members: &[ArMember], time: u64) -> Vec<u8> {
    let mut archive = b"!<arch>\n".to_vec();
    for ArMember { name, bytes } in members {
        let header = format!("{name:<16}{time:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, "100644", bytes.len());
        archive.extend_from_slice(header.as_bytes());
        archive.extend_from_slice(bytes);
        // Members begin at even offsets.
        if bytes.len() % 2 == 1 {
            archive.push(b'\n');
        }
    }
    archive
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ar_members_begin_at_even_offsets() {
        let members = [ArMember { name: "a", bytes: b"odd".to_vec() }, ArMember { name: "b", bytes: b"even".to_vec() }];
        let archive = write_ar(&members, 7);
        assert_eq!(archive.len(), 8 + 60 + 4 + 60 + 4);
        assert_eq!(&archive[8..68], b"a               7           0     0     100644  3         `\n");
        assert_eq!(archive[72], b'b');
    }
}
