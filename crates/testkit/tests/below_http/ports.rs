//! Ports that refuse, reset or say nothing.

use std::io::{ErrorKind, Write};
use std::net::TcpStream;

use wharf_testkit::transport_faults::{FaultCount, FullBacklog, Refused, black_hole, reset_after_accept, serve_plain};

use super::{A_WHILE, assert_healthy, assert_silent, connect, fate, rest};

#[test]
fn a_healthy_server_answers_again_and_again() {
    let server = serve_plain().unwrap();
    let mut client = connect(server.address());
    assert_healthy(&mut client, "one");
    assert_healthy(&mut client, "two");
    assert_eq!((server.connections(), server.requests()), (1, 2));
}

#[test]
fn a_refused_port_refuses_for_as_long_as_it_is_held() {
    let port = Refused::bind().unwrap();
    for _ in 0..3 {
        assert_eq!(TcpStream::connect(port.address()).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    }
}

#[test]
fn a_full_backlog_lets_nobody_in() {
    let port = FullBacklog::bind().unwrap();
    let error = TcpStream::connect_timeout(&port.address(), A_WHILE).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
}

#[test]
fn a_reset_comes_first_and_health_later() {
    let server = reset_after_accept(FaultCount::First(2)).unwrap();
    for _ in 0..2 {
        assert_eq!(fate(server.address()), Err(ErrorKind::ConnectionReset));
    }
    assert_healthy(&mut connect(server.address()), "third");
    assert_eq!((server.connections(), server.requests()), (3, 1));
}

#[test]
fn a_black_hole_accepts_and_never_answers() {
    let server = black_hole(FaultCount::Always).unwrap();
    let mut client = connect(server.address());
    client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    assert_silent(&mut client);
    drop(server);
    assert!(rest(&mut client).is_err(), "closing over an unread request resets");
}
