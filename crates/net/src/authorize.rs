//! Who we are to whoever is dialled, supplied by somebody who knows.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use url::{Origin, Url};

/// An answer that takes its time. Dropped when nobody wants it any more.
pub type Pending<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Says what requests carry so that a server knows who asks, and does what it takes when that is not enough.
pub trait Authorizer: Send + Sync {
    /// What a request of this method to this address carries. Asked for every request: returns at once.
    fn credentials(&self, method: &Method, url: &Url) -> Credentials;

    /// Hears the head of an answer to a request that carried something.
    fn answered(&self, status: StatusCode, headers: &HeaderMap) {
        let _ = (status, headers);
    }

    /// Does what it takes after a request was turned away. It is made again after each time this succeeds, so this stops
    /// by itself where a server is never content.
    fn refused(&self, refusal: Refusal) -> Pending<Result<(), NotAuthorized>>;
}

/// What goes with a request, now or in a moment.
pub enum Credentials {
    /// Nothing is known to be needed.
    None,
    /// This.
    Ready(Carried),
    /// Something has to be read or renewed first.
    Later(Pending<Result<Option<Carried>, NotAuthorized>>),
}

/// What goes with a request.
#[derive(Debug, Clone)]
pub struct Carried {
    /// The headers, marked as sensitive.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Tells what was carried from what is carried after it was renewed.
    pub serial: u64,
}

/// What a server said to a request it turned away.
#[derive(Debug, Clone)]
pub struct Refusal {
    /// 401 or 403.
    pub status: u16,
    /// The headers of the answer.
    pub headers: HeaderMap,
    /// What the request carried, if anything.
    pub serial: Option<u64>,
}

/// Why a request cannot be made in a way that the server would take.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct NotAuthorized {
    /// What would help.
    pub remedy: Remedy,
    /// Why, as a fragment; escaped.
    pub reason: String,
}

/// What would help somebody who is not authorized.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remedy {
    /// A person logs in.
    Login,
    /// A person agrees to more; what, escaped.
    Scope(String),
    /// Waiting: whoever gives tokens does not answer.
    Waiting,
    /// Nothing that can be done from here but reading the reason.
    Reading,
}

impl NotAuthorized {
    /// Whether the same request may fare better later, by itself.
    pub fn may_pass(&self) -> bool {
        self.remedy == Remedy::Waiting
    }

    /// Whether a person has to do something at a login page.
    pub fn needs_person(&self) -> bool {
        matches!(self.remedy, Remedy::Login | Remedy::Scope(_))
    }
}

/// An authorizer, and the only origin it may say anything to.
#[derive(Clone)]
pub(crate) struct Authorized {
    pub authorizer: Arc<dyn Authorizer>,
    pub origin: Origin,
}

impl Authorized {
    /// Who speaks to this address, where it is the authorizer's to say.
    pub fn bearer_for(&self, url: &Url) -> Option<Bearer<'_>> {
        (url.origin() == self.origin).then(|| Bearer { authorizer: &*self.authorizer, serial: None })
    }
}

/// One request's authorization, from try to try.
pub(crate) struct Bearer<'a> {
    authorizer: &'a dyn Authorizer,
    /// What the last try carried.
    pub serial: Option<u64>,
}

impl Bearer<'_> {
    /// The headers for one try.
    ///
    /// Dropped while it waits, nothing has left.
    pub async fn carried(&mut self, method: &Method, url: &Url) -> Result<HeaderMap, NotAuthorized> {
        let carried = match self.authorizer.credentials(method, url) {
            Credentials::None => None,
            Credentials::Ready(carried) => Some(carried),
            Credentials::Later(pending) => pending.await?,
        };
        self.serial = carried.as_ref().map(|carried| carried.serial);
        Ok(carried.into_iter().flat_map(|carried| carried.headers).collect())
    }

    /// Passes on the headers of an answer, where the request carried something.
    pub fn answered(&self, status: StatusCode, headers: &HeaderMap) {
        if self.serial.is_some() {
            self.authorizer.answered(status, headers);
        }
    }

    pub async fn refused(&self, refusal: Refusal) -> Result<(), NotAuthorized> {
        self.authorizer.refused(refusal).await
    }
}
