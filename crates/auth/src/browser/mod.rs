//! Opening the login page and receiving the callback.

mod browser_argument;
mod callback_check;
mod loopback;
mod pasted_url;

use wharf_net::AuthFuture;

pub use browser_argument::browser_argument;
pub use loopback::{CallbackPath, LoopbackBrowser};
pub use pasted_url::{LineSource, PastedUrlBrowser};

/// Opens login pages for the user.
pub trait LoginBrowser: Send + Sync {
    /// Prepares the callback address. Dropping the visit cancels it.
    fn prepare(&self) -> AuthFuture<Result<Box<dyn BrowserVisit>, VisitError>>;

    /// Reports whether the user prefers the device flow, if the authorization server supports it.
    fn prefers_device_code(&self) -> bool {
        false
    }
}

/// A prepared visit to a login page.
pub trait BrowserVisit: Send {
    /// Returns the redirect URI for the callback.
    fn redirect_uri(&self) -> &str;

    /// Opens the page, and waits for the callback with the right `state`. Callbacks with another `state` are rejected
    /// and do not end the visit.
    fn open_and_wait(self: Box<Self>, page: LoginPage) -> AuthFuture<Result<LoginCallback, VisitError>>;

    /// Shows a page and a user code, for the device flow. Does not block.
    fn show_code(&self, page: &DeviceCodePage) -> Result<(), VisitError> {
        let _ = page;
        Err(VisitError::NotPossible("device codes cannot be displayed here".to_owned()))
    }
}

/// A login page.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoginPage {
    /// URL of the page, checked: https, or http on the local machine.
    pub url: String,
    /// The `state` that the callback must have.
    pub state: String,
    /// Configured name of the server that requires the login.
    pub server: String,
    /// Issuer identifier of the authorization server.
    pub issuer: String,
    /// Requested scope.
    pub scope: Option<String>,
}

impl LoginPage {
    /// Creates a page. `server` and `scope` can be set afterwards.
    pub fn new(url: impl Into<String>, issuer: impl Into<String>, state: impl Into<String>) -> Self {
        Self { url: url.into(), state: state.into(), server: String::new(), issuer: issuer.into(), scope: None }
    }
}

/// A page to visit on any device, and the code to enter there (RFC 8628).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceCodePage {
    /// URL of the page. Untrusted, checked like that of a [`LoginPage`].
    pub url: String,
    /// URL that already contains the code.
    pub complete_url: Option<String>,
    /// The code to enter, escaped.
    pub code: String,
    /// Configured name of the server that requires the login.
    pub server: String,
    /// Lifetime of the code in seconds.
    pub lasts: u64,
}

/// Parameters of a login callback.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct LoginCallback {
    /// The authorization code.
    pub code: Option<String>,
    /// The `state`.
    pub state: Option<String>,
    /// The issuer (RFC 9207).
    pub iss: Option<String>,
    /// The error code, untrusted.
    pub error: Option<String>,
    /// The error description, untrusted.
    pub error_description: Option<String>,
}

/// An error of visiting a login page.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VisitError {
    /// The user declined.
    #[error("the login was declined")]
    Declined,
    /// No callback arrived in time.
    #[error("the login was not completed within {0} s")]
    TooLate(u64),
    /// The page cannot be opened, or a callback cannot be received.
    #[error("the login page cannot be opened: {0}")]
    NotPossible(String),
}

/// Opens pages for the user, possibly after a confirmation.
pub trait PageOpener: Send + Sync {
    /// Opens a page. Returns as soon as opening has started.
    fn open(&self, page: &LoginPage) -> AuthFuture<Result<(), VisitError>>;

    /// Shows a page and a user code. Does not block.
    fn show_code(&self, page: &DeviceCodePage) -> Result<(), VisitError> {
        let _ = page;
        Err(VisitError::NotPossible("device codes cannot be displayed here".to_owned()))
    }
}

/// Shows only which members are present: their values may be secrets.
impl std::fmt::Debug for LoginCallback {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let given = |value: &Option<String>| value.as_ref().map(|_| "***");
        f.debug_struct("Returned").field("code", &given(&self.code)).field("error", &given(&self.error)).finish()
    }
}

impl LoginCallback {
    /// Parses the query of a callback (RFC 6749, 4.1.2). Returns `None` if a parameter is repeated, or unless there is
    /// exactly one of `code` and `error`.
    pub(crate) fn parse_query(query: &str) -> Option<Self> {
        let mut read = Self::default();
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            let place = match &*name {
                "code" => &mut read.code,
                "state" => &mut read.state,
                "iss" => &mut read.iss,
                "error" => &mut read.error,
                "error_description" => &mut read.error_description,
                _ => continue,
            };
            if place.replace(value.into_owned()).is_some() {
                return None;
            }
        }
        (read.code.is_some() != read.error.is_some()).then_some(read)
    }

    /// Reports whether the `state` matches. Compares in constant time.
    pub(crate) fn matches_state(&self, state: &str) -> bool {
        let found = self.state.as_deref().unwrap_or_default();
        !state.is_empty()
            && aws_lc_rs::constant_time::verify_slices_are_equal(found.as_bytes(), state.as_bytes()).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callback_query_needs_exactly_one_code_or_error() {
        for (query, expected) in [
            ("code=a%20b&state=s&iss=https%3A%2F%2Fi&other=1", Some(("a b", ""))),
            ("error=access_denied&state=s&error_description=no+way", Some(("", "access_denied"))),
            ("code=a&error=b&state=s", None),
            ("state=s", None),
            ("code=a&code=b&state=s", None),
            ("code=a&state=s&state=t", None),
            ("", None),
        ] {
            let read = LoginCallback::parse_query(query);
            let text = |value: &Option<String>| value.clone().unwrap_or_default();
            let found = read.as_ref().map(|read| (text(&read.code), text(&read.error)));
            assert_eq!(found, expected.map(|(code, error)| (code.to_owned(), error.to_owned())), "{query}");
            assert!(
                read.is_none_or(|read| read.matches_state("s") && !read.matches_state("t") && !read.matches_state("")),
                "{query}"
            );
        }
        assert!(!LoginCallback::parse_query("code=a").unwrap().matches_state(""));
        assert!(!format!("{:?}", LoginCallback::parse_query("code=hush&state=hush")).contains("hush"));
    }
}
