//! Installs every package into an empty prefix without a network, calls a server with it, and removes it.
//!
//! `cargo test -p xtask --test packages [-- [FILTER] [--packages DIR] [--proof] [--table FILE]]`
//!
//! Without `--packages` the packages are made from the `wharf` of the test build. `--proof` adds the cases that need a
//! static binary, and measurements. A case whose tool (npm, pip, dpkg) is missing is listed as not run; with `CI=true`
//! it fails.

#![allow(
    clippy::print_stdout,
    clippy::exit,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test runner prints, exits, reads its environment and may panic"
)]

mod bare_root;
mod commands;
mod fixture;
mod installer;
mod installs;
mod managers;
mod measures;
mod report;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use fixture::Packages;
use report::CaseReport;

/// A test of the packages.
struct PackageCase {
    name: &'static str,
    run: fn(&Packages) -> CaseResult,
    scope: CaseScope,
}

#[derive(Clone, Copy, PartialEq)]
enum CaseScope {
    Test,
    /// Needs a static, optimised binary.
    Proof,
}

/// Details for the report, or the reason of failure.
type CaseResult = Result<CaseOutcome, String>;

enum CaseOutcome {
    Passed(String),
    /// A program that the case needs is missing.
    NotRun(String),
}

impl CaseOutcome {
    fn passed(details: impl Into<String>) -> CaseResult {
        Ok(Self::Passed(details.into()))
    }
}

const CASES: &[PackageCase] = &[
    test("archive_runs_where_it_is_unpacked", installs::archive),
    test("deb_installs_and_purges", installs::deb),
    test("sums_and_sbom_describe_the_packages", installs::sums_and_sbom),
    test("installer_installs_and_uninstalls", installer::install_and_uninstall),
    test("installer_refuses_a_damaged_archive", installer::damaged_archive),
    test("installer_keeps_files_of_others", installer::files_of_others),
    test("wheel_installs_with_pip", managers::wheel),
    test("wheel_runs_with_uvx", managers::uvx),
    test("npm_package_installs_without_scripts", managers::npm),
    test("npm_shim_names_a_missing_platform_package", managers::npm_without_platform),
    proof("demo_runs_in_a_bare_root", bare_root::demo),
    proof("demo_runs_as_another_user", bare_root::demo_as_another_user),
    proof("demo_runs_with_a_read_only_home", bare_root::demo_with_read_only_home),
    proof("demo_runs_with_a_dumb_terminal", bare_root::demo_with_dumb_terminal),
    proof("demo_runs_at_60_columns", bare_root::demo_at_60_columns),
    proof("missing_resolver_configuration_is_an_error", bare_root::unresolvable_name),
    proof("https_needs_no_certificates_of_the_system", bare_root::https_without_system_certificates),
    proof("packages_are_reproducible", measures::reproducible),
    proof("first_call_follows_pip_install_within_10_s", measures::pip_to_first_call),
    proof("npm_shim_takes_at_most_30_ms", measures::npm_overhead),
    proof("sizes", measures::sizes),
];

const fn test(name: &'static str, run: fn(&Packages) -> CaseResult) -> PackageCase {
    PackageCase { name, run, scope: CaseScope::Test }
}

const fn proof(name: &'static str, run: fn(&Packages) -> CaseResult) -> PackageCase {
    PackageCase { name, run, scope: CaseScope::Proof }
}

/// The command line.
#[derive(Default)]
struct Arguments {
    filter: Option<String>,
    packages: Option<PathBuf>,
    table: Option<PathBuf>,
    proof: bool,
}

fn main() {
    let arguments = parse(std::env::args().skip(1));
    let packages = match Packages::open(arguments.packages.clone()) {
        Ok(packages) => packages,
        Err(failure) => {
            println!("cannot make the packages: {failure}\ntest result: FAILED. 0 passed; 1 failed; 0 ignored");
            std::process::exit(1);
        }
    };
    let mut report = CaseReport::new(std::env::var("CI").is_ok_and(|value| value == "true"));
    for case in CASES.iter().filter(|case| arguments.selects(case)) {
        let result = catch_unwind(AssertUnwindSafe(|| (case.run)(&packages)));
        report.add(case.name, result.unwrap_or_else(|_| Err("panicked".to_owned())));
    }
    if let Some(path) = &arguments.table {
        report.write_table(path);
    }
    std::process::exit(report.finish());
}

fn parse(mut words: impl Iterator<Item = String>) -> Arguments {
    let mut arguments = Arguments::default();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--packages" => arguments.packages = words.next().map(PathBuf::from),
            "--table" => arguments.table = words.next().map(PathBuf::from),
            "--proof" => arguments.proof = true,
            other if !other.starts_with('-') => arguments.filter = Some(word),
            _ => {}
        }
    }
    arguments
}

impl Arguments {
    fn selects(&self, case: &PackageCase) -> bool {
        let is_named = self.filter.as_deref().is_none_or(|filter| case.name.contains(filter));
        is_named && (self.proof || case.scope == CaseScope::Test)
    }
}
