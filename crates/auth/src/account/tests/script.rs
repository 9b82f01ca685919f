//! A scripted authorization server, and an account that uses it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tempfile::TempDir;
use tokio::sync::{Semaphore, watch};
use url::Url;
use wharf_net::{
    AuthFuture, AuthRejection, Authorizer, HeaderMap, HeaderValue, Method, NotAuthorized, RequestCredentials, header,
};
use wharf_spec::Secret;

use super::super::flows::AuthorizationFlows;
use super::super::{Account, AccountOptions};
use crate::browser::{BrowserVisit, LoginBrowser, VisitError};
use crate::challenge::AuthChallenge;
use crate::client::{ClientOrigin, OAuthClient, TokenEndpointAuth};
use crate::discovery::{AuthServerMetadata, DiscoveryResult, EndpointSource};
use crate::error::{LoginError, TokenError};
use crate::revoke::RevocationOutcome;
use crate::token::TokenSet;
use crate::vault::{AccountKey, FileVault, StoredLogin, Vault};

pub(super) const SERVER: &str = "https://mcp.example/mcp";
pub(super) const ISSUER: &str = "https://as.example";
/// Start time of the tests in Unix milliseconds.
pub(super) const START: u64 = 1_800_000_000_000;
/// Lifetime of tokens in milliseconds.
pub(super) const LIFE: u64 = 3_600_000;

/// State of the scripted authorization server.
pub(super) struct ScriptedAuthServer {
    issuer: Mutex<String>,
    number: AtomicU64,
    now: Arc<AtomicU64>,
    /// Responses to the next renewals. When empty, renewals succeed.
    pub(super) answers: Mutex<VecDeque<Result<TokenSet, TokenError>>>,
    /// Errors of the next logins. When empty, logins succeed.
    pub(super) failures: Mutex<VecDeque<LoginError>>,
    /// Result of discovery. `None` if the server does not respond.
    pub(super) found: Mutex<Option<Result<EndpointSource, LoginError>>>,
    /// The challenge passed to each login.
    pub(super) challenges: Mutex<Vec<Option<AuthChallenge>>>,
    /// All requests received.
    pub(super) seen: watch::Sender<Vec<String>>,
    /// Renewals and logins wait here while it is closed.
    pub(super) gate: Arc<Semaphore>,
}

/// An account with its environment.
pub(super) struct AccountBench {
    pub(super) account: Account,
    pub(super) script: Arc<ScriptedAuthServer>,
    pub(super) vault: Arc<FileVault>,
    pub(super) now: Arc<AtomicU64>,
    pub(super) folder: TempDir,
}

impl AccountBench {
    /// Creates an account with a stored login and without a visitor.
    pub(super) fn logged_in() -> Self {
        let bench = Self::new(None);
        bench.vault.save(&key(), &kept("a0", Some("r0"))).unwrap();
        bench
    }

    pub(super) fn new(visitor: Option<Arc<dyn LoginBrowser>>) -> Self {
        let folder = TempDir::new().unwrap();
        let vault = Arc::new(FileVault::new(folder.path().join("mcp-auth.json")));
        let now = Arc::new(AtomicU64::new(START));
        let script = Arc::new(ScriptedAuthServer {
            issuer: Mutex::new(ISSUER.to_owned()),
            number: AtomicU64::new(0),
            now: now.clone(),
            answers: Mutex::default(),
            failures: Mutex::default(),
            found: Mutex::new(Some(Ok(EndpointSource::Metadata))),
            challenges: Mutex::default(),
            seen: watch::Sender::default(),
            gate: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)),
        });
        let options = options(vault.clone(), &now, visitor);
        let account = Account::with_flows(options, Arc::new(script.clone()));
        Self { account, script, vault, now, folder }
    }

    /// Replaces the account with one that has changed options.
    pub(super) fn with(self, change: impl FnOnce(&mut AccountOptions)) -> Self {
        let mut options = options(self.vault.clone(), &self.now, None);
        change(&mut options);
        Self { account: Account::with_flows(options, Arc::new(self.script.clone())), ..self }
    }

    /// Creates the same account as in another process.
    pub(super) fn another(&self) -> Account {
        Account::with_flows(options(self.vault.clone(), &self.now, None), Arc::new(self.script.clone()))
    }

    pub(super) fn pass(&self, milliseconds: u64) {
        self.now.fetch_add(milliseconds, Ordering::Relaxed);
    }

    pub(super) fn kept(&self) -> Option<StoredLogin> {
        self.vault.load(&key()).unwrap()
    }

    /// Returns the stored tokens.
    pub(super) fn tokens(&self) -> (String, Option<String>) {
        let tokens = self.kept().unwrap().tokens.unwrap();
        (tokens.access.reveal().to_owned(), tokens.refresh.map(|refresh| refresh.reveal().to_owned()))
    }

    pub(super) async fn carried(&self) -> Result<Option<(String, u64)>, NotAuthorized> {
        carried(&self.account).await
    }

    /// Reports a 401 for these credentials.
    pub(super) async fn refused(&self, serial: Option<u64>) -> Result<(), NotAuthorized> {
        self.account.on_rejection(refusal(401, "Bearer", serial)).await
    }
}

