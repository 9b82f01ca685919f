//! A test HTTP server on loopback with fixed responses by path and a log of requests.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use wharf_testkit::transport_faults::{AcceptedConnection, Endpoint};

/// A test HTTP server. Unknown paths return 404.
pub(crate) struct StaticSite {
    endpoint: Endpoint,
    pages: Arc<Mutex<HashMap<String, Vec<u8>>>>,
    asked: Arc<Mutex<Vec<SiteRequest>>>,
}

/// A received request.
#[derive(Clone)]
pub(crate) struct SiteRequest {
    pub head: String,
    pub body: String,
}

impl SiteRequest {
    /// Returns method and path.
    pub fn line(&self) -> String {
        self.head.split(" HTTP/").next().unwrap_or_default().to_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("a JSON body")
    }
}

impl StaticSite {
    pub fn start() -> Self {
        let pages = Arc::<Mutex<HashMap<String, Vec<u8>>>>::default();
        let asked = Arc::<Mutex<Vec<SiteRequest>>>::default();
        let (shelf, notes) = (Arc::clone(&pages), Arc::clone(&asked));
        let endpoint = Endpoint::start(move |mut guest| {
            while let Ok(Some(request)) = receive(&mut guest) {
                let path = request.head.split(' ').nth(1).unwrap_or_default().to_owned();
                notes.lock().unwrap().push(request);
                let page = shelf.lock().unwrap().get(&path).cloned();
                let page = page.unwrap_or_else(|| http_response("404 Not Found", "", "nothing here"));
                if guest.write_all(&page).is_err() {
                    return;
                }
            }
        });
        Self { endpoint: endpoint.unwrap(), pages, asked }
    }

    /// Returns its origin, without a trailing slash.
    pub fn origin(&self) -> String {
        format!("http://{}", self.endpoint.address())
    }

    pub fn port(&self) -> u16 {
        self.endpoint.address().port()
    }

    /// Responds to requests for this path with these bytes.
    pub fn respond_with(&self, path: &str, bytes: Vec<u8>) -> &Self {
        self.pages.lock().unwrap().insert(path.to_owned(), bytes);
        self
    }

    /// Responds to requests for this path with this document.
    pub fn serve_document(&self, path: &str, document: &Value) -> &Self {
        self.respond_with(path, http_response("200 OK", "", &document.to_string()))
    }

    /// Returns method and path of all requests, in order.
    pub fn request_lines(&self) -> Vec<String> {
        self.requests().iter().map(SiteRequest::line).collect()
    }

    pub fn requests(&self) -> Vec<SiteRequest> {
        self.asked.lock().unwrap().clone()
    }

    pub fn connections(&self) -> u64 {
        self.endpoint.connections()
    }
}

/// Formats a response. Each header line must end with CRLF.
pub(crate) fn http_response(status: &str, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

fn receive(guest: &mut AcceptedConnection) -> io::Result<Option<SiteRequest>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if guest.read(&mut byte)? == 0 {
            return Ok(None);
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    guest.read_exact(&mut body)?;
    Ok(Some(SiteRequest { head, body: String::from_utf8_lossy(&body).into_owned() }))
}
