//! Taking a person to the page where they log in, and bringing back what the page sends them away with.

mod argument;
mod door;
mod loopback;
mod paste;

use wharf_net::Pending;

pub use argument::browser_argument;
pub use loopback::{CallbackPath, Loopback};
pub use paste::{Lines, Pasted};

/// Takes people to pages.
pub trait Visitor: Send + Sync {
    /// Makes ready to be come back to. Dropping the visit gives it up.
    fn prepare(&self) -> Pending<Result<Box<dyn Visit>, VisitError>>;

    /// Whether the person would rather type a code on another device, where the authorization server has that.
    fn wants_device(&self) -> bool {
        false
    }
}

/// One visit to a login page, made ready.
pub trait Visit: Send {
    /// Where the page is to send the person.
    fn redirect_uri(&self) -> &str;

    /// Shows the page, and waits for the person to come back with the right `state`. Whoever comes back with another
    /// one is turned away and ends nothing.
    fn go(self: Box<Self>, page: Page) -> Pending<Result<Returned, VisitError>>;

    /// Shows a page and a code to type there, for a login on another device. Returns at once.
    fn show_code(&self, page: &DevicePage) -> Result<(), VisitError> {
        let _ = page;
        Err(VisitError::NotPossible("codes cannot be shown here".to_owned()))
    }
}

/// A page where a person logs in.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page {
    /// Its address: checked to be https, or http on this machine.
    pub url: String,
    /// What whoever comes back must have.
    pub state: String,
    /// Which server wants the login, as it is called here.
    pub server: String,
    /// The authorization server.
    pub issuer: String,
    /// What is asked for.
    pub scope: Option<String>,
}

impl Page {
    /// A page at this address of an authorization server, for whoever comes back with this `state`. Which server wants
    /// the login and what is asked for may be said besides.
    pub fn new(url: impl Into<String>, issuer: impl Into<String>, state: impl Into<String>) -> Self {
        Self { url: url.into(), state: state.into(), server: String::new(), issuer: issuer.into(), scope: None }
    }
}

/// A page to visit on any device, and the code to type there (RFC 8628).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DevicePage {
    /// Its address; untrusted, checked as a [`Page`]'s.
    pub url: String,
    /// The address that has the code in it already.
    pub complete_url: Option<String>,
    /// What to type; escaped.
    pub code: String,
    /// Which server wants the login.
    pub server: String,
    /// How long the code can be used, in seconds.
    pub lasts: u64,
}

/// What a person came back with.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Returned {
    /// What is exchanged for tokens.
    pub code: Option<String>,
    /// What was sent along.
    pub state: Option<String>,
    /// Who says so (RFC 9207).
    pub iss: Option<String>,
    /// What went wrong there; untrusted.
    pub error: Option<String>,
    /// What it says besides; untrusted.
    pub error_description: Option<String>,
}

/// Why nobody came back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VisitError {
    /// The person does not want to.
    #[error("the login was declined")]
    Declined,
    /// Nobody came back in time.
    #[error("nobody came back from the login page within {0} s")]
    TooLate(u64),
    /// The page cannot be shown, or nobody could come back.
    #[error("the login page cannot be visited: {0}")]
    NotPossible(String),
}

/// Shows pages to a person, who may be asked first.
pub trait Open: Send + Sync {
    /// Shows a page. Returns as soon as that has begun.
    fn open(&self, page: &Page) -> Pending<Result<(), VisitError>>;

    /// Shows a page and the code to type there. Returns at once.
    fn show_code(&self, page: &DevicePage) -> Result<(), VisitError> {
        let _ = page;
        Err(VisitError::NotPossible("codes cannot be shown here".to_owned()))
    }
}

/// What was sent along may be worth as much as a password: only what kind of answer it is gets shown.
impl std::fmt::Debug for Returned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let given = |value: &Option<String>| value.as_ref().map(|_| "***");
        f.debug_struct("Returned").field("code", &given(&self.code)).field("error", &given(&self.error)).finish()
    }
}

impl Returned {
    /// Reads what an authorization server adds to the address it sends people back to (RFC 6749, 4.1.2). Nothing where
    /// it says something twice, or neither that it went well nor that it did not.
    pub(crate) fn read(query: &str) -> Option<Self> {
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

    /// Whether it is the answer to what was asked. Takes as long for any state of this length.
    pub(crate) fn answers(&self, state: &str) -> bool {
        let found = self.state.as_deref().unwrap_or_default();
        !state.is_empty()
            && aws_lc_rs::constant_time::verify_slices_are_equal(found.as_bytes(), state.as_bytes()).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_once_or_not_at_all() {
        for (query, expected) in [
            ("code=a%20b&state=s&iss=https%3A%2F%2Fi&other=1", Some(("a b", ""))),
            ("error=access_denied&state=s&error_description=no+way", Some(("", "access_denied"))),
            ("code=a&error=b&state=s", None),
            ("state=s", None),
            ("code=a&code=b&state=s", None),
            ("code=a&state=s&state=t", None),
            ("", None),
        ] {
            let read = Returned::read(query);
            let text = |value: &Option<String>| value.clone().unwrap_or_default();
            let found = read.as_ref().map(|read| (text(&read.code), text(&read.error)));
            assert_eq!(found, expected.map(|(code, error)| (code.to_owned(), error.to_owned())), "{query}");
            assert!(read.is_none_or(|read| read.answers("s") && !read.answers("t") && !read.answers("")), "{query}");
        }
        assert!(!Returned::read("code=a").unwrap().answers(""));
        assert!(!format!("{:?}", Returned::read("code=hush&state=hush")).contains("hush"));
    }
}
