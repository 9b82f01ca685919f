//! Logging in as people do it: by a browser, by hand, as several people, and out again.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};
use wharf_testkit::authd::{AuthSwitches, Authd, MetadataLocation};
use wharf_testkit::pty::Terminal;
use wharf_testkit::test_home::{CommandOutput, TestHome, USER_CONFIG};

use crate::support::named_pipe;

/// Where the browser of these tests leaves the address it is given.
const OPENED: &str = "opened.pipe";
/// Where it leaves it for whoever looks later.
const SEEN: &str = "opened.txt";

/// How long a browser may take to be opened.
const PATIENCE: Duration = Duration::from_secs(30);

/// Somebody's machine, and a server `docs` that wants a login.
pub struct Scene {
    pub home: TestHome,
    pub authd: Authd,
}

impl Scene {
    pub fn new() -> Self {
        // Found without a challenge, since `wharf auth` begins before anybody was turned away.
        let switches = AuthSwitches { description: MetadataLocation::Path, ..AuthSwitches::default() };
        let (home, authd) = (TestHome::new(), Authd::start(switches).unwrap());
        let servers = json!({ "docs": { "url": authd.server_url() }, "local": { "command": "true" } });
        home.write(USER_CONFIG, &json!({ "tokenStore": "file", "mcpServers": servers }).to_string());
        let opened = home.path(OPENED);
        named_pipe(&opened);
        // One line for each argument, so that two of them would be seen.
        let seen = home.path(SEEN);
        let script = format!("#!/bin/sh\nprintf '%s\\n' \"$@\" | tee -a {} > {}\n", seen.display(), opened.display());
        let browser = home.write_program("bin/xdg-open", &script);
        let path = format!("{}:/usr/bin:/bin", browser.parent().unwrap().display());
        Self { home: home.with_env("PATH", path), authd }
    }

    pub fn run(&self, args: &[&str]) -> CommandOutput {
        self.clean(self.home.run(args))
    }

    /// Logs in by the browser, which does what it is told.
    pub fn log_in(&self, args: &[&str]) -> CommandOutput {
        let opened = self.opened();
        let child = self.home.command(args).spawn().unwrap();
        visit(&sent_back(&opened.recv_timeout(PATIENCE).unwrap()));
        self.clean(CommandOutput::from(child.wait_with_output().unwrap()))
    }

    /// Hears of the next address that is opened, which has to be one argument.
    fn opened(&self) -> mpsc::Receiver<String> {
        let (address, opened) = mpsc::channel();
        let pipe = self.home.path(OPENED);
        // Reading waits for a writer, and there may be none: nobody waits for this thread.
        std::thread::spawn(move || {
            let text = std::fs::read_to_string(pipe).unwrap();
            assert_eq!(text.lines().count(), 1, "{text}");
            address.send(text.trim_end().to_owned())
        });
        opened
    }

    /// T50: nothing that was ever given out is shown.
    #[track_caller]
    fn clean(&self, ran: CommandOutput) -> CommandOutput {
        for secret in self.authd.secrets() {
            assert!(!ran.stdout.contains(&secret) && !ran.stderr.contains(&secret), "{secret} in {ran:?}");
        }
        ran
    }

    pub fn kept(&self) -> PathBuf {
        self.home.path("home/.config/wharf/mcp-auth.json")
    }

    fn status(&self, account: &str) -> Value {
        let status = self.run(&["auth", "status", "docs", "--json", "--account", account]).json();
        status["items"][0].clone()
    }
}

