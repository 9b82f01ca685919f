//! The wheel with pip and uvx, and the npm packages.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use wharf_testkit::test_home::TestHome;

use crate::commands::{check_files, check_unchanged, check_wharf, command_in, expect, files, find_program, run};
use crate::fixture::Packages;
use crate::{CaseOutcome, CaseResult};

/// An address without a server: any attempt to use the network fails.
const NO_REGISTRY: &str = "http://127.0.0.1:9/";

const SHARED_FILES: [&str; 4] = [
    "share/bash-completion/completions/wharf",
    "share/zsh/site-functions/_wharf",
    "share/fish/vendor_completions.d/wharf.fish",
    "share/man/man1/wharf.1",
];

/// Compares every file of a wheel with its line in `RECORD`.
const CHECK_RECORD: &str = "
import base64, csv, hashlib, io, sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
[record] = [name for name in wheel.namelist() if name.endswith('.dist-info/RECORD')]
rows = {row[0]: row[1:] for row in csv.reader(io.StringIO(wheel.read(record).decode()))}
assert sorted(rows) == sorted(wheel.namelist()), 'RECORD lists other files'
for name, (digest, size) in rows.items():
    if name != record:
        data = wheel.read(name)
        actual = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip('=')
        assert (digest, size) == ('sha256=' + actual, str(len(data))), name
";

/// A virtual environment with pip.
pub struct PythonEnvironment {
    pub folder: PathBuf,
}

impl PythonEnvironment {
    /// Creates the environment, or returns `None` if Python, `venv` or pip is missing.
    pub fn create(home: &TestHome) -> Result<Option<Self>, String> {
        let Some(python) = python() else { return Ok(None) };
        if run(command_in(home, &python).args(["-c", "import venv, ensurepip"])).is_err() {
            return Ok(None);
        }
        let folder = home.path("venv");
        run(command_in(home, &python).args(["-m", "venv"]).arg(&folder))?;
        Ok(Some(Self { folder }))
    }

    pub fn pip(&self, home: &TestHome) -> Command {
        let mut command = command_in(home, self.folder.join("bin/python"));
        command.args(["-m", "pip", "--isolated", "--disable-pip-version-check", "--no-cache-dir"]);
        command.env("PYTHONDONTWRITEBYTECODE", "1").env("PIP_CONFIG_FILE", "/dev/null");
        command
    }
}

/// Returns the interpreter itself: a version manager's launcher may need its own environment.
fn python() -> Option<PathBuf> {
    let launcher = find_program("python3")?;
    run(Command::new(launcher).args(["-c", "import sys; print(sys.executable)"])).ok().map(PathBuf::from)
}

/// pip leaves empty directories below `share`, so only files are compared.
pub fn wheel(packages: &Packages) -> CaseResult {
    let home = TestHome::new();
    let Some(environment) = PythonEnvironment::create(&home)? else {
        return Ok(CaseOutcome::NotRun("python3 with venv and pip is not installed".to_owned()));
    };
    let wheel = packages.find(".whl")?;
    let prefix = &environment.folder;
    run(command_in(&home, prefix.join("bin/python")).args(["-c", CHECK_RECORD]).arg(&wheel))?;
    let before = files(prefix);
    run(environment.pip(&home).args(["install", "--no-index"]).arg(&wheel))?;
    check_wharf(&home, &prefix.join("bin/wharf"), &packages.version)?;
    check_files(prefix, &SHARED_FILES)?;
    run(environment.pip(&home).arg("check"))?;
    run(environment.pip(&home).args(["uninstall", "--yes", "wharf-mcp"]))?;
    check_unchanged(&before, &files(prefix))?;
    CaseOutcome::passed("")
}

pub fn uvx(packages: &Packages) -> CaseResult {
    let peers = env::var_os("WHARF_PEERS").map(|peers| PathBuf::from(peers).join("py1/bin/uvx"));
    let uvx = peers.filter(|uvx| uvx.is_file()).or_else(|| find_program("uvx"));
    let (Some(uvx), Some(python)) = (uvx, python()) else {
        return Ok(CaseOutcome::NotRun("uvx or python3 is not installed".to_owned()));
    };
    let home = TestHome::new();
    let mut command = command_in(&home, uvx);
    command.args(["--offline", "--no-config", "--quiet", "--from"]).arg(packages.find(".whl")?);
    command.args(["wharf", "--version"]).env("UV_PYTHON", python).env("UV_CACHE_DIR", home.path("cache"));
    let stated = run(&mut command)?;
    expect(stated == format!("wharf {}", packages.version), || format!("--version printed {stated}"))?;
    CaseOutcome::passed("")
}

/// Returns an npm command for a prefix, without a network and without scripts.
pub fn npm_command(home: &TestHome, words: &[&str]) -> Option<Command> {
    let mut command = command_in(home, find_program("npm")?);
    command.args(words).args(["--offline", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier"]);
    command.arg("--registry").arg(NO_REGISTRY).arg("--cache").arg(home.path("cache"));
    // npm is a script for `node`, which may be elsewhere on the search path.
    command.env("PATH", env::var_os("PATH").unwrap_or_default());
    Some(command)
}

fn npm_is_missing() -> CaseResult {
    Ok(CaseOutcome::NotRun("npm is not installed".to_owned()))
}

/// npm leaves empty directories in a global prefix, so only files are compared.
pub fn npm(packages: &Packages) -> CaseResult {
    let home = TestHome::new();
    let prefix = home.path("prefix");
    std::fs::create_dir(&prefix).unwrap();
    let Some(mut install) = npm_command(&home, &["install", "--global"]) else { return npm_is_missing() };
    run(install.arg("--prefix").arg(&prefix).args(packages.npm()?))?;
    check_wharf(&home, &prefix.join("bin/wharf"), &packages.version)?;
    check_files(&prefix, &["share/man/man1/wharf.1", "lib/node_modules/wharf-mcp/completions/wharf.bash"])?;
    let Some(mut remove) = npm_command(&home, &["uninstall", "--global"]) else { return npm_is_missing() };
    run(remove.arg("--prefix").arg(&prefix).args(["wharf-mcp", "wharf-mcp-linux-x64"]))?;
    check_unchanged(&Default::default(), &files(&prefix))?;
    run_by_npx(packages, &home)?;
    CaseOutcome::passed("")
}

/// Runs the command from the npm cache, as `npx wharf-mcp` does.
fn run_by_npx(packages: &Packages, home: &TestHome) -> Result<(), String> {
    let Some(mut execute) = npm_command(home, &["exec", "--yes"]) else { return Ok(()) };
    for package in packages.npm()? {
        execute.arg("--package").arg(package);
    }
    let stated = run(execute.args(["--", "wharf", "--version"]))?;
    expect(stated == format!("wharf {}", packages.version), || format!("--version printed {stated}"))
}

pub fn npm_without_platform(packages: &Packages) -> CaseResult {
    let home = TestHome::new();
    let [command, _] = packages.npm()?;
    run(Command::new("tar").arg("-xzf").arg(command).arg("-C").arg(home.root()))?;
    let shim: &Path = &home.path("package/bin/wharf");
    let failure = run(command_in(&home, shim).arg("--version")).err().ok_or("the shim ran without a binary")?;
    expect(failure.contains("wharf-mcp-linux-x64 is not installed"), || failure.clone())?;
    CaseOutcome::passed("")
}
