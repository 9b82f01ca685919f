//! One call of a tool, from its name to its answer.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use wharf_client::{Answer, CallError, ResultKind};
use wharf_json::{Raw, members};
use wharf_spec::{ServerName, ToolId, Untrusted};
use wharf_tools::{Attempt, Caller, Check, Outcome, Refusal, RefusalReason, nearest};
use wharf_wire::{Bounds, DecodeError, ToolResult, View as _};

use crate::audit::Ended;
use crate::catalog::{Catalog, CatalogTool};
use crate::context::Context;
use crate::error::HostError;
use crate::events::Event;
use crate::lane::Patience;
use crate::results::{self, Question};
use crate::server::Server;

/// How to make one call through the host.
#[derive(Clone)]
#[non_exhaustive]
pub struct CallOptions {
    /// Who calls. A model by default: where the rules say so, a person is asked.
    pub caller: Caller,
    /// How the call is made on its connection. Its time counts for waiting until the server is there as well; where none
    /// is said, the tool's own holds, or the server's.
    pub call: wharf_client::CallOptions,
}

impl Default for CallOptions {
    fn default() -> Self {
        Self { caller: Caller::agent(), call: wharf_client::CallOptions::default() }
    }
}

impl CallOptions {
    /// Calls on behalf of somebody.
    #[must_use]
    pub fn caller(mut self, caller: Caller) -> Self {
        self.caller = caller;
        self
    }

    /// Waits this long.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.call.timeout = Some(timeout);
        self
    }

    /// What its connection is told, with this time.
    fn within(&self, timeout: Option<Duration>) -> wharf_client::CallOptions {
        let mut options = self.call.clone();
        options.timeout = timeout;
        options
    }
}

/// What a tool answered, as it came. Nothing is decoded before somebody looks.
#[derive(Debug, Clone)]
pub struct Reply {
    /// What was called.
    pub tool: ToolId,
    /// The answer.
    pub answer: Answer,
    bounds: Bounds,
}

impl Reply {
    /// The result byte for byte.
    pub fn json(&self) -> &Raw {
        &self.answer.result
    }

    /// The result as the protocol has it.
    pub fn result(&self) -> Result<ToolResult, DecodeError> {
        ToolResult::view(self.answer.result.clone(), &self.bounds)
    }

    /// The result as any tool's, with every kind of content.
    pub fn outcome(&self) -> Result<Outcome, DecodeError> {
        Ok(results::outcome(&self.result()?))
    }

    /// The text of the result, and a line for whatever is none.
    pub fn text(&self) -> Result<String, DecodeError> {
        Ok(self.outcome()?.text())
    }
}

impl Context {
    /// Calls a tool: finds it, passes the gate, goes to its server.
    ///
    /// Dropped while it waits, the question is taken back or the call withdrawn.
    pub async fn call(&self, id: &ToolId, arguments: &Raw, options: CallOptions) -> Result<Reply, HostError> {
        let seen = self.shelf.peek().version();
        let tool = self.permitted(id, arguments, &options).await?;
        match self.call_seen(&tool, arguments, &options, seen).await {
            // Its server was started anew and describes it differently. What it is now may be permitted as well.
            Err(HostError::Refused(refusal)) if refusal.reason == RefusalReason::ApprovalStale => {
                let tool = self.permitted(id, arguments, &options).await?;
                self.call_passed(&tool, arguments, &options).await
            }
            outcome => outcome,
        }
    }

    /// The tool, once it has passed the gate.
    pub async fn permitted(
        &self,
        id: &ToolId,
        arguments: &Raw,
        options: &CallOptions,
    ) -> Result<Arc<CatalogTool>, HostError> {
        let tool = self.find_tool(id, options.call.timeout).await?;
        self.pass(&tool, arguments, &options.caller).await?;
        Ok(tool)
    }

