//! What an embedder does for servers that ask: one narrow trait for each kind of question.
//!
//! Only what is here is declared to a server, and only what is declared is ever asked: a host that gives nothing is
//! asked nothing. Every question names the server that asks.

use std::pin::Pin;
use std::sync::Arc;

use wharf_wire::{ElicitAnswer, Elicitation, LogLevel, LogMessage, Raw, Root, SamplingRequest, UrlRequest};

/// An answer that takes its time. Dropped when nobody wants it any more.
pub type Pending<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Puts a server's questions to a person.
pub trait Elicitor: Send + Sync {
    /// Whether a person can be shown a page as well as a form.
    fn shows_pages(&self) -> bool {
        false
    }

    /// Asks. A form that is accepted has content that fits it; where it leaves a field out, the field's default is
    /// filled in. Accepting a page is consent to open it, nothing more.
    fn elicit(&self, server: &str, question: Elicitation) -> Pending<ElicitAnswer>;

    /// Resolves when the person says that a page is done with, before or instead of the server's own word. Without
    /// such a way, never.
    fn page_done(&self, server: &str, page: &UrlRequest) -> Pending<()> {
        let _ = (server, page);
        Box::pin(std::future::pending())
    }
}

/// Lets a server use a model, after a person has looked at what goes in and what comes out.
pub trait Sampler: Send + Sync {
    /// Whether the model may be offered the server's tools.
    fn uses_tools(&self) -> bool {
        false
    }

    /// Generates: a `CreateMessageResult` (`role`, `content`, `model`, perhaps `stopReason`), or why not.
    fn sample(&self, server: &str, request: SamplingRequest) -> Pending<Result<Raw, NotSampled>>;
}

/// Why a model was not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotSampled {
    /// The person said no.
    Declined,
    /// It did not work; said to the server.
    Failed(String),
}

/// Says which directories a server may work in.
pub trait RootsSource: Send + Sync {
    /// The directories, as `file://` URIs. Must return at once.
    fn roots(&self, server: &str) -> Vec<Root>;
}

/// Takes what a server logs. Runs on the connection's own task: it must return at once.
pub trait LogSink: Send + Sync {
    /// One message: untrusted, and without the secrets of its server that are known here.
    fn log(&self, server: &str, message: LogMessage);
}

/// What a host does for its servers. Nothing, by default.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Services {
    /// Asks a person.
    pub elicitation: Option<Arc<dyn Elicitor>>,
    /// Uses a model.
    pub sampling: Option<Arc<dyn Sampler>>,
    /// Names directories.
    pub roots: Option<Arc<dyn RootsSource>>,
    /// Takes logs.
    pub logs: Option<Arc<dyn LogSink>>,
    /// From which level on; asked of the server when it has something to log to.
    pub log_level: Option<LogLevel>,
    /// Lets a server make a task of a tool call.
    pub tasks: bool,
    /// Says that skills are understood; they can be listed and loaded either way.
    pub skills: bool,
}

impl Services {
    /// Asks a person by this.
    #[must_use]
    pub fn elicitation(mut self, elicitor: impl Elicitor + 'static) -> Self {
        self.elicitation = Some(Arc::new(elicitor));
        self
    }

    /// Uses a model by this.
    #[must_use]
    pub fn sampling(mut self, sampler: impl Sampler + 'static) -> Self {
        self.sampling = Some(Arc::new(sampler));
        self
    }

    /// Names directories by this.
    #[must_use]
    pub fn roots(mut self, source: impl RootsSource + 'static) -> Self {
        self.roots = Some(Arc::new(source));
        self
    }

    /// Takes logs from this level on.
    #[must_use]
    pub fn logs(mut self, level: LogLevel, sink: impl LogSink + 'static) -> Self {
        self.log_level = Some(level);
        self.logs = Some(Arc::new(sink));
        self
    }

    /// Lets a server make a task of a tool call.
    #[must_use]
    pub fn tasks(mut self) -> Self {
        self.tasks = true;
        self
    }

    /// Says that skills are understood.
    #[must_use]
    pub fn skills(mut self) -> Self {
        self.skills = true;
        self
    }
}