/// Asks for an address the way a browser does, and gives back the whole answer.
pub fn visit(address: &str) -> String {
    let (host, path) = address.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Where a login page sends whoever visits it.
#[track_caller]
pub fn sent_back(page: &str) -> String {
    let answer = visit(page);
    let location =
        answer.lines().find_map(|line| line.split_once(": ").filter(|(name, _)| name.eq_ignore_ascii_case("location")));
    location.unwrap_or_else(|| panic!("{page} does not redirect: {answer}")).1.to_owned()
}

#[test]
fn browser_login_is_stored_used_and_revoked() {
    let scene = Scene::new();
    let before = scene.run(&["tools", "docs"]);
    assert_eq!(before.code, Some(4), "{before:?}");
    assert!(before.stderr.contains("wharf auth docs logs you in"), "{before:?}");
    let login = scene.log_in(&["auth", "docs", "--yes"]);
    assert_eq!(login.code, Some(0), "{login:?}");
    for part in [
        "Logged in: docs at ",
        "  URL:     http://127.0.0.1",
        "Opening your browser",
        "mcp-auth.json",
        "wharf tools docs lists them",
    ] {
        assert!(login.stderr.contains(part), "{part}: {login:?}");
    }
    assert_eq!(scene.kept().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(scene.run(&["tools", "docs"]).code, Some(0));
    let status = scene.status("");
    assert_eq!((&status["state"], &status["issuer"]), (&json!("logged_in"), &json!(scene.authd.issuer())));
    assert!(scene.run(&["why", "docs"]).stdout.contains("logged in, ends in "));
    let logout = scene.run(&["logout", "docs"]);
    assert!(logout.code == Some(0) && logout.stderr.contains("Logged out: docs"), "{logout:?}");
    assert_eq!(scene.run(&["tools", "docs"]).code, Some(4));
    assert_eq!(scene.run(&["auth", "status", "docs"]).code, Some(4));
    assert!(scene.run(&["logout", "docs"]).stderr.contains("No login stored for docs"));
    let left = std::fs::read_to_string(scene.kept()).unwrap();
    assert!(scene.authd.secrets().iter().all(|secret| !left.contains(secret.as_str())), "{left}");
}

#[test]
fn accounts_of_one_server_are_separate() {
    let scene = Scene::new();
    let login = scene.log_in(&["auth", "docs", "--yes", "--account", "work", "--json"]);
    let told = login.json();
    assert_eq!((&told["server"], &told["account"], &told["success"]), (&json!("docs"), &json!("work"), &json!(true)));
    assert!(told["tools"].as_u64().is_some_and(|count| count > 0), "{told}");
    assert_eq!(scene.run(&["tools", "docs"]).code, Some(4));
    assert_eq!(scene.run(&["tools", "docs", "--account", "work"]).code, Some(0));
    assert_eq!(scene.log_in(&["auth", "docs", "-y"]).code, Some(0));
    assert_eq!(scene.run(&["logout", "docs"]).code, Some(0));
    assert_eq!(scene.status("work")["state"], "logged_in");
    let all = scene.run(&["logout", "docs", "--all", "--json"]);
    assert_eq!(all.json()["accounts"], json!(["work"]));
}

#[test]
fn unconfigured_url_has_its_own_login() {
    let scene = Scene::new();
    let url = scene.authd.server_url();
    let refused = scene.run(&["tools", "--url", &url]);
    assert!(refused.stderr.contains(&format!("wharf auth {url}")), "{refused:?}");
    assert_eq!(scene.log_in(&["login", &url, "--yes"]).code, Some(0));
    assert_eq!(scene.run(&["tools", "--url", &url]).code, Some(0));
    assert_eq!(scene.run(&["tools", "docs"]).code, Some(4));
    assert_eq!(scene.run(&["logout", &url]).code, Some(0));
    assert_eq!(scene.run(&["tools", "--url", &url]).code, Some(4));
}

/// O08: a browser on another machine, where the person copies the address it could not open.
#[test]
fn o08_redirect_url_can_be_pasted_without_a_browser() {
    let scene = Scene::new();
    let mut child = scene.home.command(["auth", "docs", "--no-browser"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut talk = BufReader::new(child.stderr.take().unwrap());
    let page = shown_address(&mut talk);
    let back = sent_back(&page);
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{}", back.replace("state=", "state=x")).unwrap();
    writeln!(input, "code=forged").unwrap();
    writeln!(input, "{back}").unwrap();
    let ran = ended(child, talk);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        ran.stderr.matches("This URL belongs to another login (the `state` does not match).").count(),
        2,
        "{ran:?}"
    );
    assert!(ran.stderr.contains("Logged in: docs"), "{ran:?}");
}

/// The other way round: whoever comes back by themselves need not paste anything.
#[test]
fn o08_callback_arrives_without_a_browser() {
    let scene = Scene::new();
    let mut child = scene.home.command(["auth", "docs", "--no-browser"]).spawn().unwrap();
    let mut talk = BufReader::new(child.stderr.take().unwrap());
    let page = shown_address(&mut talk);
    let answer = visit(&sent_back(&page));
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("You are logged in"), "{answer}");
    let ran = ended(child, talk);
    assert!(ran.code == Some(0) && ran.stderr.contains("Logged in: docs"), "{ran:?}");
}

pub fn shown_address(talk: &mut impl std::io::BufRead) -> String {
    let mut lines = talk.lines().map(Result::unwrap);
    lines.find_map(|line| line.trim().strip_prefix("URL:     ").map(str::to_owned)).unwrap()
}

pub fn ended(child: Child, mut talk: impl std::io::Read) -> CommandOutput {
    let mut stderr = String::new();
    talk.read_to_string(&mut stderr).unwrap();
    CommandOutput { stderr, ..CommandOutput::from(child.wait_with_output().unwrap()) }
}

/// R8.1: nothing is opened before a yes.
#[test]
fn browser_opens_only_after_consent() {
    let scene = Scene::new();
    let mut terminal = Terminal::start_piped(&scene.home.command(["auth", "docs"]));
    terminal.answer("Open the login page in your browser? [y/N]: ", "n");
    let ended = terminal.end();
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert!(ended.shown.contains("docs requires a login at 127.0.0.1"), "{ended:?}");
    assert_eq!(scene.authd.counts().authorizations, 0);
    assert!(!scene.home.path(SEEN).exists(), "something was opened");
    let mut terminal = Terminal::start_piped(&scene.home.command(["auth", "docs"]));
    let opened = scene.opened();
    terminal.answer("Open the login page in your browser? [y/N]: ", "y");
    visit(&sent_back(&opened.recv_timeout(PATIENCE).unwrap()));
    assert!(scene.home.path(SEEN).exists(), "it was opened without a trace");
    terminal.expect("Logged in: docs");
    assert_eq!(terminal.end().code, Some(0));
}

#[test]
fn servers_without_login_are_reported() {
    let scene = Scene::new();
    let url = scene.authd.server_url();
    for (args, expected) in [
        (&["auth", "local"][..], "this is a local (stdio) server; `wharf auth` applies to HTTP servers only"),
        (&["auth", "nobody"], "no server named `nobody`"),
        (&["auth"], "no server given"),
        (&["auth", &url, "--header", "Authorization=Bearer x"], "its entry already has credentials"),
        (&["auth", "docs", "--no-browser", "--yes"], "cannot be used with"),
    ] {
        let ran = scene.run(args);
        assert!(ran.code == Some(2) && ran.stderr.contains(expected), "{args:?}: {ran:?}");
    }
    assert!(!scene.kept().exists(), "something was kept");
    let status = scene.run(&["auth", "status"]);
    assert!(status.code == Some(0) && status.stdout.contains("docs") && !status.stdout.contains("local"), "{status:?}");
}