    /// A tool that may be used. Where it is not on the shelf yet, its server is waited for.
    pub async fn find_tool(&self, id: &ToolId, timeout: Option<Duration>) -> Result<Arc<CatalogTool>, HostError> {
        let known = self.shelf.peek().tool(id).map(Arc::clone);
        let tool = match known {
            Some(tool) => tool,
            None => self.await_tool(id, timeout).await?,
        };
        match tool.quarantine() {
            Some(reason) => {
                let why = format!("the tool is quarantined: {reason}; a person has to look at it and release it");
                Err(HostError::Refused(Refusal::new(RefusalReason::Other(why))))
            }
            None => Ok(tool),
        }
    }

    /// A tool that is not on the shelf yet: its server may not have been asked, or another may be taking its place.
    async fn await_tool(&self, id: &ToolId, timeout: Option<Duration>) -> Result<Arc<CatalogTool>, HostError> {
        let mut server = self.server(id.server.as_str())?;
        loop {
            let listed = self.await_tools(&server, timeout).await;
            let found =
                listed.and_then(|catalog| catalog.tool(id).map(Arc::clone).ok_or_else(|| unknown_tool(&catalog, id)));
            match self.successor(&server, &found) {
                Some(other) => server = other,
                None => return found,
            }
        }
    }

    /// The catalog as it is once a server's tools are on the shelf: it may not have been asked yet.
    async fn await_tools(&self, server: &Server, timeout: Option<Duration>) -> Result<Arc<Catalog>, HostError> {
        let patience = self.patience(server, timeout);
        let learned = server.travel(patience, |passage| async move { server.learned(&passage, patience).await });
        learned.await?;
        Ok(self.shelf.catalog())
    }

    /// The catalog as it is once everything a server offers is on the shelf.
    pub async fn await_lists(&self, server: &Server, timeout: Option<Duration>) -> Result<Arc<Catalog>, HostError> {
        let patience = self.patience(server, timeout);
        let learned = server.travel(patience, |passage| async move { server.learned_all(&passage, patience).await });
        learned.await?;
        Ok(self.shelf.catalog())
    }

    /// How long a call of this server waits for it.
    pub fn patience(&self, server: &Server, timeout: Option<Duration>) -> Patience {
        Patience::of(timeout.or_else(|| server.kept.load().settings.timeout).unwrap_or(self.options.limits.call))
    }

    /// How long is waited for a server that may have to be started first.
    pub fn patience_at_start(&self, server: &Server) -> Patience {
        let settings = &server.kept.load().settings;
        let limits = &self.options.limits;
        let time = settings.startup_timeout.unwrap_or(limits.startup) + settings.timeout.unwrap_or(limits.call);
        Patience::of(time)
    }

    async fn pass(&self, tool: &CatalogTool, arguments: &Raw, caller: &Caller) -> Result<(), HostError> {
        let refusal = match self.gate.check(Attempt { caller, tool: &tool.description, arguments }) {
            Check::Pass => return Ok(()),
            Check::Refuse(refusal) => refusal,
            Check::Ask(answer) => match answer.await {
                Ok(()) => return self.still_the_same(tool),
                Err(refusal) => refusal,
            },
        };
        Err(HostError::Refused(refusal))
    }

    /// Makes a call that has passed the gate.
    pub async fn call_passed(
        &self,
        tool: &Arc<CatalogTool>,
        arguments: &Raw,
        options: &CallOptions,
    ) -> Result<Reply, HostError> {
        self.call_seen(tool, arguments, options, 0).await
    }

    /// The same for a tool that was found in this version of the catalog: as long as that is current, so is the tool.
    async fn call_seen(
        &self,
        tool: &CatalogTool,
        arguments: &Raw,
        options: &CallOptions,
        seen: u64,
    ) -> Result<Reply, HostError> {
        let mut server = self.server(tool.id.server.as_str())?;
        let question = Question::of(&server, tool, arguments, options);
        let began = Instant::now();
        let mut record = Record { context: self, tool, arguments, caller: &options.caller, began: Some(began) };
        if let Some(result) = question.as_ref().and_then(|question| server.results.find(question)) {
            record.end(&Ended::Answered);
            return Ok(self.reply(tool, Answer { result, kind: ResultKind::Complete }));
        }
        let going = Going { tool, arguments, options, seen, began };
        let mut outcome = self.go(&server, going).await;
        // Its server may have been replaced while it waited; the call has not left then.
        while let Some(other) = self.successor(&server, &outcome) {
            server = other;
            outcome = self.go_anew(&server, going).await;
        }
        let ended = match &outcome {
            Ok(answer) if results::says_error(&answer.result) => Ended::ToolFailed,
            Ok(_) => Ended::Answered,
            Err(error) => Ended::Failed(error),
        };
        let took = record.end(&ended);
        let success = matches!(ended, Ended::Answered);
        server.stats.record(&tool.id.tool, took, success);
        let answer = outcome?;
        if let (true, Some(question)) = (success, question) {
            question.keep(&server, &answer);
        }
        Ok(self.reply(tool, answer))
    }

