//! Faults of the process: exits, refusal to exit, closed pipes, and leftover processes.

use std::io::Write;
use std::process::{abort, exit};
use std::sync::Arc;

use rustix::process::{Resource, Rlimit, Signal, getpid, kill_process, setrlimit};

use super::server::{StdioFaultServer, linger_until_killed};
use super::{FaultMoment, FaultOccurrence, StdioFault, child_processes, stdout};

pub fn find(name: &str) -> Option<StdioFault> {
    Some(match name {
        "S02" => StdioFault::at_start(|_, _| die(0)),
        "S03" => StdioFault::when_ready(|_, _| die(1)),
        "S03-list" => {
            StdioFault::Intercept { act: |_, message| message.is_method("tools/list") && die(1), handshake_only: false }
        }
        "S04" => StdioFault::once(|_, _| abort_quietly()),
        "S04-segv" => StdioFault::once(|_, _| segfault()),
        "S05" => StdioFault::once(answer_without_newline),
        "S06" => StdioFault::once(answer_and_exit),
        "S07" => StdioFault::once(close_stdout),
        "S08" => StdioFault::once(close_stdin),
        "S08-mute" => StdioFault::once(close_stdin_silently),
        "S09" => StdioFault::at_start(|_, _| linger_until_killed()),
        "deaf" => StdioFault::when_ready(|_, _| linger_until_killed()),
        "deaf-babbling" => StdioFault::when_ready(send_malformed_requests),
        "S37" => StdioFault::once(flood_stderr),
        "S38" => StdioFault::at_start(ignore_shutdown),
        "S39" => StdioFault::once(stop_self),
        "S40" => StdioFault::at_start(leave_a_holder),
        "S40-wait" => StdioFault::at_start(wrap_server),
        "S41" => StdioFault::at_start(leave_daemons),
        "S42" => StdioFault::at_start(leave_a_stdout_holder),
        "S43" => StdioFault::at_start(leave_zombies),
        "S44" => StdioFault::at_start(allocate_memory),
        _ => return None,
    })
}

/// Exits after a message on stderr, so that there is a stderr tail to show.
fn die(code: i32) -> ! {
    eprintln!("faultd: exiting with {code}, as asked");
    exit(code)
}

fn abort_quietly() -> ! {
    forbid_core();
    abort()
}

fn segfault() -> ! {
    forbid_core();
    loop {
        // Repeat: the first signal is consumed by Rust's guard-page handler, which then uninstalls itself.
        kill_process(getpid(), Signal::SEGV).ok();
    }
}

fn forbid_core() {
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) }).ok();
}

fn answer_without_newline(server: &Arc<StdioFaultServer>, strike: &FaultOccurrence) {
    server.out.bytes(strike.line.as_bytes());
    exit(0)
}

fn answer_and_exit(server: &Arc<StdioFaultServer>, strike: &FaultOccurrence) {
    strike.deliver(server);
    exit(0)
}

fn close_stdout(server: &Arc<StdioFaultServer>, _: &FaultOccurrence) {
    server.out.close().ok();
}

fn close_stdin(server: &Arc<StdioFaultServer>, strike: &FaultOccurrence) {
    close_stdin_silently(server, strike);
    std::thread::sleep(server.options.delay(1000));
    strike.deliver(server);
}

fn close_stdin_silently(server: &Arc<StdioFaultServer>, _: &FaultOccurrence) {
    server.linger();
    stdout::close_stdin().ok();
}

/// Stops reading, and sends messages that provoke long replies.
fn send_malformed_requests(server: &Arc<StdioFaultServer>, _: &FaultOccurrence) {
    for number in 0..server.options.count.unwrap_or(100_000) {
        server.out.line(format!(r#"{{"jsonrpc":"2.0","id":{number},"method":7}}"#));
    }
    linger_until_killed()
}

fn flood_stderr(server: &Arc<StdioFaultServer>, strike: &FaultOccurrence) {
    let chunk = [b'e'; 1 << 16];
    let mut left = server.options.bytes.unwrap_or(64 << 20);
    let mut stderr = std::io::stderr().lock();
    while left > 0 {
        let now = left.min(chunk.len());
        if stderr.write_all(&chunk[..now]).is_err() {
            break;
        }
        left -= now;
    }
    strike.deliver(server);
}

/// A call affected by this stays unanswered, so that it is in flight when the client closes.
fn ignore_shutdown(server: &Arc<StdioFaultServer>, _: &FaultOccurrence) {
    server.linger();
    ignore_terminate();
}

#[expect(unsafe_code, reason = "no safe API sets a signal to be ignored")]
fn ignore_terminate() {
    // SAFETY: SIG_IGN installs no handler, so no code runs in signal context.
    unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
}

/// Stops the process; answers if it is continued.
fn stop_self(server: &Arc<StdioFaultServer>, strike: &FaultOccurrence) {
    kill_process(getpid(), Signal::STOP).ok();
    strike.deliver(server);
}

/// At the start, the remaining process is a server, as behind a wrapper script without `exec`.
fn leave_a_holder(server: &Arc<StdioFaultServer>, strike: &FaultOccurrence) {
    if strike.moment == FaultMoment::Start {
        child_processes::start_server(server);
    } else {
        child_processes::start_holder();
    }
    exit(0)
}

/// Waits for a server on the same pipes, like `sh -c 'server; true'`.
fn wrap_server(server: &Arc<StdioFaultServer>, _: &FaultOccurrence) {
    let status = child_processes::start_server(server).and_then(|mut child| child.wait().ok());
    exit(status.and_then(|status| status.code()).unwrap_or(1))
}

fn leave_daemons(server: &Arc<StdioFaultServer>, strike: &FaultOccurrence) {
    child_processes::start_daemons();
    strike.deliver(server);
}

fn leave_a_stdout_holder(_: &Arc<StdioFaultServer>, _: &FaultOccurrence) {
    child_processes::start_stdout_holder();
    exit(0)
}

fn leave_zombies(server: &Arc<StdioFaultServer>, _: &FaultOccurrence) {
    for _ in 0..server.options.count.unwrap_or(5) {
        child_processes::start_zombie();
    }
    exit(1)
}

fn allocate_memory(server: &Arc<StdioFaultServer>, strike: &FaultOccurrence) {
    Box::leak(vec![1u8; server.options.bytes.unwrap_or(400 << 20)].into_boxed_slice());
    strike.deliver(server);
}
