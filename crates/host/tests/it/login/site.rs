//! A server on loopback that asks who is there, and an account with it.

use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use wharf::auth::{BrowserVisit, LoginBrowser, LoginCallback, LoginError, LoginPage, VisitError};
use wharf::spec::{HttpSpec, ServerEntry, ServerSpec};
use wharf::{AuthRecovery, Authorizer, NotAuthorized, ServerAccount};
use wharf_client::BoxedFuture;
use wharf_net::{AuthRejection, CredentialHeaders, HeaderValue, Method, RequestCredentials, header};
use wharf_testkit::transport_faults::{AcceptedConnection, Endpoint, Http1Request, read_request};

use crate::fixture::{definition, server, settings, text};

/// What decides whom a server lets in.
#[derive(Default)]
pub struct Rules {
    /// Tokens with smaller numbers are not taken; with 0, nobody is asked for one.
    pub least: AtomicU64,
    /// The same for calls alone, which are answered 403 otherwise.
    pub least_to_call: AtomicU64,
    /// Calls want a login whatever they carry.
    pub calls_refused: AtomicU64,
}

pub struct Site {
    pub endpoint: Endpoint,
    pub rules: Arc<Rules>,
}

impl Site {
    pub fn wanting(least: u64) -> Self {
        let rules = Arc::new(Rules { least: AtomicU64::new(least), ..Rules::default() });
        let ours = Arc::clone(&rules);
        let serve = move |mut guest: AcceptedConnection| {
            while let Ok(Some(request)) = read_request(&mut guest) {
                guest.count_request();
                if guest.write_all(answer(&ours, token_of(&request), &request.json()).as_bytes()).is_err() {
                    return;
                }
            }
        };
        Self { endpoint: Endpoint::start(serve).unwrap(), rules }
    }

    pub fn entry(&self) -> ServerEntry {
        self.entry_of("one")
    }

    pub fn entry_of(&self, name: &str) -> ServerEntry {
        let spec = HttpSpec::new(format!("http://{}/mcp", self.endpoint.address()).parse().unwrap());
        ServerEntry { name: server(name), spec: ServerSpec::Http(spec), settings: settings() }
    }
}

fn token_of(request: &Http1Request) -> u64 {
    let token = request.header("authorization").and_then(|value| value.strip_prefix("Bearer token-")?.parse().ok());
    token.unwrap_or(0)
}

fn answer(rules: &Rules, token: u64, message: &Value) -> String {
    let is_call = message["method"] == "tools/call";
    if token < rules.least.load(Ordering::SeqCst) || is_call && rules.calls_refused.load(Ordering::SeqCst) > 0 {
        return "HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n".to_owned();
    }
    if is_call && token < rules.least_to_call.load(Ordering::SeqCst) {
        return "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n".to_owned();
    }
    let result = match message["method"].as_str() {
        Some("server/discover") => json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} } }),
        Some("tools/list") => json!({ "tools": [definition("who")] }),
        Some("tools/call") => text(format!("token {token}")),
        Some("subscriptions/listen") => {
            let error = json!({ "code": -32601, "message": "no" });
            return body(&json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }));
        }
        Some(_) => return "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n".to_owned(),
        None => return "HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n".to_owned(),
    };
    body(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }))
}

fn body(message: &Value) -> String {
    let text = message.to_string();
    format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{text}", text.len())
}

/// An account whose tokens are numbered. Its first login asks for `read`, the next ones for `read write`.
#[derive(Default)]
pub struct Member {
    pub token: AtomicU64,
    logins: AtomicU64,
    /// Set to this by the next refusal, as by another process at that very moment.
    pub token_when_refused: AtomicU64,
    /// What the next logins end with instead of a visit.
    pub denied: AtomicBool,
    /// Whether the last visitor wanted to type a code elsewhere.
    pub wanted_device: AtomicBool,
    /// How often somebody waited for it to finish.
    pub finished: AtomicUsize,
    /// What came of the last visit to a login page.
    pub visited: Mutex<Option<Result<(), VisitError>>>,
}

