//! Login flow of servers that require one: prompts for a login, and detects logins made by other processes.
//!
//! It runs in the background. The prompt is shown only when the login page is about to be opened, that is, once a login
//! is known to be possible.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use wharf_auth::{BrowserVisit, DeviceCodePage, LoginBrowser, LoginCallback, LoginError, LoginPage, VisitError};
use wharf_client::{BoxedFuture, CallError, NotAuthorized};
use wharf_spec::{HttpSpec, ServerName};

use crate::account::ServerAccount;
use crate::ask::{Ask, Asker, ConsentAnswer, LoginAsk, ask_and_wait};
use crate::context::HostContext;
use crate::events::Event;
use crate::server::Server;
use crate::supervise::{AbortOnDrop, ServerSnapshot, SupervisorCommand};

/// Interval of the check for a login by another process.
const LOGIN_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Time after which an open prompt is withdrawn. It equals the time to complete a login after consent.
const LOGIN_PROMPT_TIMEOUT: Duration = Duration::from_secs(300);

/// Creates the browser for the login page of a server.
pub(crate) type BrowserFactory = Arc<dyn Fn(&ServerName, &HttpSpec) -> Arc<dyn LoginBrowser> + Send + Sync>;

/// A login flow in progress. Dropping it stops the flow.
pub(crate) struct LoginFlow {
    _task: AbortOnDrop,
    asks: Arc<AtomicBool>,
}

impl LoginFlow {
    /// Reports whether a prompt is open or a login is in progress.
    pub fn is_asking(&self) -> bool {
        self.asks.load(Ordering::Acquire)
    }
}

/// Marks an open prompt until it is dropped.
struct PromptMarker(Arc<AtomicBool>);

impl Drop for PromptMarker {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl HostContext {
    /// Starts the login flow of a server that requires a login. It prompts if possible, waits for a login and then
    /// connects the server.
    pub fn start_login_flow(self: &Arc<Self>, server: &Arc<Server>, snapshot: &ServerSnapshot) -> Option<LoginFlow> {
        let account = Arc::clone(server.account(self)?);
        let person_helps = snapshot.last_error.as_ref()?.not_authorized().is_some_and(NotAuthorized::needs_user);
        let visitor = self
            .consent_prompting_browser(server)
            .filter(|_| person_helps && !server.login_state.are_prompts_suppressed());
        let asks = Arc::new(AtomicBool::new(visitor.is_some()));
        let question = visitor.map(|visitor| (visitor, PromptMarker(Arc::clone(&asks))));
        let (context, server) = (Arc::downgrade(self), Arc::clone(server));
        let task = tokio::spawn(async move {
            let mark = account.login_fingerprint().await;
            let is_another = mark.is_some() && mark != server.login_state.login_fingerprint();
            if is_another && server.login_state.take_immediate_retry() {
                drop(question);
            } else {
                server.login_state.reset_immediate_retry();
                let prompted = wait_for_prompted_login(&context, &server, &*account, question);
                wait_for_login(prompted, &*account, mark).await;
            }
            server.on_login_changed();
            server.send_command(SupervisorCommand::Connect);
        });
        Some(LoginFlow { _task: AbortOnDrop::new(task), asks })
    }

    /// Prompts for additional scope after a call was rejected for lack of it. The call itself has failed.
    pub fn prompt_for_scope(self: &Arc<Self>, server: &Arc<Server>, error: &CallError) {
        let asks = error.needs_scope().is_some() && !server.login_state.are_prompts_suppressed();
        let (Some(account), true) = (server.account(self).map(Arc::clone), asks) else { return };
        let Some(visitor) = self.consent_prompting_browser(server) else { return };
        let Some(step) = server.begin_scope_prompt() else { return };
        let (context, server) = (Arc::downgrade(self), Arc::clone(server));
        self.spawn(async move {
            let outcome = server.login_state.turns.run_prompted(account.log_in(visitor)).await;
            drop(step);
            let (Some(outcome), Some(context)) = (outcome, context.upgrade()) else { return };
            if outcome.is_ok() {
                server.on_login_changed();
            }
            context.report_login(&server, outcome.err().as_ref());
        });
    }

    /// Returns a browser that asks for consent before it opens a page.
    fn consent_prompting_browser(self: &Arc<Self>, server: &Server) -> Option<Arc<dyn LoginBrowser>> {
        let asker = self.asker.clone().filter(|asker| asker.supports_logins())?;
        let make = self.options.visitors.as_ref()?;
        let visitor = make(&server.name, server.endpoint.http()?);
        let person = LoginPrompter { asker, context: Arc::downgrade(self), server: server.name.clone() };
        Some(Arc::new(ConsentPromptingBrowser { visitor, person }))
    }

