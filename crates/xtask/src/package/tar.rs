//! Writes POSIX tar archives, compressed with gzip.
//!
//! Owner and group are 0, the time is that of the package, and entries are sorted: the archive depends on its contents
//! only. GNU tar can do the same, but not every tar, and a package is also written without any tar installed.

use std::io::Write as _;

use flate2::{Compression, GzBuilder};

use super::file_tree::{FileTree, PackageFile};
use crate::run::TaskResult;

const BLOCK: usize = 512;
/// Size of the name field; a longer path is split into prefix and name.
const MAX_NAME: usize = 100;
const MAX_PREFIX: usize = 155;
const DIRECTORY_MODE: u32 = 0o755;

/// Settings of an archive.
#[derive(Clone, Copy)]
pub struct TarOptions<'a> {
    /// Text before every path, such as `package/`.
    pub prefix: &'a str,
    pub directories: DirectoryEntries,
    /// Modification time of every entry, in seconds since 1970.
    pub time: u64,
    pub compression: Compression,
}

#[derive(Clone, Copy, PartialEq)]
pub enum DirectoryEntries {
    Included,
    Omitted,
}

/// Returns the files as a compressed archive.
///
/// # Errors
///
/// A path or a file is too long for the format.
pub fn write_tar_gz(tree: &FileTree, options: TarOptions<'_>) -> TaskResult<Vec<u8>> {
    let tar = write_tar(tree, options)?;
    gzip(&tar, options.compression)
}

/// Compresses bytes without a name or a time in the header.
pub fn gzip(bytes: &[u8], compression: Compression) -> TaskResult<Vec<u8>> {
    let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), compression);
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

fn write_tar(tree: &FileTree, options: TarOptions<'_>) -> TaskResult<Vec<u8>> {
    let mut tar = Vec::with_capacity(tree.total_bytes() + (1 << 20));
    if options.directories == DirectoryEntries::Included {
        let top = options.prefix.ends_with('/').then_some("");
        for directory in top.into_iter().chain(tree.directories()) {
            let path = format!("{}{directory}", options.prefix);
            let path = format!("{}/", path.trim_end_matches('/'));
            tar.extend(header(&path, TarEntry { mode: DIRECTORY_MODE, size: 0, kind: b'5' }, options.time)?);
        }
    }
    for (path, PackageFile { bytes, mode }) in tree.iter() {
        let path = format!("{}{path}", options.prefix);
        tar.extend(header(&path, TarEntry { mode: *mode, size: bytes.len(), kind: b'0' }, options.time)?);
        tar.extend_from_slice(bytes);
        tar.resize(tar.len().next_multiple_of(BLOCK), 0);
    }
    tar.resize(tar.len() + 2 * BLOCK, 0);
    Ok(tar)
}

struct TarEntry {
    mode: u32,
    size: usize,
    kind: u8,
}

/// Returns the header block of an entry (POSIX.1-1988, "ustar").
fn header(path: &str, entry: TarEntry, time: u64) -> TaskResult<[u8; BLOCK]> {
    let (prefix, name) = split_path(path)?;
    let mut block = [0; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    let size = format!("{:011o}", entry.size);
    if size.len() > 11 {
        return Err(format!("{path} is too large for tar").into());
    }
    put(0, name.as_bytes());
    put(100, format!("{:07o}", entry.mode).as_bytes());
    put(108, b"0000000");
    put(116, b"0000000");
    put(124, size.as_bytes());
    put(136, format!("{time:011o}").as_bytes());
    put(148, b"        ");
    put(156, &[entry.kind]);
    put(257, b"ustar\x0000root");
    put(297, b"root");
    put(345, prefix.as_bytes());
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(block)
}

/// Splits a path into the fields `prefix` and `name`.
fn split_path(path: &str) -> TaskResult<(&str, &str)> {
    if path.len() <= MAX_NAME {
        return Ok(("", path));
    }
    let split = path.match_indices('/').map(|(at, _)| (&path[..at], &path[at + 1..]));
    let mut fitting = split.filter(|(prefix, name)| prefix.len() <= MAX_PREFIX && name.len() <= MAX_NAME);
    fitting.find(|(_, name)| !name.is_empty()).ok_or_else(|| format!("{path} is too long for tar").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(prefix: &str) -> TarOptions<'_> {
        let directories = DirectoryEntries::Included;
        TarOptions { prefix, directories, time: 86_400, compression: Compression::fast() }
    }

    #[test]
    fn header_has_name_mode_size_time_and_checksum() {
        let mut tree = FileTree::default();
        tree.add_program("bin/wharf", *b"ahoy");
        let tar = write_tar(&tree, options("./")).unwrap();
        let names: Vec<&[u8]> = tar.chunks(BLOCK).take(3).map(|block| &block[..12]).collect();
        assert_eq!(names[0], b"./\0\0\0\0\0\0\0\0\0\0");
        assert_eq!(names[1], b"./bin/\0\0\0\0\0\0");
        assert_eq!(names[2], b"./bin/wharf\0");
        let block = &tar[2 * BLOCK..3 * BLOCK];
        assert_eq!(&block[100..136], b"0000755\x000000000\x000000000\x0000000000004\0");
        assert_eq!(&block[136..148], b"00000250600\0");
        let sum: u32 = block
            .iter()
            .enumerate()
            .map(|(at, byte)| if (148..156).contains(&at) { 32 } else { u32::from(*byte) })
            .sum();
        assert_eq!(&block[148..156], format!("{sum:06o}\0 ").as_bytes());
        assert_eq!(&tar[3 * BLOCK..3 * BLOCK + 4], b"ahoy");
        assert_eq!(tar.len(), 6 * BLOCK);
    }

    #[test]
    fn long_path_is_split_at_a_slash() {
        let path = format!("{}/{}", "a".repeat(90), "b".repeat(90));
        assert_eq!(split_path(&path).unwrap(), (&path[..90], &path[91..]));
        assert!(split_path(&"c".repeat(101)).is_err());
        assert!(split_path(&format!("{}/{}", "a".repeat(200), "b".repeat(90))).is_err());
    }

    #[test]
    fn equal_trees_give_equal_archives() {
        let archive = |names: [&str; 2]| {
            let mut tree = FileTree::default();
            names.into_iter().for_each(|name| tree.add_text(name, name));
            write_tar_gz(&tree, options("x/")).unwrap()
        };
        assert_eq!(archive(["one", "two"]), archive(["two", "one"]));
    }
}
