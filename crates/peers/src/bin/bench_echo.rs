//! The stdio server of all benchmark clients. It answers all complete lines in its buffer with one write.

#![allow(clippy::unwrap_used, reason = "a benchmark tool panics on errors")]

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;

use memchr::memchr;
use wharf_peers::echo::append_response;

fn main() {
    // Unbuffered handles: the standard ones copy, and flush at every line.
    let mut input = File::from(std::io::stdin().as_fd().try_clone_to_owned().unwrap());
    let mut output = File::from(std::io::stdout().as_fd().try_clone_to_owned().unwrap());
    let mut lines = LineBuffer::new();
    let mut answers = Vec::with_capacity(1 << 20);
    while lines.fill(&mut input) {
        lines.take_complete(|line| answer_line(line, &mut answers));
        if !answers.is_empty() && output.write_all(&answers).is_err() {
            return;
        }
        answers.clear();
    }
}

/// Input that was read but not yet consumed as lines.
struct LineBuffer {
    buffer: Vec<u8>,
    /// Number of bytes read into the buffer.
    filled: usize,
    /// Number of those bytes known to contain no line end.
    scanned: usize,
}

impl LineBuffer {
    fn new() -> Self {
        Self { buffer: vec![0; 1 << 20], filled: 0, scanned: 0 }
    }

    /// Reads once. Returns false at the end of the input.
    fn fill(&mut self, input: &mut File) -> bool {
        if self.filled == self.buffer.len() {
            self.buffer.resize(self.filled * 2, 0);
        }
        let count = input.read(&mut self.buffer[self.filled..]).unwrap_or(0);
        self.filled += count;
        count > 0
    }

    fn take_complete(&mut self, mut each: impl FnMut(&[u8])) {
        let mut begin = 0;
        while let Some(length) = memchr(b'\n', &self.buffer[self.scanned..self.filled]) {
            let end = self.scanned + length;
            each(&self.buffer[begin..end]);
            begin = end + 1;
            self.scanned = begin;
        }
        self.buffer.copy_within(begin..self.filled, 0);
        self.filled -= begin;
        self.scanned = self.filled;
    }
}

fn answer_line(line: &[u8], answers: &mut Vec<u8>) {
    let before = answers.len();
    append_response(line, answers);
    if answers.len() > before {
        answers.push(b'\n');
    }
}
