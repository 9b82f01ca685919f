//! Writes zip archives of deflated files, as wheels are.
//!
//! A wheel needs local headers, the central directory and file modes. The crate `zip` also reads, encrypts, streams and
//! knows a dozen other methods, with the dependencies for these.

use std::io::Write as _;

use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};
use wharf_spec::civil_date;

use super::file_tree::{FileTree, PackageFile};
use crate::run::TaskResult;

const LOCAL_HEADER: u32 = 0x0403_4b50;
const CENTRAL_HEADER: u32 = 0x0201_4b50;
const END_OF_DIRECTORY: u32 = 0x0605_4b50;
/// Version 2.0: deflate.
const VERSION_NEEDED: u16 = 20;
/// Host system 3: the external attributes are a Unix mode.
const MADE_BY_UNIX: u16 = (3 << 8) | VERSION_NEEDED;
const DEFLATED: u16 = 8;
const REGULAR_FILE: u32 = 0o100_000;

/// Returns the files as a zip archive with the time in every entry, in seconds since 1970.
///
/// # Errors
///
/// A file or the archive has 4 GiB or more.
pub fn write_zip(tree: &FileTree, time: u64, compression: Compression) -> TaskResult<Vec<u8>> {
    let (mut archive, mut directory, mut count) = (Vec::new(), Vec::new(), 0_u16);
    let stamp = dos_time(time);
    for (path, file) in tree.iter() {
        let offset = u32::try_from(archive.len())?;
        let deflated = deflate(&file.bytes, compression)?;
        let fields = common_fields(path, file, &deflated, stamp)?;
        push32(&mut archive, LOCAL_HEADER);
        archive.extend_from_slice(&fields);
        archive.extend_from_slice(path.as_bytes());
        archive.extend_from_slice(&deflated);
        push32(&mut directory, CENTRAL_HEADER);
        push16(&mut directory, MADE_BY_UNIX);
        directory.extend_from_slice(&fields);
        // No comment, disk 0, no internal attributes.
        directory.extend_from_slice(&[0; 6]);
        push32(&mut directory, (REGULAR_FILE | file.mode) << 16);
        push32(&mut directory, offset);
        directory.extend_from_slice(path.as_bytes());
        count = count.checked_add(1).ok_or("too many files for a zip archive")?;
    }
    let offset = u32::try_from(archive.len())?;
    archive.extend_from_slice(&directory);
    push32(&mut archive, END_OF_DIRECTORY);
    archive.extend_from_slice(&[0; 4]);
    push16(&mut archive, count);
    push16(&mut archive, count);
    push32(&mut archive, u32::try_from(directory.len())?);
    push32(&mut archive, offset);
    push16(&mut archive, 0);
    Ok(archive)
}

/// Returns the fields that the local and the central header share, from the version to the length of the extra field.
fn common_fields(path: &str, file: &PackageFile, deflated: &[u8], stamp: DosTime) -> TaskResult<Vec<u8>> {
    let mut crc = Crc::new();
    crc.update(&file.bytes);
    let mut fields = Vec::new();
    push16(&mut fields, VERSION_NEEDED);
    push16(&mut fields, 0);
    push16(&mut fields, DEFLATED);
    push16(&mut fields, stamp.time);
    push16(&mut fields, stamp.date);
    push32(&mut fields, crc.sum());
    push32(&mut fields, u32::try_from(deflated.len())?);
    push32(&mut fields, u32::try_from(file.bytes.len())?);
    push16(&mut fields, u16::try_from(path.len())?);
    push16(&mut fields, 0);
    Ok(fields)
}

fn deflate(bytes: &[u8], compression: Compression) -> TaskResult<Vec<u8>> {
    let mut encoder = DeflateEncoder::new(Vec::new(), compression);
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

/// Date and time as MS-DOS stored them, from 1980 to 2107.
#[derive(Clone, Copy, Debug, PartialEq)]
struct DosTime {
    date: u16,
    time: u16,
}

fn dos_time(seconds: u64) -> DosTime {
    const FIRST: u64 = 315_532_800;
    const LAST: u64 = 4_354_819_198;
    let seconds = seconds.clamp(FIRST, LAST);
    let (year, month, day) = civil_date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let fields = [((year - 1980) << 9) | (month << 5) | day, (hour << 11) | (minute << 5) | (second / 2)];
    let [date, time] = fields.map(|field| u16::try_from(field).unwrap_or_default());
    DosTime { date, time }
}

fn push16(bytes: &mut Vec<u8>, value: u16) {
    bytes.extend_from_slice(&value.to_le_bytes());
}

fn push32(bytes: &mut Vec<u8>, value: u32) {
    bytes.extend_from_slice(&value.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_converted() {
        assert_eq!(dos_time(0), DosTime { date: 0x21, time: 0 });
        // 2026-11-16 23:20:52
        assert_eq!(
            dos_time(1_794_871_252),
            DosTime { date: (46 << 9) | (11 << 5) | 16, time: (23 << 11) | (20 << 5) | 26 }
        );
    }

    #[test]
    fn directory_points_to_the_local_headers() {
        let mut tree = FileTree::default();
        tree.add_text("a", "one");
        tree.add_program("b", *b"two");
        let archive = write_zip(&tree, 0, Compression::fast()).unwrap();
        let end = archive.len() - 22;
        let number = |at: usize| u32::from_le_bytes(archive[at..at + 4].try_into().unwrap()) as usize;
        assert_eq!(number(end), END_OF_DIRECTORY as usize);
        let directory = number(end + 16);
        assert_eq!(number(directory), CENTRAL_HEADER as usize);
        assert_eq!(number(number(directory + 42)), LOCAL_HEADER as usize);
        let second = directory + 46 + 1;
        assert_eq!(archive[second + 46], b'b');
        assert_eq!(number(number(second + 42)), LOCAL_HEADER as usize);
        assert_eq!(number(second + 38) >> 16, 0o100_755);
    }
}
