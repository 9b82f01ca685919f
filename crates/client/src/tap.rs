//! A look at every message that passes.

mod masked;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::SystemTime;

use wharf_spec::Redactor;

pub(crate) use masked::{message as masked, value as masked_value};

/// Which way a message goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From us to the server.
    Sent,
    /// From the server to us.
    Received,
}

/// Sees every message with its server, direction and time: `--debug`, traces and recordings are taps.
///
/// Runs where the message passes: it must return at once. A tap that shows messages takes them masked, and escapes
/// what it shows.
pub trait Tap: Send + Sync {
    /// One message.
    fn message(&self, passing: &Passing<'_>);
}

/// A message that passes.
pub struct Passing<'a> {
    /// What the server is called here.
    pub server: &'a str,
    /// Which way it goes.
    pub direction: Direction,
    /// When.
    pub at: SystemTime,
    /// The message as it is, without its line end; it may hold secrets.
    pub bytes: &'a [u8],
    redactor: &'a Redactor,
}

impl Passing<'_> {
    /// The message without the secrets of its server, and without what stands under names such as `password`.
    ///
    /// What was JSON still is.
    pub fn masked(&self) -> Cow<'_, [u8]> {
        masked(self.bytes, self.redactor)
    }
}

/// Whom a connection is with, what of it is nobody's business, and who looks on.
#[derive(Clone, Default)]
pub(crate) struct Onlooker {
    pub server: String,
    pub redactor: Arc<Redactor>,
    pub tap: Option<Arc<dyn Tap>>,
}

impl Onlooker {
    /// Whether anybody looks on.
    pub fn is_there(&self) -> bool {
        self.tap.is_some()
    }

    pub fn see(&self, direction: Direction, bytes: &[u8]) {
        let Self { server, redactor, tap } = self;
        if let Some(tap) = tap {
            tap.message(&Passing { server, direction, at: SystemTime::now(), bytes, redactor });
        }
    }
}
