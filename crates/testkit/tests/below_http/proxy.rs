//! The byte-level proxy in front of a server that echoes.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use wharf_testkit::oracle::poll_until;
use wharf_testkit::transport_faults::{
    ByteFault, ConnectionFilter, Direction, Endpoint, FaultPosition, FaultProxy, FaultRule, FaultScript, ProxyTraffic,
    Refused, serve_plain,
};

use super::{SOON, assert_healthy, assert_silent, connect, fate, rest, try_connect};

const TO_CLIENT: Direction = Direction::ToClient;
const TO_SERVER: Direction = Direction::ToServer;

/// A server that sends back whatever it gets.
fn echo() -> Endpoint {
    Endpoint::start(|mut guest| {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = guest.read(&mut buffer) {
            if guest.write_all(&buffer[..count]).is_err() {
                return;
            }
        }
        guest.finish();
    })
    .unwrap()
}

/// An echo behind a proxy with one rule; the first connection has sent `abcdef`.
fn through(rule: FaultRule) -> (Endpoint, FaultProxy, TcpStream) {
    let server = echo();
    let proxy = FaultProxy::start(server.address(), rule).unwrap();
    let mut client = connect(proxy.address());
    client.write_all(b"abcdef").unwrap();
    (server, proxy, client)
}

fn read(client: &mut TcpStream, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    client.read_exact(&mut bytes).unwrap();
    bytes
}

#[test]
fn without_rules_it_is_transparent() {
    let server = echo();
    let proxy = FaultProxy::start(server.address(), FaultScript::default()).unwrap();
    let mut client = connect(proxy.address());
    let sent: Vec<u8> = (0..1_000_000u32).map(|number| number as u8).collect();
    let mut reader = client.try_clone().unwrap();
    let received = std::thread::spawn(move || rest(&mut reader));
    client.write_all(&sent).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert!(received.join().unwrap().unwrap() == sent, "bytes were lost or changed");
    assert_eq!(proxy.traffic(), ProxyTraffic { connections: 1, to_server: 1_000_000, to_client: 1_000_000 });
}

#[test]
fn a_cut_is_a_reset_after_exactly_so_many_bytes() {
    let (_server, proxy, mut client) = through(FaultRule::new(TO_CLIENT, FaultPosition::After(4), ByteFault::Cut));
    assert_eq!(read(&mut client, 4), b"abcd");
    assert_eq!(rest(&mut client), Err(std::io::ErrorKind::ConnectionReset));
    assert_eq!(proxy.traffic().to_client, 4);
}

#[test]
fn a_cut_before_the_first_byte_of_an_answer_comes_after_the_request() {
    let (server, _proxy, mut client) = through(FaultRule::new(TO_CLIENT, FaultPosition::Before(0), ByteFault::Cut));
    assert_eq!(rest(&mut client), Err(std::io::ErrorKind::ConnectionReset));
    assert_eq!(server.connections(), 1);
}

#[test]
fn a_close_is_an_end_and_no_reset() {
    let (_server, _proxy, mut client) = through(FaultRule::new(TO_CLIENT, FaultPosition::After(4), ByteFault::Close));
    assert_eq!(rest(&mut client), Ok(b"abcd".to_vec()));
}

#[test]
fn a_half_close_leaves_the_other_direction() {
    let (_server, proxy, mut client) =
        through(FaultRule::new(TO_CLIENT, FaultPosition::After(3), ByteFault::HalfClose));
    assert_eq!(rest(&mut client), Ok(b"abc".to_vec()));
    client.write_all(b"ghi").unwrap();
    assert!(poll_until(SOON, || proxy.traffic().to_server == 9));
    assert_eq!(proxy.traffic().to_client, 3);
}

#[test]
fn a_delay_holds_everything_back_once() {
    let delay = Duration::from_millis(400);
    let since = Instant::now();
    let (_server, _proxy, mut client) =
        through(FaultRule::new(TO_CLIENT, FaultPosition::Before(0), ByteFault::Delay(delay)));
    assert_eq!(read(&mut client, 6), b"abcdef");
    assert!(since.elapsed() >= delay);
    let since = Instant::now();
    client.write_all(b"gh").unwrap();
    assert_eq!(read(&mut client, 2), b"gh");
    assert!(since.elapsed() < delay, "the second answer was held back too");
}

#[test]
fn a_trickle_takes_its_time() {
    let every = Duration::from_millis(40);
    let since = Instant::now();
    let (_server, _proxy, mut client) =
        through(FaultRule::new(TO_CLIENT, FaultPosition::Opening, ByteFault::Trickle { bytes: 2, every }));
    assert_eq!(read(&mut client, 6), b"abcdef");
    assert!(since.elapsed() >= 2 * every);
}

