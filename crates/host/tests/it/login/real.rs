//! A host with accounts as they are, an authorization server, and somebody who logs in there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc;
use url::Url;
use wharf::auth::{
    Account, AccountKey, AccountOptions, BrowserVisit, LoginBrowser, LoginCallback, LoginPage, MemoryVault, Vault,
    VisitError,
};
use wharf::spec::{HttpSpec, ServerEntry, ServerSpec};
use wharf::{AskReply, ConsentAnswer, Event, EventDelivery, Host, LoginAsk, ServerAccount, ServerState};
use wharf_client::BoxedFuture;
use wharf_testkit::authd::{AuthSwitches, Authd, MetadataLocation};

use super::{Desk, SOON};
use crate::fixture::{call, open_builder, server, settings};

/// Where logins come back to. Nobody listens there: the visitor reads the address it is sent to.
const CALLBACK: &str = "http://127.0.0.1:9/back";

/// Goes wherever a page sends people, without a person.
struct Headless;

struct Trip;

impl LoginBrowser for Headless {
    fn prepare(&self) -> BoxedFuture<Result<Box<dyn BrowserVisit>, VisitError>> {
        Box::pin(async { Ok(Box::new(Trip) as Box<dyn BrowserVisit>) })
    }
}

impl BrowserVisit for Trip {
    fn redirect_uri(&self) -> &str {
        CALLBACK
    }

    fn open_and_wait(self: Box<Self>, page: LoginPage) -> BoxedFuture<Result<LoginCallback, VisitError>> {
        Box::pin(async move {
            let sent = tokio::task::spawn_blocking(move || wharf_testkit::authd::visit(&page.url)).await.unwrap();
            let back: Url = sent.unwrap().unwrap().parse().unwrap();
            let field = |name: &str| back.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into());
            Ok(LoginCallback {
                code: field("code"),
                state: field("state"),
                iss: field("iss"),
                ..LoginCallback::default()
            })
        })
    }
}

/// An authorization server, a server behind it called `one`, and a host with an account there.
struct Scene {
    authd: Authd,
    vault: Arc<dyn Vault>,
    /// What is added to the time, in milliseconds.
    ahead: Arc<AtomicU64>,
    questions: mpsc::UnboundedReceiver<(LoginAsk, AskReply<ConsentAnswer>)>,
    host: Host,
}

impl Scene {
    async fn new() -> Self {
        let switches = AuthSwitches {
            description: MetadataLocation::Path,
            challenge_scope: Some("read".to_owned()),
            ..AuthSwitches::default()
        };
        let (authd, vault) = (Authd::start(switches).unwrap(), Arc::new(MemoryVault::default()) as Arc<dyn Vault>);
        let (ahead, (sender, questions)) = (Arc::<AtomicU64>::default(), mpsc::unbounded_channel());
        let spec = ServerSpec::Http(HttpSpec::new(authd.server_url().parse().unwrap()));
        let host = open_builder()
            .servers([ServerEntry { name: server("one"), spec, settings: settings() }])
            .accounts({
                let (vault, ahead) = (Arc::clone(&vault), Arc::clone(&ahead));
                move |_, spec| Some(account(&spec.url, &vault, &ahead))
            })
            .asker(Arc::new(Desk(sender)))
            .browser(Arc::new(Headless))
            .start()
            .await
            .unwrap();
        Self { authd, vault, ahead, questions, host }
    }

    /// Another process as far as anybody can tell: it shares nothing but the vault.
    fn elsewhere(&self) -> Account {
        account(&self.authd.server_url().parse().unwrap(), &self.vault, &self.ahead)
    }

    async fn question(&mut self) -> (LoginAsk, AskReply<ConsentAnswer>) {
        tokio::time::timeout(SOON, self.questions.recv()).await.expect("no question arrived").unwrap()
    }

    /// Waits until the server is there.
    async fn is_ready(&self) {
        tokio::time::timeout(SOON, async {
            let mut changes = self.host.events();
            while self.host.status_of("one").unwrap().state != ServerState::Ready {
                changes.next().await;
            }
        })
        .await
        .expect("it was never ready");
        self.host.wait_until_settled().await;
    }

    fn grants(&self, grant: &str) -> usize {
        self.authd.requests().iter().filter(|seen| seen.is_grant(grant)).count()
    }
}

