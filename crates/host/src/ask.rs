//! Everything a person is asked, in one shape and by one way.

use std::sync::Arc;

use tokio::sync::oneshot;
use wharf_json::Raw;
use wharf_policy::{NoRule, Rule};
use wharf_spec::{ServerName, ToolId};
use wharf_tools::Description;
use wharf_wire::{ElicitAnswer, Elicitation, SamplingRequest};

/// A question to a person. Each names the server it is about, and takes an answer of its own kind.
///
/// A question whose [`Reply`] is dropped is refused politely.
#[non_exhaustive]
pub enum Ask {
    /// May this tool be called like this?
    Permission(PermissionAsk, Reply<PermissionAnswer>),
    /// A server wants to know something, or wants a page visited.
    Elicitation(ElicitationAsk, Reply<ElicitAnswer>),
    /// A page that was agreed to has been opened: is the person done with it? Dropped unanswered, the server's own word
    /// is waited for.
    Page(PageAsk, Reply<()>),
    /// A server wants to use the model.
    Sampling(SamplingAsk, Reply<Result<Raw, wharf_client::NotSampled>>),
    /// A server wants a login: may the browser be opened?
    Login(LoginAsk, Reply<Consent>),
    /// May a server that a project brings along be used?
    Approval(ApprovalAsk, Reply<Consent>),
}

/// May this tool be called like this?
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PermissionAsk {
    /// Which tool.
    pub id: ToolId,
    /// What is known of it.
    pub tool: Arc<Description>,
    /// With what: to be shown whole and escaped.
    pub arguments: Raw,
    /// Who wants to call it.
    pub caller: Arc<str>,
    /// Why this is asked, as a sentence.
    pub reason: String,
    /// What about the tool is different from when it was approved: lines, escaped.
    pub changed: Option<String>,
    /// The rule that an "always" becomes, or why there is none: then it holds as long as the host runs.
    pub always: Result<Rule, NoRule>,
}

/// What a person says to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PermissionAnswer {
    /// Yes, this one.
    Once,
    /// Yes, and to this tool for as long as the host runs.
    Session,
    /// Yes, and to this tool from now on: becomes a rule.
    Always,
    /// No.
    No,
    /// No, and why: whoever wanted the call is told.
    NoBecause(String),
}

/// A server wants to know something of a person.
#[derive(Debug, Clone)]
pub struct ElicitationAsk {
    /// Which server.
    pub server: ServerName,
    /// What: untrusted.
    pub question: Elicitation,
}

/// A page that somebody has agreed to visit for a server.
#[derive(Debug, Clone)]
pub struct PageAsk {
    /// Which server.
    pub server: ServerName,
}

/// A server wants to use the model.
#[derive(Debug, Clone)]
pub struct SamplingAsk {
    /// Which server.
    pub server: ServerName,
    /// For what: untrusted. Tools and context have been taken out of it.
    pub request: SamplingRequest,
}

/// A server wants a login.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LoginAsk {
    /// Which server.
    pub server: ServerName,
    /// The page to open: untrusted.
    pub url: String,
    /// Who asks for the login there: untrusted.
    pub issuer: String,
    /// What the login is to cover, all of it: untrusted.
    pub scope: Option<String>,
}

/// A project brings along a server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ApprovalAsk {
    /// What it would be called.
    pub server: ServerName,
    /// What would run or be dialled, line by line; escaped.
    pub what: Vec<String>,
}

/// Yes or no.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// Yes.
    Given,
    /// No.
    Refused,
}

/// The one who waits for an answer.
pub struct Reply<T>(oneshot::Sender<T>);

/// Puts questions to a person. The command line, an agent or a gateway implements it.
pub trait Asker: Send + Sync {
    /// Takes a question and returns at once; the answer goes to the question's [`Reply`], whenever there is one.
    fn ask(&self, ask: Ask);

    /// Whether a person can be shown a page as well as a form.
    fn shows_pages(&self) -> bool {
        false
    }

    /// Whether servers may ask to use the model. Nothing of it is declared to them otherwise.
    fn samples(&self) -> bool {
        false
    }
}

impl Ask {
    /// On whose behalf it is asked.
    pub fn server(&self) -> &ServerName {
        match self {
            Self::Permission(ask, _) => &ask.id.server,
            Self::Elicitation(ask, _) => &ask.server,
            Self::Page(ask, _) => &ask.server,
            Self::Sampling(ask, _) => &ask.server,
            Self::Login(ask, _) => &ask.server,
            Self::Approval(ask, _) => &ask.server,
        }
    }

    /// What kind of question it is, in a word.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Permission(..) => "permission",
            Self::Elicitation(..) => "elicitation",
            Self::Page(..) => "page",
            Self::Sampling(..) => "sampling",
            Self::Login(..) => "login",
            Self::Approval(..) => "approval",
        }
    }
}

impl PermissionAsk {
    /// The question whether a tool may be called, asked by nobody in particular: for the tests of whoever is asked.
    pub fn new(id: ToolId, tool: Arc<Description>, arguments: Raw) -> Self {
        let always = Err(NoRule::NoServer(id.server.clone()));
        Self { id, tool, arguments, caller: "agent".into(), reason: String::new(), changed: None, always }
    }
}

impl LoginAsk {
    /// The question whether a page may be opened: for the tests of whoever is asked.
    pub fn new(server: ServerName, url: impl Into<String>, issuer: impl Into<String>) -> Self {
        Self { server, url: url.into(), issuer: issuer.into(), scope: None }
    }
}

impl<T> Reply<T> {
    /// A reply, and where its answer arrives: for the tests of whoever is asked.
    pub fn pair() -> (Self, oneshot::Receiver<T>) {
        let (reply, answer) = oneshot::channel();
        (Self(reply), answer)
    }

    /// Answers. Nobody may be waiting any more; then nothing happens.
    pub fn answer(self, answer: T) {
        let _ = self.0.send(answer);
    }

    /// Whether somebody still waits for the answer.
    pub fn is_wanted(&self) -> bool {
        !self.0.is_closed()
    }

    /// Resolves when nobody waits for the answer any more, so that the question can be taken off the screen.
    pub async fn withdrawn(&mut self) {
        self.0.closed().await;
    }
}

/// Puts a question and waits. Nothing comes back where nobody answers. Dropped while it waits, the question is withdrawn.
pub(crate) async fn put<T>(asker: &dyn Asker, ask: impl FnOnce(Reply<T>) -> Ask) -> Option<T> {
    let (reply, answer) = Reply::pair();
    asker.ask(ask(reply));
    answer.await.ok()
}
