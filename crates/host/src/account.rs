//! Who the host is to its servers: one account for each, kept as long as the server is.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio::time::Instant;
use wharf_auth::{Account, LoginError, Standing, Visitor};
use wharf_client::{Authorization, Authorizer, ConnectOptions, Pending};
use wharf_spec::{HttpSpec, ServerName, ServerSpec};

use crate::context::Context;
use crate::error::HostError;
use crate::events::Event;
use crate::host::Host;
use crate::server::{Reach, Server};
use crate::supervise::{Command, State};
use crate::turns::Turns;

/// How often a server may have people asked for more than they have agreed to, within [`STEP_WINDOW`].
const MOST_STEPS: usize = 2;
const STEP_WINDOW: Duration = Duration::from_secs(600);

/// One account at one server, as a host needs it. [`Account`] is one.
pub trait ServerAccount: Authorizer + 'static {
    /// Logs in from the beginning, with everything the server has asked for so far. Dropped while it waits, it is given up.
    fn log_in(&self, visitor: Arc<dyn Visitor>) -> Pending<Result<(), LoginError>>;

    /// Forgets the login; says whether there was one.
    fn log_out(&self) -> Pending<Result<bool, LoginError>>;

    /// Tells one login from another, also where another process has logged in; nothing where nobody is logged in.
    fn mark(&self) -> Pending<Option<u64>>;

    /// Where it stands, for people, where that is known.
    fn standing(&self) -> Pending<Result<Option<Standing>, LoginError>> {
        Box::pin(async { Ok(None) })
    }

    /// Waits until what must not be broken off has come to its end, where there is such a thing: a renewal under way.
    fn finish(&self) -> Pending<()> {
        Box::pin(async {})
    }
}

impl ServerAccount for Account {
    fn log_in(&self, visitor: Arc<dyn Visitor>) -> Pending<Result<(), LoginError>> {
        let account = self.clone();
        Box::pin(async move { Account::log_in(&account, visitor).await.map(drop) })
    }

    fn log_out(&self) -> Pending<Result<bool, LoginError>> {
        let account = self.clone();
        Box::pin(async move { Account::log_out(&account).await.map(|logout| logout.was_kept) })
    }

    fn mark(&self) -> Pending<Option<u64>> {
        let account = self.clone();
        Box::pin(async move {
            let kept = Account::standing(&account).await.ok()?.kept?;
            kept.tokens.map(|tokens| digest(&kept.issuer, tokens.access.reveal()))
        })
    }

    fn standing(&self) -> Pending<Result<Option<Standing>, LoginError>> {
        let account = self.clone();
        Box::pin(async move { Account::standing(&account).await.map(Some) })
    }

    fn finish(&self) -> Pending<()> {
        let account = self.clone();
        Box::pin(async move { Account::finish(&account).await })
    }
}

