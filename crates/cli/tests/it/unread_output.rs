//! Output that nobody reads: neither a deadline nor a signal waits for it (L3).

use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::pipe::{PipeFlags, pipe_with};
use wharf_testkit::test_home::TestHome;

use crate::scripted::loud;
use crate::signals::send;
use crate::support::Pipe;

/// Both ends of a pipe that accepts nothing more.
struct FullPipe {
    _reader: OwnedFd,
    writer: OwnedFd,
}

impl FullPipe {
    fn new() -> Self {
        let (reader, writer) = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC).unwrap();
        while rustix::io::write(&writer, &[b'.'; 4096]).is_ok() {}
        while rustix::io::write(&writer, b".").is_ok() {}
        fcntl_setfl(&writer, OFlags::empty()).unwrap();
        Self { _reader: reader, writer }
    }

    fn stdio(&self) -> Stdio {
        self.writer.try_clone().unwrap().into()
    }
}

/// A started command, killed on drop.
struct StartedCommand {
    process: u32,
    ended: mpsc::Receiver<ExitStatus>,
    has_ended: bool,
}

impl StartedCommand {
    fn new(mut child: Child) -> Self {
        let (process, (end, ended)) = (child.id(), mpsc::channel());
        std::thread::spawn(move || end.send(child.wait().unwrap()));
        Self { process, ended, has_ended: false }
    }

    /// Waits for the end.
    #[track_caller]
    fn wait(&mut self) -> ExitStatus {
        let status = self.ended.recv_timeout(Duration::from_secs(30)).expect("the command did not end");
        self.has_ended = true;
        status
    }
}

impl Drop for StartedCommand {
    fn drop(&mut self) {
        if !self.has_ended {
            send("KILL", self.process);
        }
    }
}

fn is_alive(process: &str) -> bool {
    Path::new("/proc").join(process).exists()
}

/// Starts a call that logs and hangs, on the full pipe. Returns it and the server's process id.
fn start_call(home: &TestHome, pipe: &FullPipe, name: &str, extra: &[&str]) -> (StartedCommand, String) {
    let underway = Pipe::new(name);
    let server = loud(name, &underway.path);
    let mut command = home.command(["call", "sign_in", "--log", "debug", "--debug", "--stdio", &server]);
    let child = command.args(extra).stdout(pipe.stdio()).stderr(pipe.stdio()).spawn().unwrap();
    let child = StartedCommand::new(child);
    (child, underway.written().trim().to_owned())
}

#[test]
fn unread_output_does_not_delay_a_deadline() {
    for extra in [vec!["--timeout", "1"], vec!["--timeout", "1", "--json"]] {
        let (home, pipe) = (TestHome::new(), FullPipe::new());
        let (mut child, server) = start_call(&home, &pipe, &format!("unread-deadline-{}", extra.len()), &extra);
        assert_eq!(child.wait().code(), Some(7), "{extra:?}");
        assert!(!server.is_empty() && !is_alive(&server), "{server}");
    }
}

#[test]
fn first_signal_ends_a_command_whose_output_is_not_read() {
    for signal in ["TERM", "INT", "HUP"] {
        let (home, pipe) = (TestHome::new(), FullPipe::new());
        let (mut child, server) = start_call(&home, &pipe, &format!("unread-{signal}"), &[]);
        send(signal, child.process);
        assert_eq!(child.wait().code(), Some(130), "{signal}");
        assert!(!server.is_empty() && !is_alive(&server), "{server}");
    }
}

#[test]
fn late_reader_gets_all_output_in_order() {
    let home = TestHome::new();
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    let mut command = home.command(["schema"]);
    let mut child = StartedCommand::new(command.stdout(Stdio::from(writer)).spawn().unwrap());
    drop(command);
    let mut text = String::new();
    std::io::Read::read_to_string(&mut std::fs::File::from(reader), &mut text).unwrap();
    assert_eq!(child.wait().code(), Some(0));
    assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{} bytes", text.len());
}
