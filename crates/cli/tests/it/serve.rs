//! `wharf serve`: other clients use the configured servers through it. The client here is `wharf` itself.

mod attach;
mod client;
mod drain;
mod exposure;
mod profiles;
mod questions;
mod sharing;
mod surfaces;
mod upgrade;

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use wharf_testkit::oracle::{MARKER, marked_processes, poll_until};
use wharf_testkit::test_home::{CommandOutput, TestHome, USER_CONFIG};

use crate::support::{WHARF, boom, demo, working};

/// A home with a demo server, whose processes are marked, and a broken one.
fn home(permissions: &Value) -> (TestHome, String) {
    let home = TestHome::new();
    let marker = home.root().file_name().unwrap().to_string_lossy().into_owned();
    let mut demo = working();
    demo["env"] = json!({ MARKER: marker });
    let config = json!({"mcpServers": {"demo": demo, "boom": boom()}, "permissions": permissions});
    home.write(USER_CONFIG, &config.to_string());
    (home, marker)
}

fn allow_all() -> Value {
    json!([{"tool": "mcp__*", "action": "allow"}])
}

/// The command line of a gateway on a pipe.
fn serve() -> String {
    format!("{WHARF} serve --server demo")
}

#[test]
fn client_on_a_pipe_lists_and_calls_the_tools() {
    let (home, marker) = home(&allow_all());
    let listed = home.run(["tools", "--stdio", &serve(), "--json"]);
    assert!(listed.code == Some(0) && listed.stdout.contains("\"demo__echo\""), "{listed:?}");
    let called = home.run(["call", "demo__echo", "text=ahoy", "--stdio", &serve()]);
    assert_eq!((called.code, called.stdout.as_str()), (Some(0), "ahoy\n"), "{called:?}");
    let read = home.run(["read", "demo://greeting", "--stdio", &serve()]);
    assert_eq!(read.code, Some(0), "{read:?}");
    let prompt = home.run(["prompt", "demo__welcome", "name=Ada", "--stdio", &serve()]);
    assert!(prompt.code == Some(0) && prompt.stdout.contains("Ada"), "{prompt:?}");
    assert!(poll_until(Duration::from_secs(20), || marked_processes(&marker).is_empty()));
}

/// Behind the gateway the server may be of any revision.
#[test]
fn server_of_every_revision_is_served() {
    for revision in crate::support::REVISIONS {
        let home = TestHome::new();
        let words: Vec<String> = demo(revision).split(' ').map(str::to_owned).collect();
        let entry = json!({"command": WHARF, "args": words[1..]});
        let config = json!({"mcpServers": {"demo": entry}, "permissions": allow_all()});
        home.write(USER_CONFIG, &config.to_string());
        let called = home.run(["call", "demo__echo", "text=ahoy", "--stdio", &serve()]);
        assert_eq!((called.code, called.stdout.as_str()), (Some(0), "ahoy\n"), "{revision}: {called:?}");
    }
}

/// A client that cannot be asked is refused: see the tests of the gateway.
#[test]
fn call_that_needs_permission_is_a_question_to_the_client() {
    let (home, _) = home(&json!([{"tool": "mcp__*", "action": "ask"}]));
    let refused = home.run(["call", "demo__echo", "text=ahoy", "--stdio", &serve()]);
    assert!(refused.code != Some(0) && refused.stderr.contains("Allow the call of `echo`"), "{refused:?}");
    let allowed = home.run(["call", "demo__echo", "text=ahoy", "--answer", "decision=once", "--stdio", &serve()]);
    assert_eq!((allowed.code, allowed.stdout.as_str()), (Some(0), "ahoy\n"), "{allowed:?}");
}

/// The question of a server of any revision reaches the client, and its answer the server.
#[test]
fn question_of_a_server_of_every_revision_reaches_the_client() {
    for revision in ["2025-06-18", "2025-11-25", "2026-07-28"] {
        let home = TestHome::new();
        let words: Vec<String> = demo(revision).split(' ').map(str::to_owned).collect();
        let entry = json!({"command": WHARF, "args": words[1..]});
        let config = json!({"mcpServers": {"demo": entry}, "permissions": allow_all()});
        home.write(USER_CONFIG, &config.to_string());
        let answers = ["--answer", "email=ada@harbour.example", "--answer", "nights=3", "--answer", "ship=Tern"];
        let serve = serve();
        let called = home.run(["call", "demo__book_berth", "--stdio", &serve].into_iter().chain(answers));
        let is_answered = called.stdout.contains("ada@harbour.example") && called.stdout.contains("Tern");
        assert!(called.code == Some(0) && is_answered, "{revision}: {called:?}");
    }
}

/// A gateway over HTTP.
struct HttpGateway {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStderr>>,
}

