//! A test HTTP server on loopback with queues of responses by path and a log of requests.

use std::collections::{HashMap, VecDeque};
use std::io::Write;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use wharf_testkit::transport_faults::{Endpoint, Http1Request, read_request};

type ResponseQueues = HashMap<String, VecDeque<Vec<u8>>>;

/// A test HTTP server. The last response of a queue is repeated. Unknown paths return 404.
pub(crate) struct StaticSite {
    endpoint: Endpoint,
    answers: Arc<Mutex<ResponseQueues>>,
    asked: Arc<Mutex<Vec<Http1Request>>>,
}

impl StaticSite {
    pub fn start() -> Self {
        let (answers, asked) = (Arc::<Mutex<ResponseQueues>>::default(), Arc::<Mutex<Vec<_>>>::default());
        let (queues, notes) = (Arc::clone(&answers), Arc::clone(&asked));
        let endpoint = Endpoint::start(move |mut guest| {
            while let Ok(Some(request)) = read_request(&mut guest) {
                let answer = next(&mut queues.lock().unwrap(), request.path());
                notes.lock().unwrap().push(request);
                if guest.write_all(&answer).is_err() {
                    return;
                }
            }
        });
        Self { endpoint: endpoint.unwrap(), answers, asked }
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
        self.answers.lock().unwrap().insert(path.to_owned(), [bytes].into());
        self
    }

    /// Responds to requests for this path with this document.
    pub fn serve_document(&self, path: &str, document: &Value) -> &Self {
        self.respond_with(path, http_response("200 OK", "", &document.to_string()))
    }

    /// Adds a response to the queue of a path. Each header line must end with CRLF.
    pub fn queue_response(&self, path: &str, status: &str, headers: &str, body: &str) -> &Self {
        let answer = http_response(status, headers, body);
        self.answers.lock().unwrap().entry(path.to_owned()).or_default().push_back(answer);
        self
    }

    /// Adds a document to the queue of a path.
    pub fn queue_document(&self, path: &str, document: &Value) -> &Self {
        self.queue_response(path, "200 OK", "", &document.to_string())
    }

    /// Returns method and path of all requests, in order.
    pub fn request_lines(&self) -> Vec<String> {
        self.requests().iter().map(|asked| format!("{} {}", asked.method(), asked.path())).collect()
    }

    pub fn requests(&self) -> Vec<Http1Request> {
        self.asked.lock().unwrap().clone()
    }

    /// Returns the requests for this path, in order.
    pub fn requests_for(&self, path: &str) -> Vec<Http1Request> {
        self.asked.lock().unwrap().iter().filter(|asked| asked.path() == path).cloned().collect()
    }

    pub fn connections(&self) -> u64 {
        self.endpoint.connections()
    }
}

/// Formats a response. Each header line must end with CRLF.
pub(crate) fn http_response(status: &str, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

fn next(answers: &mut ResponseQueues, path: &str) -> Vec<u8> {
    let queue = answers.get_mut(path);
    let next = queue.and_then(|queue| if queue.len() > 1 { queue.pop_front() } else { queue.front().cloned() });
    next.unwrap_or_else(|| http_response("404 Not Found", "", "nothing here"))
}
