//! The interface that supplies credentials for requests.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use url::{Origin, Url};

/// A boxed future. Dropping it cancels the operation.
pub type AuthFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Supplies the credentials of requests, and renews them after a request is rejected.
pub trait Authorizer: Send + Sync {
    /// Returns the credentials for a request with this method to this URL. Called for every request, so it must not
    /// block.
    fn credentials(&self, method: &Method, url: &Url) -> RequestCredentials;

    /// Called with the status and headers of each response to a request that carried credentials.
    fn on_response(&self, status: StatusCode, headers: &HeaderMap) {
        let _ = (status, headers);
    }

    /// Called after a request is rejected with 401 or 403. Returns `Ok` if the request should be retried. The
    /// implementation must limit the retries itself for a server that rejects every token.
    fn on_rejection(&self, refusal: AuthRejection) -> AuthFuture<Result<(), NotAuthorized>>;
}

/// Credentials of a request, available now or later.
pub enum RequestCredentials {
    /// No credentials are known to be needed.
    None,
    /// The credentials are available.
    Ready(CredentialHeaders),
    /// The credentials have to be loaded or renewed first.
    Later(AuthFuture<Result<Option<CredentialHeaders>, NotAuthorized>>),
}

/// Credential headers of a request.
#[derive(Debug, Clone)]
pub struct CredentialHeaders {
    /// The headers, marked as sensitive.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Identifies the version of the credentials. Changes when they are renewed.
    pub serial: u64,
}

/// A response that rejected a request.
#[derive(Debug, Clone)]
pub struct AuthRejection {
    /// The status, 401 or 403.
    pub status: u16,
    /// The response headers.
    pub headers: HeaderMap,
    /// Serial of the credentials that the request carried, if any.
    pub serial: Option<u64>,
}

/// An authorization error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct NotAuthorized {
    /// The way to recover.
    pub remedy: AuthRecovery,
    /// The reason as a sentence fragment, escaped.
    pub reason: String,
}

/// The way to recover from an authorization error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuthRecovery {
    /// The user has to log in.
    Login,
    /// The user has to grant additional scopes. Holds the scopes, escaped.
    Scope(String),
    /// Retry later: the authorization server does not respond.
    Waiting,
    /// No automatic recovery. The reason describes the problem.
    Reading,
}

impl NotAuthorized {
    /// Reports whether the same request may succeed later without user action.
    pub fn is_transient(&self) -> bool {
        self.remedy == AuthRecovery::Waiting
    }

    /// Reports whether the user has to act on a login page.
    pub fn needs_user(&self) -> bool {
        matches!(self.remedy, AuthRecovery::Login | AuthRecovery::Scope(_))
    }
}

/// An authorizer, and the only origin that receives its credentials.
#[derive(Clone)]
pub(crate) struct OriginAuthorizer {
    pub authorizer: Arc<dyn Authorizer>,
    pub origin: Origin,
}

impl OriginAuthorizer {
    /// Returns the authorization of a request to this URL, or `None` if the URL has another origin.
    pub fn authorization_for(&self, url: &Url) -> Option<RequestAuthorization<'_>> {
        (url.origin() == self.origin).then(|| RequestAuthorization { authorizer: &*self.authorizer, serial: None })
    }
}

/// Authorization state of one request across its attempts.
pub(crate) struct RequestAuthorization<'a> {
    authorizer: &'a dyn Authorizer,
    /// Serial of the credentials that the last attempt carried.
    pub serial: Option<u64>,
}

impl RequestAuthorization<'_> {
    /// Returns the credential headers for one attempt.
    ///
    /// Cancel-safe: no part of the request has been sent.
    pub async fn headers(&mut self, method: &Method, url: &Url) -> Result<HeaderMap, NotAuthorized> {
        let carried = match self.authorizer.credentials(method, url) {
            RequestCredentials::None => None,
            RequestCredentials::Ready(carried) => Some(carried),
            RequestCredentials::Later(pending) => pending.await?,
        };
        self.serial = carried.as_ref().map(|carried| carried.serial);
        Ok(carried.into_iter().flat_map(|carried| carried.headers).collect())
    }

    /// Reports the response headers to the authorizer if the request carried credentials.
    pub fn on_response(&self, status: StatusCode, headers: &HeaderMap) {
        if self.serial.is_some() {
            self.authorizer.on_response(status, headers);
        }
    }

    pub async fn on_rejection(&self, refusal: AuthRejection) -> Result<(), NotAuthorized> {
        self.authorizer.on_rejection(refusal).await
    }
}
