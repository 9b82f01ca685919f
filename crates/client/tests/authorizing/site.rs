//! A server on loopback that asks who is there, and somebody who says so.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use url::Url;
use wharf_client::{AuthRecovery, Authorizer, ConnectOptions, Connection, Limits, NotAuthorized, connect_http};
use wharf_net::{AuthFuture, AuthRejection, CredentialHeaders, HeaderValue, Method, RequestCredentials, header};
use wharf_spec::HttpSpec;
use wharf_testkit::transport_faults::{AcceptedConnection, Endpoint, Http1Request, read_request};
use wharf_wire::Era;

/// What every token begins with, so that it can be looked for.
pub const TOKEN: &str = "hush-token-";

/// A request as a server sees it.
#[derive(Debug, Clone)]
pub struct Asked {
    pub verb: String,
    /// The method of its message, if it has one.
    pub method: String,
    /// The number of the token it carries.
    pub token: Option<u64>,
    pub authorization: Option<String>,
}

/// What a server does about a request.
pub enum Act {
    /// What a server in good health does.
    Serve,
    /// Turns it away with this status, and says this.
    Refuse(u16, String),
    /// Opens a stream of events, says this and ends it.
    Stream(&'static str),
}

pub struct Site {
    pub endpoint: Endpoint,
    seen: Arc<Mutex<Vec<Asked>>>,
}

impl Site {
    pub fn start(era: Era, judge: impl Fn(&Asked) -> Act + Send + Sync + 'static) -> Self {
        let seen = Arc::<Mutex<Vec<Asked>>>::default();
        let ours = Arc::clone(&seen);
        let serve = move |mut guest: AcceptedConnection| {
            while let Ok(Some(request)) = read_request(&mut guest) {
                guest.count_request();
                let (asked, message) = parse_request(&request);
                let act = judge(&asked);
                ours.lock().unwrap().push(asked.clone());
                if answer(&mut guest, era, &asked, &message, act).is_err() {
                    return;
                }
            }
        };
        Self { endpoint: Endpoint::start(serve).unwrap(), seen }
    }

    pub fn spec(&self) -> HttpSpec {
        HttpSpec::new(Url::parse(&format!("http://{}/mcp", self.endpoint.address())).unwrap())
    }

    pub async fn connect(&self, who: &Arc<Who>) -> Connection {
        connect_http(&self.spec(), options(who)).await.unwrap()
    }

    pub fn seen(&self) -> Vec<Asked> {
        self.seen.lock().unwrap().clone()
    }

    /// The numbers of the tokens that requests of this verb and method carried.
    pub fn tokens(&self, verb: &str, method: &str) -> Vec<Option<u64>> {
        let seen = self.seen.lock().unwrap();
        seen.iter().filter(|asked| asked.verb == verb && asked.method == method).map(|asked| asked.token).collect()
    }
}

pub fn options(who: &Arc<Who>) -> ConnectOptions {
    let mut options = ConnectOptions::default();
    options.limits = Limits::default().with_delays_divided(10);
    options.authorizer = Some(who.clone());
    options
}

fn parse_request(request: &Http1Request) -> (Asked, Value) {
    let message = request.json();
    let authorization = request.header("authorization").map(str::to_owned);
    let number = authorization.as_ref().and_then(|value| value.strip_prefix(&format!("Bearer {TOKEN}"))?.parse().ok());
    let asked = Asked {
        verb: request.method().to_owned(),
        method: message["method"].as_str().unwrap_or_default().to_owned(),
        token: number,
        authorization,
    };
    (asked, message)
}

fn answer(guest: &mut AcceptedConnection, era: Era, asked: &Asked, message: &Value, act: Act) -> io::Result<()> {
    match act {
        Act::Serve if asked.verb == "GET" => {
            guest.write_all(STREAM_HEAD.as_bytes())?;
            guest.wait_for_disconnect();
            Err(io::ErrorKind::ConnectionAborted.into())
        }
        Act::Serve => guest.write_all(&served(era, asked, message)),
        Act::Refuse(status, said) => {
            let length = said.len();
            let head = format!("HTTP/1.1 {status} No\r\nWWW-Authenticate: Bearer\r\nContent-Length: {length}\r\n\r\n");
            guest.write_all((head + &said).as_bytes())
        }
        Act::Stream(said) => {
            guest.write_all((STREAM_HEAD.to_owned() + said).as_bytes())?;
            Err(io::ErrorKind::ConnectionAborted.into())
        }
    }
}

const STREAM_HEAD: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/event-stream\r\n\r\n";

fn served(era: Era, asked: &Asked, message: &Value) -> Vec<u8> {
    let Some(id) = message.get("id") else {
        return b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n".to_vec();
    };
    let (name, outcome) = match result(era, &asked.method) {
        Some(result) => ("result", result),
        None => ("error", json!({ "code": -32601, "message": "Method not found" })),
    };
    let body = json!({ "jsonrpc": "2.0", "id": id, name: outcome }).to_string();
    let session = if asked.method == "initialize" { "Mcp-Session-Id: one\r\n" } else { "" };
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\n{session}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}")
        .into()
}

