//! A source of headers that are made when a remote server is used.

use std::fmt;
use std::sync::Arc;

use crate::Secret;

/// A function that makes headers for the requests to a remote server, such as a program that prints a short-lived token.
///
/// Two sources are equal if they have the same identity.
#[derive(Clone)]
pub struct HeadersSource {
    identity: Arc<str>,
    load: Arc<LoadFunction>,
}

type LoadFunction = dyn Fn() -> Result<Vec<(String, Secret)>, String> + Send + Sync;

impl HeadersSource {
    /// Creates a source. The identity distinguishes sources, for example by the command as written. The function
    /// returns the headers, or the reason for which there are none, without their values. It may block.
    pub fn new(
        identity: impl Into<Arc<str>>,
        load: impl Fn() -> Result<Vec<(String, Secret)>, String> + Send + Sync + 'static,
    ) -> Self {
        Self { identity: identity.into(), load: Arc::new(load) }
    }

    /// Makes the headers. Blocks.
    ///
    /// # Errors
    /// Returns the reason, escaped, if there are no headers.
    pub fn load(&self) -> Result<Vec<(String, Secret)>, String> {
        (self.load)()
    }
}

impl PartialEq for HeadersSource {
    fn eq(&self, other: &Self) -> bool {
        self.identity == other.identity
    }
}

impl Eq for HeadersSource {}

impl fmt::Debug for HeadersSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HeadersSource")
    }
}
