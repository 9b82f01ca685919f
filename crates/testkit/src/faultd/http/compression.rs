//! Faults of compression: bombs, and bodies that do not match their encoding.

use std::io::Write;

use flate2::write::{DeflateEncoder, GzEncoder};
use flate2::{Compress, Compression, FlushCompress};

use super::HttpFault;
use super::exchange::FaultExchange;
use crate::faultd::frame;

/// Header of a gzip member: deflate, no name, no time.
const HEADER: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0\0\xff";
/// Uncompressed bytes of one piece of the bomb.
const PIECE_BYTES: usize = 1 << 20;

pub fn find(name: &str) -> Option<HttpFault> {
    Some(match name {
        "H28" => HttpFault::modify_response(bomb),
        "H28-fine" => {
            HttpFault::modify_response(|exchange, line| reply_encoded(exchange, "gzip", gzip(line.as_bytes())))
        }
        "H28-trailer" => HttpFault::modify_response(bad_trailer),
        "H28-twice" => HttpFault::modify_response(|exchange, line| {
            reply_encoded(exchange, "gzip, gzip", gzip(&gzip(line.as_bytes())))
        }),
        "H28-lie" => {
            HttpFault::modify_response(|exchange, line| reply_encoded(exchange, "gzip", line.as_bytes().to_vec()))
        }
        "H28-deflate" => {
            HttpFault::modify_response(|exchange, line| reply_encoded(exchange, "gzip", deflate(line.as_bytes())))
        }
        _ => return None,
    })
}

fn reply_encoded(exchange: &FaultExchange<'_>, encoding: &str, body: Vec<u8>) {
    exchange.reply(200, &[("Content-Type", "application/json"), ("Content-Encoding", encoding)], body);
}

fn bad_trailer(exchange: &FaultExchange<'_>, line: &str) {
    let mut body = gzip(line.as_bytes());
    let checksum = body.len() - 8;
    body[checksum] ^= 0xff;
    reply_encoded(exchange, "gzip", body);
}

/// Sends `--bytes` (10 GiB) of one string, compressed to a thousandth, generated while sending.
fn bomb(exchange: &FaultExchange<'_>, line: &str) {
    let headers =
        [("Content-Type", "application/json"), ("Content-Encoding", "gzip"), ("Transfer-Encoding", "chunked")];
    let start = format!(r#"{}"pad":""#, &line[..frame::payload_start(line)]);
    let mut open = exchange.send_bytes(format!("{}\r\n", exchange.head(200, &headers)).as_bytes());
    open = open && chunk(exchange, &[HEADER, &compress_repeatable(start.as_bytes())].concat());
    let piece = compress_repeatable(&vec![b'a'; PIECE_BYTES]).repeat(16);
    let pieces = exchange.server.options.bytes.unwrap_or(10 << 30) / PIECE_BYTES / 16;
    for _ in 0..pieces {
        open = open && chunk(exchange, &piece);
    }
    exchange.close();
}

fn chunk(exchange: &FaultExchange<'_>, bytes: &[u8]) -> bool {
    exchange.send_bytes(&[format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat())
}

/// Compresses bytes to blocks that end on a byte boundary and are self-contained, so that they can be repeated.
fn compress_repeatable(bytes: &[u8]) -> Vec<u8> {
    let mut blocks = Vec::with_capacity(bytes.len() + 1024);
    // The buffer is large enough for a single call.
    Compress::new(Compression::best(), false).compress_vec(bytes, &mut blocks, FlushCompress::Full).ok();
    blocks
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).ok();
    encoder.finish().unwrap_or_default()
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).ok();
    encoder.finish().unwrap_or_default()
}
