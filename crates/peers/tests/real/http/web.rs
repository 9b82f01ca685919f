//! A server over HTTP as a program of the test's own: where it listens, which requests came, and its end.

use std::net::TcpListener;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use wharf_client::{CallError, ConnectOptions, Connection, RequestOptions, Transport, connect_http};
use wharf_spec::HttpSpec;
use wharf_testkit::oracle::{MARKER, marked_processes, poll_until};

use crate::peer::{Peer, SOON};
use crate::quay::{Sdk, Side, Way};

/// What hangs for this long hangs for ever.
const LONG: Duration = Duration::from_secs(60);

/// How often another port is tried, where somebody else was faster.
const TRIES: usize = 5;

/// A server while it runs.
pub struct Web {
    side: Side,
    url: String,
    child: Child,
    /// Most leave when this ends.
    input: Option<ChildStdin>,
    /// What it has said, on either of its streams.
    lines: watch::Sender<Vec<String>>,
    readers: JoinSet<()>,
}

impl Web {
    /// Starts a server and waits until it listens.
    pub async fn start(peer: &Peer, side: Side) -> Self {
        for _ in 0..TRIES {
            if let Some(web) = Self::try_start(peer, side).await {
                return web;
            }
        }
        panic!("{side}: it does not listen");
    }

    /// Gives nothing where the server leaves before it listens.
    async fn try_start(peer: &Peer, side: Side) -> Option<Self> {
        let port = free_port();
        let mut child = Command::new(&peer.spec.program)
            .args(&peer.spec.args)
            .env("HOME", &peer.home.path)
            .env(MARKER, peer.home.marker())
            .env("PORT", port.to_string())
            .current_dir(&peer.home.path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let (lines, mut readers) = (watch::Sender::new(Vec::new()), JoinSet::new());
        readers.spawn(keep(child.stdout.take().unwrap(), lines.clone()));
        readers.spawn(keep(child.stderr.take().unwrap(), lines.clone()));
        let input = child.stdin.take();
        let url = tokio::select! {
            url = listening(&lines, port, side) => url,
            _ = child.wait() => return None,
        };
        Some(Self { side, url, child, input, lines, readers })
    }

    /// Connects with it; what it speaks there is left to be found out.
    pub async fn open(&self, peer: &Peer, options: ConnectOptions) -> Connection {
        let connection = match connect_http(&HttpSpec::new(self.url.parse().unwrap()), options).await {
            Ok(connection) => connection,
            Err(error) => panic!("{}: {error}\n{:?}\n{:?}", self.side, error.trace, self.lines.borrow()),
        };
        let facts = connection.facts();
        let transport = if self.side.way == Way::Sse { Transport::HttpSse } else { Transport::StreamableHttp };
        assert_eq!((facts.revision, facts.transport), (peer.revision, transport), "{:?}", connection.trace());
        assert!(facts.process.is_none(), "{}: a remote server has no process", self.side);
        connection
    }

    /// Leaves it, and ends it; nothing of it may be left.
    pub async fn close(mut self, peer: &Peer, connection: Connection) {
        connection.close().await;
        let error = connection.ping(RequestOptions::default()).await.unwrap_err();
        assert!(matches!(error, CallError::RetryableDisconnect(_)), "{}: {error}", self.side);
        self.input = None;
        if self.side.sdk == Sdk::Everything {
            // It does not notice.
            self.child.start_kill().unwrap();
        }
        assert!(timeout(LONG, self.child.wait()).await.is_ok(), "{}: it does not leave", self.side);
        std::mem::take(&mut self.readers).join_all().await;
        self.has_manners();
        let marker = peer.home.marker();
        let gone = poll_until(SOON, || marked_processes(&marker).is_empty());
        assert!(gone, "left behind: {:?}", marked_processes(&marker));
    }

    /// A session is ended by whoever opened it (2025-11-25, basic/transports); the stateless era knows neither
    /// sessions nor a stream of the server's own.
    fn has_manners(&self) {
        let seen = (self.requests("GET") > 0, self.requests("DELETE"));
        let expected = match (self.side.way, self.side.is_stateless()) {
            (Way::Sse, _) => (true, 0),
            (_, true) => (false, 0),
            (_, false) => (true, 1),
        };
        assert_eq!(seen, expected, "{}: {:?}", self.side, self.lines.borrow());
    }

    /// How many requests with this method have come.
    pub fn requests(&self, method: &str) -> usize {
        self.lines.borrow().iter().filter(|line| is_request(line, method)).count()
    }

    /// Waits until so many requests with this method have come.
    pub async fn asked(&self, method: &str, times: usize) {
        self.until(|lines| lines.iter().filter(|line| is_request(line, method)).count() >= times).await;
    }

    /// Waits until it has said this.
    pub async fn says(&self, what: &str) {
        self.until(|lines| lines.iter().any(|line| line == what)).await;
    }

    async fn until(&self, enough: impl Fn(&[String]) -> bool) {
        let mut said = self.lines.subscribe();
        let waited = timeout(LONG, said.wait_for(|lines| enough(lines))).await.is_ok();
        assert!(waited, "{}: it only says {:?}", self.side, self.lines.borrow());
    }
}

/// Puts down whatever comes, line by line.
async fn keep(stream: impl AsyncRead + Unpin, lines: watch::Sender<Vec<String>>) {
    let mut stream = BufReader::new(stream).lines();
    while let Ok(Some(line)) = stream.next_line().await {
        lines.send_modify(|lines| lines.push(line));
    }
}

/// Waits until it listens; our own servers say where, and the reference server that it does.
async fn listening(lines: &watch::Sender<Vec<String>>, port: u16, side: Side) -> String {
    let ready = format!(" on port {port}");
    let path = if side.way == Way::Sse { "sse" } else { "mcp" };
    let place = |line: &String| match line.strip_prefix("listening ") {
        Some(url) => Some(url.to_owned()),
        None => line.ends_with(&ready).then(|| format!("http://127.0.0.1:{port}/{path}")),
    };
    let mut said = lines.subscribe();
    let said = said.wait_for(|lines| lines.iter().any(|line| place(line).is_some())).await.unwrap();
    said.iter().find_map(place).expect("that is what was waited for")
}

/// Our own servers tell of every request in the same words, and the reference server in its own.
fn is_request(line: &str, method: &str) -> bool {
    let theirs: &[&str] = match method {
        "GET" => &["Received MCP GET request", "Client Connected:"],
        "DELETE" => &["Received session termination request"],
        _ => &["Received MCP POST request", "Client Message from"],
    };
    let ours = line.strip_prefix(method).is_some_and(|rest| rest.starts_with(" /"));
    ours || theirs.iter().any(|words| line.starts_with(words))
}

/// A port that nobody has, which the reference server must be told.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
