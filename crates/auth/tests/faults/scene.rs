//! An authorization server, a server behind it, a place to keep logins, and somebody who logs in.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tempfile::TempDir;
use url::Url;
use wharf_auth::{
    Account, AccountKey, AccountOptions, BrowserVisit, DeviceCodePage, FileVault, LoginBrowser, LoginCallback,
    LoginError, LoginPage, VisitError,
};
use wharf_net::{
    AuthFuture, HeaderMap, HttpRequest, HttpResponse, Method, Net, NetOptions, NotAuthorized, RedirectPolicy, SendError,
};
use wharf_testkit::authd::{AuthSwitches, Authd, MetadataLocation};

/// Where logins come back to. Nobody listens there: the visitor reads the address it is sent to.
const CALLBACK: &str = "http://127.0.0.1:9/back";
/// Unix milliseconds at the beginning of every scene.
const BEGINNING: u64 = 1_800_000_000_000;

pub struct Scene {
    pub authd: Authd,
    pub directory: TempDir,
    pub clock: Clock,
}

impl Scene {
    /// Begins with some switches turned. The server's description is where it is found without a challenge, since a login
    /// that nobody was turned away for has none.
    pub fn new(turn: impl FnOnce(&mut AuthSwitches)) -> Scene {
        let mut switches = AuthSwitches { description: MetadataLocation::Path, ..AuthSwitches::default() };
        turn(&mut switches);
        let clock = Clock(Arc::new(AtomicU64::new(BEGINNING)));
        Scene { authd: Authd::start(switches).unwrap(), directory: tempfile::tempdir().unwrap(), clock }
    }

    pub fn url(&self) -> Url {
        self.authd.server_url().parse().unwrap()
    }

    /// Another process as far as anybody can tell: it shares nothing but the file.
    pub fn account(&self) -> Account {
        self.account_with(|_| {})
    }

    /// The same, which takes a person to the login page whenever the server asks for that.
    pub fn attended(&self) -> Account {
        self.account_with(|options| options.visitor = Some(self.person()))
    }

    pub fn account_with(&self, change: impl FnOnce(&mut AccountOptions)) -> Account {
        let key = AccountKey { server: "test".to_owned(), account: String::new() };
        let vault = FileVault::new(self.directory.path().join("mcp-auth.json"));
        let mut options = AccountOptions::new(key, self.url(), Arc::new(vault));
        let clock = self.clock.clone();
        options.now = Arc::new(move || clock.now());
        change(&mut options);
        Account::new(options)
    }

    /// Somebody who goes wherever the page sends them.
    pub fn person(&self) -> Arc<Person> {
        Arc::new(self.somebody())
    }

    /// The same, to be changed.
    pub fn somebody(&self) -> Person {
        Person { clock: self.clock.clone(), jump: 0, wants_device: false }
    }

    /// An account that has been logged in and was let in once, and nobody there to do it again.
    pub async fn logged_in(&self) -> Account {
        let account = self.account();
        account.log_in(self.person()).await.unwrap();
        assert_eq!(self.ask(&account, "ping").await, Ok(200));
        account
    }

    /// Logs in, and says why that failed.
    pub async fn refused_login(&self) -> LoginError {
        self.account().log_in(self.person()).await.unwrap_err()
    }

    /// Makes a request of the protocol; the status of the answer, or why there was no way to get a better one.
    pub async fn ask(&self, account: &Account, method: &str) -> Result<u16, NotAuthorized> {
        let response = self.send(account, method).await?;
        Ok(response.status.as_u16())
    }

    pub async fn send(&self, account: &Account, method: &str) -> Result<HttpResponse, NotAuthorized> {
        let net = Net::open(&NetOptions::default()).await.unwrap();
        let net = net.with_authorizer(Arc::new(account.clone()), &self.url());
        let params = r#"{"name":"echo","arguments":{}}"#;
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        let request = HttpRequest {
            method: Method::POST,
            url: self.url(),
            headers: HeaderMap::new(),
            body: body.into(),
            redirects: RedirectPolicy::Refused,
        };
        let response = match net.send(request).await {
            Err(SendError::NotAuthorized(why)) => return Err(why),
            answer => answer.unwrap(),
        };
        response.not_authorized.clone().map_or(Ok(response), Err)
    }

    /// How many requests of this grant the token endpoints have seen.
    pub fn grants(&self, grant: &str) -> usize {
        self.authd.requests().iter().filter(|seen| seen.is_grant(grant)).count()
    }
}

/// A clock that stands still until it is moved.
#[derive(Clone)]
pub struct Clock(Arc<AtomicU64>);

impl Clock {
    pub fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// Moves it by so many milliseconds, forwards or backwards.
    pub fn jump(&self, by: i64) {
        self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |now| now.checked_add_signed(by)).unwrap();
    }
}

/// Somebody who goes wherever a page sends them.
pub struct Person {
    clock: Clock,
    /// What the clock jumps by while they are away, in milliseconds.
    pub jump: i64,
    pub wants_device: bool,
}

impl LoginBrowser for Person {
    fn prepare(&self) -> AuthFuture<Result<Box<dyn BrowserVisit>, VisitError>> {
        let trip = Trip { clock: self.clock.clone(), jump: self.jump };
        Box::pin(async move { Ok(Box::new(trip) as Box<dyn BrowserVisit>) })
    }

    fn prefers_device_code(&self) -> bool {
        self.wants_device
    }
}

struct Trip {
    clock: Clock,
    jump: i64,
}

impl BrowserVisit for Trip {
    fn redirect_uri(&self) -> &str {
        CALLBACK
    }

    fn open_and_wait(self: Box<Self>, page: LoginPage) -> AuthFuture<Result<LoginCallback, VisitError>> {
        Box::pin(async move {
            self.clock.jump(self.jump);
            let sent = tokio::task::spawn_blocking(move || wharf_testkit::authd::visit(&page.url)).await.unwrap();
            let back = sent.ok().flatten().ok_or_else(|| VisitError::NotPossible("it leads nowhere".to_owned()))?;
            Ok(returned(&back.parse().unwrap()))
        })
    }

    fn show_code(&self, _: &DeviceCodePage) -> Result<(), VisitError> {
        Ok(())
    }
}

fn returned(back: &Url) -> LoginCallback {
    let field = |name: &str| back.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
    LoginCallback {
        code: field("code"),
        state: field("state"),
        iss: field("iss"),
        error: field("error"),
        error_description: field("error_description"),
    }
}
