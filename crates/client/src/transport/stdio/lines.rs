//! Splits a byte stream into lines of bounded length.

use bytes::Bytes;
use memchr::memchr;
use wharf_wire::{PartialEnvelope, Scanner};

use crate::budget::{BudgetCharge, BudgetExceeded, LARGE_MESSAGE_BYTES, ServerBudget, attach_charge};
use crate::limits::Limits;

/// Maximum bytes of one read, by the size of the pipe.
const MAX_READ_BYTES: usize = 128 << 10;
/// Usual size of the buffer: room for one read behind an unfinished line. It grows for a longer line and shrinks again.
const USUAL_BUFFER_BYTES: usize = 3 * MAX_READ_BYTES;

/// Splits input into lines.
pub(super) struct LineSplitter {
    buffer: Vec<u8>,
    /// Charge for the buffer beyond its usual size.
    charge: BudgetCharge,
    budget: ServerBudget,
    /// Bytes of the buffer that hold input.
    filled: usize,
    /// Bytes that have been returned.
    taken: usize,
    /// Bytes known to contain no line ending.
    searched: usize,
    /// A line over a limit, which is scanned but not stored.
    oversized: Option<OversizedLine>,
    /// The start of that line, if it was buffered before the limit was exceeded.
    unscanned: Option<Bytes>,
    at_start: bool,
    limit: usize,
    max_skipped: usize,
    /// Bytes of lines over a limit since the connection began.
    discarded: usize,
}

struct OversizedLine {
    scanner: Scanner,
    length: usize,
    excess: LineExcess,
}

/// The limit a line exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineExcess {
    /// The maximum size of a message.
    Message,
    /// The memory budget.
    Budget(BudgetExceeded),
}

/// The next item of the stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LineFrame<'a> {
    /// A line, trimmed, without its line ending.
    Line(&'a [u8]),
    /// A large line, passed on together with its buffer.
    Large(Bytes),
    /// The end of a line over a limit; its id, if it was found.
    Oversized(PartialEnvelope, LineExcess),
    /// A line that exceeds every limit and has not ended.
    Endless,
}

impl LineSplitter {
    pub fn new(limits: &Limits, budget: ServerBudget) -> Self {
        Self {
            buffer: vec![0; USUAL_BUFFER_BYTES],
            charge: budget.empty_charge(),
            budget,
            filled: 0,
            taken: 0,
            searched: 0,
            oversized: None,
            unscanned: None,
            at_start: true,
            limit: limits.max_message,
            max_skipped: limits.max_skipped,
            discarded: 0,
        }
    }

    /// Returns the buffer space to read into. Never empty, and never more than one read. Call when
    /// [`LineSplitter::next`] returns `None`.
    pub fn read_space(&mut self) -> &mut [u8] {
        if self.taken == self.filled {
            (self.taken, self.filled, self.searched) = (0, 0, 0);
        } else if self.taken > 0 && self.buffer.len() - self.filled < MAX_READ_BYTES {
            self.buffer.copy_within(self.taken..self.filled, 0);
            self.filled -= self.taken;
            self.searched -= self.taken;
            self.taken = 0;
        }
        if self.filled == 0 && self.buffer.len() > USUAL_BUFFER_BYTES {
            self.replace_buffer();
            self.charge = self.budget.empty_charge();
        }
        if self.filled == self.buffer.len() {
            self.grow();
        }
        let end = self.buffer.len().min(self.filled + MAX_READ_BYTES);
        &mut self.buffer[self.filled..end]
    }

    /// Grows the buffer for a longer line. If the budget has no room, the line is scanned but not stored.
    fn grow(&mut self) {
        let larger = (self.buffer.len() * 2).min(self.limit + USUAL_BUFFER_BYTES).max(self.filled + MAX_READ_BYTES);
        match self.charge.resize(larger - USUAL_BUFFER_BYTES) {
            Ok(()) => {
                if self.buffer.len() == USUAL_BUFFER_BYTES {
                    self.budget.throttle().record_large(self.filled);
                }
                self.buffer.reserve_exact(larger - self.buffer.len());
                self.buffer.resize(larger, 0);
            }
            Err(exceeded) => {
                self.skip_line(LineExcess::Budget(exceeded));
            }
        }
    }

    /// Replaces the buffer with one of the usual size and returns the old one.
    fn replace_buffer(&mut self) -> Vec<u8> {
        std::mem::replace(&mut self.buffer, vec![0; USUAL_BUFFER_BYTES])
    }

    /// Records the number of bytes read. Those of a large line count while they arrive.
    pub fn record_read(&mut self, count: usize) {
        self.filled += count;
        if self.buffer.len() > USUAL_BUFFER_BYTES && self.oversized.is_none() {
            self.budget.throttle().record_large(count);
        }
    }

    /// Returns the input that must be scanned before [`LineSplitter::next`] can continue, and the scanner to do so,
    /// which [`LineSplitter::return_scanner`] takes back. Scanning may take long.
    pub fn take_unscanned(&mut self) -> Option<(Scanner, Bytes)> {
        let unscanned = self.unscanned.take()?;
        Some((std::mem::take(&mut self.oversized.as_mut()?.scanner), unscanned))
    }

