//! Servers over HTTP on this machine, all at one port. The path says which one is meant, and it answers with that.

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use serde_json::{Value, json};
use wharf::spec::{HttpSpec, ServerSpec};
use wharf_testkit::transport_faults::read_request;

use crate::fixture::{definition, text};

/// A port at which servers answer until it is dropped. `/name/1` has a tool `who`, which says `name 1`; whatever begins
/// with `/login` wants to know who asks, a call of whatever begins with `/held` is answered once it is let go, and
/// whatever begins with `/books` has a resource as well.
pub struct Site {
    address: SocketAddr,
    closed: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

/// Whether calls that are held have been let go.
static LET_GO: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());

/// Lets calls go that are held.
pub fn let_go() {
    *LET_GO.0.lock().unwrap() = true;
    LET_GO.1.notify_all();
}

impl Site {
    pub fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, closed) = (listener.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let is_closed = Arc::clone(&closed);
        let accepting = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if is_closed.load(Ordering::SeqCst) {
                    return;
                }
                // Ends when the client hangs up.
                std::thread::spawn(move || stream.map(serve));
            }
        });
        Self { address, closed, accepting: Some(accepting) }
    }

    pub fn spec(&self, path: &str) -> ServerSpec {
        let url = format!("http://{}/{path}", self.address);
        ServerSpec::Http(HttpSpec::new(url.parse().unwrap()))
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::SeqCst);
        // So that it looks.
        drop(TcpStream::connect(self.address));
        let _ = self.accepting.take().map(JoinHandle::join);
    }
}

/// Answers one request after the other.
fn serve(mut stream: TcpStream) {
    while let Ok(Some(request)) = read_request(&mut stream) {
        let (status, answer) = respond(request.path().trim_start_matches('/'), &request.json());
        let head =
            format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", answer.len());
        if stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(answer.as_bytes())).is_err() {
            return;
        }
    }
}

fn respond(path: &str, message: &Value) -> (&'static str, String) {
    let result = match message["method"].as_str() {
        _ if path.starts_with("login") => return ("401 Unauthorized", String::new()),
        Some("server/discover") if path.starts_with("books") => {
            json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {}, "resources": {} } })
        }
        Some("resources/list") => json!({ "resources": [{ "uri": "book:one", "name": "One" }] }),
        Some("resources/templates/list") => json!({ "resourceTemplates": [] }),
        Some("server/discover") => json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} } }),
        Some("tools/list") => json!({ "tools": [definition("who")] }),
        Some("tools/call") if path.starts_with("held") => {
            drop(LET_GO.1.wait_while(LET_GO.0.lock().unwrap(), |gone| !*gone).unwrap());
            text(path.replace('/', " "))
        }
        Some("tools/call") => text(path.replace('/', " ")),
        Some(_) => return ("202 Accepted", String::new()),
        None => return ("405 Method Not Allowed", String::new()),
    };
    ("200 OK", json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string())
}