#[test]
fn garbage_comes_where_it_was_put() {
    let (_server, proxy, mut client) =
        through(FaultRule::new(TO_CLIENT, FaultPosition::After(2), ByteFault::Garbage(b"\0!".to_vec())));
    assert_eq!(read(&mut client, 8), b"ab\0!cdef");
    assert_eq!(proxy.traffic().to_client, 6, "garbage is not traffic");
}

#[test]
fn garbage_at_the_very_end_comes_before_the_end() {
    let (_server, _proxy, mut client) =
        through(FaultRule::new(TO_CLIENT, FaultPosition::After(6), ByteFault::Garbage(b"!".to_vec())));
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(rest(&mut client), Ok(b"abcdef!".to_vec()));
}

#[test]
fn a_black_hole_swallows_and_hangs_up_on_nobody() {
    let (_server, proxy, mut client) =
        through(FaultRule::new(TO_SERVER, FaultPosition::After(4), ByteFault::BlackHole));
    assert_eq!(read(&mut client, 4), b"abcd");
    client.write_all(b"ghi").unwrap();
    assert_silent(&mut client);
    assert_eq!(proxy.traffic().to_server, 4);
}

#[test]
fn a_rule_may_be_for_one_connection_only() {
    let server = echo();
    let cut =
        FaultRule::new(TO_SERVER, FaultPosition::Opening, ByteFault::Cut).for_connections(ConnectionFilter::Only(2));
    let proxy = FaultProxy::start(server.address(), cut).unwrap();
    for (number, lives) in [(1, true), (2, false), (3, true)] {
        let echoed = try_connect(proxy.address()).and_then(|mut client| {
            client.write_all(b"x")?;
            client.read(&mut [0])
        });
        assert_eq!(echoed.is_ok(), lives, "connection {number}");
    }
    assert_eq!(proxy.traffic().connections, 3);
}

#[test]
fn a_script_can_be_replaced_and_open_connections_struck() {
    let server = echo();
    let proxy = FaultProxy::start(server.address(), FaultScript::default()).unwrap();
    let mut first = connect(proxy.address());
    first.write_all(b"a").unwrap();
    assert_eq!(read(&mut first, 1), b"a");
    proxy.set_script(FaultRule::new(TO_CLIENT, FaultPosition::Before(0), ByteFault::Garbage(b"?".to_vec())));
    let mut second = connect(proxy.address());
    second.write_all(b"b").unwrap();
    assert_eq!(read(&mut second, 2), b"?b");
    proxy.inject(TO_CLIENT, &ByteFault::Garbage(b"!".to_vec()));
    assert_eq!((read(&mut first, 1), read(&mut second, 1)), (b"!".to_vec(), b"!".to_vec()));
    proxy.inject(TO_CLIENT, &ByteFault::Close);
    assert_eq!((rest(&mut first), rest(&mut second)), (Ok(Vec::new()), Ok(Vec::new())));
}

#[test]
fn a_reset_of_the_server_reaches_the_client() {
    let server = Endpoint::start(|mut guest| {
        guest.read_exact(&mut [0]).ok();
        guest.reset();
    })
    .unwrap();
    let proxy = FaultProxy::start(server.address(), FaultScript::default()).unwrap();
    let mut client = connect(proxy.address());
    client.write_all(b"a").unwrap();
    assert_eq!(rest(&mut client), Err(std::io::ErrorKind::ConnectionReset));
}

#[test]
fn a_server_that_refuses_has_the_client_reset() {
    let nobody = Refused::bind().unwrap();
    let proxy = FaultProxy::start(nobody.address(), FaultScript::default()).unwrap();
    assert_eq!(fate(proxy.address()), Err(std::io::ErrorKind::ConnectionReset));
}

#[test]
fn dropping_ends_every_connection_and_frees_the_port() {
    let server = serve_plain().unwrap();
    let hole = FaultRule::new(TO_CLIENT, FaultPosition::After(1_000_000), ByteFault::BlackHole);
    let proxy = FaultProxy::start(server.address(), hole).unwrap();
    let mut client = connect(proxy.address());
    assert_healthy(&mut client, "before");
    let address = proxy.address();
    drop(proxy);
    assert_eq!(rest(&mut client), Ok(Vec::new()));
    assert_eq!(TcpStream::connect(address).unwrap_err().kind(), std::io::ErrorKind::ConnectionRefused);
}