pub struct Held(pub Arc<Member>);

impl Authorizer for Held {
    fn credentials(&self, _method: &Method, _url: &url::Url) -> RequestCredentials {
        let serial = self.0.token.load(Ordering::SeqCst);
        if serial == 0 {
            return RequestCredentials::None;
        }
        let value = HeaderValue::from_str(&format!("Bearer token-{serial}")).unwrap();
        RequestCredentials::Ready(CredentialHeaders { headers: vec![(header::AUTHORIZATION, value)], serial })
    }

    fn on_rejection(&self, refusal: AuthRejection) -> BoxedFuture<Result<(), NotAuthorized>> {
        let remedy = if refusal.status == 401 { AuthRecovery::Login } else { AuthRecovery::Scope("write".to_owned()) };
        let reason = "nobody has agreed to that".to_owned();
        let elsewhere = self.0.token_when_refused.swap(0, Ordering::SeqCst);
        if elsewhere > 0 {
            self.0.token.store(elsewhere, Ordering::SeqCst);
        }
        Box::pin(async { Err(NotAuthorized { remedy, reason }) })
    }
}

impl ServerAccount for Held {
    fn log_in(&self, visitor: Arc<dyn LoginBrowser>) -> BoxedFuture<Result<(), LoginError>> {
        let member = Arc::clone(&self.0);
        member.wanted_device.store(visitor.prefers_device_code(), Ordering::SeqCst);
        Box::pin(async move {
            if member.denied.load(Ordering::SeqCst) {
                return Err(LoginError::Denied(None));
            }
            let login = member.logins.fetch_add(1, Ordering::SeqCst) + 1;
            let mut page = LoginPage::new("https://login.example/authorize", "https://login.example", "state");
            page.scope = Some(if login == 1 { "read" } else { "read write" }.to_owned());
            let returned = visitor.prepare().await?.open_and_wait(page).await;
            *member.visited.lock().unwrap() = Some(returned.clone().map(drop));
            returned?;
            member.token.store(login, Ordering::SeqCst);
            Ok(())
        })
    }

    fn log_out(&self) -> BoxedFuture<Result<bool, LoginError>> {
        let there_was = self.0.token.swap(0, Ordering::SeqCst) > 0;
        Box::pin(async move { Ok(there_was) })
    }

    fn login_fingerprint(&self) -> BoxedFuture<Option<u64>> {
        let token = self.0.token.load(Ordering::SeqCst);
        Box::pin(async move { (token > 0).then_some(token) })
    }

    fn finish(&self) -> BoxedFuture<()> {
        let member = Arc::clone(&self.0);
        Box::pin(async move {
            member.finished.fetch_add(1, Ordering::SeqCst);
        })
    }
}

/// Comes back from every page at once, and counts them.
#[derive(Default)]
pub struct Tourist(pub AtomicUsize);

impl LoginBrowser for At {
    fn prepare(&self) -> BoxedFuture<Result<Box<dyn BrowserVisit>, VisitError>> {
        let tourist = Arc::clone(&self.0);
        Box::pin(async move { Ok(Box::new(Trip(tourist)) as Box<dyn BrowserVisit>) })
    }

    fn prefers_device_code(&self) -> bool {
        true
    }
}

pub struct At(pub Arc<Tourist>);

struct Trip(Arc<Tourist>);

impl BrowserVisit for Trip {
    fn redirect_uri(&self) -> &str {
        "http://127.0.0.1:1/"
    }

    fn open_and_wait(self: Box<Self>, page: LoginPage) -> BoxedFuture<Result<LoginCallback, VisitError>> {
        self.0.0.fetch_add(1, Ordering::SeqCst);
        let returned =
            LoginCallback { code: Some("code".to_owned()), state: Some(page.state), ..LoginCallback::default() };
        Box::pin(async { Ok(returned) })
    }
}