impl HttpGateway {
    fn start(home: &TestHome) -> Self {
        Self::start_with(home, &[])
    }

    fn start_with(home: &TestHome, words: &[&str]) -> Self {
        let mut command = home.command(["serve", "--http", "127.0.0.1:0"].iter().chain(words));
        Self::new(command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap())
    }

    fn new(mut child: Child) -> Self {
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Returns the rest of the next line that contains a text.
    fn line_after(&mut self, text: &str) -> String {
        let found = self.lines.find_map(|line| line.unwrap().split_once(text).map(|(_, rest)| rest.to_owned()));
        found.unwrap_or_else(|| panic!("no line with {text:?}"))
    }

    /// Asks it to end as a service manager does.
    fn send_term(&self) {
        assert!(Command::new("kill").arg(self.child.id().to_string()).status().unwrap().success());
    }

    /// Ends it as a service manager does, and returns its exit code.
    fn terminate(&mut self) -> Option<i32> {
        self.send_term();
        self.child.wait().unwrap().code()
    }
}

impl Drop for HttpGateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn clients_over_http_share_one_server_process() {
    let (home, marker) = home(&allow_all());
    let mut gateway = HttpGateway::start(&home);
    let url = gateway.line_after("listening on ");
    let file = gateway.line_after("the token is in ");
    let permissions = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(permissions & 0o777, 0o600, "{file}");
    let header = format!("Authorization=Bearer {}", std::fs::read_to_string(&file).unwrap().trim());
    let refused = home.run(["tools", "--url", &url]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    std::thread::scope(|scope| {
        let call = |number: usize| {
            let text = format!("text=ahoy {number}");
            home.run(["call", "demo__echo", &text, "--url", &url, "--header", &header])
        };
        let calls: Vec<_> = (0..5).map(|number| scope.spawn(move || (number, call(number)))).collect();
        for called in calls {
            let (number, called) = called.join().unwrap();
            assert_eq!((called.code, called.stdout), (Some(0), format!("ahoy {number}\n")), "{}", called.stderr);
        }
    });
    let servers = marked_processes(&marker);
    assert_eq!(servers.len(), 1, "{servers:?}");
    gateway.terminate();
    assert!(poll_until(Duration::from_secs(20), || marked_processes(&marker).is_empty()));
}

/// The printed entry is one that `wharf import` reads again.
#[test]
fn entry_is_printed_for_every_program() {
    let (home, _) = home(&allow_all());
    for client in [
        "claude-code",
        "claude-desktop",
        "cursor",
        "vs-code",
        "codex",
        "gemini",
        "opencode",
        "goose",
        "zed",
        "windsurf",
    ] {
        let printed = home.run_ok(&["serve", "--print-config", client, "--server", "demo", "--names", "plain"]);
        home.write("project/printed", &printed.stdout);
        let found = home.run(["import", client, "--file", "printed", "--dry-run", "--json"]).json();
        assert_eq!(found["items"][0]["id"], "wharf", "{client}: {found} of {}", printed.stdout);
        let has = |word: &str| printed.stdout.contains(word);
        assert!([WHARF, "serve", "--server", "demo", "--names", "plain"].into_iter().all(has), "{}", printed.stdout);
    }
    let unknown = home.run(["serve", "--print-config", "abacus"]);
    assert!(unknown.code == Some(2) && unknown.stderr.contains("known programs"), "{unknown:?}");
}

#[test]
fn malformed_address_is_refused() {
    let (home, _) = home(&allow_all());
    let ran = home.run(["serve", "--http", "harbour"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("is not an address"), "{ran:?}");
}

/// T58: other clients have `wharf serve` among their servers, and `wharf import` takes it over from them.
#[test]
fn gateway_among_its_own_servers_does_not_start_itself() {
    let (home, marker) = home(&allow_all());
    let mut config: Value = serde_json::from_str(&home.read(USER_CONFIG)).unwrap();
    let entry = json!({"command": WHARF, "args": ["serve"], "env": { MARKER: marker }});
    config["mcpServers"]["itself"] = entry;
    home.write(USER_CONFIG, &config.to_string());
    let whole = format!("{WHARF} serve");
    let called = home.run(["call", "demo__echo", "text=ahoy", "--stdio", &whole]);
    assert_eq!((called.code, called.stdout.as_str()), (Some(0), "ahoy\n"), "{called:?}");
    let tested = CommandOutput::from(home.command(["serve"]).env("WHARF_SERVED", "1").output().unwrap());
    assert!(tested.code == Some(2) && tested.stderr.contains("would serve itself"), "{tested:?}");
    assert!(poll_until(Duration::from_secs(20), || marked_processes(&marker).is_empty()));
}
