//! Questions to a person. All of them use the same types and the same channel.

use std::sync::Arc;

use tokio::sync::oneshot;
use wharf_client::CallTag;
use wharf_json::RawJson;
use wharf_policy::{Rule, RuleWriteError};
use wharf_spec::{ServerName, ToolId};
use wharf_tools::{Principal, ToolCaller, ToolDescription};
use wharf_wire::{Elicitation, ElicitationResponse, SamplingRequest};

/// A question to a person. Each variant names its server and has its own answer type.
///
/// Dropping the [`AskReply`] declines the question.
#[non_exhaustive]
pub enum Ask {
    /// Permission for a tool call.
    Permission(PermissionAsk, AskReply<PermissionAnswer>),
    /// A server requests form input or a visit to a web page.
    Elicitation(ElicitationAsk, AskReply<ElicitationResponse>),
    /// An agreed page has been opened: asks the person to confirm that they have finished. If the reply is dropped, the
    /// client waits for the server's own notification.
    Page(PageAsk, AskReply<()>),
    /// A server requests a model completion.
    Sampling(SamplingAsk, AskReply<Result<RawJson, wharf_client::SamplingError>>),
    /// A server requires a login: asks whether to open the browser.
    Login(LoginAsk, AskReply<ConsentAnswer>),
    /// Approval of a server that a project configures.
    Approval(ApprovalAsk, AskReply<ConsentAnswer>),
}

/// A request for permission to call a tool.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PermissionAsk {
    /// The tool's ID.
    pub id: ToolId,
    /// The tool's description.
    pub tool: Arc<ToolDescription>,
    /// The call's arguments, to be displayed in full and escaped.
    pub arguments: RawJson,
    /// Name of the caller.
    pub caller: Arc<str>,
    /// The principal to ask. The answer holds for this one only, unless it is the user's and creates a rule.
    pub principal: Principal,
    /// The request that the caller acts for, if it numbered it.
    pub request: Option<u64>,
    /// Reason for the prompt, as a sentence.
    pub reason: String,
    /// Changes to the tool's definition since it was approved: lines, escaped.
    pub changed: Option<String>,
    /// The rule that "always" creates, or the reason why no rule can be created. In that case "always" holds until the
    /// host stops.
    pub always: Result<Rule, RuleWriteError>,
}

/// A person's answer to a permission prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PermissionAnswer {
    /// Allow this call.
    Once,
    /// Allow this tool until the host stops.
    Session,
    /// Allow this tool permanently, by creating a rule.
    Always,
    /// Deny the call.
    No,
    /// Deny the call, with a reason that is reported to the caller.
    NoBecause(String),
    /// No answer: the call is refused as by a host without an asker.
    Unanswered,
}

/// A request by a server for input from a person.
#[derive(Debug, Clone)]
pub struct ElicitationAsk {
    /// The server.
    pub server: ServerName,
    /// The call that the question belongs to, if known. [`RequestOptions::tag`](wharf_client::RequestOptions) tags it.
    pub call: Option<CallTag>,
    /// The server's question. Untrusted.
    pub question: Elicitation,
}

/// A page that a person has agreed to visit for a server.
#[derive(Debug, Clone)]
pub struct PageAsk {
    /// The server.
    pub server: ServerName,
    /// The call that the page belongs to, if known.
    pub call: Option<CallTag>,
}

/// A request by a server for a model completion.
#[derive(Debug, Clone)]
pub struct SamplingAsk {
    /// The server.
    pub server: ServerName,
    /// The call that the request belongs to, if known.
    pub call: Option<CallTag>,
    /// The sampling request, with tools and context removed. Untrusted.
    pub request: SamplingRequest,
}

/// A request by a server for a login.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LoginAsk {
    /// The server.
    pub server: ServerName,
    /// The page to open. Untrusted.
    pub url: String,
    /// The issuer of the login. Untrusted.
    pub issuer: String,
    /// The complete scope of the login. Untrusted.
    pub scope: Option<String>,
}

/// A request to approve a server that a project configures.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ApprovalAsk {
    /// The server's configured name.
    pub server: ServerName,
    /// The command or URL that would be used, line by line and escaped.
    pub what: Vec<String>,
}

/// A yes-or-no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsentAnswer {
    /// Yes.
    Given,
    /// No.
    Refused,
}

/// The sending half of a question's answer.
pub struct AskReply<T>(oneshot::Sender<T>);

/// Presents questions to a person. Implemented by the command line, an agent or a gateway.
pub trait Asker: Send + Sync {
    /// Takes a question and returns immediately. The answer is sent to the question's [`AskReply`] later.
    fn ask(&self, ask: Ask);

    /// Reports whether a caller's principal can be asked for permission now. If not, the call is refused as by a host
    /// without an asker.
    fn can_ask(&self, caller: &ToolCaller) -> bool {
        let _ = caller;
        true
    }

    /// Reports whether servers may ask for input. If not, the elicitation capability is not declared.
    fn supports_elicitation(&self) -> bool {
        true
    }

    /// Reports whether a person can be asked to log in. If not, a server that requires a login waits for one.
    fn supports_logins(&self) -> bool {
        true
    }

    /// Reports whether pages can be shown as well as forms.
    fn shows_pages(&self) -> bool {
        false
    }

    /// Reports whether servers may request model completions. If not, the sampling capability is not declared.
    fn supports_sampling(&self) -> bool {
        false
    }
}

impl Ask {
    /// Returns the server that the question concerns.
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

    /// Returns the kind of question as one word.
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
    /// Creates a permission request with default values, for tests of an [`Asker`].
    pub fn new(id: ToolId, tool: Arc<ToolDescription>, arguments: RawJson) -> Self {
        let always = Err(RuleWriteError::NoServer(id.server.clone()));
        let (caller, principal) = ("agent".into(), Principal::local());
        Self { id, tool, arguments, caller, principal, request: None, reason: String::new(), changed: None, always }
    }
}

impl LoginAsk {
    /// Creates a login request, for tests of an [`Asker`].
    pub fn new(server: ServerName, url: impl Into<String>, issuer: impl Into<String>) -> Self {
        Self { server, url: url.into(), issuer: issuer.into(), scope: None }
    }
}

impl<T> AskReply<T> {
    /// Creates a reply and the receiver of its answer, for tests of an [`Asker`].
    pub fn pair() -> (Self, oneshot::Receiver<T>) {
        let (reply, answer) = oneshot::channel();
        (Self(reply), answer)
    }

    /// Sends the answer. Does nothing if the receiver has been dropped.
    pub fn answer(self, answer: T) {
        let _ = self.0.send(answer);
    }

    /// Reports whether the receiver still waits for the answer.
    pub fn is_awaited(&self) -> bool {
        !self.0.is_closed()
    }

    /// Resolves once the receiver has been dropped, so that the question can be removed from the screen.
    pub async fn wait_withdrawn(&mut self) {
        self.0.closed().await;
    }
}

/// Asks a question and waits for the answer. Returns `None` if the reply is dropped. Dropping the future withdraws the
/// question.
pub(crate) async fn ask_and_wait<T>(asker: &dyn Asker, ask: impl FnOnce(AskReply<T>) -> Ask) -> Option<T> {
    let (reply, answer) = AskReply::pair();
    asker.ask(ask(reply));
    answer.await.ok()
}
