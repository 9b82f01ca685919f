//! Heads that no client should accept, as they look on the wire.

use std::io::{Read, Write};
use std::net::TcpStream;

use wharf_testkit::transport_faults::{FaultCount, HeadFault, serve_heads};

use super::{assert_answers, assert_healthy, call, connect, post, read_head, rest};

/// The head and what follows it, after one call on a connection of its own.
fn ask(fault: HeadFault) -> (String, Vec<u8>) {
    let server = serve_heads(fault, FaultCount::Always).unwrap();
    let mut client = asking(server.address());
    let head = read_head(&mut client);
    client.shutdown(std::net::Shutdown::Write).unwrap();
    (head, rest(&mut client).unwrap())
}

fn asking(address: std::net::SocketAddr) -> TcpStream {
    let mut client = connect(address);
    client.write_all(post(&call("head")).as_bytes()).unwrap();
    client
}

#[test]
fn a_long_header_and_many_headers_come_with_a_good_body() {
    let (head, body) = ask(HeadFault::LongHeader);
    assert!(head.lines().any(|line| line.len() > 64 << 10));
    assert_answers(&body, "head");
    let (head, body) = ask(HeadFault::ManyHeaders);
    assert!(head.lines().count() > 10_000);
    assert_answers(&body, "head");
}

#[test]
fn two_lengths_differ() {
    let (head, body) = ask(HeadFault::TwoLengths);
    let lengths: Vec<&str> = head.lines().filter_map(|line| line.strip_prefix("Content-Length: ")).collect();
    assert_eq!(lengths, [body.len().to_string(), (body.len() - 1).to_string()]);
}

#[test]
fn length_and_chunks_end_in_different_places() {
    let (head, body) = ask(HeadFault::LengthAndChunks);
    assert!(head.contains("Transfer-Encoding: chunked\r\n") && head.contains("Content-Length: "));
    assert!(body.ends_with(b"\r\n0\r\n\r\n"));
}

#[test]
fn garbage_is_no_status_line() {
    assert!(ask(HeadFault::Garbage).0.starts_with("220 "));
}

#[test]
fn an_endless_head_goes_on_and_ends_with_the_client() {
    let server = serve_heads(HeadFault::Endless, FaultCount::First(1)).unwrap();
    let mut client = asking(server.address());
    let mut head = vec![0; 1 << 20];
    client.read_exact(&mut head).unwrap();
    assert!(head.ends_with(b"aaaa"));
    drop(client);
    assert_healthy(&mut connect(server.address()), "after");
}
