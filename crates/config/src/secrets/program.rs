//! A program that outputs a secret.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use wharf_spec::{Environment, Secret, UntrustedText};

use super::SecretError;
use crate::approvals::file_digests::find_on_path;

/// Maximum run time of a program.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum bytes of its output.
const MAX_OUTPUT_BYTES: u64 = 64 << 10;
/// Maximum bytes of its standard error output.
const MAX_STDERR_BYTES: u64 = 4 << 10;
/// Interval for checking whether a program has exited after its output ended.
const EXIT_POLL_INTERVAL: Duration = Duration::from_millis(2);

/// A program, its arguments and its input.
pub(crate) struct SecretProgram {
    file: OsString,
    arguments: Vec<String>,
    /// Directory in which it starts.
    directory: PathBuf,
    input: Option<String>,
    limit: Duration,
}

impl SecretProgram {
    pub(crate) fn new(file: PathBuf, arguments: Vec<String>) -> Self {
        Self { file: file.into(), arguments, directory: "/".into(), input: None, limit: PROGRAM_TIMEOUT }
    }

    /// Starts the program in this directory instead of the root directory.
    pub(crate) fn with_directory(self, directory: PathBuf) -> Self {
        Self { directory, ..self }
    }

    /// Creates the user's command, with the secret's name in place of `{name}`.
    pub(super) fn from_command(command: &[String], name: &str) -> Self {
        let (file, arguments) =
            command.split_first().map_or((OsStr::new(""), command), |(file, rest)| (file.as_ref(), rest));
        let arguments = arguments.iter().map(|argument| argument.replace("{name}", name)).collect();
        Self::new(file.into(), arguments)
    }

    pub(super) fn with_input(self, input: String) -> Self {
        Self { input: Some(input), ..self }
    }

    #[cfg(test)]
    pub(super) fn with_limit(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// Runs the program and returns its output as the secret, without one trailing line break.
    pub(crate) fn run(self, around: &Environment) -> Result<Secret, SecretError> {
        let program = self.name();
        let bad = |what| SecretError::BadAnswer { program: program.clone(), what };
        let answer = self.collect_output(around)?;
        if answer.len() as u64 > MAX_OUTPUT_BYTES {
            return Err(bad("longer than 64 KiB"));
        }
        let text = String::from_utf8(answer).map_err(|_| bad("not UTF-8"))?;
        let text = text.strip_suffix("\r\n").or_else(|| text.strip_suffix('\n')).unwrap_or(&text);
        if text.is_empty() { Err(bad("empty")) } else { Ok(Secret::new(text.to_owned())) }
    }

    /// Runs the program and discards its output.
    pub(super) fn run_silently(self, around: &Environment) -> Result<(), SecretError> {
        self.collect_output(around).map(drop)
    }

    fn collect_output(self, around: &Environment) -> Result<Vec<u8>, SecretError> {
        let program = self.name();
        let limit = self.limit;
        let deadline = Instant::now() + limit;
        let mut child =
            self.start(around).map_err(|source| SecretError::NotStarted { program: program.clone(), source })?;
        let streams = start_streams(&mut child, self.input);
        let ProgramOutput { answer, complaint } = match streams {
            Ok(streams) => streams,
            Err(source) => {
                let _ = child.kill().and_then(|()| child.wait());
                return Err(SecretError::NotStarted { program, source });
            }
        };
        let ended = match answer.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            // The output exceeds the limit: do not wait for the exit.
            Ok(answer) if answer.len() as u64 > MAX_OUTPUT_BYTES => Some((answer, None)),
            Ok(answer) => wait_for_exit(&mut child, deadline).map(|status| (answer, Some(status))),
            Err(_) => None,
        };
        let _ = child.kill().and_then(|()| child.wait());
        match ended {
            None => Err(SecretError::TooSlow { program, limit }),
            Some((_, Some(status))) if !status.success() => {
                let complaint = complaint.recv_timeout(EXIT_POLL_INTERVAL * 50).unwrap_or_default();
                let complaint = UntrustedText::from_bytes(complaint.trim_ascii()).to_string();
                Err(SecretError::Failed { program, status: status.to_string(), complaint })
            }
            Some((answer, _)) => Ok(answer),
        }
    }

    /// Starts the program with this environment: a program of the user needs all of it, for example for the session bus
    /// or an agent's socket. By default it starts in the root directory, because interpreters load modules from their working directory,
    /// which may be a repository.
    fn start(&self, around: &Environment) -> io::Result<Child> {
        let input = if self.input.is_some() { Stdio::piped() } else { Stdio::null() };
        Command::new(self.find_executable(around)?)
            .args(&self.arguments)
            .env_clear()
            .envs(around.env.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.directory)
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
    }

    /// Returns the executable. A name is looked up in the entries of the search path outside of the project, so that a
    /// project cannot supply its own. Relative paths are rejected.
    fn find_executable(&self, around: &Environment) -> io::Result<PathBuf> {
        let name = self.name();
        match PathBuf::from(&self.file) {
            file if file.is_absolute() => Ok(file),
            _ if name.contains('/') => Err(io::Error::new(io::ErrorKind::InvalidInput, "the path must be absolute")),
            _ => {
                let path = around.var("PATH").cloned().unwrap_or_default();
                find_on_path(&name, &path, around).ok_or_else(|| io::ErrorKind::NotFound.into())
            }
        }
    }

    pub(crate) fn name(&self) -> String {
        self.file.to_string_lossy().into_owned()
    }
}

/// Output of a program, each part sent once.
struct ProgramOutput {
    answer: mpsc::Receiver<Vec<u8>>,
    complaint: mpsc::Receiver<Vec<u8>>,
}

/// Starts the threads that write the input and read the output.
fn start_streams(child: &mut Child, input: Option<String>) -> io::Result<ProgramOutput> {
    let answer = read_in_background(child.stdout.take(), MAX_OUTPUT_BYTES + 1)?;
    let complaint = read_in_background(child.stderr.take(), MAX_STDERR_BYTES)?;
    write_input(child, input)?;
    Ok(ProgramOutput { answer, complaint })
}

/// Reads up to a limit in a separate thread, which ends when the pipe closes.
fn read_in_background(pipe: Option<impl Read + Send + 'static>, limit: u64) -> io::Result<mpsc::Receiver<Vec<u8>>> {
    let (sender, receiver) = mpsc::sync_channel(1);
    wharf_threads::start_thread("wharf-secret", move || {
        let mut bytes = Vec::new();
        let Some(mut pipe) = pipe else { return };
        let _ = pipe.by_ref().take(limit).read_to_end(&mut bytes);
        let _ = sender.send(bytes);
        // Drain the pipe, so that the program does not block on it.
        let _ = io::copy(&mut pipe, &mut io::sink());
    })?;
    Ok(receiver)
}

fn write_input(child: &mut Child, input: Option<String>) -> io::Result<()> {
    let (Some(mut pipe), Some(input)) = (child.stdin.take(), input) else { return Ok(()) };
    // In a separate thread, since a program that does not read would block the caller.
    wharf_threads::start_thread("wharf-secret", move || drop(pipe.write_all(input.as_bytes())))
}

fn wait_for_exit(child: &mut Child, deadline: Instant) -> Option<ExitStatus> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < deadline => thread::sleep(EXIT_POLL_INTERVAL),
            _ => return None,
        }
    }
}
