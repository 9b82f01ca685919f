//! Login accounts of HTTP servers. Each server has one account for as long as the server exists.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio::time::Instant;
use wharf_auth::{Account, AccountStatus, LoginBrowser, LoginError};
use wharf_client::{AuthorizationId, Authorizer, BoxedFuture, ConnectOptions};
use wharf_spec::{HttpSpec, ServerName, ServerSpec};

use crate::context::HostContext;
use crate::error::HostError;
use crate::events::Event;
use crate::host::Host;
use crate::login_lock::LoginLock;
use crate::server::{Server, ServerEndpoint};
use crate::supervise::{ServerState, SupervisorCommand};

/// Maximum number of additional-scope prompts one server may cause within [`SCOPE_PROMPT_WINDOW`].
const MAX_SCOPE_PROMPTS: usize = 2;
const SCOPE_PROMPT_WINDOW: Duration = Duration::from_secs(600);

/// An account at one server. [`Account`] is the default implementation.
pub trait ServerAccount: Authorizer + 'static {
    /// Logs in from scratch, with every scope that the server has requested so far.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the login.
    fn log_in(&self, visitor: Arc<dyn LoginBrowser>) -> BoxedFuture<Result<(), LoginError>>;

    /// Deletes the stored login. Returns whether there was one.
    fn log_out(&self) -> BoxedFuture<Result<bool, LoginError>>;

    /// Returns a fingerprint of the current login, or `None` when logged out. A login made by another process changes
    /// it.
    fn login_fingerprint(&self) -> BoxedFuture<Option<u64>>;

    /// Returns the account's status for display, or `None` if the implementation does not report one.
    fn status(&self) -> BoxedFuture<Result<Option<AccountStatus>, LoginError>> {
        Box::pin(async { Ok(None) })
    }

    /// Waits for operations that must not be interrupted, such as a token refresh in progress.
    fn finish(&self) -> BoxedFuture<()> {
        Box::pin(async {})
    }
}

impl ServerAccount for Account {
    fn log_in(&self, visitor: Arc<dyn LoginBrowser>) -> BoxedFuture<Result<(), LoginError>> {
        let account = self.clone();
        Box::pin(async move { Account::log_in(&account, visitor).await.map(drop) })
    }

    fn log_out(&self) -> BoxedFuture<Result<bool, LoginError>> {
        let account = self.clone();
        Box::pin(async move { Account::log_out(&account).await.map(|logout| logout.was_kept) })
    }

    fn login_fingerprint(&self) -> BoxedFuture<Option<u64>> {
        let account = self.clone();
        Box::pin(async move {
            let kept = Account::status(&account).await.ok()?.kept?;
            kept.tokens.map(|tokens| token_fingerprint(&kept.issuer, tokens.access.reveal()))
        })
    }

    fn status(&self) -> BoxedFuture<Result<Option<AccountStatus>, LoginError>> {
        let account = self.clone();
        Box::pin(async move { Account::status(&account).await.map(Some) })
    }

    fn finish(&self) -> BoxedFuture<()> {
        let account = self.clone();
        Box::pin(async move { Account::finish(&account).await })
    }
}