    fn report_login(&self, server: &Server, error: Option<&LoginError>) {
        let server = server.name.clone();
        match error {
            None => self.event_bus.publish(Event::LoggedIn { server }),
            // The person declined, and needs no notification of that.
            Some(LoginError::Visit(VisitError::Declined) | LoginError::Denied(None)) => {}
            Some(error) => {
                tracing::warn!(%server, "login failed: {error}");
                self.event_bus.publish(Event::Warning { server, text: format!("login failed: {error}") });
            }
        }
    }
}

/// The browser to use, and the marker of the open prompt.
type LoginQuestion = (Arc<dyn LoginBrowser>, PromptMarker);

/// Waits for a login: the prompted one, or another one, which has a different fingerprint.
async fn wait_for_login(prompted: impl Future<Output = ()>, account: &dyn ServerAccount, mark: Option<u64>) {
    let mut prompted = Box::pin(prompted);
    tokio::select! {
        biased;
        () = &mut prompted => {}
        // It may be the prompted login itself, which is about to return.
        () = wait_for_other_login(account, mark) => drop(tokio::time::timeout(LOGIN_POLL_INTERVAL, prompted).await),
    }
}

/// Waits for the prompted login. Pends forever if there is no prompt or the login fails.
async fn wait_for_prompted_login(
    context: &Weak<HostContext>,
    server: &Server,
    account: &dyn ServerAccount,
    question: Option<LoginQuestion>,
) {
    if let Some((visitor, asks)) = question {
        let login = account.log_in(visitor);
        // The marker is dropped before another login gets the turn.
        let login = async move {
            let _asks = asks;
            login.await
        };
        let outcome = server.login_state.turns.run_prompted(login).await;
        if let (Some(outcome), Some(context)) = (&outcome, context.upgrade()) {
            context.report_login(server, outcome.as_ref().err());
        }
        if matches!(outcome, Some(Ok(()))) {
            return;
        }
    }
    std::future::pending().await
}

/// Waits until the account has a login other than the first one.
async fn wait_for_other_login(account: &dyn ServerAccount, first: Option<u64>) {
    loop {
        tokio::time::sleep(LOGIN_POLL_INTERVAL).await;
        let now = account.login_fingerprint().await;
        if now.is_some() && now != first {
            return;
        }
    }
}

/// A browser that asks for consent before each page.
struct ConsentPromptingBrowser {
    visitor: Arc<dyn LoginBrowser>,
    person: LoginPrompter,
}

/// The asker, and the server that a prompt concerns.
#[derive(Clone)]
struct LoginPrompter {
    asker: Arc<dyn Asker>,
    context: Weak<HostContext>,
    server: ServerName,
}

struct ConsentPromptingVisit {
    visit: Box<dyn BrowserVisit>,
    person: LoginPrompter,
}

impl LoginBrowser for ConsentPromptingBrowser {
    fn prepare(&self) -> BoxedFuture<Result<Box<dyn BrowserVisit>, VisitError>> {
        let (preparing, person) = (self.visitor.prepare(), self.person.clone());
        Box::pin(async move {
            Ok(Box::new(ConsentPromptingVisit { visit: preparing.await?, person }) as Box<dyn BrowserVisit>)
        })
    }

    fn prefers_device_code(&self) -> bool {
        self.visitor.prefers_device_code()
    }
}

impl BrowserVisit for ConsentPromptingVisit {
    fn redirect_uri(&self) -> &str {
        self.visit.redirect_uri()
    }

    fn open_and_wait(self: Box<Self>, page: LoginPage) -> BoxedFuture<Result<LoginCallback, VisitError>> {
        let Self { visit, person } = *self;
        Box::pin(async move {
            match tokio::time::timeout(LOGIN_PROMPT_TIMEOUT, person.ask_consent(&page)).await {
                Ok(ConsentAnswer::Given) => visit.open_and_wait(page).await,
                Ok(ConsentAnswer::Refused) => Err(VisitError::Declined),
                Err(_) => Err(VisitError::TooLate(LOGIN_PROMPT_TIMEOUT.as_secs())),
            }
        })
    }

    fn show_code(&self, page: &DeviceCodePage) -> Result<(), VisitError> {
        self.visit.show_code(page)
    }
}

impl LoginPrompter {
    /// Asks for consent to open the page. Dropping the future withdraws the question.
    async fn ask_consent(&self, page: &LoginPage) -> ConsentAnswer {
        let Self { asker, context, server } = self;
        if let Some(context) = context.upgrade() {
            context.event_bus.publish(Event::Asked { server: server.clone(), kind: "login" });
        }
        let (url, issuer, scope) = (page.url.clone(), page.issuer.clone(), page.scope.clone());
        let ask = LoginAsk { server: server.clone(), url, issuer, scope };
        ask_and_wait(&**asker, |reply| Ask::Login(ask, reply)).await.unwrap_or(ConsentAnswer::Refused)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Stores questions and never answers.
    #[derive(Default)]
    struct UnansweringAsker(Mutex<Vec<Ask>>);

    impl Asker for UnansweringAsker {
        fn ask(&self, ask: Ask) {
            self.0.lock().unwrap().push(ask);
        }
    }

    struct UnopenedVisit;

    impl BrowserVisit for UnopenedVisit {
        fn redirect_uri(&self) -> &str {
            "http://127.0.0.1:1/"
        }

        fn open_and_wait(self: Box<Self>, _page: LoginPage) -> BoxedFuture<Result<LoginCallback, VisitError>> {
            panic!("the user has not agreed")
        }
    }

    #[tokio::test(start_paused = true)]
    async fn unanswered_login_prompt_is_withdrawn() {
        let asker = Arc::new(UnansweringAsker::default());
        let person =
            LoginPrompter { asker: asker.clone(), context: Weak::new(), server: ServerName::new("one").unwrap() };
        let visit = Box::new(ConsentPromptingVisit { visit: Box::new(UnopenedVisit), person });
        let page = LoginPage::new("https://login.example/authorize", "https://login.example", "state");
        assert_eq!(visit.open_and_wait(page).await.unwrap_err(), VisitError::TooLate(300));
        let asked = asker.0.lock().unwrap();
        assert!(matches!(&asked[..], [Ask::Login(_, reply)] if !reply.is_awaited()));
    }
}
