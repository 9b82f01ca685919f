//! An authorization server that takes every refresh token once, and the server whose tokens it gives.
//!
//! It keeps a ledger: which refresh tokens were presented, and of which it knows that what it gave for them was kept.
//! That is so once the access token is used, or the next refresh token presented.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

/// How long tokens last, in seconds: half a minute until they are renewed, and some.
const LIFE: u64 = 60;
/// The state of an open connection in `/proc/net/tcp`.
const ESTABLISHED: &str = "01";
/// How long the processes may take to ask for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// The server. Its thread ends with the process.
pub struct Issuer {
    pub address: SocketAddr,
    ledger: Arc<(Mutex<Ledger>, Condvar)>,
}

#[derive(Default)]
pub struct Ledger {
    /// The number of the token that would be taken.
    live: u64,
    /// The highest number given.
    last: u64,
    /// What was given for a token.
    next: BTreeMap<u64, u64>,
    /// How often a token was presented.
    presented: BTreeMap<u64, usize>,
    /// Whoever presented a token and has no answer yet.
    under_way: BTreeMap<u64, TcpStream>,
    kept: BTreeSet<u64>,
    /// Tokens of which nobody knew that they were kept when somebody was killed.
    cut: BTreeSet<u64>,
    requests: usize,
    /// How often somebody logged in.
    pub logins: usize,
    /// Presented again though the next was kept, or while somebody who lives waits for the answer.
    pub doubles: usize,
}

impl Issuer {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let ledger = Arc::new((Mutex::new(Ledger::default()), Condvar::new()));
        let shared = ledger.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = shared.clone();
                thread::spawn(move || drop(serve(&stream, &shared)));
            }
        });
        Self { address, ledger }
    }

    pub fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.0.lock().unwrap()
    }

    /// Waits until it has been asked this many times more.
    pub fn await_requests(&self, more: usize) {
        let ledger = self.ledger();
        let goal = ledger.requests + more;
        let (ledger, waited) =
            self.ledger.1.wait_timeout_while(ledger, PATIENCE, |ledger| ledger.requests < goal).unwrap();
        let missing = goal.saturating_sub(ledger.requests);
        drop(ledger);
        assert!(
            !waited.timed_out(),
            "nobody has asked for anything for long: {missing} of {more} requests are missing"
        );
    }
}

impl Ledger {
    /// Exchanges, that is tokens that were taken.
    pub fn rotations(&self) -> usize {
        self.next.len()
    }

    /// Tokens that were presented more than once.
    pub fn presented_more_than_once(&self) -> usize {
        self.presented.values().filter(|times| **times > 1).count()
    }

    /// Kills between an exchange and its being kept.
    pub fn caught(&self) -> usize {
        self.cut.len()
    }

    /// Notes that somebody was killed. Held since before that, so that nobody can have asked for anything meanwhile.
    pub fn killed(&mut self) {
        if !self.kept.contains(&self.live) {
            self.cut.insert(self.live);
        }
    }

    /// A new family of tokens.
    fn log_in(&mut self) -> u64 {
        self.logins += 1;
        self.last += 1;
        self.live = self.last;
        self.live
    }

    /// Notes a token that nobody is there to take any more: whoever asked for it was killed before it was given.
    fn give(&mut self, number: u64, stream: &TcpStream) {
        if is_gone(stream) {
            self.cut.insert(number);
        }
    }

    fn keep(&mut self, number: u64) {
        self.kept.insert(number);
        self.cut.remove(&number);
    }

    fn present(&mut self, number: u64, stream: &TcpStream) -> Option<u64> {
        *self.presented.entry(number).or_default() += 1;
        // Somebody who was killed may still be under way here, before or behind the next one, and waits for nothing.
        let is_late = is_gone(stream);
        let before = self.under_way.insert(number, stream.try_clone().unwrap());
        let is_alone = before.is_none_or(|before| is_gone(&before));
        self.keep(number);
        let next = self.next.get(&number);
        if !is_late && (!is_alone || next.is_some_and(|next| self.kept.contains(next))) {
            self.doubles += 1;
        }
        if number != self.live {
            return None;
        }
        self.last += 1;
        self.live = self.last;
        self.next.insert(number, self.last);
        Some(self.last)
    }
}

fn serve(stream: &TcpStream, shared: &(Mutex<Ledger>, Condvar)) -> std::io::Result<()> {
    let (head, body) = request(stream)?;
    let answer = match head.split_whitespace().nth(1) {
        Some("/token") => token(stream, &body, shared),
        Some("/login") => login(stream, shared),
        _ => used(&head, shared),
    };
    let written = write!(
        &mut &*stream,
        "HTTP/1.1 {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
        answer.0,
        answer.1.len(),
        answer.1
    );
    if let Some(number) = number_after(&body, "refresh_token=r") {
        shared.0.lock().unwrap().under_way.remove(&number);
    }
    written
}

fn login(stream: &TcpStream, shared: &(Mutex<Ledger>, Condvar)) -> (&'static str, String) {
    let mut ledger = shared.0.lock().unwrap();
    // A login of somebody who was killed must not end that of the next one.
    if is_gone(stream) {
        return ("400 Bad Request", String::new());
    }
    let number = ledger.log_in();
    ledger.give(number, stream);
    ("200 OK", number.to_string())
}

fn token(stream: &TcpStream, body: &str, shared: &(Mutex<Ledger>, Condvar)) -> (&'static str, String) {
    let number = number_after(body, "refresh_token=r").expect("a refresh token is presented");
    let mut ledger = shared.0.lock().unwrap();
    let next = ledger.present(number, stream);
    next.inspect(|next| ledger.give(*next, stream));
    drop(ledger);
    told(shared);
    match next {
        Some(next) => {
            let text = format!(
                r#"{{"access_token":"a{next}","refresh_token":"r{next}","token_type":"Bearer","expires_in":{LIFE}}}"#
            );
            ("200 OK", text)
        }
        None => ("400 Bad Request", r#"{"error":"invalid_grant"}"#.to_owned()),
    }
}

fn used(head: &str, shared: &(Mutex<Ledger>, Condvar)) -> (&'static str, String) {
    let Some(number) = number_after(head, "Bearer a") else { return ("401 Unauthorized", String::new()) };
    shared.0.lock().unwrap().keep(number);
    told(shared);
    ("200 OK", String::new())
}

/// Whether nobody reads this any more: the other end is not an open socket. That end is looked at itself, because on a busy
/// machine its last packet may still be on the way.
fn is_gone(stream: &TcpStream) -> bool {
    let Ok(other_end) = stream.peer_addr() else { return true };
    let suffix = format!(":{:04X}", other_end.port());
    let sockets = std::fs::read_to_string("/proc/net/tcp").unwrap();
    !sockets.lines().any(|line| {
        let mut columns = line.split_whitespace().skip(1);
        let (local, state) = (columns.next(), columns.nth(1));
        local.is_some_and(|local| local.ends_with(&suffix)) && state == Some(ESTABLISHED)
    })
}

fn told(shared: &(Mutex<Ledger>, Condvar)) {
    shared.0.lock().unwrap().requests += 1;
    shared.1.notify_all();
}

fn request(stream: &TcpStream) -> std::io::Result<(String, String)> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
    let length = number_after(&head.to_ascii_lowercase(), "content-length: ").unwrap_or(0);
    let mut body = String::new();
    reader.take(length).read_to_string(&mut body)?;
    Ok((head, body))
}

fn number_after(text: &str, prefix: &str) -> Option<u64> {
    let rest = &text[text.find(prefix)? + prefix.len()..];
    let end = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}
