//! The binary that goes into every package: built once, or given.

use std::path::{Path, PathBuf};
use std::{env, fs};

use super::targets::PackageTarget;
use crate::run::{TaskResult, cargo, root, run, target as target_folder};

const MUSL_HINT: &str = "\
a build for musl needs its standard library and a C compiler for it:
  rustup target add x86_64-unknown-linux-musl
  apt-get install musl-tools        (or the package that provides musl-gcc)
with `--target x86_64-unknown-linux-gnu` the static binary is built with glibc";

/// The C library that a program needs at run time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Linkage {
    Static,
    /// glibc 2.x of at least this minor version.
    Glibc(u32),
}

/// Builds a static binary.
///
/// Paths of this machine are left out of it. On glibc `crt-static` links the C library, too.
///
/// # Errors
///
/// The build fails, or the binary needs a loader.
pub fn build_static(target: &PackageTarget, profile: &str) -> TaskResult<PathBuf> {
    let mut command = cargo();
    command.args(["build", "--locked", "--package", "wharf-cli", "--bin", "wharf"]);
    command.args(["--profile", profile, "--target", target.triple]);
    command.env("CARGO_ENCODED_RUSTFLAGS", rustc_flags().join("\x1f"));
    run(&mut command).map_err(|error| match target.triple.ends_with("musl") {
        true => format!("{error}\n{MUSL_HINT}"),
        false => error.to_string(),
    })?;
    let folder = if profile == "dev" { "debug" } else { profile };
    let binary = target_folder().join(target.triple).join(folder).join("wharf");
    match inspect(&fs::read(&binary)?, target)? {
        Linkage::Static => Ok(binary),
        Linkage::Glibc(_) => Err(format!("{} is not static: it needs a loader", binary.display()).into()),
    }
}

/// Returns the flags of every crate. The crate getrandom looks its system call up at run time, which a static glibc
/// cannot do; it would need `/dev/urandom` then.
fn rustc_flags() -> [String; 5] {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| env::home_dir().map(|home| home.join(".cargo"))).unwrap_or_default();
    let remap = |path: &Path, name: &str| format!("--remap-path-prefix={}={name}", path.display());
    let [link, option, backend] =
        ["-Ctarget-feature=+crt-static", "--cfg", r#"getrandom_backend="linux_getrandom""#].map(str::to_owned);
    [link, remap(&root(), "wharf"), remap(&home, "cargo"), option, backend]
}

/// Reads from an ELF file which C library it needs.
///
/// # Errors
///
/// The file is not a 64-bit little-endian ELF file for the target's processor.
pub fn inspect(binary: &[u8], target: &PackageTarget) -> TaskResult<Linkage> {
    if !binary.starts_with(b"\x7fELF\x02\x01") {
        return Err("the binary is not a 64-bit ELF file".into());
    }
    if read_u16(binary, 0x12)? != target.elf_machine {
        return Err(format!("the binary is for another processor than {}", target.triple).into());
    }
    if has_loader(binary)? { Ok(Linkage::Glibc(newest_glibc(binary))) } else { Ok(Linkage::Static) }
}

/// Reports whether there is a `PT_INTERP` program header, which names the loader.
fn has_loader(binary: &[u8]) -> TaskResult<bool> {
    const PT_INTERP: u16 = 3;
    let table = usize::try_from(u64::from_le_bytes(*field(binary, 0x20)?))?;
    let (size, count) = (usize::from(read_u16(binary, 0x36)?), usize::from(read_u16(binary, 0x38)?));
    for index in 0..count {
        let at = table.checked_add(index * size).ok_or("the ELF header is damaged")?;
        if read_u16(binary, at)? == PT_INTERP && read_u16(binary, at + 2)? == 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the highest minor version among the `GLIBC_2.x` names in the file.
fn newest_glibc(binary: &[u8]) -> u32 {
    const NAME: &[u8] = b"GLIBC_2.";
    let starts = binary.windows(NAME.len()).enumerate().filter(|(_, window)| *window == NAME);
    let versions = starts.filter_map(|(at, _)| {
        let digits: String = binary[at + NAME.len()..].iter().take(3).map(|byte| char::from(*byte)).collect();
        let end = digits.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(digits.len());
        digits[..end].parse().ok()
    });
    versions.max().unwrap_or(0)
}

fn read_u16(binary: &[u8], at: usize) -> TaskResult<u16> {
    Ok(u16::from_le_bytes(*field(binary, at)?))
}

fn field<const N: usize>(binary: &[u8], at: usize) -> TaskResult<&[u8; N]> {
    binary.get(at..).and_then(<[u8]>::first_chunk).ok_or_else(|| "the ELF file is cut off".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an ELF file with one program header of this type.
    fn elf(machine: u16, kind: u8) -> Vec<u8> {
        let mut file = vec![0; 120];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file[0x12..0x14].copy_from_slice(&machine.to_le_bytes());
        (file[0x20], file[0x36], file[0x38], file[64]) = (64, 56, 1, kind);
        file
    }

    #[test]
    fn linkage_follows_the_program_headers() {
        let target = PackageTarget::find("x86_64-unknown-linux-gnu").unwrap();
        assert_eq!(inspect(&elf(62, 1), target).unwrap(), Linkage::Static);
        let mut dynamic = elf(62, 3);
        dynamic.extend_from_slice(b"\0GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.17");
        assert_eq!(inspect(&dynamic, target).unwrap(), Linkage::Glibc(34));
        assert!(inspect(&elf(183, 1), target).is_err());
        assert!(inspect(b"#!/bin/sh", target).is_err());
        assert!(inspect(&elf(62, 3)[..40], target).is_err());
    }
}