fn options(vault: Arc<FileVault>, now: &Arc<AtomicU64>, visitor: Option<Arc<dyn LoginBrowser>>) -> AccountOptions {
    let mut options = AccountOptions::new(key(), Url::parse(SERVER).unwrap(), vault);
    options.visitor = visitor;
    let now = now.clone();
    options.now = Arc::new(move || now.load(Ordering::Relaxed));
    options
}

pub(super) fn key() -> AccountKey {
    AccountKey { server: "s".to_owned(), account: String::new() }
}

/// Returns the token that a request would carry, and its serial.
pub(super) async fn carried(account: &Account) -> Result<Option<(String, u64)>, NotAuthorized> {
    let carried = match account.credentials(&Method::POST, &Url::parse(SERVER).unwrap()) {
        RequestCredentials::None => None,
        RequestCredentials::Ready(carried) => Some(carried),
        RequestCredentials::Later(pending) => pending.await?,
    };
    Ok(carried.map(|carried| {
        let value = carried.headers[0].1.to_str().unwrap().strip_prefix("Bearer ").unwrap();
        (value.to_owned(), carried.serial)
    }))
}

pub(super) fn refusal(status: u16, challenge: &'static str, serial: Option<u64>) -> AuthRejection {
    let headers = HeaderMap::from_iter([(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge))]);
    AuthRejection { status, headers, serial }
}

pub(super) fn tokens(access: &str, refresh: Option<&str>) -> TokenSet {
    TokenSet {
        access: Secret::new(access),
        refresh: refresh.map(Secret::new),
        expires_at: Some(START + LIFE),
        token_type: "Bearer".to_owned(),
        scope: None,
    }
}

pub(super) fn kept(access: &str, refresh: Option<&str>) -> StoredLogin {
    StoredLogin {
        issuer: ISSUER.to_owned(),
        url: SERVER.to_owned(),
        resource: None,
        tokens: Some(tokens(access, refresh)),
        client: OAuthClient {
            id: "c".to_owned(),
            secret: None,
            proof: TokenEndpointAuth::None,
            origin: ClientOrigin::Registered,
            expires_at: None,
        },
        token_endpoint: "https://as.example/token".to_owned(),
        revocation_endpoint: None,
        asked: Some("read".to_owned()),
        dpop_key: None,
        renewed_at: START,
        last_error: None,
    }
}

pub(super) fn refused_with(code: &str) -> TokenError {
    TokenError::Refused { code: code.to_owned(), description: None, status: 400 }
}

impl ScriptedAuthServer {
    pub(super) fn answer(&self, answer: Result<TokenSet, TokenError>) {
        self.answers.lock().unwrap().push_back(answer);
    }

    pub(super) fn fail(&self, failure: LoginError) {
        self.failures.lock().unwrap().push_back(failure);
    }

    pub(super) fn find(&self, found: Option<Result<EndpointSource, LoginError>>) {
        *self.found.lock().unwrap() = found;
    }

    pub(super) fn move_to(&self, issuer: &str) {
        *self.issuer.lock().unwrap() = issuer.to_owned();
    }

    pub(super) fn close(&self) {
        self.gate.forget_permits(Semaphore::MAX_PERMITS);
    }

    pub(super) fn open(&self, many: usize) {
        self.gate.add_permits(many);
    }

    /// Returns all requests so far, except discoveries.
    pub(super) fn seen(&self) -> Vec<String> {
        self.seen.borrow().iter().filter(|seen| *seen != "discover").cloned().collect()
    }

