//! Servers that want a login: who is asked, what brings them back, and what takes them there.

mod real;
mod site;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::mpsc;
use wharf::spec::{Secret, ServerSpec};
use wharf::{
    Ask, AskReply, Asker, ConsentAnswer, Event, EventDelivery, EventReceiver, Host, HostBuilder, HostError, LoginAsk,
    ServerError, ServerState,
};

use crate::fixture::{Fake, call, open_builder, server, settings};
use site::{At, Held, Member, Site, Tourist};

/// Long enough for anything that is going to happen.
const SOON: Duration = Duration::from_secs(20);

/// Hands questions about logins to the test.
struct Desk(mpsc::UnboundedSender<(LoginAsk, AskReply<ConsentAnswer>)>);

impl Asker for Desk {
    fn ask(&self, ask: Ask) {
        let Ask::Login(question, reply) = ask else { panic!("another question") };
        let _ = self.0.send((question, reply));
    }
}

/// A host with one server at a site, an account with it, and somebody to ask.
struct Bench {
    site: Site,
    /// Where `two` is, which is lazy and wants a login that nobody ever has.
    _other: Site,
    member: Arc<Member>,
    tourist: Arc<Tourist>,
    questions: mpsc::UnboundedReceiver<(LoginAsk, AskReply<ConsentAnswer>)>,
    host: Host,
    events: EventReceiver,
    told: Told,
}

/// How often somebody was asked about `one`, and warned of anything.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    asked: usize,
    warned: usize,
}

impl Bench {
    async fn new(site: Site, member: Member, build: impl FnOnce(HostBuilder) -> HostBuilder) -> Self {
        let (sender, questions) = mpsc::unbounded_channel();
        let (member, tourist, other) = (Arc::new(member), Arc::<Tourist>::default(), Site::wanting(u64::MAX));
        let held = Arc::clone(&member);
        let mut second = other.entry_of("two");
        second.settings.lazy = true;
        let builder = open_builder()
            .servers([site.entry(), second])
            .accounts(move |name, _| {
                let member = if name.as_str() == "one" { Arc::clone(&held) } else { Arc::default() };
                Some(Held(member))
            })
            .asker(Arc::new(Desk(sender)))
            .browser(Arc::new(At(Arc::clone(&tourist))));
        let (host, events) = build(builder).start_with_events().await.unwrap();
        Self { site, _other: other, member, tourist, questions, host, events, told: Told::default() }
    }

    /// Waits until the server stands there, and tells what was wrong with it then.
    async fn stands(&mut self, wanted: ServerState) -> Option<Arc<ServerError>> {
        let found = async {
            while let Some(event) = self.hear().await {
                if let Event::State { server, state, last_error } = event
                    && (server.as_str(), state) == ("one", wanted)
                {
                    return last_error;
                }
            }
            panic!("the host is closed");
        };
        tokio::time::timeout(SOON, found).await.expect("it never came to stand there")
    }

    async fn question(&mut self) -> (LoginAsk, AskReply<ConsentAnswer>) {
        tokio::time::timeout(SOON, self.questions.recv()).await.expect("no question arrived").unwrap()
    }

    /// The next event, which counts.
    async fn hear(&mut self) -> Option<Event> {
        let EventDelivery::Event(heard) = self.events.next().await? else { panic!("events are missing") };
        match &heard.event {
            Event::Asked { server, .. } if server.as_str() == "one" => self.told.asked += 1,
            Event::Warning { .. } => self.told.warned += 1,
            _ => {}
        }
        Some(heard.event)
    }

    /// Has somebody asked about `two`: by then nobody was about `one`, beyond what has been taken.
    async fn is_unasked(&mut self) {
        assert!(self.host.connect("two").await.is_err());
        let (question, mut reply) = self.question().await;
        assert_eq!(question.server.as_str(), "two", "somebody was asked");
        self.host.disconnect("two").await.unwrap();
        tokio::time::timeout(SOON, reply.wait_withdrawn()).await.unwrap();
    }

    /// Closes the host; what was told until then.
    async fn closed(mut self) -> Told {
        self.host.close().await;
        assert_eq!(self.member.finished.load(Ordering::SeqCst), 1, "its account has been waited for");
        while self.hear().await.is_some() {}
        self.told
    }
}

fn logged_in(token: u64) -> Member {
    let member = Member::default();
    member.token.store(token, Ordering::SeqCst);
    member
}

fn as_it_is(builder: HostBuilder) -> HostBuilder {
    builder
}

