//! Servers at an address: `--url` and what goes with it.

use std::ffi::OsStr;
use std::io::Write as _;
use std::net::TcpListener;
use std::process::Command;
use std::thread::JoinHandle;

use wharf_testkit::test_home::{CommandOutput, TestHome};
use wharf_testkit::transport_faults::{FaultCount, Refused, TestCa, TlsFault, read_request, serve_tls};

use crate::demo_http::client::Demo;
use crate::support::{assert_harmless, run};

/// Answers so many connections with these bytes, and gives what they sent.
fn canned(answer: &str, times: usize) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let answer = answer.to_owned();
    let serving = std::thread::spawn(move || {
        let answer_one = |_| {
            let (mut stream, _) = listener.accept().unwrap();
            let request = read_request(&mut stream).unwrap().expect("a whole request");
            stream.write_all(answer.as_bytes()).unwrap();
            format!("{}{}", request.head, request.text())
        };
        (0..times).map(answer_one).collect()
    });
    (url, serving)
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
fn transport_is_detected_for_every_url() {
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
fn stdio_and_http_servers_are_listed_together() {
    let demo = Demo::streamable();
    let url = format!("http://{}{}", demo.address, demo.path);
    let listed = run(["tools", "--json", "--stdio", &crate::support::demo("2025-06-18"), "--url", &url]).json();
    let mut servers: Vec<&str> =
        listed["items"].as_array().unwrap().iter().map(|tool| tool["server"].as_str().unwrap()).collect();
    servers.dedup();
    assert_eq!(servers.len(), 2, "{servers:?}");
}

/// G3.
#[test]
fn unauthorized_url_names_the_login_and_the_token_header() {
    // More answers than requests: the thread ends with the test's process.
    let (url, _) = canned("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n", 20);
    let login = format!("hint: wharf auth {url} logs you in");
    let ran = run(["tools", "--url", &url]);
    check(&ran, 4, &[&login, "hint: --header 'Authorization=Bearer TOKEN' sends a token instead"]);
}

#[test]
fn headers_are_sent_to_the_server_and_not_shown() {
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
fn connection_errors_are_specific() {
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
fn redirect_to_another_origin_is_not_followed() {
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

/// Certificates that the user has named replace all others: the bundled ones are not used in their place.
#[test]
fn https_with_missing_named_certificates_is_unreachable() {
    let home = TestHome::new();
    let none = home.path("none");
    let home = home.with_env("SSL_CERT_FILE", &none).with_env("SSL_CERT_DIR", &none);
    let ran = home.run(["tools", "--url", "https://127.0.0.1:1/mcp"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let reason = "TLS cannot be initialized: SSL_CERT_FILE and SSL_CERT_DIR contain no certificate";
    assert!(ran.stderr.contains(reason), "{}", ran.stderr);
    assert_harmless(&ran.stderr);
}

/// In a mount namespace without the system's certificates. Skipped where there are no user namespaces.
#[test]
fn https_without_system_certificates_uses_bundled_ones() {
    const EMPTY: &str = "mount -t tmpfs none /etc/ssl && exec \"$@\"";
    let isolated = |words: &[&OsStr]| {
        let mut command = Command::new("unshare");
        command.args(["-rm", "sh", "-c", EMPTY, "sh"]).args(words);
        command
    };
    if !isolated(&["true".as_ref()]).output().is_ok_and(|ran| ran.status.success()) {
        return;
    }
    let (home, authority) = (TestHome::new(), TestCa::new());
    let server = serve_tls(&authority, TlsFault::None, FaultCount::Always).unwrap();
    let plain = home.command(["tools", "--url", &format!("https://{}/mcp", server.address())]);
    let words: Vec<&OsStr> = std::iter::once(plain.get_program()).chain(plain.get_args()).collect();
    let mut command = isolated(&words);
    command.env_clear().envs(home.variables()).current_dir(home.path("project"));
    let ran = CommandOutput::from(command.output().unwrap());
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("TLS handshake failed") && ran.stderr.contains("UnknownIssuer"), "{}", ran.stderr);
}
