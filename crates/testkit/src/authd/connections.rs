//! State shared by all connections, and the loop that serves one.

use std::io::{self, BufReader, Write};
use std::sync::{Condvar, Mutex, OnceLock};
use std::time::Duration;

use super::exchange::AuthExchange;
use super::http::{self, AuthResponse, StreamEnding, field};
use super::key::SigningKey;
use super::random::random_hex;
use super::request_log::{AuthRequestLog, ListenerSite, RecordedRequest, lock_ignoring_poison};
use super::switches::{AuthSwitches, ClientAuthMethod, Resource};
use super::token_store::{AuthTokenStore, RegisteredClient};
use crate::request::Request;
use crate::transport_faults::AcceptedConnection;

/// Interval at which an idle stream checks that the client is still connected.
const KEEP_ALIVE: Duration = Duration::from_millis(50);

/// Origins of the listeners: scheme, address and port.
pub(super) struct SiteOrigins {
    pub server: String,
    pub issuer: String,
    pub second: String,
}

/// Credentials registered beforehand.
pub(super) struct PreregisteredClient {
    pub id: String,
    pub secret: String,
    pub key: SigningKey,
    pub id_token: String,
}

pub(super) struct AuthShared {
    pub switches: Mutex<AuthSwitches>,
    pub book: Mutex<AuthTokenStore>,
    /// Notified when access tokens expire.
    pub tokens_expired: Condvar,
    pub ledger: AuthRequestLog,
    pub gate: ResponseGate,
    pub nonce: Mutex<String>,
    pub given: PreregisteredClient,
    origins: OnceLock<SiteOrigins>,
    has_moved: Mutex<bool>,
}

impl AuthShared {
    pub fn new(switches: AuthSwitches) -> AuthShared {
        let mut book = AuthTokenStore::default();
        let given = PreregisteredClient {
            id: format!("given-{}", random_hex(4)),
            secret: book.secret("secret"),
            key: SigningKey::new(),
            id_token: book.secret("identity"),
        };
        let client = RegisteredClient {
            secret: Some(given.secret.clone()),
            auth: switches.client_auth,
            redirect_uris: None,
            expires_at: 0,
        };
        // With a single origin, requests to the issuer arrive at the server.
        let home = if switches.one_origin { ListenerSite::Server } else { ListenerSite::Issuer };
        book.clients.insert((home, given.id.clone()), client);
        AuthShared {
            switches: Mutex::new(switches),
            book: Mutex::new(book),
            tokens_expired: Condvar::new(),
            ledger: AuthRequestLog::default(),
            gate: ResponseGate::default(),
            nonce: Mutex::new(random_hex(8)),
            given,
            origins: OnceLock::new(),
            has_moved: Mutex::default(),
        }
    }

    /// Sets the origins and releases requests that wait for them.
    pub fn set_origins(&self, origins: SiteOrigins) {
        self.origins.get_or_init(|| origins);
    }

    pub fn origins(&self) -> &SiteOrigins {
        self.origins.wait()
    }

    pub fn origin(&self, site: ListenerSite) -> &str {
        match site {
            ListenerSite::Server => &self.origins().server,
            ListenerSite::Issuer => &self.origins().issuer,
            ListenerSite::Second => &self.origins().second,
        }
    }

    pub fn server_url(&self) -> String {
        format!("{}/mcp", self.origins().server)
    }

    /// Returns the issuer identifier of a site.
    pub fn issuer(&self, site: ListenerSite) -> String {
        format!("{}{}", self.origin(site), lock_ignoring_poison(&self.switches).issuer_path)
    }

    /// Returns the site of the issuer that the server trusts.
    pub fn current_site(&self) -> ListenerSite {
        match (*lock_ignoring_poison(&self.has_moved), lock_ignoring_poison(&self.switches).one_origin) {
            (true, _) => ListenerSite::Second,
            (false, true) => ListenerSite::Server,
            (false, false) => ListenerSite::Issuer,
        }
    }

    pub fn resource(&self) -> String {
        match lock_ignoring_poison(&self.switches).resource {
            Resource::Exact => self.server_url(),
            Resource::Origin => self.origins().server.clone(),
            Resource::Foreign => "https://elsewhere.example/mcp".to_owned(),
        }
    }

