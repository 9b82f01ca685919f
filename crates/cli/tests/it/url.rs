//! Servers at an address: `--url` and what goes with it.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread::JoinHandle;

use wharf_testkit::test_home::CommandOutput;
use wharf_testkit::transport_faults::Refused;

use crate::demo_http::client::Demo;
use crate::support::{assert_harmless, run};

/// Answers so many connections with these bytes, and gives what they sent.
fn canned(answer: &str, times: usize) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let answer = answer.to_owned();
    let serving = std::thread::spawn(move || {
        let mut seen = Vec::new();
        for _ in 0..times {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            let mut buffer = [0; 4096];
            while !is_whole(&request) {
                let count = stream.read(&mut buffer).unwrap();
                assert_ne!(count, 0, "the request broke off");
                request.extend_from_slice(&buffer[..count]);
            }
            stream.write_all(answer.as_bytes()).unwrap();
            seen.push(String::from_utf8(request).unwrap());
        }
        seen
    });
    (url, serving)
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    body.len() >= length.unwrap_or(0)
}

#[track_caller]
fn check(ran: &CommandOutput, code: i32, parts: &[&str]) {
    assert_eq!(ran.code, Some(code), "{ran:?}");
    for part in parts {
        assert!(ran.stderr.contains(part), "{part:?} is missing in {ran:?}");
    }
    assert_harmless(&ran.stderr);
}

#[test]
fn a_server_is_found_in_whichever_form_it_has() {
    for flags in [
        &["--http", "127.0.0.1:0"][..],
        &["--http", "127.0.0.1:0", "--revision", "2025-11-25"],
        &["--http", "127.0.0.1:0", "--revision", "2025-03-26"],
        &["--sse", "127.0.0.1:0", "--revision", "2024-11-05"],
    ] {
        let demo = Demo::start(flags);
        let url = format!("http://{}{}", demo.address, demo.path);
        let ran = run(["call", "echo", "text=ahoy", "--url", &url]);
        assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), "ahoy\n", ""), "{flags:?}");
        let listed = run(["tools", "--json", "--url", &url]).json();
        assert!(listed["items"].as_array().unwrap().len() > 15, "{listed}");
    }
}

#[test]
fn servers_of_every_kind_go_together() {
    let demo = Demo::streamable();
    let url = format!("http://{}{}", demo.address, demo.path);
    let listed = run(["tools", "--json", "--stdio", &crate::support::demo("2025-06-18"), "--url", &url]).json();
    let mut servers: Vec<&str> =
        listed["items"].as_array().unwrap().iter().map(|tool| tool["server"].as_str().unwrap()).collect();
    servers.dedup();
    assert_eq!(servers.len(), 2, "{servers:?}");
}

#[test]
fn a_header_goes_to_the_server_and_nowhere_else() {
    let (url, serving) = canned("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n", 1);
    let ran =
        run(["tools", "--url", &url, "--header", "Authorization=Bearer hush", "--header", "X-Team: blue", "--debug"]);
    check(&ran, 4, &["server requires a login (HTTP 401)", "hint: the configured `Authorization` was rejected"]);
    assert!(!ran.stderr.contains("hush") && !ran.stdout.contains("hush"), "{ran:?}");
    let seen = serving.join().unwrap();
    for line in ["authorization: Bearer hush", "x-team: blue", "mcp-method: server/discover"] {
        assert!(seen[0].contains(line), "{line:?} is missing in {seen:?}");
    }
    let ran = run(["tools", "--url", &url, "--url", "http://127.0.0.1:9/", "--header", "Authorization=Bearer hush"]);
    check(&ran, 2, &["--header requires a single --url"]);
    for header in ["Mcp-Session-Id=1", "Content-Type=text/plain", "a b=1", "X=\u{7f}"] {
        check(&run(["tools", "--url", &url, "--header", header]), 2, &["invalid header: "]);
    }
}

#[test]
fn what_is_wrong_is_said() {
    let nobody = Refused::bind().unwrap();
    let ran = run(["tools", "--url", &format!("http://{}/mcp?key=hush", nobody.address())]);
    let listens = format!("listens at http://{}/mcp?key=***", nobody.address());
    check(&ran, 3, &["server unreachable", "Connection refused", "failed at step: probe", &listens]);
    assert!(!ran.stderr.contains("hush"), "{ran:?}");
    let not_found = "HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\nConnection: close\r\n\r\nnot \x1b[31m";
    let (url, serving) = canned(not_found, 3);
    check(&run(["tools", "--url", &url]), 3, &["HTTP 404", "check the path `/mcp`"]);
    assert_eq!(serving.join().unwrap().len(), 3, "as stateless, with a handshake, as a stream");
    let page =
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 12\r\nConnection: close\r\n\r\n<html>login>";
    let (url, serving) = canned(page, 2);
    check(
        &run(["tools", "--url", &url]),
        3,
        &["violates the protocol: HTTP 200 OK without a response message: <html>login>"],
    );
    serving.join().unwrap();
    for (url, part) in [("ftp://example.org/", "does not begin with http"), ("example.org/mcp", "is not a URL")] {
        check(&run(["tools", "--url", url]), 2, &[part, "hint: write it like https://example.org/mcp"]);
    }
    check(&run(["tools", "--url", "http://127.0.0.1:9/", "--ca", "/nowhere.pem"]), 2, &["cannot read `/nowhere.pem`"]);
    check(&run(["tools"]), 2, &["no servers are configured", "--url URL"]);
}

#[test]
fn a_redirect_to_elsewhere_is_not_followed() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let answer = format!(
        "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://{}/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        elsewhere.local_addr().unwrap()
    );
    let (url, serving) = canned(&answer, 2);
    let ran = run(["tools", "--url", &url, "--header", "Authorization=Bearer hush", "--transport", "http"]);
    check(&ran, 3, &["redirect not followed (307 Temporary Redirect to http://127.0.0.1:"]);
    serving.join().unwrap();
    assert!(elsewhere.accept().is_err(), "somebody came");
}
