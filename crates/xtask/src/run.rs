//! Subprocesses and paths.

use std::env;
use std::error::Error;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub type TaskResult<T = ()> = Result<T, Box<dyn Error>>;

/// Prints a status line to stderr.
macro_rules! say {
    ($($words:tt)*) => { eprintln!("xtask: {}", format_args!($($words)*)) };
}
pub(crate) use say;

/// Returns the workspace root.
pub fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).unwrap_or(package).to_owned()
}

/// Returns cargo's target folder, which also holds installed tools and results.
pub fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |given| root().join(given))
}

/// Returns a command for the cargo that started this program, in the workspace root.
pub fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Runs a command to its end, with inherited output and no input.
pub fn run(command: &mut Command) -> TaskResult {
    say!("{}", command_line(command));
    let status = command.stdin(Stdio::null()).status().map_err(|error| start_error(command, error))?;
    if status.success() { Ok(()) } else { Err(format!("{} failed: {status}", command_line(command)).into()) }
}

/// Runs a command silently. Returns its output, or an error with its stderr.
pub fn capture(command: &mut Command) -> TaskResult<CapturedOutput> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| start_error(command, error))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() {
        return Ok(CapturedOutput { stdout, stderr });
    }
    Err(format!("{} failed: {}\n{}", command_line(command), output.status, stderr.trim_end()).into())
}

pub struct CapturedOutput {
    pub stdout: String,
    pub stderr: String,
}

/// Reports whether a program is on the search path.
pub fn on_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Formats a command as typed in a shell.
pub fn command_line(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str());
    let words = std::iter::once(name).chain(command.get_args()).map(OsStr::to_string_lossy);
    words.collect::<Vec<_>>().join(" ")
}

pub fn start_error(command: &Command, error: std::io::Error) -> String {
    format!("cannot start {}: {error}", command.get_program().to_string_lossy())
}

/// Parses the number after a flag.
pub fn parse_number<T: std::str::FromStr>(flag: &str, value: Option<&&str>) -> TaskResult<T> {
    let value = value.ok_or_else(|| format!("{flag} needs a number"))?;
    value.parse().map_err(|_| format!("{flag} needs a number, not {value}").into())
}

/// Date and machine of a measurement, for the head of a report.
pub struct MachineDescription {
    pub date: String,
    pub kernel: String,
    pub cores: usize,
    pub processor: String,
}

impl MachineDescription {
    pub fn detect() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let processors = read("/proc/cpuinfo");
        let model = processors.lines().find(|line| line.starts_with("model name"));
        let model = model.and_then(|line| line.split_once(':')).map(|(_, name)| name.trim());
        let date = capture(Command::new("date").args(["-u", "+%F"]));
        Self {
            date: date.map(|date| date.stdout.trim().to_owned()).unwrap_or_default(),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            processor: model.unwrap_or("unknown processor").to_owned(),
        }
    }
}
