//! Services an embedder provides to servers: one narrow trait for each kind of request.
//!
//! Only the services set here are declared to a server, and a server may only use declared ones. Every request names
//! the server it comes from.

use std::pin::Pin;
use std::sync::Arc;

use wharf_wire::{Elicitation, ElicitationResponse, LogLevel, LogMessage, RawJson, Root, SamplingRequest, UrlRequest};

use crate::options::CallTag;

/// The sender of a request or a log message.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct RequestSource<'a> {
    /// Name of the server.
    pub server: &'a str,
    /// The call that the request belongs to, as tagged by [`RequestOptions::tag`](crate::RequestOptions). Known if the
    /// request arrived on the stream of a call over HTTP, or as an input request of a call (2026-07-28). Over stdio
    /// the handshake revisions do not tell.
    pub call: Option<CallTag>,
    /// Id of the server's request, or key of its input request (2026-07-28), as JSON. Log messages have none.
    pub request: Option<&'a str>,
}

impl<'a> RequestSource<'a> {
    /// Creates the source of a request that belongs to no known call.
    pub fn new(server: &'a str) -> Self {
        Self { server, call: None, request: None }
    }
}

/// A boxed future. Dropped when its result is no longer needed.
pub type BoxedFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Presents a server's questions to the user.
pub trait Elicitor: Send + Sync {
    /// Reports whether the user can be shown a page as well as a form.
    fn supports_pages(&self) -> bool {
        false
    }

    /// Asks the user. The content of an accepted form fits the form; defaults are filled in for omitted fields.
    /// Accepting a page is consent to open it, nothing more.
    fn elicit(&self, source: RequestSource<'_>, question: Elicitation) -> BoxedFuture<ElicitationResponse>;

    /// Resolves when the user reports that a page is done, before or instead of the server's notification. Never
    /// resolves by default.
    fn wait_for_page(&self, source: RequestSource<'_>, page: &UrlRequest) -> BoxedFuture<()> {
        let _ = (source, page);
        Box::pin(std::future::pending())
    }

    /// Called when the server reports that a page is done (2025-11-25), also after the end of its call. Called on the
    /// connection's own task: it must return at once. Does nothing by default.
    fn page_done(&self, source: RequestSource<'_>, elicitation_id: &str) {
        let _ = (source, elicitation_id);
    }
}

/// Lets a server use a model, after the user has reviewed the prompt and the result.
pub trait Sampler: Send + Sync {
    /// Reports whether the server may offer tools to the model.
    fn supports_tools(&self) -> bool {
        false
    }

    /// Generates a `CreateMessageResult` (`role`, `content`, `model`, optionally `stopReason`).
    ///
    /// # Errors
    ///
    /// [`SamplingError`] if the user declines or the model fails.
    fn sample(
        &self,
        source: RequestSource<'_>,
        request: SamplingRequest,
    ) -> BoxedFuture<Result<RawJson, SamplingError>>;
}

/// The reason sampling produced no result.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SamplingError {
    /// The user declined.
    Declined,
    /// Sampling failed; the message is sent to the server.
    Failed(String),
}

/// Provides the roots of a server.
pub trait RootsSource: Send + Sync {
    /// Resolves to the directories as `file://` URIs. Called on the connection's own task: it must return its future at
    /// once.
    fn roots(&self, source: RequestSource<'_>) -> BoxedFuture<Vec<Root>>;

    /// Resolves to the directories, or to `None` if they are not available now: the server then learns that roots are
    /// not supported, which differs from an empty list.
    fn available_roots(&self, source: RequestSource<'_>) -> BoxedFuture<Option<Vec<Root>>> {
        let roots = self.roots(source);
        Box::pin(async move { Some(roots.await) })
    }
}

/// Receives log messages from a server. Called on the connection's own task: it must return at once.
pub trait LogSink: Send + Sync {
    /// Handles one message: untrusted, with the known secrets of its server removed.
    fn log(&self, source: RequestSource<'_>, message: LogMessage);
}

/// The services a host provides to its servers. None by default.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct ClientServices {
    /// Asks the user.
    pub elicitation: Option<Arc<dyn Elicitor>>,
    /// Uses a model.
    pub sampling: Option<Arc<dyn Sampler>>,
    /// Provides the roots.
    pub roots: Option<Arc<dyn RootsSource>>,
    /// Receives log messages.
    pub logs: Option<Arc<dyn LogSink>>,
    /// Minimum log level, requested from a server that supports logging.
    pub log_level: Option<LogLevel>,
    /// Allows a server to turn a tool call into a task.
    pub tasks: bool,
    /// Declares support for skills. Skills can be listed and loaded without it.
    pub skills: bool,
}

impl ClientServices {
    /// Sets the elicitor.
    #[must_use]
    pub fn elicitation(mut self, elicitor: impl Elicitor + 'static) -> Self {
        self.elicitation = Some(Arc::new(elicitor));
        self
    }

    /// Sets the sampler.
    #[must_use]
    pub fn sampling(mut self, sampler: impl Sampler + 'static) -> Self {
        self.sampling = Some(Arc::new(sampler));
        self
    }

    /// Sets the source of the roots.
    #[must_use]
    pub fn roots(mut self, source: impl RootsSource + 'static) -> Self {
        self.roots = Some(Arc::new(source));
        self
    }

    /// Sets the log sink and the minimum level.
    #[must_use]
    pub fn logs(mut self, level: LogLevel, sink: impl LogSink + 'static) -> Self {
        self.log_level = Some(level);
        self.logs = Some(Arc::new(sink));
        self
    }

    /// Allows a server to turn a tool call into a task.
    #[must_use]
    pub fn tasks(mut self) -> Self {
        self.tasks = true;
        self
    }

    /// Declares support for skills.
    #[must_use]
    pub fn skills(mut self) -> Self {
        self.skills = true;
        self
    }
}
