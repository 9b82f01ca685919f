//! A test HTTP server on loopback with a queue of responses per path and a log of requests.

use std::collections::{HashMap, VecDeque};
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use url::{Url, form_urlencoded};
use wharf_testkit::transport_faults::{AcceptedConnection, Endpoint};

use super::AuthServerContext;
use crate::auth_http::AuthHttpClient;
use crate::dpop::DpopNonces;
use crate::settings::AuthSettings;

type ResponseQueues = HashMap<String, VecDeque<Vec<u8>>>;

/// A test HTTP server, and the context of a login to it. The last response of a queue is repeated. Unknown paths return
/// 404.
pub(crate) struct ScriptedSite {
    endpoint: Endpoint,
    answers: Arc<Mutex<ResponseQueues>>,
    asked: Arc<Mutex<Vec<ScriptedSiteRequest>>>,
    outside: AuthHttpClient,
    url: Url,
    nonces: DpopNonces,
    pub settings: AuthSettings,
}

/// A received request. Header names are in lower case.
#[derive(Clone, Default)]
pub(crate) struct ScriptedSiteRequest {
    pub path: String,
    pub headers: HashMap<String, String>,
    pub body: String,
}

impl ScriptedSiteRequest {
    /// Returns a form field. Returns `None` if it is missing or repeated.
    pub fn field(&self, name: &str) -> Option<String> {
        let mut found = form_urlencoded::parse(self.body.as_bytes()).filter(|(key, _)| key == name);
        found.next().map(|(_, value)| value.into_owned()).filter(|_| found.next().is_none())
    }
}

impl ScriptedSite {
    pub fn start() -> Self {
        let (answers, asked) =
            (Arc::<Mutex<ResponseQueues>>::default(), Arc::<Mutex<Vec<ScriptedSiteRequest>>>::default());
        let (queues, notes) = (Arc::clone(&answers), Arc::clone(&asked));
        let endpoint = Endpoint::start(move |mut guest| {
            while let Ok(Some(request)) = receive(&mut guest) {
                let answer = next(&mut queues.lock().unwrap(), &request.path);
                notes.lock().unwrap().push(request);
                if guest.write_all(&answer).is_err() {
                    return;
                }
            }
        });
        let endpoint = endpoint.unwrap();
        let url = Url::parse(&format!("http://{}/mcp", endpoint.address())).unwrap();
        let outside = AuthHttpClient::new(&url, wharf_net::NetOptions::default());
        let (nonces, settings) = (DpopNonces::default(), AuthSettings::default());
        Self { endpoint, answers, asked, outside, url, nonces, settings }
    }

    /// Returns its origin, without a trailing slash.
    pub fn origin(&self) -> String {
        format!("http://{}", self.endpoint.address())
    }

    /// Adds a response to the queue of a path. Each header line must end with CRLF.
    pub fn queue_response(&self, path: &str, status: &str, headers: &str, body: &str) -> &Self {
        let answer = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len());
        self.answers.lock().unwrap().entry(path.to_owned()).or_default().push_back(answer.into_bytes());
        self
    }

    /// Adds a document to the queue of a path.
    pub fn queue_document(&self, path: &str, document: &Value) -> &Self {
        self.queue_response(path, "200 OK", "", &document.to_string())
    }

    /// Returns the requests for this path, in order.
    pub fn requests_for(&self, path: &str) -> Vec<ScriptedSiteRequest> {
        self.asked.lock().unwrap().iter().filter(|asked| asked.path == path).cloned().collect()
    }

    pub fn attempt(&self) -> AuthServerContext<'_> {
        AuthServerContext {
            outside: &self.outside,
            url: &self.url,
            server: "notes",
            settings: &self.settings,
            nonces: &self.nonces,
            now: &|| 1_000_000,
        }
    }
}

fn next(answers: &mut ResponseQueues, path: &str) -> Vec<u8> {
    let queue = answers.get_mut(path);
    let next = queue.and_then(|queue| if queue.len() > 1 { queue.pop_front() } else { queue.front().cloned() });
    next.unwrap_or_else(|| b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec())
}

fn receive(guest: &mut AcceptedConnection) -> io::Result<Option<ScriptedSiteRequest>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if guest.read(&mut byte)? == 0 {
            return Ok(None);
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let headers = head.lines().filter_map(|line| line.split_once(": "));
    let headers: HashMap<_, _> = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
    let length = headers.get("content-length").and_then(|length| length.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    guest.read_exact(&mut body)?;
    Ok(Some(ScriptedSiteRequest { path, headers, body: String::from_utf8_lossy(&body).into_owned() }))
}
