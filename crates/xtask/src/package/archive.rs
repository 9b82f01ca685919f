//! The archive: a folder with the binary, completions, manual pages, licences and the installer.

use super::contents::PackageContents;
use super::file_tree::FileTree;
use super::tar::{DirectoryEntries, TarOptions, write_tar_gz};
use crate::run::TaskResult;

/// Returns the archive. Its installer is the one that `install.sh` leaves in a prefix to uninstall with.
pub fn write_archive(contents: &PackageContents, installer: &str) -> TaskResult<Vec<u8>> {
    let mut tree = FileTree::default();
    tree.add_program("wharf", contents.binary.clone());
    tree.add_program("install.sh", installer.as_bytes());
    tree.add_text("completions/wharf.bash", &contents.bash);
    tree.add_text("completions/_wharf", &contents.zsh);
    tree.add_text("completions/wharf.fish", &contents.fish);
    for page in &contents.manual_pages {
        tree.add_text(format!("man/man1/{}", page.name), &page.text);
    }
    for document in &contents.documents {
        tree.add_text(&document.name, &document.text);
    }
    let options = TarOptions {
        prefix: &format!("{}/", contents.archive_name()),
        directories: DirectoryEntries::Included,
        time: contents.time,
        compression: contents.compression,
    };
    write_tar_gz(&tree, options)
}
