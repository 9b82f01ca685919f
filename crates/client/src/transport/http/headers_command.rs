//! Headers that a command of the entry makes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use url::Url;
use wharf_net::{
    AuthFuture, AuthRecovery, AuthRejection, Authorizer, CredentialHeaders, HeaderMap, Method, NotAuthorized,
    RequestCredentials, StatusCode,
};
use wharf_spec::{HeadersSource, LaunchCheck, Redactor, UntrustedText};

use super::post_request::ConfiguredHeaders;

/// Supplies the headers of a [`HeadersSource`]. They are made before the first request, kept, and made again once after
/// a 401.
pub(super) struct HeadersCommand(Arc<CommandHeaders>);

struct CommandHeaders {
    source: HeadersSource,
    check: Option<LaunchCheck>,
    redactor: Arc<Redactor>,
    state: Mutex<HeadersState>,
    /// Held while the source runs, so that concurrent requests run it once.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct HeadersState {
    current: Option<CredentialHeaders>,
    serial: u64,
    /// Serial of headers that were made after a rejection, until a response accepts them.
    unproven: Option<u64>,
}

impl HeadersCommand {
    /// The check runs before each run of the source.
    pub fn new(source: HeadersSource, check: Option<LaunchCheck>, redactor: Arc<Redactor>) -> Arc<Self> {
        let (state, turn) = (Mutex::default(), tokio::sync::Mutex::default());
        Arc::new(Self(Arc::new(CommandHeaders { source, check, redactor, state, turn })))
    }
}

impl Authorizer for HeadersCommand {
    fn credentials(&self, _: &Method, _: &Url) -> RequestCredentials {
        match &self.0.state().current {
            Some(current) => RequestCredentials::Ready(current.clone()),
            None => {
                let headers = Arc::clone(&self.0);
                RequestCredentials::Later(Box::pin(async move { headers.current().await.map(Some) }))
            }
        }
    }

    fn on_response(&self, status: StatusCode, _: &HeaderMap) {
        if status != StatusCode::UNAUTHORIZED {
            self.0.state().unproven = None;
        }
    }

    fn on_rejection(&self, refusal: AuthRejection) -> AuthFuture<Result<(), NotAuthorized>> {
        let headers = Arc::clone(&self.0);
        Box::pin(async move { headers.renew(&refusal).await })
    }
}

impl CommandHeaders {
    fn state(&self) -> MutexGuard<'_, HeadersState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the headers, made now if there are none.
    async fn current(self: Arc<Self>) -> Result<CredentialHeaders, NotAuthorized> {
        let _turn = self.turn.lock().await;
        if let Some(current) = &self.state().current {
            return Ok(current.clone());
        }
        let (source, check) = (self.source.clone(), self.check.clone());
        let made = wharf_threads::run_blocking(move || {
            check.map_or(Ok(()), |check| check.check(None)).map_err(|refused| refused.to_string())?;
            source.load()
        });
        let made = made.await.unwrap_or_else(|error| Err(error.to_string())).map_err(|reason| failed(&reason))?;
        made.iter().for_each(|(_, value)| self.redactor.learn_header(value.reveal()));
        let headers = ConfiguredHeaders::parse(&made).map_err(|reason| failed(&reason))?;
        let mut state = self.state();
        state.serial += 1;
        let current = CredentialHeaders { headers, serial: state.serial };
        state.current = Some(current.clone());
        Ok(current)
    }

    /// Makes the headers again after a 401, unless they were just made for the same reason.
    async fn renew(self: Arc<Self>, refusal: &AuthRejection) -> Result<(), NotAuthorized> {
        if refusal.status != 401 {
            return Err(rejected());
        }
        {
            let mut state = self.state();
            if refusal.serial.is_some() && state.unproven == refusal.serial {
                // The next request runs the command again: this time it may have returned an expired token.
                (state.current, state.unproven) = (None, None);
                return Err(rejected());
            }
            if state.current.as_ref().is_none_or(|current| Some(current.serial) != refusal.serial) {
                // Another request has renewed them, or is about to.
                return Ok(());
            }
            state.current = None;
        }
        let renewed = Arc::clone(&self).current().await?;
        self.state().unproven = Some(renewed.serial);
        Ok(())
    }
}

fn failed(reason: &str) -> NotAuthorized {
    let reason = format!("`headersCommand`: {}", UntrustedText::new(reason).truncate(400));
    NotAuthorized { remedy: AuthRecovery::Reading, reason }
}

fn rejected() -> NotAuthorized {
    let reason = "the server rejects the headers of `headersCommand`".to_owned();
    NotAuthorized { remedy: AuthRecovery::Reading, reason }
}