    pub fn expire(&self) {
        lock_ignoring_poison(&self.book).expire();
        self.tokens_expired.notify_all();
    }

    pub fn move_issuer(&self) {
        *lock_ignoring_poison(&self.has_moved) = true;
        self.expire();
    }

    /// Returns the authentication method of a client. For the pre-registered client it follows the switch.
    pub fn client_auth(&self, id: &str, client: &RegisteredClient) -> ClientAuthMethod {
        if id == self.given.id { lock_ignoring_poison(&self.switches).client_auth } else { client.auth }
    }
}

/// Serves one connection until it ends.
pub(super) fn serve_connection(shared: &AuthShared, site: ListenerSite, guest: AcceptedConnection) {
    let mut stream = BufReader::new(guest);
    while let Some(Ok(request)) = Request::read(&mut stream) {
        let form = http::form(&request);
        let refresh = field(&form, "refresh_token");
        // Count before recording: a test that waits for the request may let it proceed at once.
        refresh.inspect(|token| lock_ignoring_poison(&shared.book).begin_presentation(token));
        shared.ledger.record(RecordedRequest::new(site, &request));
        let expiries = lock_ignoring_poison(&shared.book).expiries;
        let mut exchange = AuthExchange::new(shared, site, &request);
        let answer = exchange.respond();
        let has_left = stream.get_ref().is_disconnected();
        refresh.inspect(|token| lock_ignoring_poison(&shared.book).end_presentation(token, has_left));
        let goes_on = write_response(shared, stream.get_mut(), answer, expiries);
        let is_last = request.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        if is_last || !goes_on.unwrap_or(false) {
            return;
        }
    }
}

/// Writes a response to a request that arrived at expiry count `expiries`. Returns whether another request may follow.
fn write_response(
    shared: &AuthShared,
    guest: &mut AcceptedConnection,
    answer: AuthResponse,
    expiries: u64,
) -> io::Result<bool> {
    match answer {
        AuthResponse::Whole(whole) => whole.write(guest).map(|()| true),
        AuthResponse::Cut => Ok(false),
        AuthResponse::Silence => {
            guest.wait_for_disconnect();
            Ok(false)
        }
        AuthResponse::Events(messages, ending) => {
            http::begin_events(guest)?;
            for message in messages {
                http::chunk(guest, &format!("event: message\ndata: {message}\n\n"))?;
            }
            end_stream(shared, guest, ending, expiries)
        }
    }
}

fn end_stream(
    shared: &AuthShared,
    guest: &mut AcceptedConnection,
    ending: StreamEnding,
    expiries: u64,
) -> io::Result<bool> {
    match ending {
        StreamEnding::Broken => {
            shared.expire();
            return Ok(false);
        }
        StreamEnding::WithTokens => {
            while !expired_within(shared, expiries, KEEP_ALIVE) {
                http::chunk(guest, ":\n\n")?;
            }
        }
    }
    guest.write_all(b"0\r\n\r\n").map(|()| true)
}

/// Waits up to `time` for access tokens to expire after expiry count `expiries`; reports whether they did.
fn expired_within(shared: &AuthShared, expiries: u64, time: Duration) -> bool {
    let book = lock_ignoring_poison(&shared.book);
    let waited = shared.tokens_expired.wait_timeout_while(book, time, |book| book.expiries == expiries);
    waited.is_ok_and(|(book, _)| book.expiries != expiries)
}

/// A gate that blocks callers while it is closed.
#[derive(Default)]
pub(super) struct ResponseGate {
    is_closed: Mutex<bool>,
    turned: Condvar,
}

impl ResponseGate {
    pub fn set(&self, closed: bool) {
        *lock_ignoring_poison(&self.is_closed) = closed;
        self.turned.notify_all();
    }

    pub fn pass(&self) {
        // The lock cannot be poisoned: no code panics while holding it.
        drop(self.turned.wait_while(lock_ignoring_poison(&self.is_closed), |closed| *closed));
    }
}
