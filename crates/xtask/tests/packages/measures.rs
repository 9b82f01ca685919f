//! Sizes, times and equality of packages.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use wharf_testkit::test_home::TestHome;

use crate::commands::{call_echo, command_in, expect, run};
use crate::fixture::{Packages, make};
use crate::managers::{PythonEnvironment, npm_command};
use crate::{CaseOutcome, CaseResult};

const MAX_FIRST_CALL: Duration = Duration::from_secs(10);
const MAX_SHIM_OVERHEAD: Duration = Duration::from_millis(30);
/// Runs of each command; the medians are compared.
const RUNS: usize = 41;

/// Packages the binary of the archive twice, at different times.
pub fn reproducible(packages: &Packages) -> CaseResult {
    let home = TestHome::new();
    let unpacked = packages.unpack(home.root())?;
    let sums = ["one", "other"].map(|name| {
        let folder = home.path(name);
        make(&unpacked.join("wharf"), &folder).map(|()| fs::read_to_string(folder.join("SHA256SUMS")).unwrap())
    });
    let [one, other] = sums;
    expect(one? == other?, || "SHA256SUMS differ".to_owned())?;
    CaseOutcome::passed("SHA256SUMS of two runs are equal")
}

pub fn pip_to_first_call(packages: &Packages) -> CaseResult {
    let home = TestHome::new();
    let Some(environment) = PythonEnvironment::create(&home)? else {
        return Ok(CaseOutcome::NotRun("python3 with venv and pip is not installed".to_owned()));
    };
    let begin = Instant::now();
    run(environment.pip(&home).args(["install", "--no-index"]).arg(packages.find(".whl")?))?;
    let installed = begin.elapsed();
    call_echo(&home, &environment.folder.join("bin/wharf"))?;
    let called = begin.elapsed();
    expect(called <= MAX_FIRST_CALL, || format!("{called:?}"))?;
    let times = [installed, called].map(|time| format!("{:.1} s", time.as_secs_f64()));
    CaseOutcome::passed(format!("installed after {}, first result after {}", times[0], times[1]))
}

/// Compares `wharf --version` through the link that npm makes with the binary itself.
pub fn npm_overhead(packages: &Packages) -> CaseResult {
    let home = TestHome::new();
    let prefix = home.path("prefix");
    let Some(mut install) = npm_command(&home, &["install", "--global"]) else {
        return Ok(CaseOutcome::NotRun("npm is not installed".to_owned()));
    };
    run(install.arg("--prefix").arg(&prefix).args(packages.npm()?))?;
    let command = prefix.join("bin/wharf");
    let binary = prefix.join("lib/node_modules/wharf-mcp-linux-x64/bin/wharf");
    let mut times = [Vec::new(), Vec::new()];
    // Alternating runs see the same load.
    for _ in 0..RUNS {
        for (program, times) in [&command, &binary].into_iter().zip(&mut times) {
            times.push(time_of(&home, program));
        }
    }
    let [shim, direct] = times.map(|mut times| {
        times.sort();
        times[RUNS / 2]
    });
    let overhead = shim.saturating_sub(direct);
    expect(overhead <= MAX_SHIM_OVERHEAD, || format!("{overhead:?} over {direct:?}"))?;
    let millis = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1000.0);
    CaseOutcome::passed(format!("{} over {} (medians of {RUNS} runs of --version)", millis(overhead), millis(direct)))
}

fn time_of(home: &TestHome, program: &Path) -> Duration {
    let mut command: Command = command_in(home, program);
    let begin = Instant::now();
    let status = command.arg("--version").stdout(Stdio::null()).status();
    assert!(status.is_ok_and(|status| status.success()), "{command:?} failed");
    begin.elapsed()
}

pub fn sizes(packages: &Packages) -> CaseResult {
    let home = TestHome::new();
    let binary = packages.unpack(home.root())?.join("wharf");
    let [command, platform] = packages.npm()?;
    let named = [
        ("binary", binary),
        ("archive", packages.find(".tar.gz")?),
        ("wheel", packages.find(".whl")?),
        ("deb", packages.find(".deb")?),
        ("npm command", command),
        ("npm binary", platform),
    ];
    let size = |path: &Path| fs::metadata(path).map_or(0, |file| file.len()) as f64 / f64::from(1 << 20);
    let sizes: Vec<String> = named.iter().map(|(name, path)| format!("{name} {:.1} MiB", size(path))).collect();
    CaseOutcome::passed(sizes.join(", "))
}
