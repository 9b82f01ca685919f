//! Options of a call through the host.

use std::time::Duration;

use wharf_tools::ToolCaller;

/// Options of one call through the host: the caller, for the permission gate, and the options of the request.
///
/// [`RequestOptions`](wharf_client::RequestOptions) are separate because a connection knows no callers and no gate.
#[derive(Clone)]
#[non_exhaustive]
pub struct CallOptions {
    /// The caller. An agent by default: the person is prompted if the rules require it.
    pub caller: ToolCaller,
    /// Options of the request on the connection. The timeout limits the wait for the server, and then the request
    /// itself. If unset, the tool's timeout applies, or the server's.
    pub request: wharf_client::RequestOptions,
}

impl Default for CallOptions {
    fn default() -> Self {
        Self { caller: ToolCaller::agent(), request: wharf_client::RequestOptions::default() }
    }
}

impl CallOptions {
    /// Sets the caller.
    #[must_use]
    pub fn caller(mut self, caller: ToolCaller) -> Self {
        self.caller = caller;
        self
    }

    /// Sets the timeout.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.request.timeout = Some(timeout);
        self
    }

    /// Returns the connection's options with this timeout.
    pub(super) fn with_timeout(&self, timeout: Option<Duration>) -> wharf_client::RequestOptions {
        let mut options = self.request.clone();
        options.timeout = timeout;
        options
    }
}
