//! The platforms that packages exist for.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use crate::run::{TaskResult, capture};

/// A platform, with its name in each package format.
pub struct PackageTarget {
    /// Name in Rust and in the archive.
    pub triple: &'static str,
    /// Operating system and machine as `uname -s` and `uname -m` print them.
    pub uname: &'static str,
    pub machine: &'static str,
    /// The field `e_machine` of an ELF file.
    pub elf_machine: u16,
    pub debian: &'static str,
    pub npm_cpu: &'static str,
    pub state: TargetState,
}

#[derive(Clone, Copy, PartialEq)]
pub enum TargetState {
    /// Built and tested by `cargo xtask package`.
    Built,
    /// Described here; never built or tested.
    NotBuilt,
}

const X86_64: u16 = 62;
const AARCH64: u16 = 183;

pub const TARGETS: [PackageTarget; 4] = [
    linux("x86_64-unknown-linux-musl", X86_64, TargetState::NotBuilt),
    linux("x86_64-unknown-linux-gnu", X86_64, TargetState::Built),
    linux("aarch64-unknown-linux-musl", AARCH64, TargetState::NotBuilt),
    linux("aarch64-unknown-linux-gnu", AARCH64, TargetState::NotBuilt),
];

const fn linux(triple: &'static str, elf_machine: u16, state: TargetState) -> PackageTarget {
    let [machine, debian, npm_cpu] =
        if elf_machine == X86_64 { ["x86_64", "amd64", "x64"] } else { ["aarch64", "arm64", "arm64"] };
    PackageTarget { triple, uname: "Linux", machine, elf_machine, debian, npm_cpu, state }
}

impl PackageTarget {
    /// Returns the target with this name.
    ///
    /// # Errors
    ///
    /// The table has no such target.
    pub fn find(triple: &str) -> TaskResult<&'static Self> {
        let names = || TARGETS.map(|target| target.triple).join(", ");
        let found = TARGETS.iter().find(|target| target.triple == triple);
        found.ok_or_else(|| format!("unknown target {triple}; known: {}", names()).into())
    }

    /// Returns this machine's target: musl if its standard library is installed, or else glibc.
    pub fn detect() -> TaskResult<&'static Self> {
        let sysroot = capture(Command::new("rustc").args(["--print", "sysroot"]))?.stdout;
        let libraries = Path::new(sysroot.trim()).join("lib/rustlib");
        let machine = std::env::consts::ARCH;
        let musl = format!("{machine}-unknown-linux-musl");
        let is_installed = libraries.join(&musl).join("lib").is_dir();
        Self::find(&if is_installed { musl } else { format!("{machine}-unknown-linux-gnu") })
    }

    /// Returns the name of the npm package with the binary.
    pub fn npm_package(&self) -> String {
        format!("wharf-mcp-linux-{}", self.npm_cpu)
    }
}

/// Formats the table of targets.
pub fn describe_targets() -> String {
    let mut text = String::new();
    for target in &TARGETS {
        let state = match target.state {
            TargetState::Built => "built here",
            TargetState::NotBuilt => "prepared, not built here",
        };
        let _ = writeln!(text, "{:<28} {:<28} {state}", target.triple, target.npm_package());
    }
    text
}
