//! What differs by revision above the transport: what a request carries, what a server may send, and which era it is.

mod handshake;
mod negotiate;
mod stateless;

use std::sync::{Arc, OnceLock};

use wharf_wire::{Bounds, Era, Progress, Raw, Revision, RpcError, UnsupportedRevision, View, code};

use crate::engine::{Dialect, Nonsense, Reply, ResultKind};
use crate::options::Observer;

pub(crate) use handshake::{initialize_params, judge_initialize};
pub(crate) use negotiate::{Verdict, judge_probe};
pub(crate) use stateless::{discover_params, meta_members};

pub(crate) const DISCOVER: &str = "server/discover";
pub(crate) const INITIALIZE: &str = "initialize";
pub(crate) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// What we call ourselves.
const CLIENT_INFO: &str = concat!(r#"{"name":"wharf","version":""#, env!("CARGO_PKG_VERSION"), r#""}"#);
/// What we can do for a server: nothing yet that it would have to ask for.
const CLIENT_CAPABILITIES: &str = "{}";

/// The manners of one connection: undecided until a revision has been agreed on.
pub(crate) struct Manners {
    revision: OnceLock<Revision>,
    observer: Option<Arc<dyn Observer>>,
    bounds: Bounds,
}

impl Manners {
    pub fn new(observer: Option<Arc<dyn Observer>>, bounds: Bounds) -> Self {
        Self { revision: OnceLock::new(), observer, bounds }
    }

    pub fn settle(&self, revision: Revision) {
        let _ = self.revision.set(revision);
    }

    fn era(&self) -> Option<Era> {
        self.revision.get().map(|revision| revision.era())
    }
}

impl Dialect for Manners {
    fn request(&self, method: &str, _params: Option<&Raw>) -> Reply {
        match (self.era(), method) {
            // Only a client says these: whatever sends them back is an echo, such as `cat`.
            (_, DISCOVER | INITIALIZE) => Reply::Nonsense(Nonsense("it sends back what it is sent")),
            (Some(Era::Stateless), _) => Reply::Unwanted,
            // Also before and during the handshake (2025-11-25, basic/lifecycle).
            (_, "ping") => Reply::Result(Raw::empty_object()),
            _ => Reply::Error(code::METHOD_NOT_FOUND, "not offered by this client"),
        }
    }

    fn notification(&self, method: &str, params: Option<Raw>) -> Option<Progress> {
        if method == "notifications/progress" {
            return params.and_then(|params| Progress::view(params, &self.bounds).ok());
        }
        if let Some(observer) = &self.observer {
            observer.notification(method, params.as_ref());
        }
        None
    }

    fn cancellation(&self, id: u64, reason: &str) -> String {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"{reason}"}}}}"#
        )
    }

    fn result_kind(&self, result_type: Option<&str>) -> Option<ResultKind> {
        // Before the stateless era the word has no meaning, and until it is settled any answer is judged by its shape.
        if self.era() != Some(Era::Stateless) {
            return Some(ResultKind::Complete);
        }
        match result_type {
            None | Some("complete") => Some(ResultKind::Complete),
            Some("input_required") => Some(ResultKind::InputRequired),
            Some(_) => None,
        }
    }

    fn accepts_batches(&self) -> bool {
        self.revision.get().is_some_and(|revision| revision.allows_batches())
    }
}

/// What a server that knows no common revision says it speaks.
pub(crate) fn supported_by(error: &RpcError) -> Vec<String> {
    let data = error.data.clone().and_then(|data| UnsupportedRevision::view(data, &Bounds::default()).ok());
    data.unwrap_or_default().supported
}
