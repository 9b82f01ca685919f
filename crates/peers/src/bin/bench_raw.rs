//! The stdio limit: throughput of the pipes and the server with a client that only moves bytes.
//!
//! It sends the same request lines, byte for byte, as the client it is compared with, and counts line ends as
//! responses. A single caller writes and reads in turn, blocking. Several callers are a window of requests that one
//! thread keeps full with `poll`.

#![allow(clippy::unwrap_used, reason = "a benchmark panics on errors")]

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use memchr::{memchr_iter, memmem};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::ioctl_fionbio;
use rustix::pipe::fcntl_setpipe_size;
use wharf_peers::{BenchOptions, BenchReport, BenchStopwatch, Measurements, Template, WARM_UP, nanoseconds};

const PIPE_CAPACITY: usize = 128 * 1024;

fn main() {
    let options = BenchOptions::from_args();
    let mut server = RawServer::start(&options);
    server.check(&options);
    let (runtime, measured) = if options.conc == 1 {
        ("blocking", run_one_caller(&mut server, &options))
    } else {
        ("poll", run_window(&mut server, &options))
    };
    BenchReport::new("raw", runtime, &options, measured).print();
    server.stop();
}

struct RawServer {
    child: Child,
    stdin: ChildStdin,
    stdout: ChildStdout,
    request: Template,
    /// Receive buffer; only the first response is inspected.
    inbox: Vec<u8>,
}

impl RawServer {
    fn start(options: &BenchOptions) -> Self {
        let mut child = Command::new(&options.server).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = child.stdout.take().unwrap();
        fcntl_setpipe_size(&stdin, PIPE_CAPACITY).unwrap();
        fcntl_setpipe_size(&stdout, PIPE_CAPACITY).unwrap();
        let inbox = vec![0; (options.payload + 4096).max(1 << 18)];
        Self { child, stdin, stdout, request: Template::new(options), inbox }
    }

    /// Makes one call and verifies its response, before timing.
    fn check(&mut self, options: &BenchOptions) {
        let length = self.call(&mut Vec::new());
        let expected = format!(r#""text":"{}""#, options.text());
        let found = memmem::find(&self.inbox[..length], expected.as_bytes());
        assert!(found.is_some(), "the server did not echo the text");
    }

    /// Writes one request and reads its response. Returns the length of the response.
    fn call(&mut self, line: &mut Vec<u8>) -> usize {
        line.clear();
        self.request.append(line);
        line.push(b'\n');
        self.stdin.write_all(line).unwrap();
        let mut length = 0;
        loop {
            let count = self.stdout.read(&mut self.inbox[length..]).unwrap();
            assert!(count > 0, "the server closed its output");
            length += count;
            if self.inbox[length - 1] == b'\n' {
                return length;
            }
        }
    }

    fn stop(mut self) {
        drop(self.stdin);
        self.child.wait().unwrap();
    }
}

fn run_one_caller(server: &mut RawServer, options: &BenchOptions) -> Measurements {
    let mut line = Vec::new();
    if options.calls.is_none() {
        let end = Instant::now() + WARM_UP;
        while Instant::now() < end {
            server.call(&mut line);
        }
    }
    let mut latencies = Vec::with_capacity(1 << 20);
    let stopwatch = BenchStopwatch::start();
    let mut begun = Instant::now();
    let end = begun + options.time;
    while options.calls.map_or(begun < end, |calls| latencies.len() < calls) {
        server.call(&mut line);
        let answered = Instant::now();
        latencies.push(nanoseconds(answered - begun));
        begun = answered;
    }
    stopwatch.stop(latencies)
}

fn run_window(server: &mut RawServer, options: &BenchOptions) -> Measurements {
    ioctl_fionbio(&server.stdin, true).unwrap();
    ioctl_fionbio(&server.stdout, true).unwrap();
    let mut window = RequestWindow::new(server, options.conc);
    if options.calls.is_none() {
        window.run(RunLimit::Time(Instant::now() + WARM_UP));
    }
    window.latencies.clear();
    let stopwatch = BenchStopwatch::start();
    window.run(match options.calls {
        Some(calls) => RunLimit::Calls(calls),
        None => RunLimit::Time(Instant::now() + options.time),
    });
    stopwatch.stop(window.latencies)
}

#[derive(Clone, Copy)]
enum RunLimit {
    Time(Instant),
    Calls(usize),
}

/// A window of requests in flight, answered in order.
struct RequestWindow<'a> {
    server: &'a mut RawServer,
    width: usize,
    /// Time at which each unanswered request was due. The last `waiting` of them are not yet in `out`.
    sent: VecDeque<Instant>,
    waiting: usize,
    /// About one pipe capacity of requests, refilled after it is written: small requests share a write, large ones do
    /// not accumulate.
    out: Vec<u8>,
    written: usize,
    latencies: Vec<u64>,
}

impl<'a> RequestWindow<'a> {
    fn new(server: &'a mut RawServer, width: usize) -> Self {
        Self {
            server,
            width,
            sent: VecDeque::new(),
            waiting: 0,
            out: Vec::new(),
            written: 0,
            latencies: Vec::with_capacity(1 << 20),
        }
    }

    /// Keeps the window full until the limit, then waits for pending requests.
    fn run(&mut self, limit: RunLimit) {
        let mut begun = 0;
        loop {
            let now = Instant::now();
            while self.sent.len() < self.width && !is_limit_reached(limit, now, begun) {
                self.sent.push_back(now);
                self.waiting += 1;
                begun += 1;
            }
            if self.sent.is_empty() {
                return;
            }
            self.write();
            if !self.read() {
                self.wait();
            }
        }
    }

    /// Writes until everything is in the pipe or the pipe is full.
    fn write(&mut self) {
        while self.refill() {
            match self.server.stdin.write(&self.out[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => panic!("the server closed the pipe: {error}"),
            }
        }
    }

    /// Ensures that there is data to write. Returns false when everything has been written.
    fn refill(&mut self) -> bool {
        if self.written == self.out.len() {
            self.out.clear();
            self.written = 0;
            while self.waiting > 0 && self.out.len() < PIPE_CAPACITY {
                self.server.request.append(&mut self.out);
                self.out.push(b'\n');
                self.waiting -= 1;
            }
        }
        !self.out.is_empty()
    }

    /// Reads once. Returns false if no data is available.
    fn read(&mut self) -> bool {
        let count = match self.server.stdout.read(&mut self.server.inbox) {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
            Err(error) => panic!("the server closed the pipe: {error}"),
        };
        assert!(count > 0, "the server closed its output");
        let now = Instant::now();
        for _ in memchr_iter(b'\n', &self.server.inbox[..count]) {
            let sent = self.sent.pop_front().expect("every answer has its request");
            self.latencies.push(nanoseconds(now - sent));
        }
        true
    }

    fn wait(&self) {
        let mut ends =
            [PollFd::new(&self.server.stdout, PollFlags::IN), PollFd::new(&self.server.stdin, PollFlags::OUT)];
        let interesting = if self.out.is_empty() { 1 } else { 2 };
        poll(&mut ends[..interesting], None).unwrap();
    }
}

fn is_limit_reached(limit: RunLimit, now: Instant, begun: usize) -> bool {
    match limit {
        RunLimit::Time(end) => now >= end,
        RunLimit::Calls(calls) => begun >= calls,
    }
}