/// Returns a fingerprint of an issuer and a token.
fn token_fingerprint(issuer: &str, token: &str) -> u64 {
    let digest = Sha256::new().chain_update(issuer).chain_update([0]).chain_update(token).finalize();
    digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Returns the account to use for a server, if any.
pub(crate) type AccountFactory = Arc<dyn Fn(&ServerName, &HttpSpec) -> Option<Arc<dyn ServerAccount>> + Send + Sync>;

/// Login state of one server.
#[derive(Default)]
pub(crate) struct LoginState {
    account: OnceLock<Option<Arc<dyn ServerAccount>>>,
    /// Number of logins and logouts made through this host.
    logins: AtomicU64,
    /// Set after a logout: login prompts are suppressed.
    quiet: AtomicBool,
    /// Times of the recent additional-scope prompts.
    steps: Mutex<VecDeque<Instant>>,
    /// Set while an additional-scope prompt is open.
    is_stepping: AtomicBool,
    /// Fingerprint of the login that the last connection attempt started with.
    mark: Mutex<Option<u64>>,
    /// Set after an immediate retry with another login, until the host waits again.
    has_hurried: AtomicBool,
    pub turns: LoginLock,
}

/// An additional-scope prompt in progress. Dropping it allows the next one.
pub(crate) struct ScopePrompt(Arc<Server>);

impl Drop for ScopePrompt {
    fn drop(&mut self) {
        self.0.login_state.is_stepping.store(false, Ordering::Release);
    }
}

impl LoginState {
    /// Allows login prompts again.
    pub fn allow_prompts(&self) {
        self.quiet.store(false, Ordering::Release);
    }

    pub fn are_prompts_suppressed(&self) -> bool {
        self.quiet.load(Ordering::Acquire)
    }

    /// Returns the fingerprint of the login that the last connection attempt started with.
    pub fn login_fingerprint(&self) -> Option<u64> {
        *self.mark.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports whether another login may be tried immediately, and uses up that permission. The second time in a row
    /// the caller has to wait first: each attempt may refresh the login, so a server that rejects every login would be
    /// dialled in an endless loop.
    pub fn take_immediate_retry(&self) -> bool {
        !self.has_hurried.swap(true, Ordering::AcqRel)
    }

    /// Allows an immediate retry again, because the caller is about to wait.
    pub fn reset_immediate_retry(&self) {
        self.has_hurried.store(false, Ordering::Release);
    }

    /// Takes one slot of the additional-scope prompt limit. Returns false if none is free.
    fn take_scope_prompt(&self) -> bool {
        let now = Instant::now();
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        steps.retain(|at| now.duration_since(*at) < SCOPE_PROMPT_WINDOW);
        let free = steps.len() < MAX_SCOPE_PROMPTS;
        if free {
            steps.push_back(now);
        }
        free
    }
}

impl Server {
    /// Begins an additional-scope prompt. Returns `None` if one is open already or the limit is reached.
    pub fn begin_scope_prompt(self: &Arc<Self>) -> Option<ScopePrompt> {
        if self.login_state.is_stepping.swap(true, Ordering::AcqRel) {
            return None;
        }
        let step = ScopePrompt(Arc::clone(self));
        self.login_state.take_scope_prompt().then_some(step)
    }

    /// Records the login that a connection attempt starts with. A login made during the attempt has another
    /// fingerprint.
    pub async fn record_login(&self, context: &HostContext) {
        let Some(account) = self.account(context) else { return };
        let mark = account.login_fingerprint().await;
        *self.login_state.mark.lock().unwrap_or_else(PoisonError::into_inner) = mark;
    }

    /// Returns the server's account if one has been created.
    pub fn known_account(&self) -> Option<&Arc<dyn ServerAccount>> {
        self.login_state.account.get()?.as_ref()
    }

    /// Returns the server's account, creating it on first use.
    pub fn account(&self, context: &HostContext) -> Option<&Arc<dyn ServerAccount>> {
        let make = || {
            let spec = self.endpoint.http()?;
            let accounts = context.options.accounts.as_ref().filter(|_| !has_own_credentials(spec))?;
            accounts(&self.name, spec)
        };
        self.login_state.account.get_or_init(make).as_ref()
    }

    /// Sets the server's account as the authorizer of a connection.
    pub fn set_authorizer(&self, context: &HostContext, options: &mut ConnectOptions) {
        let Some(account) = self.account(context) else { return };
        options.authorizer = Some(Arc::clone(account) as Arc<dyn Authorizer>);
        // Cached private results must not be shared between logins.
        let logins = self.login_state.logins.load(Ordering::Acquire);
        options.authorization = AuthorizationId(format!("{}/{}/{logins}", self.name, self.generation));
    }

    /// Records a change of login or a logout, and clears the result cache.
    pub fn on_login_changed(&self) {
        self.login_state.logins.fetch_add(1, Ordering::AcqRel);
        self.results.clear();
    }
}

/// Reports whether the server's own settings carry credentials. Such a server has no account.
fn has_own_credentials(spec: &HttpSpec) -> bool {
    let named = |name: &str| name.eq_ignore_ascii_case("authorization");
    let by_header = spec.headers.iter().any(|(name, _)| named(name));
    by_header || !spec.url.username().is_empty() || spec.url.password().is_some()
}

impl Host {
    /// Logs in to a server using the given browser. Reconnects the server with the new login unless it is disabled,
    /// unapproved, idle or disconnected. Withdraws an open login prompt.
    ///
    /// # Errors
    ///
    /// Returns an error if the server is unknown, has no account, or the login fails.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the login. An [`Account`] still stores tokens that have already arrived.
    ///
    /// # Example
    ///
    /// See [servers](Host#servers) for the error of a server without an account, and
    /// [`LoopbackBrowser`](wharf_auth::LoopbackBrowser) for a browser.
    pub async fn log_in(&self, server: &str, visitor: Arc<dyn LoginBrowser>) -> Result<(), HostError> {
        let (server, account) = self.server_with_account(server)?;
        server.login_state.allow_prompts();
        let turn = server.login_state.turns.begin_manual().await;
        let logged_in = account.log_in(visitor).await;
        drop(turn);
        logged_in.map_err(|error| HostError::Login { server: server.name.clone(), error })?;
        server.on_login_changed();
        self.context().event_bus.publish(Event::LoggedIn { server: server.name.clone() });
        self.reconnect_after_login(&server).await;
        Ok(())
    }

    /// Deletes the login of a server and reconnects it without one. Returns whether there was a login.
    ///
    /// # Errors
    ///
    /// Returns an error if the server is unknown, has no account, or the logout fails.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future can leave the logout unfinished: login prompts are suppressed from the first poll on, but
    /// the stored login may remain. Call the method again.
    ///
    /// # Example
    ///
    /// See [servers](Host#servers) for the error of a server without an account.
    pub async fn log_out(&self, server: &str) -> Result<bool, HostError> {
        let (server, account) = self.server_with_account(server)?;
        server.login_state.quiet.store(true, Ordering::Release);
        let turn = server.login_state.turns.begin_manual().await;
        let logged_out = account.log_out().await;
        drop(turn);
        let there_was = logged_out.map_err(|error| HostError::Login { server: server.name.clone(), error })?;
        server.on_login_changed();
        self.reconnect_after_login(&server).await;
        Ok(there_was)
    }

    /// Returns the status of a server's account, if the account reports one.
    ///
    /// # Errors
    ///
    /// Returns an error if the server is unknown, has no account, or the status cannot be read.
    ///
    /// # Cancel safety
    ///
    /// Cancel-safe.
    ///
    /// # Example
    ///
    /// See [servers](Host#servers) for the error of a server without an account.
    pub async fn account_status(&self, server: &str) -> Result<Option<AccountStatus>, HostError> {
        let (server, account) = self.server_with_account(server)?;
        account.status().await.map_err(|error| HostError::Login { server: server.name.clone(), error })
    }

    fn server_with_account(&self, server: &str) -> Result<(Arc<Server>, Arc<dyn ServerAccount>), HostError> {
        let server = self.context().server(server)?;
        let Some(account) = server.account(self.context()).map(Arc::clone) else {
            return Err(HostError::NoAccount {
                server: server.name.clone(),
                because: no_account_reason(&server.endpoint),
            });
        };
        Ok((server, account))
    }

    /// Reconnects a server after its login has changed. A server at rest stays at rest.
    async fn reconnect_after_login(&self, server: &Server) {
        let state = server.snapshot.borrow().state;
        let command = match state {
            ServerState::Disabled | ServerState::Unapproved | ServerState::Idle | ServerState::Disconnected => return,
            ServerState::Ready | ServerState::Connecting => SupervisorCommand::Reconnect,
            ServerState::AuthRequired | ServerState::Reconnecting | ServerState::Failed => SupervisorCommand::Connect,
        };
        let number = server.send_command(command);
        server.wait_for_command(number).await;
    }
}

/// Returns the reason for a server having no account, if it is known.
fn no_account_reason(endpoint: &ServerEndpoint) -> Option<String> {
    match endpoint {
        ServerEndpoint::Spec(spec) => match &**spec {
            ServerSpec::Http(spec) if has_own_credentials(spec) => {
                Some("its settings already contain credentials".to_owned())
            }
            ServerSpec::Http(_) => None,
            ServerSpec::Stdio(_) => Some("it is a local (stdio) server".to_owned()),
        },
        ServerEndpoint::Local(_) => Some("it is an in-process server".to_owned()),
    }
}
