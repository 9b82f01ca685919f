//! Profiles and keys: what a client may use.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use serde_json::{Value, json};
use wharf_testkit::oracle::{marked_processes, poll_until};
use wharf_testkit::test_home::{TestHome, USER_CONFIG};

use super::client::PipeClient;
use super::{HttpGateway, allow_all, home};

const PATIENCE: Duration = Duration::from_secs(20);

/// A home with a second server and these profiles.
fn home_with(profiles: &Value) -> (TestHome, String) {
    let (home, marker) = home(&allow_all());
    let mut config: Value = serde_json::from_str(&home.read(USER_CONFIG)).unwrap();
    config["mcpServers"]["second"] = config["mcpServers"]["demo"].clone();
    config["profiles"] = profiles.clone();
    home.write(USER_CONFIG, &config.to_string());
    (home, marker)
}

#[test]
fn profile_limits_servers_and_tools() {
    let profiles = json!({
        "echo": {"servers": ["dem*"], "tools": ["*__echo", "*__add"], "excludeTools": ["demo__add"], "names": "plain"},
    });
    let (home, marker) = home_with(&profiles);
    let mut client = PipeClient::initialized(&home, "project", &["--profile", "echo"]);
    assert_eq!(client.tool_names(), ["echo"]);
    assert_eq!(marked_processes(&marker).len(), 1, "only the servers of the profile run");
    assert_eq!(client.call("echo", &json!({"text": "ahoy"})), "ahoy");
    for hidden in ["add", "demo__echo", "second__echo"] {
        let refused = client.call(hidden, &json!({"a": 1, "b": 2}));
        assert!(refused.contains("unknown tool"), "{hidden}: {refused}");
    }
    let mut other = PipeClient::initialized(&home, "project", &["--server", "second"]);
    let refused = other.call("demo__echo", &json!({"text": "ahoy"}));
    assert!(refused.contains("unknown tool"), "{refused}");
    assert_eq!(other.call("second__echo", &json!({"text": "ahoy"})), "ahoy");
}

#[test]
fn profile_that_cannot_be_read_serves_nothing() {
    let (home, _) = home_with(&json!({"misspelt": {"tool": ["*__echo"]}, "absent": {"servers": ["nobody"]}}));
    for (profile, complaint) in
        [("misspelt", "tool"), ("nowhere", "no profile named"), ("absent", "none of the enabled")]
    {
        let ran = home.run(["serve", "--profile", profile]);
        assert!(ran.code == Some(2) && ran.stderr.contains(complaint), "{profile}: {ran:?}");
    }
}

/// The status of a response, its session id and its body.
pub struct HttpReply {
    pub status: u16,
    pub session: Option<String>,
    pub body: String,
}

pub fn post(url: &str, key: &str, session: Option<&str>, message: &Value) -> HttpReply {
    let session = session.map(|id| format!("Mcp-Session-Id: {id}\r\n")).unwrap_or_default();
    post_with(url, key, &format!("Host: {}\r\n{session}", authority(url)), message)
}

fn authority(url: &str) -> &str {
    url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap()
}

/// Posts a message with these headers, the `Host` among them.
pub fn post_with(url: &str, key: &str, headers: &str, message: &Value) -> HttpReply {
    let mut stream = TcpStream::connect(authority(url)).unwrap();
    let body = message.to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\n{headers}Authorization: Bearer {key}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let header =
        |name: &str| head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ").map(str::to_owned));
    HttpReply { status: head[9..12].parse().unwrap(), session: header("mcp-session-id"), body: body.to_owned() }
}

pub fn initialize() -> Value {
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
}

#[test]
fn keys_are_principals_with_profiles_and_can_be_revoked() {
    let (home, _) = home_with(&json!({"echo": {"tools": ["demo__echo"]}}));
    let ci = home.run_ok(&["key", "add", "ci", "--profile", "echo"]).stdout.trim().to_owned();
    let file = home.path("home/.local/state/wharf/serve-keys.json");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!std::fs::read_to_string(&file).unwrap().contains(&ci), "only the digest is stored");
    let mut gateway = HttpGateway::start(&home);
    let url = gateway.line_after("listening on ");
    // A key that is added while the gateway runs.
    let other = home.run_ok(&["key", "add", "other", "--json"]).json()["key"].as_str().unwrap().to_owned();
    assert!(poll_until(PATIENCE, || post(&url, &other, None, &initialize()).status == 200));
    let opened = post(&url, &ci, None, &initialize());
    let session = opened.session.unwrap();
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let listed = post(&url, &ci, Some(&session), &list);
    assert!(listed.status == 200 && listed.body.contains("demo__echo"), "{}", listed.body);
    assert!(!listed.body.contains("demo__add") && !listed.body.contains("second__"), "{}", listed.body);
    assert_eq!(post(&url, &other, Some(&session), &list).status, 404, "the session of another principal");
    let names = home.run_ok(&["key", "list", "--json"]).json();
    assert_eq!(names["items"], json!([{"name": "ci", "profile": "echo"}, {"name": "other", "profile": null}]));
    home.run_ok(&["key", "revoke", "ci"]);
    assert!(poll_until(PATIENCE, || post(&url, &ci, Some(&session), &list).status == 401));
    assert_eq!(post(&url, &other, None, &initialize()).status, 200);
    assert_eq!(post(&url, "wrong", None, &initialize()).status, 401);
}

#[test]
fn invalid_keys_are_not_added() {
    let (home, _) = home_with(&json!({}));
    home.run_ok(&["key", "add", "ci"]);
    for words in [&["key", "add", "ci"][..], &["key", "add", "a b"], &["key", "add", "x", "--profile", "y"]] {
        assert_eq!(home.run(words).code, Some(2), "{words:?}");
    }
    let revoked = home.run(["key", "revoke", "cy"]);
    assert!(revoked.code == Some(2) && revoked.stderr.contains("ci"), "{revoked:?}");
}