/// Stands for a token of an issuer.
fn digest(issuer: &str, token: &str) -> u64 {
    let digest = Sha256::new().chain_update(issuer).chain_update([0]).chain_update(token).finalize();
    digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Which account a server is dialled with, if any.
pub(crate) type Accounts = Arc<dyn Fn(&ServerName, &HttpSpec) -> Option<Arc<dyn ServerAccount>> + Send + Sync>;

/// What one server knows of its account.
#[derive(Default)]
pub(crate) struct Membership {
    account: OnceLock<Option<Arc<dyn ServerAccount>>>,
    /// How often somebody has logged in or out here.
    logins: AtomicU64,
    /// Nobody is asked: they have just logged out.
    quiet: AtomicBool,
    /// When people were last asked for more.
    steps: Mutex<VecDeque<Instant>>,
    /// They are being asked for more.
    is_stepping: AtomicBool,
    /// The mark of the login that the last attempt began with.
    mark: Mutex<Option<u64>>,
    /// Another login was tried at once, and nothing has been waited for since.
    has_hurried: AtomicBool,
    pub turns: Turns,
}

/// People are being asked for more than they have agreed to. Dropped, they may be asked again.
pub(crate) struct Step(Arc<Server>);

impl Drop for Step {
    fn drop(&mut self) {
        self.0.membership.is_stepping.store(false, Ordering::Release);
    }
}

impl Membership {
    /// People may be asked again.
    pub fn may_ask(&self) {
        self.quiet.store(false, Ordering::Release);
    }

    pub fn is_quiet(&self) -> bool {
        self.quiet.load(Ordering::Acquire)
    }

    /// The mark of the login that the last attempt began with.
    pub fn mark(&self) -> Option<u64> {
        *self.mark.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether another login may be tried at once. The second time in a row something is waited for first: a server that
    /// takes none would be dialled for ever, as each attempt may renew the login.
    pub fn may_hurry(&self) -> bool {
        !self.has_hurried.swap(true, Ordering::AcqRel)
    }

    /// Something is being waited for.
    pub fn takes_time(&self) {
        self.has_hurried.store(false, Ordering::Release);
    }

    /// Takes one of the few times that people may be asked for more.
    fn takes_step(&self) -> bool {
        let now = Instant::now();
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        steps.retain(|at| now.duration_since(*at) < STEP_WINDOW);
        let free = steps.len() < MOST_STEPS;
        if free {
            steps.push_back(now);
        }
        free
    }
}

impl Server {
    /// Takes one of the few times that people may be asked for more, unless they are being asked already.
    pub fn step(self: &Arc<Self>) -> Option<Step> {
        if self.membership.is_stepping.swap(true, Ordering::AcqRel) {
            return None;
        }
        let step = Step(Arc::clone(self));
        self.membership.takes_step().then_some(step)
    }

    /// Notes which login an attempt begins with: one that is made meanwhile is another.
    pub async fn note_login(&self, context: &Context) {
        let Some(account) = self.account(context) else { return };
        let mark = account.mark().await;
        *self.membership.mark.lock().unwrap_or_else(PoisonError::into_inner) = mark;
    }

    /// Its account, where it has been dialled with one.
    pub fn known_account(&self) -> Option<&Arc<dyn ServerAccount>> {
        self.membership.account.get()?.as_ref()
    }

    /// The account it is dialled with.
    pub fn account(&self, context: &Context) -> Option<&Arc<dyn ServerAccount>> {
        let make = || {
            let spec = self.reach.http()?;
            let accounts = context.options.accounts.as_ref().filter(|_| !says_who_asks(spec))?;
            accounts(&self.name, spec)
        };
        self.membership.account.get_or_init(make).as_ref()
    }

    /// Lets its account say who asks.
    pub fn introduce(&self, context: &Context, options: &mut ConnectOptions) {
        let Some(account) = self.account(context) else { return };
        options.authorizer = Some(Arc::clone(account) as Arc<dyn Authorizer>);
        // What is private to one login is not shown to the next.
        let logins = self.membership.logins.load(Ordering::Acquire);
        options.authorization = Authorization(format!("{}/{}/{logins}", self.name, self.generation));
    }

    /// Notes that somebody else is logged in from now on, or nobody.
    pub fn changed_hands(&self) {
        self.membership.logins.fetch_add(1, Ordering::AcqRel);
        self.results.clear();
    }
}

/// Whether a server's own settings say who asks, so that nobody else is heard about it.
fn says_who_asks(spec: &HttpSpec) -> bool {
    let named = |name: &str| name.eq_ignore_ascii_case("authorization");
    let by_header = spec.headers.iter().any(|(name, _)| named(name));
    by_header || !spec.url.username().is_empty() || spec.url.password().is_some()
}

impl Host {
    /// Logs in to a server by way of this visitor, and connects it with that login where it is to be connected at all. A
    /// question whether to log in that is still open is withdrawn.
    ///
    /// Dropped while it waits, the login is given up.
    pub async fn log_in(&self, server: &str, visitor: Arc<dyn Visitor>) -> Result<(), HostError> {
        let (server, account) = self.member(server)?;
        server.membership.may_ask();
        let turn = server.membership.turns.by_hand().await;
        let logged_in = account.log_in(visitor).await;
        drop(turn);
        logged_in.map_err(|error| HostError::Login { server: server.name.clone(), error })?;
        server.changed_hands();
        self.context().crier.tell(Event::LoggedIn { server: server.name.clone() });
        self.meet_anew(&server).await;
        Ok(())
    }

    /// Forgets the login of a server; says whether there was one. What was connected with it is connected without.
    pub async fn log_out(&self, server: &str) -> Result<bool, HostError> {
        let (server, account) = self.member(server)?;
        server.membership.quiet.store(true, Ordering::Release);
        let turn = server.membership.turns.by_hand().await;
        let logged_out = account.log_out().await;
        drop(turn);
        let there_was = logged_out.map_err(|error| HostError::Login { server: server.name.clone(), error })?;
        server.changed_hands();
        self.meet_anew(&server).await;
        Ok(there_was)
    }

    /// Where the account of a server stands, where it has one that can say so.
    pub async fn account(&self, server: &str) -> Result<Option<Standing>, HostError> {
        let (server, account) = self.member(server)?;
        account.standing().await.map_err(|error| HostError::Login { server: server.name.clone(), error })
    }

    fn member(&self, server: &str) -> Result<(Arc<Server>, Arc<dyn ServerAccount>), HostError> {
        let server = self.context().server(server)?;
        let Some(account) = server.account(self.context()).map(Arc::clone) else {
            return Err(HostError::NoAccount { server: server.name.clone(), because: because(&server.reach) });
        };
        Ok((server, account))
    }

    /// Connects a server with another login than before. One that is at rest stays so.
    async fn meet_anew(&self, server: &Server) {
        let state = server.standing.borrow().state;
        let command = match state {
            State::Disabled | State::Unapproved | State::Idle | State::Disconnected => return,
            State::Ready | State::Connecting => Command::Reconnect,
            State::AuthRequired | State::Reconnecting | State::Failed => Command::Connect,
        };
        let number = server.command(command);
        server.has_obeyed(number).await;
    }
}

/// Why a server has no account.
fn because(reach: &Reach) -> Option<String> {
    match reach {
        Reach::Spec(spec) => match &**spec {
            ServerSpec::Http(spec) if says_who_asks(spec) => Some("its settings say who asks".to_owned()),
            ServerSpec::Http(_) => None,
            ServerSpec::Stdio(_) => Some("it is started, not dialled".to_owned()),
        },
        Reach::Local(_) => Some("it lives in this process".to_owned()),
    }
}
