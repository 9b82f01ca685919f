//! Servers written byte by byte, where the kit has none of that kind.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use wharf_testkit::transport_faults::{AcceptedConnection, Endpoint, TestCa};
pub use wharf_testkit::transport_faults::{Http1Request, read_request};

/// Reads one request whole and counts it; nothing once the peer has left.
pub fn receive(guest: &mut AcceptedConnection) -> io::Result<Option<Http1Request>> {
    let request = read_request(guest)?;
    if request.is_some() {
        guest.count_request();
    }
    Ok(request)
}

/// A server that answers every request with what `answer` makes of it, bytes as they are.
pub fn answering(answer: impl Fn(&Http1Request) -> Vec<u8> + Send + Sync + 'static) -> Endpoint {
    Endpoint::start(move |mut guest| {
        while let Ok(Some(request)) = receive(&mut guest) {
            if guest.write_all(&answer(&request)).is_err() {
                return;
            }
        }
    })
    .unwrap()
}

/// A server that says the same to everybody, bytes as they are, and then hangs up.
pub fn saying(answer: impl Into<Vec<u8>>) -> Endpoint {
    let answer = answer.into();
    Endpoint::start(move |mut guest| {
        if matches!(receive(&mut guest), Ok(Some(_))) && guest.write_all(&answer).is_ok() {
            guest.finish();
        }
    })
    .unwrap()
}

/// A server over TLS that says the same to everybody, and stays.
pub fn saying_securely(authority: &TestCa, answer: impl Into<Vec<u8>>) -> Endpoint {
    let answer = answer.into();
    let (chain, key) = authority.server().der();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(builder.with_no_client_auth().with_single_cert(chain, key).unwrap());
    Endpoint::start(move |guest| {
        let mut secured = StreamOwned::new(ServerConnection::new(Arc::clone(&config)).unwrap(), guest);
        while let Ok(Some(_)) = read_request(&mut secured) {
            secured.sock.count_request();
            if secured.write_all(&answer).is_err() {
                return;
            }
        }
    })
    .unwrap()
}

/// A server that answers in good health and writes down what it was asked.
pub struct Recorder {
    pub endpoint: Endpoint,
    bodies: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Recorder {
    pub fn start() -> Recorder {
        let bodies = Arc::<Mutex<Vec<_>>>::default();
        let ours = Arc::clone(&bodies);
        let endpoint = answering(move |request| {
            ours.lock().unwrap().push(request.body.clone());
            answer(&format!("Content-Length: {}\r\n", request.body.len()), &request.body)
        });
        Recorder { endpoint, bodies }
    }

    /// Ends the server and gives everything that ever reached it.
    pub fn end(self) -> Vec<Vec<u8>> {
        drop(self.endpoint);
        self.bodies.lock().unwrap().clone()
    }
}

/// An answer with these header lines, each ended, and this body.
pub fn answer(headers: &str, body: &[u8]) -> Vec<u8> {
    [b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n", headers.as_bytes(), b"\r\n", body].concat()
}