    /// Goes to the server that took the place of the one it was for: another one, which may be trusted less.
    async fn go_anew(&self, server: &Server, going: Going<'_>) -> Result<Answer, HostError> {
        self.pass_anew(server, going.tool, going.arguments, going.options).await?;
        self.go(server, Going { seen: 0, ..going }).await
    }

    /// Passes the gate once more, for a server that took the place of the one a call was for.
    pub async fn pass_anew(
        &self,
        server: &Server,
        tool: &CatalogTool,
        arguments: &Raw,
        options: &CallOptions,
    ) -> Result<(), HostError> {
        self.await_tools(server, options.call.timeout).await?;
        self.still_the_same(tool)?;
        self.pass(tool, arguments, &options.caller).await
    }

    async fn go(&self, server: &Server, going: Going<'_>) -> Result<Answer, HostError> {
        let Going { tool, arguments, options, seen, began } = going;
        let timeout = options.call.timeout.or_else(|| server.kept.load().timeout(&tool.id.tool));
        let patience = Patience::since(began, timeout.unwrap_or(self.options.limits.call));
        let called = server.carry(patience, |passage| {
            let client_options = options.within(timeout);
            async move {
                server.learned(&passage, patience).await?;
                self.still_used(server, tool, seen)?;
                let called = passage.connection.call_tool_raw(&tool.id.tool, arguments, client_options).await;
                called.map_err(|error| server.failed(error))
            }
        });
        called.await
    }

    /// While a call waited for the server or for its turn, the server may have changed its mind about its tools, and
    /// somebody theirs about which of them are used. A tool seen in the current version of the catalog is as it was.
    pub fn still_used(&self, server: &Server, tool: &CatalogTool, seen: u64) -> Result<(), HostError> {
        if self.shelf.peek().version() != seen {
            self.still_the_same(tool)?;
        }
        if !server.kept.load().filter.admits(&tool.id.tool) {
            return Err(unknown_tool(&self.shelf.catalog(), &tool.id));
        }
        Ok(())
    }

    /// The server that took the place of one that could not be called.
    pub fn successor<T>(&self, server: &Arc<Server>, outcome: &Result<T, HostError>) -> Option<Arc<Server>> {
        use HostError::{Closed, Unavailable, UnknownTool};
        if !matches!(outcome, Err(Unavailable { .. } | UnknownTool { .. } | Closed)) {
            return None;
        }
        self.server(server.name.as_str()).ok().filter(|now| now.generation > server.generation)
    }

    /// Sends any method. A call of a tool goes where all of them go.
    pub async fn request(
        &self,
        server: &ServerName,
        method: &str,
        params: Option<&Raw>,
        options: CallOptions,
    ) -> Result<Answer, HostError> {
        if method == "tools/call" {
            return self.request_call(server, params, options).await;
        }
        let mut server = self.server(server.as_str())?;
        loop {
            self.permit_request(&server, method, params, &options).await?;
            let client_options = options.within(options.call.timeout.or_else(|| server.kept.load().settings.timeout));
            let asked = server.ask(self.patience(&server, options.call.timeout), |connection| {
                let options = client_options.clone();
                async move { connection.request(method, params, options).await }
            });
            let outcome = asked.await;
            match self.successor(&server, &outcome) {
                Some(other) => server = other,
                None => return outcome,
            }
        }
    }

