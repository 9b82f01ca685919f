//! `wharf serve --http` with TLS and behind a proxy. Only loopback is listened on.

use serde_json::json;
use wharf_testkit::test_home::TestHome;
use wharf_testkit::transport_faults::TestCa;

use super::profiles::{HttpReply, initialize, post_with};
use super::{HttpGateway, allow_all, home};

/// Writes a certificate for loopback and returns the flags that use it.
fn tls_flags(home: &TestHome, authority: &TestCa) -> Vec<String> {
    home.write("project/server.pem", authority.server().pem());
    home.write("project/ca.pem", &authority.pem());
    let file = home.path("project/server.pem").to_str().unwrap().to_owned();
    ["--tls-cert".to_owned(), file.clone(), "--tls-key".to_owned(), file].to_vec()
}

fn start(home: &TestHome, flags: &[String]) -> (HttpGateway, String, String) {
    let words: Vec<&str> = flags.iter().map(String::as_str).chain(["--server", "demo"]).collect();
    let mut gateway = HttpGateway::start_with(home, &words);
    let url = gateway.line_after("listening on ");
    let file = gateway.line_after("the token is in ");
    (gateway, url, std::fs::read_to_string(file).unwrap().trim().to_owned())
}

#[test]
fn clients_that_trust_the_certificate_are_served_over_tls() {
    let (home, _) = home(&allow_all());
    let authority = TestCa::new();
    let (_gateway, url, token) = start(&home, &tls_flags(&home, &authority));
    assert!(url.starts_with("https://127.0.0.1:"), "{url}");
    let headers = json!({ "Authorization": format!("Bearer {token}") });
    let ca = home.path("project/ca.pem").to_str().unwrap().to_owned();
    let servers = json!({
        "trusting": {"url": url, "headers": headers, "ca": [ca]}, "wary": {"url": url, "headers": headers},
    });
    let client = TestHome::with_servers(&servers);
    let called = client.run(["call", "trusting", "demo__echo", "text=ahoy"]);
    assert_eq!((called.code, called.stdout.as_str()), (Some(0), "ahoy\n"), "{called:?}");
    let refused = client.run(["tools", "wary"]);
    assert!(refused.code == Some(3) && refused.stderr.contains("certificate"), "{refused:?}");
}

#[test]
fn proxy_passes_on_requests_for_the_public_name_only() {
    let (home, _) = home(&allow_all());
    let flags = ["--behind-proxy", "--public-url", "https://gateway.example"].map(str::to_owned);
    let (_gateway, url, token) = start(&home, &flags);
    let send = |headers: &str| -> HttpReply { post_with(&url, &token, headers, &initialize()) };
    for (headers, status) in [
        ("Host: gateway.example\r\n", 200),
        ("Host: gateway.example\r\nOrigin: https://gateway.example\r\n", 200),
        ("Host: gateway.example\r\nOrigin: https://elsewhere.example\r\n", 403),
        ("Host: gateway.example\r\nOrigin: http://gateway.example\r\n", 403),
        ("Host: elsewhere.example\r\n", 403),
    ] {
        assert_eq!(send(headers).status, status, "{headers}");
    }
    assert_eq!(post_with(&url, "wrong", "Host: gateway.example\r\n", &initialize()).status, 401);
}

#[test]
fn address_of_other_machines_needs_protection() {
    let (home, _) = home(&allow_all());
    let flags = tls_flags(&home, &TestCa::new());
    let tls: Vec<&str> = flags.iter().map(String::as_str).collect();
    for (words, complaint) in [
        (vec![], "--tls-cert FILE --tls-key FILE"),
        (vec!["--public-url", "https://gateway.example"], "--behind-proxy"),
        (tls.clone(), "--public-url"),
        ([&tls[..], &["--public-url", "http://gateway.example"]].concat(), "https://"),
        (vec!["--behind-proxy"], "--public-url"),
        (tls[..2].to_vec(), "--tls-key"),
    ] {
        let ran = home.run(["serve", "--http", "0.0.0.0:0"].into_iter().chain(words.clone()));
        assert!(ran.code == Some(2) && ran.stderr.contains(complaint), "{words:?}: {ran:?}");
    }
    for (file, complaint) in [("absent.pem", "does not exist"), ("ca.pem", "key")] {
        let file = home.path(format!("project/{file}")).to_str().unwrap().to_owned();
        let ran = home.run(["serve", "--http", "127.0.0.1:0", "--tls-cert", &file, "--tls-key", &file]);
        assert!(ran.code == Some(2) && ran.stderr.contains(complaint), "{file}: {ran:?}");
    }
}
