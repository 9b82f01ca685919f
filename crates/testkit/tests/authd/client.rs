//! The plainest client there is: one connection per request, everything by hand.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use wharf_testkit::authd::Authd;

/// Long enough for anything that is going to happen.
const SOON: Duration = Duration::from_secs(10);
pub const CALLBACK: &str = "http://127.0.0.1:9/back";
pub const VERIFIER: &str = "verifier-verifier-verifier-verifier-verifier-1";

/// An answer, read to its end.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    head: String,
    pub body: String,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The code of a refusal.
    pub fn error(&self) -> String {
        self.json()["error"].as_str().unwrap().to_owned()
    }

    /// A field of the address it leads to.
    pub fn led_to(&self, name: &str) -> Option<String> {
        let query = self.header("location")?.split_once('?')?.1;
        query.split('&').find_map(|pair| pair.strip_prefix(&format!("{name}=")).map(str::to_owned))
    }
}

/// Opens a connection and sends a request on it.
pub fn send(method: &str, url: &str, headers: &[(&str, &str)], body: &str) -> BufReader<TcpStream> {
    let rest = url.strip_prefix("http://").unwrap();
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let mut stream = TcpStream::connect(authority).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: {authority}\r\nContent-Length: {length}\r\n{headers}\r\n");
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    BufReader::new(stream)
}

/// Reads an answer; nothing where the connection ends before it.
pub fn receive(stream: &mut BufReader<TcpStream>) -> Option<Reply> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let mut reply = Reply { status, head, body: String::new() };
    let length = reply.header("content-length").map_or(u64::MAX, |length| length.parse().unwrap());
    stream.take(length).read_to_string(&mut reply.body).ok()?;
    Some(reply)
}

pub fn try_fetch(method: &str, url: &str, headers: &[(&str, &str)], body: &str) -> Option<Reply> {
    receive(&mut send(method, url, headers, body))
}

pub fn get(url: &str) -> Reply {
    try_fetch("GET", url, &[], "").unwrap()
}

pub fn try_form(url: &str, fields: &[(&str, &str)], headers: &[(&str, &str)]) -> Option<Reply> {
    let headers = [headers, &[("Content-Type", "application/x-www-form-urlencoded")]].concat();
    try_fetch("POST", url, &headers, &written(fields))
}

pub fn form(url: &str, fields: &[(&str, &str)]) -> Reply {
    try_form(url, fields, &[]).unwrap()
}

/// Fields as a form or a query has them.
pub fn written(fields: &[(&str, &str)]) -> String {
    let escaped = |text: &str| -> String { text.bytes().map(|byte| format!("%{byte:02x}")).collect() };
    fields.iter().map(|(name, value)| format!("{name}={}", escaped(value))).collect::<Vec<_>>().join("&")
}

pub fn sha256(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, text.as_bytes()))
}

/// A request of the protocol, with these headers.
pub fn ask(authd: &Authd, method: &str, headers: &[(&str, &str)]) -> Reply {
    try_fetch("POST", &authd.server_url(), headers, &request(method)).unwrap()
}

pub fn request(method: &str) -> String {
    let params = json!({ "name": "echo", "arguments": { "word": "hello" } });
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()
}

/// The status of a request of the protocol with this token.
pub fn status_with(authd: &Authd, method: &str, token: &str) -> u16 {
    ask(authd, method, &[("Authorization", &format!("Bearer {token}"))]).status
}

/// Registers at the current issuer.
pub fn register(authd: &Authd) -> Reply {
    let document = json!({ "redirect_uris": [CALLBACK], "client_name": "test" });
    try_fetch("POST", &format!("{}/register", authd.issuer()), &[], &document.to_string()).unwrap()
}

/// Visits the login page.
pub fn visit(authd: &Authd, client: &str, scope: &str) -> Reply {
    get(&page(authd, client, scope))
}

/// The address of the login page.
pub fn page(authd: &Authd, client: &str, scope: &str) -> String {
    let (challenge, resource) = (sha256(VERIFIER), authd.resource());
    let fields = [
        ("response_type", "code"),
        ("client_id", client),
        ("redirect_uri", CALLBACK),
        ("code_challenge", &challenge),
        ("code_challenge_method", "S256"),
        ("state", "xyz"),
        ("resource", &resource),
        ("scope", scope),
    ];
    format!("{}/authorize?{}", authd.issuer(), written(&fields))
}

/// Exchanges a code of the login page.
pub fn exchange(authd: &Authd, client: &str, code: &str) -> Option<Reply> {
    let fields = [
        ("grant_type", "authorization_code"),
        ("code", code),
        ("client_id", client),
        ("redirect_uri", CALLBACK),
        ("code_verifier", VERIFIER),
    ];
    try_form(&format!("{}/token", authd.issuer()), &fields, &[])
}

pub fn refresh(authd: &Authd, client: &str, token: &str) -> Option<Reply> {
    let fields = [("grant_type", "refresh_token"), ("refresh_token", token), ("client_id", client)];
    try_form(&format!("{}/token", authd.issuer()), &fields, &[])
}

/// What a whole login brings.
pub struct Login {
    pub client: String,
    pub access: String,
    pub refresh: String,
}

/// Logs in from the beginning: registers, visits, exchanges.
pub fn log_in(authd: &Authd, scope: &str) -> Login {
    let client = register(authd).json()["client_id"].as_str().unwrap().to_owned();
    let code = visit(authd, &client, scope).led_to("code").unwrap();
    let tokens = exchange(authd, &client, &code).unwrap().json();
    let text = |name: &str| tokens[name].as_str().unwrap_or_default().to_owned();
    Login { client, access: text("access_token"), refresh: text("refresh_token") }
}