    async fn request_call(
        &self,
        server: &ServerName,
        params: Option<&Raw>,
        mut options: CallOptions,
    ) -> Result<Answer, HostError> {
        let bounds = &self.options.limits.bounds;
        let invalid = |why: String| HostError::Call { server: server.clone(), error: CallError::Invalid(why) };
        let params = params.ok_or_else(|| invalid("a call of a tool names it".to_owned()))?;
        let members = members(params, bounds).map_err(|error| invalid(error.to_string()))?;
        let member = |wanted: &str| members.iter().find(|(key, _)| key == wanted).map(|(_, value)| value.clone());
        let name: Option<String> = member("name").and_then(|name| name.decode(bounds).ok());
        let name = name.ok_or_else(|| invalid("a call of a tool names it".to_owned()))?;
        let known = ["name", "arguments", "_meta"];
        if let Some((odd, _)) = members.iter().find(|(key, _)| !known.contains(&&**key)) {
            return Err(invalid(format!("`{}` is no part of a call", Untrusted::new(&**odd).shortened(60))));
        }
        options.call.meta = options.call.meta.or_else(|| member("_meta"));
        let arguments = member("arguments").unwrap_or_else(Raw::empty_object);
        Ok(self.call(&ToolId::new(server, name), &arguments, options).await?.answer)
    }

    /// What was permitted must be what is called: a definition that has changed meanwhile is another tool.
    pub fn still_the_same(&self, tool: &CatalogTool) -> Result<(), HostError> {
        let catalog = self.shelf.peek();
        match catalog.tool(&tool.id) {
            Some(now) if now.fingerprint == tool.fingerprint => Ok(()),
            Some(_) => Err(HostError::Refused(Refusal::new(RefusalReason::ApprovalStale))),
            None => Err(unknown_tool(&catalog, &tool.id)),
        }
    }

    /// Tells and writes down that a call has ended.
    pub fn tell_called(&self, tool: &ToolId, arguments: &Raw, caller: &Caller, how: (&Ended<'_>, Duration)) {
        if self.crier.is_heard() {
            let success = matches!(how.0, Ended::Answered);
            self.crier.tell(Event::Called { tool: tool.clone(), duration: how.1, success });
        }
        if let Some(audit) = &self.audit {
            audit.called(tool, arguments, caller, how);
        }
    }

    fn reply(&self, tool: &CatalogTool, answer: Answer) -> Reply {
        Reply { tool: tool.id.clone(), answer, bounds: self.options.limits.bounds }
    }
}

/// A call on its way to a server.
#[derive(Clone, Copy)]
struct Going<'a> {
    tool: &'a CatalogTool,
    arguments: &'a Raw,
    options: &'a CallOptions,
    /// The version of the catalog the tool was found in.
    seen: u64,
    began: Instant,
}

/// A call that is under way. Told and written down when it ends, also where its caller does not wait for that.
struct Record<'a> {
    context: &'a Context,
    tool: &'a CatalogTool,
    arguments: &'a Raw,
    caller: &'a Caller,
    /// Taken when it has ended.
    began: Option<Instant>,
}

impl Record<'_> {
    fn end(&mut self, ended: &Ended<'_>) -> Duration {
        let Some(began) = self.began.take() else { return Duration::ZERO };
        let took = began.elapsed();
        self.context.tell_called(&self.tool.id, self.arguments, self.caller, (ended, took));
        took
    }
}

impl Drop for Record<'_> {
    fn drop(&mut self) {
        self.end(&Ended::Withdrawn);
    }
}

fn unknown_tool(catalog: &Catalog, id: &ToolId) -> HostError {
    let section = catalog.section(id.server.as_str());
    let names = section.iter().flat_map(|section| section.tools.iter().map(|tool| &*tool.id.tool));
    let meant = nearest(&id.tool, names).map(str::to_owned);
    let because = section.and_then(|section| section.why_not(&id.tool));
    HostError::UnknownTool { server: id.server.clone(), tool: id.tool.to_string(), nearest: meant, because }
}
