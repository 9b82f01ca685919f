//! Lines out of a stream of bytes, each bounded while it is read.

use memchr::memchr;
use wharf_wire::{Glimpse, Scanner};

/// What a read brings at most, by the size of the pipe.
const READ: usize = 128 << 10;
/// The usual size of the buffer: room for a read behind an unfinished line. It grows for a line that needs more, and
/// shrinks again.
const USUAL: usize = 3 * READ;

/// Cuts what is read into lines.
pub(super) struct Frames {
    buffer: Vec<u8>,
    /// Bytes of the buffer that hold input.
    filled: usize,
    /// Bytes of it that have been handed out.
    taken: usize,
    /// Bytes known to hold no line end.
    searched: usize,
    /// A line too long to keep, followed to its end.
    oversized: Option<Oversized>,
    at_start: bool,
    limit: usize,
    discard: usize,
}

struct Oversized {
    scanner: Scanner,
    length: usize,
}

/// What the stream holds next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame<'a> {
    /// A line, without its end and the white space around it.
    Line(&'a [u8]),
    /// A line over the limit has ended; its id, if it was found.
    Oversized(Glimpse),
    /// A line over every limit goes on.
    Endless,
}

impl Frames {
    pub fn new(limit: usize, discard: usize) -> Self {
        let buffer = vec![0; USUAL];
        Self { buffer, filled: 0, taken: 0, searched: 0, oversized: None, at_start: true, limit, discard }
    }

    /// Where to read to. Never empty. Call when [`Frames::next`] has nothing more.
    pub fn space(&mut self) -> &mut [u8] {
        if self.taken == self.filled {
            (self.taken, self.filled, self.searched) = (0, 0, 0);
        } else if self.taken > 0 && self.buffer.len() - self.filled < READ {
            self.buffer.copy_within(self.taken..self.filled, 0);
            self.filled -= self.taken;
            self.searched -= self.taken;
            self.taken = 0;
        }
        if self.filled == 0 && self.buffer.len() > 8 * USUAL {
            self.buffer = vec![0; USUAL];
        }
        if self.filled == self.buffer.len() {
            let larger = (self.buffer.len() * 2).min(self.limit + USUAL).max(self.filled + READ);
            self.buffer.resize(larger, 0);
        }
        &mut self.buffer[self.filled..]
    }

    /// Says how much was read.
    pub fn read(&mut self, count: usize) {
        self.filled += count;
    }

    /// The next line, if one is complete.
    pub fn next(&mut self) -> Option<Frame<'_>> {
        loop {
            let Some(end) = memchr(b'\n', &self.buffer[self.searched..self.filled]).map(|found| self.searched + found)
            else {
                self.searched = self.filled;
                return self.incomplete();
            };
            let start = std::mem::replace(&mut self.taken, end + 1);
            self.searched = end + 1;
            if let Some(mut oversized) = self.oversized.take() {
                oversized.scanner.push(&self.buffer[start..end]);
                return Some(Frame::Oversized(oversized.scanner.glimpse()));
            }
            if end - start > self.limit {
                let mut scanner = Scanner::new();
                scanner.push(&self.buffer[start..end]);
                return Some(Frame::Oversized(scanner.glimpse()));
            }
            let at_start = std::mem::replace(&mut self.at_start, false);
            let line = self.buffer[start..end].trim_ascii();
            let line = if at_start { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line) } else { line };
            if !line.is_empty() {
                // Borrowed anew, since the borrow checker cannot see that the loop ends here.
                let from = line.as_ptr() as usize - self.buffer.as_ptr() as usize;
                let length = line.len();
                return Some(Frame::Line(&self.buffer[from..from + length]));
            }
        }
    }

    /// Whether what has just been read looks like UTF-16: by its mark, or by a NUL in every other byte of `{"`.
    pub fn looks_like_utf16(&self) -> bool {
        let start = &self.buffer[self.taken..self.filled];
        let marks: [&[u8]; 4] = [b"\xff\xfe", b"\xfe\xff", b"{\0\"\0", b"\0{\0\""];
        marks.iter().any(|mark| start.starts_with(mark))
    }

    /// The last, unfinished line.
    pub fn rest(&self) -> &[u8] {
        self.buffer[self.taken..self.filled].trim_ascii()
    }

    /// No line end yet: a line that has outgrown its limit is followed without being kept.
    fn incomplete(&mut self) -> Option<Frame<'static>> {
        let pending = self.filled - self.taken;
        if self.oversized.is_none() && pending <= self.limit {
            return None;
        }
        let oversized = self.oversized.get_or_insert_with(|| Oversized { scanner: Scanner::new(), length: 0 });
        oversized.scanner.push(&self.buffer[self.taken..self.filled]);
        oversized.length += pending;
        self.taken = self.filled;
        (oversized.length > self.discard).then_some(Frame::Endless)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds pieces and collects what comes out, lines as text.
    fn check(limit: usize, discard: usize, pieces: &[&[u8]]) -> Vec<String> {
        let mut frames = Frames::new(limit, discard);
        let mut out = Vec::new();
        for piece in pieces {
            let mut piece = *piece;
            while !piece.is_empty() {
                let space = frames.space();
                let count = space.len().min(piece.len());
                space[..count].copy_from_slice(&piece[..count]);
                frames.read(count);
                piece = &piece[count..];
                while let Some(frame) = frames.next() {
                    out.push(match frame {
                        Frame::Line(line) => String::from_utf8_lossy(line).into_owned(),
                        Frame::Oversized(Glimpse { id, .. }) => {
                            format!("oversized {}", String::from_utf8_lossy(&id.unwrap_or_default()))
                        }
                        Frame::Endless => "endless".to_owned(),
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
    fn lines_in_every_cut() {
        assert_eq!(check(100, 1000, &[b"a\nb\n"]), ["a", "b"]);
        assert_eq!(check(100, 1000, &[b"a", b"\n", b"b", b"c\r\n"]), ["a", "bc"]);
        assert_eq!(check(100, 1000, &[b"\xef\xbb\xbf{}\n\n \r\n  x  \n"]), ["{}", "x"]);
        assert_eq!(check(100, 1000, &[b"never ended"]), Vec::<String>::new());
        let long = vec![b'x'; 300 << 10];
        assert_eq!(check(1 << 20, 1 << 20, &[&long, b"\n"])[0].len(), 300 << 10);
    }

    #[test]
    fn the_limit_is_exact_and_costs_one_message() {
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
}
