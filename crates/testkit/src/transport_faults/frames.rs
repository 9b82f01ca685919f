//! HTTP/2 frames and header blocks (RFC 9113, 4 and 6; RFC 7541, 6.2.2), as far as a fault server needs them.
//!
//! Outgoing frames are not validated, because most of them are invalid on purpose. Padding and priorities of incoming
//! frames are not supported.

use std::io::{self, Read, Write};

pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(super) const DATA: u8 = 0x0;
pub(super) const HEADERS: u8 = 0x1;
pub(super) const RST_STREAM: u8 = 0x3;
pub(super) const SETTINGS: u8 = 0x4;
pub(super) const PING: u8 = 0x6;
pub(super) const GOAWAY: u8 = 0x7;
pub(super) const WINDOW_UPDATE: u8 = 0x8;
pub(super) const CONTINUATION: u8 = 0x9;

/// On DATA and HEADERS: last frame of the stream.
pub(super) const END_STREAM: u8 = 0x1;
/// On HEADERS and CONTINUATION: last frame of the block.
pub(super) const END_HEADERS: u8 = 0x4;
/// On SETTINGS and PING: an acknowledgement.
pub(super) const ACK: u8 = 0x1;

pub(super) const INITIAL_WINDOW_SIZE: u16 = 0x4;

pub(super) const NO_ERROR: u32 = 0x0;
pub(super) const REFUSED_STREAM: u32 = 0x7;
pub(super) const CANCEL: u32 = 0x8;

/// One frame, without its length field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Http2Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

impl Http2Frame {
    pub(super) fn new(kind: u8, flags: u8, stream: u32, payload: impl Into<Vec<u8>>) -> Http2Frame {
        Http2Frame { kind, flags, stream, payload: payload.into() }
    }

    pub(super) fn settings(values: &[(u16, u32)]) -> Http2Frame {
        let payload: Vec<u8> =
            values.iter().flat_map(|(key, value)| [&key.to_be_bytes()[..], &value.to_be_bytes()].concat()).collect();
        Http2Frame::new(SETTINGS, 0, 0, payload)
    }

    pub(super) fn go_away(last_stream: u32, code: u32) -> Http2Frame {
        Http2Frame::new(GOAWAY, 0, 0, [last_stream.to_be_bytes(), code.to_be_bytes()].concat())
    }

    pub(super) fn reset(stream: u32, code: u32) -> Http2Frame {
        Http2Frame::new(RST_STREAM, 0, stream, code.to_be_bytes())
    }

    pub(super) fn window_update(stream: u32, bytes: u32) -> Http2Frame {
        Http2Frame::new(WINDOW_UPDATE, 0, stream, bytes.to_be_bytes())
    }

    pub(super) fn has_flag(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let length = (self.payload.len() as u32).to_be_bytes();
        [&length[1..], &[self.kind, self.flags], &self.stream.to_be_bytes(), &self.payload].concat()
    }

    pub(super) fn write(&self, stream: &mut impl Write) -> io::Result<()> {
        stream.write_all(&self.bytes())?;
        stream.flush()
    }

    pub(super) fn read(stream: &mut impl Read) -> io::Result<Http2Frame> {
        let mut header = [0; 9];
        stream.read_exact(&mut header)?;
        let [high, middle, low, kind, flags, id @ ..] = header;
        let mut payload = vec![0; u32::from_be_bytes([0, high, middle, low]) as usize];
        stream.read_exact(&mut payload)?;
        Ok(Http2Frame { kind, flags, stream: u32::from_be_bytes(id) & 0x7fff_ffff, payload })
    }
}

/// Encodes a header block of literal fields, without indexing and without Huffman coding.
pub(super) fn header_block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            push_length(&mut block, text.len());
            block.extend(text.as_bytes());
        }
    }
    block
}

/// Appends an integer with a seven-bit prefix (RFC 7541, 5.1).
fn push_length(block: &mut Vec<u8>, length: usize) {
    if length < 0x7f {
        return block.push(length as u8);
    }
    block.push(0x7f);
    let mut rest = length - 0x7f;
    while rest >= 0x80 {
        block.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    block.push(rest as u8);
}
