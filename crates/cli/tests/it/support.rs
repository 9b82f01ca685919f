//! Running `wharf` in a cleared environment, and servers to run it against.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{OnceLock, mpsc};
use std::time::Duration;

use serde_json::{Value, json};
use wharf_testkit::test_home::{CommandOutput, wharf_command};

pub const WHARF: &str = env!("CARGO_BIN_EXE_wharf");

/// Every revision the demo server speaks; none pins it to nothing.
pub const REVISIONS: [&str; 5] = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// Those in which a server may ask a person something.
pub const ASKING: [&str; 3] = ["2026-07-28", "2025-11-25", "2025-06-18"];

/// A command that will see nothing of this process's environment.
pub fn wharf<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = wharf_command(args);
    command.env("HOME", home()).current_dir(home());
    command
}

pub fn run<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> CommandOutput {
    wharf(args).output().unwrap().into()
}

/// The configuration entry of a demo server.
pub fn working() -> Value {
    json!({"command": WHARF, "args": ["demo-server", "--stdio"]})
}

/// The same as text.
pub fn demo_entry() -> String {
    format!(r#"{{"command": {:?}, "args": ["demo-server", "--stdio"]}}"#, Path::new(WHARF))
}

/// The configuration entry of a server that writes an error to stderr and exits.
pub fn boom() -> Value {
    shell("echo 'boom: missing API key' >&2; exit 3")
}

/// The configuration entry of a server that is a line of shell.
pub fn shell(script: &str) -> Value {
    json!({"command": "sh", "args": ["-c", script]})
}

/// The command line of a demo server.
pub fn demo(revision: &str) -> String {
    format!("{} demo-server --stdio --revision {revision}", quoted(Path::new(WHARF)))
}

/// The command line of a demo server that changes by itself.
pub fn tidal(revision: &str) -> String {
    format!("{} --tide 30", demo(revision))
}

/// The command line of a server that commits a fault.
pub fn faultd(arguments: &str) -> String {
    format!("{} stdio {arguments}", quoted(fault_server()))
}

pub fn quoted(path: &Path) -> String {
    shlex::try_quote(path.to_str().unwrap()).unwrap().into_owned()
}

/// The fault server beside `wharf`, built if nobody has done so yet.
pub fn fault_server() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let directory = Path::new(WHARF).parent().unwrap();
        let path = directory.join("faultd");
        if !path.exists() {
            let mut build = Command::new(env!("CARGO"));
            build.args(["build", "--quiet", "--package", "wharf-testkit", "--bin", "faultd"]);
            build.env("CARGO_TARGET_DIR", directory.parent().unwrap()).current_dir(env!("CARGO_MANIFEST_DIR"));
            if directory.ends_with("release") {
                build.arg("--release");
            }
            assert!(build.status().unwrap().success());
        }
        path
    })
}

/// A home of its own for this run of the tests.
pub fn home() -> &'static Path {
    static HOME: OnceLock<PathBuf> = OnceLock::new();
    HOME.get_or_init(|| {
        let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("home");
        std::fs::create_dir_all(&home).unwrap();
        home
    })
}

/// A pipe of this name among those of this run of the tests.
pub fn pipe_at_home(name: &str) -> PathBuf {
    let path = home().join(format!("{name}.pipe"));
    let _ = std::fs::remove_file(&path);
    named_pipe(&path);
    path
}

/// Makes a pipe; whoever opens one end waits for somebody at the other.
pub fn named_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// A named pipe by which some process says something once.
pub struct Pipe {
    pub path: PathBuf,
    written: mpsc::Receiver<String>,
}

impl Pipe {
    pub fn new(name: &str) -> Self {
        let path = pipe_at_home(name);
        let (text, written) = mpsc::channel();
        let pipe = path.clone();
        // Reading waits for a writer, and there may be none: nobody waits for this thread.
        std::thread::spawn(move || text.send(std::fs::read_to_string(pipe).unwrap()));
        Self { path, written }
    }

    /// Waits for what is written.
    #[track_caller]
    pub fn written(&self) -> String {
        self.written.recv_timeout(Duration::from_secs(30)).unwrap()
    }

    pub fn is_untouched(&self) -> bool {
        self.written.try_recv().is_err()
    }
}

/// A file that `cargo xtask peers` installs.
pub fn installed(file: &str) -> PathBuf {
    let beside = || Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("peers");
    let path = std::env::var_os("WHARF_PEERS").map_or_else(beside, PathBuf::from).join(file);
    assert!(path.exists(), "run `cargo xtask peers` first: no {}", path.display());
    path
}

/// No control character but the line end, and nothing that reorders or hides.
#[track_caller]
pub fn assert_harmless(text: &str) {
    let acts = |letter: char| {
        (letter.is_control() && letter != '\n' && letter != '\t')
            || ('\u{202a}'..='\u{202e}').contains(&letter)
            || ('\u{2066}'..='\u{2069}').contains(&letter)
    };
    assert!(!text.contains(acts), "{text:?}");
}
