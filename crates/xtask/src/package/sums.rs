//! `SHA256SUMS`, in the format of `sha256sum`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::run::TaskResult;

/// Returns one line per file, in the order given.
pub fn write_sums(folder: &Path, names: &[String]) -> TaskResult<String> {
    let mut text = String::new();
    for name in names {
        let digest = Sha256::digest(fs::read(folder.join(name))?);
        let _ = writeln!(text, "{}  {name}", hex(&digest));
    }
    Ok(text)
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
