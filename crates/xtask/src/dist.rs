//! `cargo xtask dist`: builds an archive below `target/dist` with one static binary for any Linux of this architecture,
//! its completions, manual pages and licences.

use std::env::consts::ARCH;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::run::{TaskResult, capture, cargo, root, run, say, target};

/// Files copied unchanged.
const DOCUMENTS: [&str; 4] = ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "CHANGELOG.md"];

/// Shells and the file names they expect.
const COMPLETIONS: [(&str, &str); 3] = [("bash", "wharf.bash"), ("zsh", "_wharf"), ("fish", "wharf.fish")];

const MUSL_HINT: &str = "\
a static build needs the musl standard library and a C compiler for musl:
  rustup target add x86_64-unknown-linux-musl
  apt-get install musl-tools        (or the package that provides musl-gcc)";

pub fn dist() -> TaskResult {
    let platform = format!("{ARCH}-unknown-linux-musl");
    let binary = build(&platform)?;
    let name = format!("wharf-{}-{platform}", version(&binary)?);
    let stage = target().join("dist").join(&name);
    let _ = fs::remove_dir_all(&stage);
    fs::create_dir_all(stage.join("completions"))?;
    fs::copy(&binary, stage.join("wharf"))?;
    for document in DOCUMENTS {
        fs::copy(root().join(document), stage.join(document))?;
    }
    fs::write(stage.join("LICENSES-OF-OTHERS"), licences(&platform)?)?;
    for (shell, file) in COMPLETIONS {
        let script = capture(Command::new(&binary).args(["completions", shell]))?.stdout;
        fs::write(stage.join("completions").join(file), script)?;
    }
    capture(Command::new(&binary).arg("man").arg(stage.join("man/man1")))?;
    pack(&name)
}

/// Builds the binary and verifies that it is static.
fn build(platform: &str) -> TaskResult<PathBuf> {
    let arguments = ["build", "--profile", "dist", "--package", "wharf-cli", "--bin", "wharf", "--target", platform];
    run(cargo().args(arguments)).map_err(|error| format!("{error}\n{MUSL_HINT}"))?;
    let binary = target().join(platform).join("dist/wharf");
    if is_dynamic(&binary)? {
        return Err(format!("{} is not static: it needs a loader", binary.display()).into());
    }
    Ok(binary)
}

/// Reports whether a program needs a loader, that is, has a `PT_INTERP` program header.
fn is_dynamic(binary: &Path) -> TaskResult<bool> {
    let headers = capture(Command::new("readelf").args(["--program-headers", "--wide"]).arg(binary))?;
    Ok(headers.stdout.lines().any(|line| line.trim_start().starts_with("INTERP")))
}

fn version(binary: &Path) -> TaskResult<String> {
    let said = capture(Command::new(binary).arg("--version"))?.stdout;
    Ok(said.split_whitespace().nth(1).ok_or("no version in the output of --version")?.to_owned())
}

/// Packs the folder of this name. The archive depends on its contents only, not on user or time.
fn pack(name: &str) -> TaskResult {
    let folder = target().join("dist");
    let archive = folder.join(format!("{name}.tar.gz"));
    let time = capture(Command::new("git").args(["log", "-1", "--format=@%ct"]).current_dir(root()));
    let time = time.map_or_else(|_| "@0".to_owned(), |time| time.stdout.trim().to_owned());
    let same = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mode=go=rX,u+rw"];
    let mut tar = Command::new("tar");
    tar.args(same).arg(format!("--mtime={time}"));
    run(tar.arg("-czf").arg(&archive).arg("-C").arg(&folder).arg(name))?;
    say!("{} ({:.1} MiB)", archive.display(), fs::metadata(&archive)?.len() as f64 / f64::from(1 << 20));
    Ok(())
}

/// Returns the licences of all dependencies of the binary, with their texts where the packages include them.
fn licences(platform: &str) -> TaskResult<String> {
    let filter = ["metadata", "--format-version", "1", "--locked", "--filter-platform", platform];
    let metadata: Value = serde_json::from_str(&capture(cargo().args(filter))?.stdout)?;
    let tree = ["tree", "--package", "wharf-cli", "--edges", "normal", "--target", platform, "--prefix", "none"];
    let tree = capture(cargo().args(tree).args(["--format", "{p}"]))?.stdout;
    let inside = |package: &Value| {
        let line = format!("{} v{}", text(&package["name"]), text(&package["version"]));
        !package["source"].is_null() && tree.lines().any(|other| other.split(" (").next() == Some(&line))
    };
    let packages = metadata["packages"].as_array().ok_or("no packages")?.iter().filter(|package| inside(package));
    let told: Vec<String> = packages.map(licence).collect();
    if told.is_empty() { Err("no dependencies found".into()) } else { Ok(told.join("\n")) }
}

fn licence(package: &Value) -> String {
    let (name, version) = (text(&package["name"]), text(&package["version"]));
    let mut told = format!("==== {name} {version}: {}\n", text(&package["license"]));
    let folder = Path::new(text(&package["manifest_path"])).parent().map(fs::read_dir);
    let mut files: Vec<PathBuf> = folder
        .into_iter()
        .flatten()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| is_licence(path))
        .collect();
    files.sort();
    for file in files {
        let text = fs::read_to_string(&file).unwrap_or_default();
        told.push_str(&format!("\n---- {}\n\n{}\n", file.file_name().unwrap_or_default().display(), text.trim_end()));
    }
    told
}

fn is_licence(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
    path.is_file() && ["LICENSE", "LICENCE", "COPYING", "NOTICE"].iter().any(|word| name.starts_with(word))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