    /// Takes the scanner back.
    pub fn return_scanner(&mut self, scanner: Scanner) {
        if let Some(oversized) = &mut self.oversized {
            oversized.scanner = scanner;
        }
    }

    /// Returns the next item. `None` means that more input is needed, or that input has to be scanned first: see
    /// [`LineSplitter::take_unscanned`].
    pub fn next(&mut self) -> Option<LineFrame<'_>> {
        if self.unscanned.is_some() {
            return None;
        }
        loop {
            let Some(end) = memchr(b'\n', &self.buffer[self.searched..self.filled]).map(|found| self.searched + found)
            else {
                self.searched = self.filled;
                return self.on_incomplete();
            };
            if self.oversized.is_none() && end - self.taken > self.limit {
                self.searched = end;
                self.skip_line(LineExcess::Message);
                return None;
            }
            let start = std::mem::replace(&mut self.taken, end + 1);
            self.searched = end + 1;
            if let Some(mut oversized) = self.oversized.take() {
                oversized.scanner.push(&self.buffer[start..end]);
                return Some(LineFrame::Oversized(oversized.scanner.partial_envelope(), oversized.excess));
            }
            let at_start = std::mem::replace(&mut self.at_start, false);
            let line = self.buffer[start..end].trim_ascii();
            let line = if at_start { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line) } else { line };
            if !line.is_empty() {
                // Borrowed again, since the borrow checker cannot see that the loop ends here.
                let from = line.as_ptr() as usize - self.buffer.as_ptr() as usize;
                let length = line.len();
                if length >= LARGE_MESSAGE_BYTES && self.buffer.len() > USUAL_BUFFER_BYTES {
                    return Some(LineFrame::Large(self.give_away_buffer().slice(from..from + length)));
                }
                return Some(LineFrame::Line(&self.buffer[from..from + length]));
            }
        }
    }

    /// Reports whether the input looks like UTF-16: by its byte order mark, or by a NUL in every other byte of `{"`.
    pub fn looks_like_utf16(&self) -> bool {
        let start = &self.buffer[self.taken..self.filled];
        let marks: [&[u8]; 4] = [b"\xff\xfe", b"\xfe\xff", b"{\0\"\0", b"\0{\0\""];
        marks.iter().any(|mark| start.starts_with(mark))
    }

    /// Returns the last, unfinished line.
    pub fn unfinished_line(&self) -> &[u8] {
        self.buffer[self.taken..self.filled].trim_ascii()
    }

    /// Handles a missing line ending: a line over its limit is scanned but not stored.
    fn on_incomplete(&mut self) -> Option<LineFrame<'static>> {
        let pending = self.filled - self.taken;
        if self.oversized.is_none() && pending <= self.limit {
            return None;
        }
        self.skip_line(LineExcess::Message);
        self.oversized.as_ref().filter(|oversized| oversized.length > self.max_skipped).map(|_| LineFrame::Endless)
    }

    /// Skips a line up to the searched position. Its buffered start is left for [`LineSplitter::take_unscanned`]; later
    /// parts are scanned here.
    fn skip_line(&mut self, excess: LineExcess) {
        let pending = self.taken..self.searched;
        let cost = self.discard_cost(pending.len());
        self.budget.throttle().record_large(cost);
        if let Some(oversized) = &mut self.oversized {
            oversized.length += pending.len();
            oversized.scanner.push(&self.buffer[pending]);
            self.taken = self.searched;
            return;
        }
        self.oversized = Some(OversizedLine { scanner: Scanner::new(), length: pending.len(), excess });
        self.taken = self.searched;
        self.unscanned = Some(self.give_away_buffer().slice(pending));
    }

    /// Returns the bytes to count for this many discarded ones: a quarter until the connection has discarded
    /// `max_skipped` bytes, then all. So an endless line is recognised within a second, and a server that goes on
    /// sending lines over a limit is held to its rate.
    fn discard_cost(&mut self, bytes: usize) -> usize {
        self.discarded = self.discarded.saturating_add(bytes);
        if self.discarded > self.max_skipped { bytes } else { bytes / 4 }
    }

    /// Gives the buffer away and keeps the input after the line, which is at most one read.
    fn give_away_buffer(&mut self) -> Bytes {
        let rest = self.taken..self.filled;
        let length = rest.len();
        let large = self.replace_buffer();
        self.buffer[..length].copy_from_slice(&large[rest]);
        (self.taken, self.filled, self.searched) = (0, length, 0);
        let charge = std::mem::replace(&mut self.charge, self.budget.empty_charge());
        attach_charge(large, charge)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::ByteBudget;

    /// Feeds pieces and collects the output, lines as text.
    fn check(limit: usize, max_skipped: usize, pieces: &[&[u8]]) -> Vec<String> {
        check_within(&ByteBudget::new(64 << 20), limit, max_skipped, pieces)
    }

    fn check_within(budget: &ByteBudget, limit: usize, max_skipped: usize, pieces: &[&[u8]]) -> Vec<String> {
        let limits = Limits { max_message: limit, max_skipped, ..Limits::default() };
        let mut frames = LineSplitter::new(&limits, budget.for_server(64 << 20));
        let mut out = Vec::new();
        for piece in pieces {
            let mut piece = *piece;
            while !piece.is_empty() {
                let space = frames.read_space();
                let count = space.len().min(piece.len());
                space[..count].copy_from_slice(&piece[..count]);
                frames.record_read(count);
                piece = &piece[count..];
                loop {
                    let Some(frame) = frames.next() else {
                        let Some((mut scanner, unscanned)) = frames.take_unscanned() else { break };
                        scanner.push(&unscanned);
                        frames.return_scanner(scanner);
                        continue;
                    };
                    out.push(match frame {
                        LineFrame::Line(line) => String::from_utf8_lossy(line).into_owned(),
                        LineFrame::Large(line) => String::from_utf8_lossy(&line).into_owned(),
                        LineFrame::Oversized(PartialEnvelope { id, .. }, excess) => {
                            let id = String::from_utf8_lossy(&id.unwrap_or_default()).into_owned();
                            match excess {
                                LineExcess::Message => format!("oversized {id}"),
                                LineExcess::Budget(exceeded) => format!("{exceeded}: {id}"),
                            }
                        }
                        LineFrame::Endless => "endless".to_owned(),
                    });
                    if out.last().is_some_and(|last| last == "endless") {
                        return out;
                    }
                }
            }
        }
        out
    }

    #[test]
    fn discarded_bytes_past_one_endless_line_count_fully() {
        let limits = Limits { max_message: 100, max_skipped: 1000, ..Limits::default() };
        let mut lines = LineSplitter::new(&limits, ByteBudget::new(64 << 20).for_server(64 << 20));
        assert_eq!([400, 400, 400].map(|bytes| lines.discard_cost(bytes)), [100, 100, 400]);
    }

    #[test]
    fn lines_split_across_reads_are_joined() {
        assert_eq!(check(100, 1000, &[b"a\nb\n"]), ["a", "b"]);
        assert_eq!(check(100, 1000, &[b"a", b"\n", b"b", b"c\r\n"]), ["a", "bc"]);
        assert_eq!(check(100, 1000, &[b"\xef\xbb\xbf{}\n\n \r\n  x  \n"]), ["{}", "x"]);
        assert_eq!(check(100, 1000, &[b"never ended"]), Vec::<String>::new());
        let long = vec![b'x'; 300 << 10];
        assert_eq!(check(1 << 20, 1 << 20, &[&long, b"\n"])[0].len(), 300 << 10);
    }

    #[test]
    fn discarded_line_bytes_count_towards_the_rate() {
        let (limits, budget) = (Limits { max_message: 100, ..Limits::default() }, ByteBudget::new(64 << 20));
        let server = budget.for_server(64 << 20);
        let mut lines = LineSplitter::new(&limits, server.clone());
        let count = lines.read_space().len();
        lines.record_read(count);
        assert!(lines.next().is_none());
        assert!(server.throttle().is_over_rate(), "a line of {count} bytes was discarded without a cost");
    }

    #[test]
    fn line_over_the_limit_is_discarded_alone() {
        let line = |length: usize| {
            let mut line = br#"{"id":7,"x":""#.to_vec();
            line.resize(length - 2, b'x');
            line.extend_from_slice(b"\"}\n");
            line
        };
        for (length, fine) in [(99, true), (100, true), (101, false)] {
            let out = check(100, 1000, &[&line(length), b"next\n"]);
            assert_eq!(out[0] == "oversized 7", !fine, "{length}");
            assert_eq!(out[1], "next");
        }
        let id_last = [br#"{"result":""#.as_slice(), &[b'y'; 500], b"\",\"id\":", b"42}\nnext\n"];
        assert_eq!(check(100, 1000, &id_last), ["oversized 42", "next"]);
        assert_eq!(check(100, 1000, &[&[b'z'; 2000]]), ["endless"]);
    }

    #[test]
    fn line_over_the_budget_is_discarded_and_uncharged() {
        let budget = ByteBudget::new(6 << 20);
        let line = |id: u32, length: usize| format!("{{\"id\":{id},\"x\":\"{}\"}}\n", "x".repeat(length)).into_bytes();
        let found = check_within(&budget, 8 << 20, 64 << 20, &[&line(1, 5 << 20), &line(2, 7 << 20), b"next\n"]);
        assert_eq!(found[0].len(), line(1, 5 << 20).len() - 1);
        assert_eq!(found[1..], ["all servers together exceed the memory budget of 6291456 bytes: 2", "next"]);
        assert_eq!(budget.used(), 0);
        let held = budget.for_server(6 << 20).charge(5 << 20).unwrap();
        let found = check_within(&budget, 8 << 20, 64 << 20, &[&line(1, 2 << 20), &line(2, 300_000), b"next\n"]);
        assert_eq!(found[0], "all servers together exceed the memory budget of 6291456 bytes: 1");
        assert_eq!((found[1].len(), &found[2][..]), (line(2, 300_000).len() - 1, "next"), "the usual buffer is free");
        drop(held);
        assert_eq!(budget.used(), 0);
    }
}