#[tokio::test(flavor = "multi_thread")]
async fn consent_opens_the_page_and_connects_the_server() {
    let mut bench = Bench::new(Site::wanting(1), Member::default(), |builder| {
        builder.local_with(server("local"), settings(), Fake::new("local").factory())
    })
    .await;
    let error = bench.stands(ServerState::AuthRequired).await.unwrap();
    assert_eq!(error.to_string(), "server requires a login (HTTP 401): nobody has agreed to that");
    let (question, reply) = bench.question().await;
    assert_eq!(
        (question.server.as_str(), question.url.as_str(), question.issuer.as_str(), question.scope.as_deref()),
        ("one", "https://login.example/authorize", "https://login.example", Some("read"))
    );
    // Nobody else waits for the answer.
    bench.host.wait_until_settled().await;
    assert_eq!(bench.host.status_of("local").unwrap().state, ServerState::Ready);
    assert_eq!(bench.tourist.0.load(Ordering::SeqCst), 0, "nothing is opened before the yes");
    reply.answer(ConsentAnswer::Given);
    bench.stands(ServerState::Ready).await;
    assert_eq!(call(&bench.host, "who").await.unwrap(), "token 1");
    bench.host.close().await;
}

/// Who logs in comes back to where the server's own settings say, and those are the ones it has now.
#[tokio::test(flavor = "multi_thread")]
async fn browser_is_created_from_current_server_settings() {
    let (tourist, (wanted, mut made)) = (Arc::<Tourist>::default(), mpsc::unbounded_channel());
    let mut bench = Bench::new(Site::wanting(1), Member::default(), |builder| {
        builder.browser_factory(move |name, spec| {
            wanted.send((name.to_string(), spec.login.callback_port)).unwrap();
            Arc::new(At(Arc::clone(&tourist)))
        })
    })
    .await;
    for port in [None, Some(4711)] {
        let mut entry = bench.site.entry();
        let ServerSpec::Http(spec) = &mut entry.spec else { panic!("it is dialled") };
        spec.login.callback_port = port;
        bench.host.set_servers(vec![entry]).await;
        let (question, _reply) = bench.question().await;
        assert_eq!((question.server.as_str(), made.recv().await), ("one", Some(("one".to_owned(), port))));
    }
    bench.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn declined_login_is_not_prompted_until_next_connect() {
    let mut bench = Bench::new(Site::wanting(1), Member::default(), as_it_is).await;
    for _ in 0..2 {
        let (_, reply) = bench.question().await;
        reply.answer(ConsentAnswer::Refused);
        // It goes on waiting for a login elsewhere.
        let refused = call(&bench.host, "who").await.unwrap_err();
        assert!(refused.needs_login(), "{refused:?}");
        assert_eq!(refused.hint().unwrap(), "log in to `one`");
        bench.is_unasked().await;
        assert!(bench.host.connect("one").await.is_err());
    }
    bench.question().await.1.answer(ConsentAnswer::Refused);
    bench.is_unasked().await;
    assert_eq!(bench.tourist.0.load(Ordering::SeqCst), 0);
    assert_eq!(bench.closed().await, Told { asked: 3, warned: 0 });
}

#[tokio::test(flavor = "multi_thread")]
async fn login_in_another_process_connects_and_withdraws_prompt() {
    let mut bench = Bench::new(Site::wanting(1), Member::default(), as_it_is).await;
    let (_, mut reply) = bench.question().await;
    bench.member.token.store(7, Ordering::SeqCst);
    bench.stands(ServerState::Ready).await;
    assert_eq!(call(&bench.host, "who").await.unwrap(), "token 7");
    tokio::time::timeout(SOON, reply.wait_withdrawn()).await.unwrap();
    assert_eq!(bench.tourist.0.load(Ordering::SeqCst), 0);
    bench.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn manual_login_withdraws_the_pending_prompt() {
    let mut bench = Bench::new(Site::wanting(1), Member::default(), as_it_is).await;
    let (_, mut reply) = bench.question().await;
    let log_in = bench.host.log_in("one", Arc::new(At(Arc::clone(&bench.tourist))));
    tokio::time::timeout(SOON, log_in).await.expect("it waits for the question").unwrap();
    tokio::time::timeout(SOON, reply.wait_withdrawn()).await.unwrap();
    bench.host.wait_until_settled().await;
    assert_eq!(call(&bench.host, "who").await.unwrap(), "token 2");
    bench.is_unasked().await;
    assert_eq!(bench.tourist.0.load(Ordering::SeqCst), 1);
    assert_eq!(bench.closed().await, Told { asked: 1, warned: 0 });
}

#[tokio::test(flavor = "multi_thread")]
async fn login_elsewhere_during_the_401_is_detected() {
    let member = Member::default();
    member.token_when_refused.store(7, Ordering::SeqCst);
    let mut bench = Bench::new(Site::wanting(1), member, as_it_is).await;
    bench.stands(ServerState::Ready).await;
    assert_eq!(call(&bench.host, "who").await.unwrap(), "token 7");
    bench.is_unasked().await;
    assert_eq!(bench.closed().await, Told { asked: 0, warned: 0 });
}

#[tokio::test(flavor = "multi_thread")]
async fn connecting_again_keeps_the_pending_login_prompt() {
    let mut bench = Bench::new(Site::wanting(1), Member::default(), as_it_is).await;
    let (_, reply) = bench.question().await;
    for _ in 0..2 {
        assert!(bench.host.connect("one").await.is_err());
    }
    assert!(reply.is_awaited());
    bench.is_unasked().await;
    reply.answer(ConsentAnswer::Given);
    bench.stands(ServerState::Ready).await;
    assert_eq!(call(&bench.host, "who").await.unwrap(), "token 1");
    assert_eq!(bench.closed().await, Told { asked: 1, warned: 0 });
}

#[tokio::test(flavor = "multi_thread")]
async fn denied_login_neither_prompts_nor_warns() {
    let member = Member::default();
    member.denied.store(true, Ordering::SeqCst);
    let mut bench = Bench::new(Site::wanting(1), member, as_it_is).await;
    bench.stands(ServerState::AuthRequired).await;
    bench.is_unasked().await;
    assert!(bench.member.wanted_device.load(Ordering::SeqCst), "what the visitor wants is passed on");
    assert_eq!(bench.closed().await, Told { asked: 0, warned: 0 });
}

#[tokio::test(flavor = "multi_thread")]
async fn several_scope_errors_prompt_once() {
    let mut bench = Bench::new(Site::wanting(1), logged_in(1), as_it_is).await;
    bench.site.rules.least_to_call.store(2, Ordering::SeqCst);
    bench.host.wait_until_settled().await;
    for _ in 0..3 {
        assert!(call(&bench.host, "who").await.unwrap_err().needs_scope().is_some());
    }
    // Its supervisor has heard of all of them by then.
    bench.host.connect("one").await.unwrap();
    bench.question().await.1.answer(ConsentAnswer::Refused);
    bench.is_unasked().await;
    // There is one left.
    assert!(call(&bench.host, "who").await.unwrap_err().needs_scope().is_some());
    bench.question().await.1.answer(ConsentAnswer::Given);
    assert_eq!(logged_in_at(&mut bench).await, 2);
    assert_eq!(call(&bench.host, "who").await.unwrap(), "token 2");
    assert_eq!(bench.closed().await, Told { asked: 2, warned: 0 });
}

#[tokio::test(flavor = "multi_thread")]
async fn login_expired_mid_session_moves_server_to_auth_required() {
    let mut bench = Bench::new(Site::wanting(1), logged_in(1), as_it_is).await;
    assert_eq!(call(&bench.host, "who").await.unwrap(), "token 1");
    bench.site.rules.least.store(2, Ordering::SeqCst);
    let refused = call(&bench.host, "who").await.unwrap_err();
    assert!(matches!(refused, HostError::Call { .. }) && refused.needs_login(), "{refused:?}");
    let error = bench.stands(ServerState::AuthRequired).await.unwrap();
    assert!(matches!(&*error, ServerError::LoginRequired(_)) && error.needs_login(), "{error:?}");
    assert!(bench.host.catalog().section("one").is_none_or(|section| section.tools.is_empty()));
    bench.question().await.1.answer(ConsentAnswer::Given);
    // The first login is not enough for this site, the second is.
    bench.question().await.1.answer(ConsentAnswer::Given);
    bench.stands(ServerState::Ready).await;
    assert_eq!(call(&bench.host, "who").await.unwrap(), "token 2");
    bench.host.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn o16_call_without_scope_fails_and_connection_stays() {
    let mut bench = Bench::new(Site::wanting(1), logged_in(1), as_it_is).await;
    bench.site.rules.least_to_call.store(2, Ordering::SeqCst);
    let refused = call(&bench.host, "who").await.unwrap_err();
    assert_eq!((refused.needs_scope(), refused.needs_login(), refused.is_retryable()), (Some("write"), false, false));
    assert!(refused.to_string().contains("requires a login with scope `write`"), "{refused}");
    bench.question().await.1.answer(ConsentAnswer::Given);
    // The first login is not enough for this site.
    assert_eq!(logged_in_at(&mut bench).await, 1);
    assert!(call(&bench.host, "who").await.unwrap_err().needs_scope().is_some());
    let (question, reply) = bench.question().await;
    assert_eq!(question.scope.as_deref(), Some("read write"), "all of it is shown");
    reply.answer(ConsentAnswer::Given);
    assert_eq!(logged_in_at(&mut bench).await, 2);
    assert_eq!(call(&bench.host, "who").await.unwrap(), "token 2");
    assert_eq!(bench.host.status_of("one").unwrap().restarts, 0, "it was there all the while");
    bench.host.close().await;
}

/// Waits until somebody has logged in; the number of the token they were given.
async fn logged_in_at(bench: &mut Bench) -> u64 {
    let told = async { while !matches!(bench.hear().await.unwrap(), Event::LoggedIn { .. }) {} };
    tokio::time::timeout(SOON, told).await.expect("the login did not finish");
    bench.member.token.load(Ordering::SeqCst)
}

#[tokio::test(flavor = "multi_thread")]
async fn t48_repeated_scope_demands_prompt_twice_at_most() {
    let mut bench = Bench::new(Site::wanting(1), logged_in(1), as_it_is).await;
    bench.site.rules.least_to_call.store(u64::MAX, Ordering::SeqCst);
    for asked in [true, true, false, false] {
        assert!(call(&bench.host, "who").await.unwrap_err().needs_scope().is_some());
        if asked {
            bench.question().await.1.answer(ConsentAnswer::Refused);
            // It has been heard by then.
            bench.is_unasked().await;
        } else {
            // Its supervisor has heard of it by then.
            bench.host.connect("one").await.unwrap();
            bench.is_unasked().await;
        }
    }
    assert_eq!(bench.closed().await, Told { asked: 2, warned: 0 });
}

#[tokio::test(flavor = "multi_thread")]
async fn logout_does_not_prompt_for_login() {
    let mut bench = Bench::new(Site::wanting(1), logged_in(1), as_it_is).await;
    bench.host.wait_until_settled().await;
    assert!(bench.host.log_out("one").await.unwrap());
    bench.stands(ServerState::AuthRequired).await;
    bench.is_unasked().await;
    assert!(bench.host.connect("one").await.is_err());
    bench.question().await;
    assert_eq!(bench.closed().await, Told { asked: 1, warned: 0 });
}

#[tokio::test(flavor = "multi_thread")]
async fn server_without_login_never_prompts() {
    let mut bench = Bench::new(Site::wanting(0), Member::default(), as_it_is).await;
    assert_eq!(call(&bench.host, "who").await.unwrap(), "token 0");
    bench.is_unasked().await;
    assert_eq!(bench.closed().await, Told { asked: 0, warned: 0 });
}

#[tokio::test(flavor = "multi_thread")]
async fn without_account_a_401_is_verified_before_auth_required() {
    for everything in [false, true] {
        let site = Site::wanting(0);
        let (host, mut events) = open_builder().servers([site.entry()]).start_with_events().await.unwrap();
        host.wait_until_settled().await;
        let asked = site.endpoint.requests();
        site.rules.calls_refused.store(1, Ordering::SeqCst);
        site.rules.least.store(u64::from(everything), Ordering::SeqCst);
        assert!(call(&host, "who").await.unwrap_err().needs_login());
        if everything {
            let there = async {
                while host.status_of("one").unwrap().state != ServerState::AuthRequired {
                    events.next().await;
                }
            };
            tokio::time::timeout(SOON, there).await.unwrap();
        } else {
            assert!(wharf_testkit::oracle::poll_until(SOON, || site.endpoint.requests() == asked + 2));
            assert_eq!(host.status_of("one").unwrap().state, ServerState::Ready);
        }
        assert!(matches!(host.log_out("one").await, Err(HostError::NoAccount { .. })));
        host.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn configured_authorization_header_skips_the_account() {
    let site = Site::wanting(5);
    let mut entry = site.entry();
    if let ServerSpec::Http(spec) = &mut entry.spec {
        spec.headers.push(("Authorization".to_owned(), Secret::new("Bearer token-9")));
    }
    let builder =
        open_builder().servers([entry]).accounts(|_, _| -> Option<Held> { panic!("no account may be requested") });
    let host = builder.start().await.unwrap();
    assert_eq!(call(&host, "who").await.unwrap(), "token 9");
    host.close().await;
}