fn result(era: Era, method: &str) -> Option<Value> {
    let info = json!({ "name": "site", "version": "0" });
    Some(match (method, era) {
        ("server/discover", Era::Stateless) => {
            json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} }, "resultType": "complete" })
        }
        ("initialize", Era::Handshake) => {
            json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} }, "serverInfo": info })
        }
        ("tools/list", _) => json!({ "tools": [{ "name": "note", "inputSchema": { "type": "object" } }] }),
        ("tools/call", _) => json!({ "content": [{ "type": "text", "text": "noted" }] }),
        _ => return None,
    })
}

/// Somebody with a token that is renewed as often as they are allowed to, once for all who were turned away with it.
#[derive(Default)]
pub struct Who {
    renewals: u64,
    /// What helps when no renewal does; a login where nothing else is said.
    pub remedy: Mutex<Option<AuthRecovery>>,
    /// What is to be had instead of a token.
    pub missing: Mutex<Option<AuthRecovery>>,
    serial: AtomicU64,
    pub renewed: AtomicU64,
}

impl Who {
    pub fn renewing(renewals: u64) -> Arc<Self> {
        Arc::new(Self { renewals, ..Self::default() })
    }

    pub fn helpless(remedy: AuthRecovery) -> Arc<Self> {
        Arc::new(Self { remedy: Mutex::new(Some(remedy)), ..Self::default() })
    }

    pub fn renewed(&self) -> u64 {
        self.renewed.load(Ordering::SeqCst)
    }

    fn renew(&self, shown: u64) -> bool {
        // Somebody else was faster.
        if self.serial.load(Ordering::SeqCst) != shown {
            return true;
        }
        if self.renewed.load(Ordering::SeqCst) >= self.renewals {
            return false;
        }
        if self.serial.compare_exchange(shown, shown + 1, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            self.renewed.fetch_add(1, Ordering::SeqCst);
        }
        true
    }
}

fn not_authorized(remedy: AuthRecovery) -> NotAuthorized {
    NotAuthorized { remedy, reason: "the login has ended".to_owned() }
}

impl Authorizer for Who {
    fn credentials(&self, _method: &Method, _url: &Url) -> RequestCredentials {
        if let Some(remedy) = self.missing.lock().unwrap().clone() {
            return RequestCredentials::Later(Box::pin(async move { Err(not_authorized(remedy)) }));
        }
        let serial = self.serial.load(Ordering::SeqCst);
        let value = HeaderValue::from_str(&format!("Bearer {TOKEN}{serial}")).unwrap();
        RequestCredentials::Ready(CredentialHeaders { headers: vec![(header::AUTHORIZATION, value)], serial })
    }

    fn on_rejection(&self, refusal: AuthRejection) -> AuthFuture<Result<(), NotAuthorized>> {
        let renewed = refusal.serial.is_some_and(|shown| self.renew(shown));
        let remedy = self.remedy.lock().unwrap().clone().unwrap_or(AuthRecovery::Login);
        Box::pin(async move { if renewed { Ok(()) } else { Err(not_authorized(remedy)) } })
    }
}
