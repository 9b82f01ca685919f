//! The static binary in a root file system with nothing but itself, `/proc`, `/dev/null` and a writable `/tmp`.
//!
//! A user and mount namespace gives the root directory, a process namespace its `/proc`; the binary is process 1, as in
//! a container without an init. The network is that of the machine: without `/etc` no name resolves.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use wharf_testkit::pty::{Layout, Terminal};
use wharf_testkit::test_home::TestHome;

use crate::commands::{expect, run};
use crate::fixture::Packages;
use crate::{CaseOutcome, CaseResult};

/// A user id without a name.
const OTHER_USER: &str = "12345";
const COLUMNS: u16 = 60;

/// Mounts and then runs `/wharf` in the root directory `$0` with the rest of the arguments.
const ENTER: &str = r#"mount -t proc proc "$0/proc" && mount --bind /dev/null "$0/dev/null" && "#;
const AS_ROOT: &str = r#"exec chroot "$0" /wharf "$@""#;
const READ_ONLY_HOME: &str = r#"mount --bind "$0/home" "$0/home" && mount -o remount,ro,bind "$0/home" && "#;

/// A root directory.
struct BareRoot {
    folder: PathBuf,
    _home: TestHome,
}

#[derive(Clone, Copy, PartialEq)]
enum RunAs {
    Root,
    OtherUser,
    RootWithReadOnlyHome,
}

impl BareRoot {
    fn create(packages: &Packages) -> Result<Self, String> {
        let home = TestHome::new();
        let unpacked = packages.unpack(home.root())?;
        let folder = home.path("root");
        for name in ["proc", "dev", "tmp", "home"] {
            fs::create_dir_all(folder.join(name)).unwrap();
        }
        fs::write(folder.join("dev/null"), "").unwrap();
        fs::set_permissions(folder.join("tmp"), fs::Permissions::from_mode(0o1777)).unwrap();
        fs::rename(unpacked.join("wharf"), folder.join("wharf")).unwrap();
        // Another user must be able to enter.
        fs::set_permissions(home.root(), fs::Permissions::from_mode(0o755)).unwrap();
        Ok(Self { folder, _home: home })
    }

    fn command(&self, run_as: RunAs, words: &[&str]) -> Command {
        let is_root = run(Command::new("id").arg("-u")).is_ok_and(|id| id == "0");
        let mut command = Command::new("unshare");
        command.args(["--mount", "--pid", "--fork", "--kill-child"]);
        let enter = match run_as {
            RunAs::OtherUser if is_root => {
                format!(r#"exec chroot --userspec={OTHER_USER}:{OTHER_USER} "$0" /wharf "$@""#)
            }
            RunAs::OtherUser => format!(r#"exec unshare --user --map-user={OTHER_USER} --root="$0" /wharf "$@""#),
            RunAs::Root => AS_ROOT.to_owned(),
            RunAs::RootWithReadOnlyHome => format!("{READ_ONLY_HOME}{AS_ROOT}"),
        };
        if run_as != RunAs::OtherUser || !is_root {
            command.arg("--map-root-user");
        }
        command.args(["sh", "-c", &format!("{ENTER}{enter}")]).arg(&self.folder).args(words);
        let home = if run_as == RunAs::RootWithReadOnlyHome { "/home" } else { "/tmp" };
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("HOME", home);
        command
    }
}

/// Runs the tour and one call.
fn check_demo(packages: &Packages, run_as: RunAs, term: &str) -> Result<String, String> {
    let root = BareRoot::create(packages)?;
    let text = run(root.command(run_as, &["demo"]).env("TERM", term))?;
    let passed = text.matches("passed").count();
    expect(passed > 5, || format!("the tour did not pass:\n{text}"))?;
    expect(!text.contains('\x1b'), || "escapes in a pipe".to_owned())?;
    let call = ["call", "echo", "text=Ahoy", "--stdio", "/wharf demo-server"];
    let answer = run(&mut root.command(run_as, &call))?;
    expect(answer == "Ahoy", || format!("the server answered {answer}"))?;
    Ok(format!("{passed} steps of the tour and a call"))
}

fn demo_case(packages: &Packages, run_as: RunAs, term: &str) -> CaseResult {
    if let Some(reason) = unavailable() {
        return Ok(CaseOutcome::NotRun(reason));
    }
    check_demo(packages, run_as, term).and_then(CaseOutcome::passed)
}

/// Returns why a root directory cannot be made here.
fn unavailable() -> Option<String> {
    let probe = run(Command::new("unshare").args(["--map-root-user", "--mount", "--pid", "--fork", "true"]));
    probe.err().map(|failure| format!("namespaces are not available: {failure}"))
}

pub fn demo(packages: &Packages) -> CaseResult {
    demo_case(packages, RunAs::Root, "xterm")
}

pub fn demo_as_another_user(packages: &Packages) -> CaseResult {
    demo_case(packages, RunAs::OtherUser, "xterm")
}

pub fn demo_with_read_only_home(packages: &Packages) -> CaseResult {
    demo_case(packages, RunAs::RootWithReadOnlyHome, "xterm")
}

pub fn demo_with_dumb_terminal(packages: &Packages) -> CaseResult {
    demo_case(packages, RunAs::Root, "dumb")
}

/// Runs the tour on a terminal. Lines of the help fit into it.
pub fn demo_at_60_columns(packages: &Packages) -> CaseResult {
    if let Some(reason) = unavailable() {
        return Ok(CaseOutcome::NotRun(reason));
    }
    let root = BareRoot::create(packages)?;
    let layout = Layout { columns: COLUMNS, ..Layout::default() };
    let demo = Terminal::start_with(&root.command(RunAs::Root, &["demo"]), layout).end();
    expect(demo.code == Some(0), || format!("exit code {:?}:\n{}", demo.code, demo.shown))?;
    let help = Terminal::start_with(&root.command(RunAs::Root, &["--help"]), layout).end();
    let widest = help.shown.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    expect(help.code == Some(0) && widest <= COLUMNS.into(), || format!("the help is {widest} wide:\n{}", help.shown))?;
    CaseOutcome::passed(format!("widest line of the help: {widest}"))
}

pub fn unresolvable_name(packages: &Packages) -> CaseResult {
    check_unreachable(packages, "http://mcp.example.org/mcp", "mcp.example.org")
}

/// Nothing listens at this address: the error is about the connection, not about certificates, which are built in.
pub fn https_without_system_certificates(packages: &Packages) -> CaseResult {
    check_unreachable(packages, "https://127.0.0.1:9/mcp", "connection failed")
}

/// Checks that a server over HTTP is reported as unreachable (exit code 3), and quotes the error.
fn check_unreachable(packages: &Packages, url: &str, named: &str) -> CaseResult {
    if let Some(reason) = unavailable() {
        return Ok(CaseOutcome::NotRun(reason));
    }
    let root = BareRoot::create(packages)?;
    let Output { status, stderr, .. } =
        root.command(RunAs::Root, &["tools", "--url", url]).stdin(Stdio::null()).output().unwrap();
    let stderr = String::from_utf8_lossy(&stderr).into_owned();
    expect(status.code() == Some(3) && stderr.contains(named), || format!("{status}: {stderr}"))?;
    let error = stderr.lines().find(|line| line.starts_with("error:"));
    CaseOutcome::passed(error.unwrap_or_default())
}
