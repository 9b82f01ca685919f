//! Proxies as a client finds them.

use std::io::Write;
use std::net::TcpStream;

use wharf_testkit::transport_faults::{
    ConnectProxy, FaultCount, ProxyBehaviour, ProxyRequest, TestCa, TlsFault, serve_plain, serve_tls,
};

use super::tls::{secure, trusting};
use super::{assert_answers, assert_healthy, assert_silent, call, connect, read_answer, read_head, rest};

const CONNECT: &str = "CONNECT somewhere.invalid:443 HTTP/1.1\r\nHost: somewhere.invalid:443\r\n";

/// Asks for a tunnel, with further headers if need be.
fn ask(proxy: &ConnectProxy, headers: &str) -> TcpStream {
    let mut client = connect(proxy.address());
    client.write_all(format!("{CONNECT}{headers}\r\n").as_bytes()).unwrap();
    client
}

#[test]
fn a_tunnel_leads_to_the_server_and_is_noted() {
    let authority = TestCa::new();
    let server = serve_tls(&authority, TlsFault::None, FaultCount::Always).unwrap();
    let proxy = ConnectProxy::start(ProxyBehaviour::Works(server.address())).unwrap();
    let mut client = ask(&proxy, "");
    assert!(read_head(&mut client).starts_with("HTTP/1.1 200 "));
    assert_healthy(&mut secure(client, trusting(&authority, "http/1.1")).unwrap(), "through");
    let asked = ProxyRequest { line: "CONNECT somewhere.invalid:443".to_owned(), authorization: None };
    assert_eq!(proxy.requests(), [asked]);
}

#[test]
fn a_plain_request_is_passed_on() {
    let server = serve_plain().unwrap();
    let proxy = ConnectProxy::start(ProxyBehaviour::Works(server.address())).unwrap();
    let mut client = connect(proxy.address());
    let body = call("plain");
    let length = body.len();
    let head = format!("POST http://somewhere.invalid/mcp HTTP/1.1\r\nContent-Length: {length}\r\n\r\n");
    client.write_all(format!("{head}{body}").as_bytes()).unwrap();
    assert_answers(&read_answer(&mut client).1, "plain");
    assert_eq!(rest(&mut client), Ok(Vec::new()), "a plain connection is for one request");
    assert_eq!(proxy.requests()[0].line, "POST http://somewhere.invalid/mcp");
}

#[test]
fn a_password_is_demanded_and_checked() {
    let server = serve_plain().unwrap();
    let proxy = ConnectProxy::start(ProxyBehaviour::Demands("Basic dTpw".to_owned(), server.address())).unwrap();
    assert_eq!(read_answer(&mut ask(&proxy, "")).0, 407);
    assert_eq!(read_answer(&mut ask(&proxy, "Proxy-Authorization: Basic eDp4\r\n")).0, 407);
    let mut client = ask(&proxy, "proxy-authorization: Basic dTpw\r\n");
    assert!(read_head(&mut client).starts_with("HTTP/1.1 200 "));
    assert_healthy(&mut client, "allowed");
    assert_eq!(proxy.requests()[2].authorization.as_deref(), Some("Basic dTpw"));
}

#[test]
fn refusals_are_what_they_are_called() {
    let answer = |manner| read_head(&mut ask(&ConnectProxy::start(manner).unwrap(), ""));
    assert!(answer(ProxyBehaviour::Refuses).contains("407 Proxy Authentication Required\r\nProxy-Authenticate: Basic"));
    assert!(answer(ProxyBehaviour::BadGateway).starts_with("HTTP/1.1 502 "));
    assert!(!answer(ProxyBehaviour::Garbage).starts_with("HTTP"));
}

#[test]
fn a_silent_proxy_never_answers() {
    let proxy = ConnectProxy::start(ProxyBehaviour::Silent).unwrap();
    let mut client = ask(&proxy, "");
    assert_silent(&mut client);
    assert_eq!(proxy.requests().len(), 1);
}