    pub(super) async fn await_seen(&self, what: &str) {
        self.await_times(1, what).await;
    }

    pub(super) async fn await_times(&self, times: usize, what: &str) {
        let is_seen = |seen: &Vec<String>| seen.iter().filter(|one| *one == what).count() >= times;
        self.seen.subscribe().wait_for(is_seen).await.unwrap();
    }

    fn note(&self, what: String) {
        self.seen.send_modify(|seen| seen.push(what));
    }

    fn next(&self) -> TokenSet {
        let number = self.number.fetch_add(1, Ordering::Relaxed) + 1;
        let expires_at = Some(self.now.load(Ordering::Relaxed) + LIFE);
        TokenSet { expires_at, ..tokens(&format!("a{number}"), Some(&format!("r{number}"))) }
    }
}

impl AuthorizationFlows for Arc<ScriptedAuthServer> {
    fn discover(&self, _: Option<AuthChallenge>) -> AuthFuture<Result<DiscoveryResult, LoginError>> {
        self.note("discover".to_owned());
        let issuer = self.issuer.lock().unwrap().clone();
        let token_endpoint = Some(format!("{issuer}/token"));
        let found = self.found.lock().unwrap().clone();
        Box::pin(async {
            let Some(named) = found else { return std::future::pending().await };
            let server = AuthServerMetadata { issuer, token_endpoint, named: named?, ..AuthServerMetadata::default() };
            Ok(DiscoveryResult { resource: None, scopes: Vec::new(), needs_dpop: false, issuers: Vec::new(), server })
        })
    }

    fn log_in(
        &self,
        visitor: Option<Arc<dyn LoginBrowser>>,
        challenge: Option<AuthChallenge>,
        before: Option<StoredLogin>,
        scope: Option<String>,
    ) -> AuthFuture<Result<StoredLogin, LoginError>> {
        let script = self.clone();
        Box::pin(async move {
            let issuer = script.issuer.lock().unwrap().clone();
            let client = before.filter(|before| before.issuer == issuer).map_or("new", |_| "same");
            script.note(format!("log in at {issuer} as {client} client for {}", scope.as_deref().unwrap_or("-")));
            script.challenges.lock().unwrap().push(challenge);
            let _visit = match visitor {
                Some(visitor) => Some(visitor.prepare().await?),
                None => None,
            };
            script.gate.acquire().await.unwrap().forget();
            let failure = script.failures.lock().unwrap().pop_front();
            failure.map_or(Ok(()), Err)?;
            let asked = scope.or_else(|| Some("read".to_owned()));
            Ok(StoredLogin { issuer, tokens: Some(script.next()), asked, ..kept("", None) })
        })
    }

    fn renew(&self, kept: StoredLogin) -> AuthFuture<Result<TokenSet, LoginError>> {
        let script = self.clone();
        Box::pin(async move {
            let shown = kept.tokens.and_then(|tokens| tokens.refresh).expect("there is something to show");
            script.note(format!("renew {} at {}", shown.reveal(), kept.token_endpoint));
            script.gate.acquire().await.unwrap().forget();
            let answer = script.answers.lock().unwrap().pop_front();
            Ok(answer.unwrap_or_else(|| Ok(script.next()))?)
        })
    }

    fn revoke(&self, kept: StoredLogin) -> AuthFuture<RevocationOutcome> {
        let access = kept.tokens.map(|tokens| tokens.access.reveal().to_owned()).unwrap_or_default();
        self.note(format!("revoke {access}"));
        Box::pin(async { RevocationOutcome::All })
    }
}

/// A visitor whose user always logs in.
pub(super) struct ConsentingBrowser;

struct ConsentingVisit;

impl LoginBrowser for ConsentingBrowser {
    fn prepare(&self) -> AuthFuture<Result<Box<dyn BrowserVisit>, VisitError>> {
        Box::pin(async { Ok(Box::new(ConsentingVisit) as Box<dyn BrowserVisit>) })
    }
}

impl BrowserVisit for ConsentingVisit {
    fn redirect_uri(&self) -> &str {
        "http://127.0.0.1:1/callback"
    }

    fn open_and_wait(
        self: Box<Self>,
        _: crate::browser::LoginPage,
    ) -> AuthFuture<Result<crate::browser::LoginCallback, VisitError>> {
        Box::pin(async { Err(VisitError::Declined) })
    }
}