fn account(url: &Url, vault: &Arc<dyn Vault>, ahead: &Arc<AtomicU64>) -> Account {
    let key = AccountKey { server: "one".to_owned(), account: String::new() };
    let mut options = AccountOptions::new(key, url.clone(), Arc::clone(vault));
    let ahead = Arc::clone(ahead);
    options.now = Arc::new(move || 1_800_000_000_000 + ahead.load(Ordering::SeqCst));
    Account::new(options)
}

#[tokio::test(flavor = "multi_thread")]
async fn login_is_prompted_renewed_widened_and_revoked() {
    let mut scene = Scene::new().await;
    let (question, reply) = scene.question().await;
    assert_eq!((question.server.as_str(), question.issuer), ("one", scene.authd.issuer()));
    reply.answer(ConsentAnswer::Given);
    scene.is_ready().await;
    call(&scene.host, "echo").await.unwrap();
    assert_eq!((scene.grants("authorization_code"), scene.grants("refresh_token")), (1, 0));

    // Its time is up, and the server takes nothing of before.
    scene.authd.expire_access_tokens();
    scene.ahead.store(3_600_000, Ordering::SeqCst);
    call(&scene.host, "echo").await.unwrap();
    assert_eq!((scene.grants("authorization_code"), scene.grants("refresh_token")), (1, 1));

    scene.authd.require_scope("write");
    let refused = call(&scene.host, "echo").await.unwrap_err();
    assert!(refused.needs_scope().is_some(), "{refused:?}");
    let text = refused.to_string();
    assert!(text.contains("(HTTP 403)") && !text.contains("is needed"), "{text}");
    let mut events = scene.host.events();
    let (question, reply) = scene.question().await;
    let mut scopes: Vec<&str> = question.scope.as_deref().unwrap_or_default().split(' ').collect();
    scopes.sort_unstable();
    assert_eq!(scopes, ["read", "write"], "all of it");
    reply.answer(ConsentAnswer::Given);
    let is_login =
        |heard| matches!(heard, Some(EventDelivery::Event(told)) if matches!(told.event, Event::LoggedIn { .. }));
    let logged_in = async { while !is_login(events.next().await) {} };
    tokio::time::timeout(SOON, logged_in).await.expect("the login did not finish");
    call(&scene.host, "echo").await.unwrap();

    assert!(scene.host.log_out("one").await.unwrap());
    let state = || scene.host.status_of("one").unwrap().state;
    let logged_out = async {
        while state() != ServerState::AuthRequired {
            events.next().await;
        }
    };
    tokio::time::timeout(SOON, logged_out).await.expect("the server does not require a login");
    let status = scene.host.status_of("one").unwrap();
    assert_eq!(status.last_error.unwrap().to_string(), "server requires a login (HTTP 401)");
    scene.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn login_by_another_process_is_detected() {
    let mut scene = Scene::new().await;
    let (_, mut reply) = scene.question().await;
    Account::log_in(&scene.elsewhere(), Arc::new(Headless)).await.unwrap();
    scene.is_ready().await;
    tokio::time::timeout(SOON, reply.wait_withdrawn()).await.unwrap();
    call(&scene.host, "echo").await.unwrap();
    scene.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn manual_login_withdraws_the_pending_prompt() {
    let mut scene = Scene::new().await;
    let (_, mut reply) = scene.question().await;
    let log_in = scene.host.log_in("one", Arc::new(Headless));
    tokio::time::timeout(SOON, log_in).await.expect("it waits for the question").unwrap();
    tokio::time::timeout(SOON, reply.wait_withdrawn()).await.unwrap();
    scene.is_ready().await;
    call(&scene.host, "echo").await.unwrap();
    assert_eq!(scene.grants("authorization_code"), 1);
    scene.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn consecutive_logins_have_distinct_fingerprints() {
    let scene = Scene::new().await;
    let account = scene.elsewhere();
    assert_eq!(account.login_fingerprint().await, None);
    let mut marks = Vec::new();
    for _ in 0..2 {
        Account::log_in(&account, Arc::new(Headless)).await.unwrap();
        marks.push(account.login_fingerprint().await.unwrap());
        assert_eq!(scene.elsewhere().login_fingerprint().await, marks.last().copied());
    }
    assert_ne!(marks[0], marks[1]);
    scene.host.close().await;
}
