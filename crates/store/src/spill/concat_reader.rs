//! A reader over a sequence of byte slices.

use std::io::{self, Read};

/// Reads the concatenation of an iterator's slices.
pub(super) struct ConcatReader<I: Iterator> {
    rest: I,
    current: Option<I::Item>,
    at: usize,
}

impl<I: Iterator> ConcatReader<I> {
    pub(super) fn new(pieces: I) -> Self {
        Self { rest: pieces, current: None, at: 0 }
    }
}

impl<P: AsRef<[u8]>, I: Iterator<Item = P>> Read for ConcatReader<I> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let left = self.current.as_ref().map_or(&[][..], |piece| &piece.as_ref()[self.at..]);
            if !left.is_empty() {
                let count = left.len().min(buffer.len());
                buffer[..count].copy_from_slice(&left[..count]);
                self.at += count;
                return Ok(count);
            }
            self.at = 0;
            self.current = self.rest.next();
            if self.current.is_none() {
                return Ok(0);
            }
        }
    }
}
