//! The way of one request to its server: the shared host, or an instance for its client.

use std::sync::Arc;

use serde_json::{Value, json};
use wharf::spec::{ServerName, ToolId};
use wharf::tools::{BoxFuture, CallerConsent, RefusalReason};
use wharf::wire::{Era, RpcError, code};
use wharf::{
    CallError, CallOptions, Host, HostError, InputHandling, InputRound, RawJson, RawResult, ResultKind, Transport,
};

use crate::bridge::{InputRounds, RoundStep};
use crate::errors::{host_error, invalid_params, rpc_error, tool_error, tool_error_text, unavailability};
use crate::gateway::GatewayShared;
use crate::instances::{InstanceLease, InstanceOwner, InstancePlan, LeaseError};
use crate::route::{CallRoute, ClientFacts};
use crate::upstream_task::TaskUse;

/// A request that a server may answer with questions.
#[derive(Debug, Clone)]
pub(crate) enum CallTarget {
    Tool {
        name: String,
        id: ToolId,
        arguments: RawJson,
    },
    /// `resources/read` or `prompts/get`.
    Request {
        server: ServerName,
        method: &'static str,
        name: String,
        params: RawJson,
    },
}

impl CallTarget {
    pub fn server(&self) -> &ServerName {
        match self {
            Self::Tool { id, .. } => &id.server,
            Self::Request { server, .. } => server,
        }
    }

    pub fn method(&self) -> &'static str {
        match self {
            Self::Tool { .. } => "tools/call",
            Self::Request { method, .. } => method,
        }
    }

    /// Returns the name of the tool or prompt, or the URI, as the client spells it.
    pub fn name(&self) -> &str {
        match self {
            Self::Tool { name, .. } | Self::Request { name, .. } => name,
        }
    }

    /// Returns what distinguishes this call from others of the same name.
    pub fn arguments(&self) -> &RawJson {
        match self {
            Self::Tool { arguments, .. } => arguments,
            Self::Request { params, .. } => params,
        }
    }
}

/// A request and everything it needs.
pub(crate) struct UpstreamCall {
    pub shared: Arc<GatewayShared>,
    pub route: Arc<CallRoute>,
    pub target: CallTarget,
    pub meta: Option<RawJson>,
    /// The answers that a stateless client returns with.
    pub round: Option<InputRound>,
    /// An earlier round of the same call was permitted.
    pub is_permitted: bool,
    pub tasks: TaskUse,
}

/// The end of a call.
pub(crate) enum CallOutcome {
    Complete(RawJson),
    /// A stateless client answers these questions and repeats the call.
    InputRequired(RawJson),
}

/// The instance of a call.
enum InstanceSource {
    /// One that is free, or a new one.
    Start(Box<InstancePlan>),
    Leased(InstanceLease),
}

type CallResult = Result<CallOutcome, RpcError>;

/// Failure of a call: of the host, or of the gateway itself.
pub(crate) enum CallFailure {
    Host(HostError),
    Gateway(RpcError),
}

impl From<HostError> for CallFailure {
    fn from(error: HostError) -> Self {
        Self::Host(error)
    }
}

impl UpstreamCall {
    /// Makes the call and returns its result, or the questions of its server.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future withdraws open questions and cancels the call at its server.
    pub async fn perform(self) -> CallResult {
        let performed = match self.instance_plan().await {
            Some(plan) if self.route.client.class.is_none() && plan.owner == InstanceOwner::Anyone => {
                self.call_with_logs(plan).await
            }
            Some(plan) => self.call_instance(InstanceSource::Start(Box::new(plan))).await,
            None => self.call_shared().await,
        };
        self.route.flush_progress();
        let is_tool = matches!(self.target, CallTarget::Tool { .. });
        match performed {
            Ok(outcome) => Ok(outcome),
            Err(CallFailure::Host(HostError::UnknownTool { .. })) => {
                let reason = unavailability(&self.shared.host, self.target.server().as_str());
                let result = reason.and_then(|error| tool_error(&error)).map(CallOutcome::Complete);
                result.ok_or_else(|| invalid_params(format!("unknown tool `{}`", self.target.name())))
            }
            Err(CallFailure::Host(error)) => {
                let error = self.with_refusal_hint(error);
                match tool_error(&error).filter(|_| is_tool) {
                    Some(result) => Ok(CallOutcome::Complete(result)),
                    None => Err(host_error(&error)),
                }
            }
            // The model learns why its call failed.
            Err(CallFailure::Gateway(error)) if is_tool => Ok(CallOutcome::Complete(tool_error_text(&error.message))),
            Err(CallFailure::Gateway(error)) => Err(error),
        }
    }

    /// Adds the next step of the view to the refusal of a call whose client could not be asked.
    fn with_refusal_hint(&self, error: HostError) -> HostError {
        match (error, &self.route.unasked.hint) {
            (HostError::Denied(refusal), Some(hint)) if matches!(refusal.reason, RefusalReason::NobodyToAsk { .. }) => {
                HostError::Denied(refusal.with_hint(&**hint))
            }
            (error, _) => error,
        }
    }

    /// Returns the instance that the call needs: the configuration gives its client one, or messages of its server for
    /// this client need a connection of their own.
    async fn instance_plan(&self) -> Option<InstancePlan> {
        let (server, client) = (self.target.server(), &self.route.client);
        if !self.shared.instances.has_factory() {
            return None;
        }
        let settings = self.shared.host.instance_settings_of(server.as_str()).unwrap_or_default();
        let owner = InstanceOwner::new(settings.sharing, client);
        if owner == InstanceOwner::Anyone && !self.needs_own_connection().await {
            return None;
        }
        let builder = self.shared.instances.builder(server, client.class)?;
        Some(InstancePlan { builder, owner, max_instances: settings.max_instances })
    }

    /// Reports whether the client can be asked or wants log messages, and its server sends them without the name of the
    /// call.
    async fn needs_own_connection(&self) -> bool {
        let (server, ClientFacts { class, log_level, .. }) = (self.target.server(), &self.route.client);
        if class.is_none() && log_level.is_none() {
            return false;
        }
        let connection = match self.shared.host.connection(server.as_str()) {
            Ok(connection) => connection,
            Err(_) => match box_future(self.shared.host.wait_until_ready(server.as_str())).await {
                Ok(connection) => connection,
                // A failure is reported by the call.
                Err(_) => return false,
            },
        };
        match (connection.facts().revision.era(), connection.facts().transport) {
            (Era::Handshake, _) => true,
            // A log message on the stream of a call belongs to it.
            (Era::Stateless, Transport::StreamableHttp) => false,
            (Era::Stateless, _) => log_level.is_some() && connection.facts().capabilities.logging,
        }
    }

    pub(crate) fn options(&self) -> CallOptions {
        let mut caller = self.route.client.caller().for_request(self.route.tag.0);
        if self.is_permitted {
            caller.consent = CallerConsent::Given;
        }
        let mut options = CallOptions::default().caller(caller);
        options.request.meta = self.meta.clone();
        options.request.tag = Some(self.route.tag);
        if self.route.wants_progress() {
            let route = Arc::clone(&self.route);
            options.request.progress = Some(Arc::new(move |progress| route.report_progress(&progress)));
        }
        options
    }

    async fn call_shared(&self) -> Result<CallOutcome, CallFailure> {
        match self.target_with_task(&self.shared.host) {
            Some(id) => self.call_shared_task(id).await,
            None => self.call_rounds(&self.shared.host, self.options()).await,
        }
    }

    /// Makes a call of a stateless server, or one without questions.
    async fn call_rounds(&self, host: &Host, mut options: CallOptions) -> Result<CallOutcome, CallFailure> {
        let client = &self.route.client;
        if !client.class.is_none() || client.log_level.is_some() || self.tasks == TaskUse::Announce {
            options.request.client = Some(client.declared(self.server_tasks(host)));
            options.request.inputs = InputHandling::Forward;
            options.request.input_round = self.round.clone();
        }
        let mut rounds = InputRounds::new(client.class);
        loop {
            let mut result = self.send(host, options.clone()).await?;
            if result.kind == ResultKind::Task {
                let result_of_task = self.follow_task(host, result.result, &options).await?;
                result = RawResult { result: result_of_task, kind: ResultKind::Complete };
            }
            if result.kind != ResultKind::InputRequired {
                for page in rounds.take_pages() {
                    let params = json!({"elicitationId": page});
                    self.route.send_notification("notifications/elicitation/complete", &params);
                }
                return Ok(CallOutcome::Complete(result.result));
            }
            if client.era == Era::Stateless {
                return Ok(CallOutcome::InputRequired(result.result));
            }
            // The first round was permitted.
            options.caller.consent = CallerConsent::Given;
            options.request.input_round = Some(self.ask_round(&mut rounds, result.result).await?);
        }
    }

    /// Asks the client the questions of one round.
    pub(crate) async fn ask_round(&self, rounds: &mut InputRounds, result: RawJson) -> Result<InputRound, CallFailure> {
        let failed =
            |error: crate::bridge::RoundError| CallFailure::Gateway(rpc_error(code::INTERNAL, error.to_string()));
        rounds.begin(result).map_err(failed)?;
        loop {
            match rounds.next().map_err(failed)? {
                RoundStep::Ask(question) => {
                    let answer = self.route.ask(question).await;
                    rounds.answer(answer).map_err(failed)?;
                }
                RoundStep::Wait(time) => tokio::time::sleep(time).await,
                RoundStep::Retry(round) => return Ok(round),
            }
        }
    }

    /// Makes the call on an instance for its log messages, or without them if there is none.
    async fn call_with_logs(&self, plan: InstancePlan) -> Result<CallOutcome, CallFailure> {
        match self.lease(InstanceSource::Start(Box::new(plan))).await {
            Ok(lease) => self.call_instance(InstanceSource::Leased(lease)).await,
            Err(_) => self.call_shared().await,
        }
    }

    /// Makes the call on an instance. The shared host decides about it and records it.
    async fn call_instance(&self, source: InstanceSource) -> Result<CallOutcome, CallFailure> {
        let host = &self.shared.host;
        match &self.target {
            CallTarget::Tool { id, arguments, .. } => {
                let permit = box_future(host.permit(id, arguments, self.options())).await?;
                let lease = self.lease(source).await?;
                let called = self.send_to_instance(&lease).await;
                match &called {
                    Ok(CallOutcome::Complete(result) | CallOutcome::InputRequired(result)) => {
                        permit.finish_raw(Ok(result));
                    }
                    Err(CallFailure::Host(HostError::Call { error, .. })) => permit.finish_raw(Err(error)),
                    // Not sent: recorded as withdrawn.
                    Err(_) => drop(permit),
                }
                called
            }
            CallTarget::Request { server, method, name, .. } => {
                if *method == "resources/read" {
                    box_future(host.permit_read(server, name, &self.options().caller)).await?;
                } else if let Some(refusal) = host.denial_of(server.as_str()) {
                    return Err(HostError::Denied(refusal).into());
                }
                let lease = self.lease(source).await?;
                self.send_to_instance(&lease).await
            }
        }
    }

    async fn lease(&self, source: InstanceSource) -> Result<InstanceLease, CallFailure> {
        let plan = match source {
            InstanceSource::Start(plan) => *plan,
            InstanceSource::Leased(lease) => return Ok(lease),
        };
        let leased = self.shared.instances.lease(self.target.server(), &self.route, plan).await;
        leased.map_err(|LeaseError(error)| CallFailure::Gateway(error))
    }

    async fn send_to_instance(&self, lease: &InstanceLease) -> Result<CallOutcome, CallFailure> {
        let sent = self.send_on_lease(lease).await;
        let is_answered = match &sent {
            Ok(_) => true,
            Err(CallFailure::Host(HostError::Call { error, .. })) => matches!(error, CallError::ErrorResponse(_)),
            Err(CallFailure::Host(_) | CallFailure::Gateway(_)) => false,
        };
        if is_answered {
            lease.set_answered();
        }
        sent
    }

    async fn send_on_lease(&self, lease: &InstanceLease) -> Result<CallOutcome, CallFailure> {
        let server = self.target.server();
        let host = lease.host().ok_or(HostError::Closed)?;
        let connection = box_future(host.wait_until_ready(server.as_str())).await?;
        let is_stateless = connection.facts().revision.era() == Era::Stateless;
        if let Some(level) = self.route.client.log_level
            && connection.facts().capabilities.logging
            && !is_stateless
        {
            // Without the level the client gets other messages, or none.
            let _ = connection.set_log_level(level).await;
        }
        if let CallTarget::Tool { id, .. } = &self.target {
            let fingerprint = |host: &Host| host.catalog().tool(id).map(|tool| tool.fingerprint);
            if fingerprint(&self.shared.host).is_none()
                && let Some(error) = unavailability(&self.shared.host, server.as_str())
            {
                return Err(error.into());
            }
            if fingerprint(host) != fingerprint(&self.shared.host) {
                let why = "this instance of the server defines the tool differently from the approved definition";
                return Err(CallFailure::Gateway(rpc_error(code::INTERNAL, why)));
            }
        }
        let mut options = self.options();
        // The shared host has permitted it.
        options.caller.consent = CallerConsent::Given;
        if is_stateless {
            return self.call_rounds(host, options).await;
        }
        if self.route.client.era == Era::Handshake {
            // An error that asks for pages (2025-11-25) is passed on as it is.
            options.request.inputs = InputHandling::Forward;
        }
        if let Some(id) = self.target_with_task(host) {
            let result = self.run_handshake_task(&connection, id, options.request).await;
            let failed = |error| HostError::Call { server: server.clone(), error };
            return result.map(CallOutcome::Complete).map_err(|error| failed(error).into());
        }
        let result = self.send(host, options).await?;
        Ok(CallOutcome::Complete(result.result))
    }

    async fn send(&self, host: &Host, options: CallOptions) -> Result<RawResult, HostError> {
        match &self.target {
            CallTarget::Tool { id, arguments, .. } => {
                box_future(host.call(id, arguments, options)).await.map(|response| response.raw_result)
            }
            CallTarget::Request { server, method, params, .. } => {
                box_future(host.request(server, method, Some(params), options)).await
            }
        }
    }
}

/// Boxes a future of the host, whose type is too deep for the compiler within another future.
pub(crate) fn box_future<'a, T>(future: impl Future<Output = T> + Send + 'a) -> BoxFuture<'a, T> {
    Box::pin(future)
}

/// Returns the parameters of a read.
pub(crate) fn read_params(uri: &str) -> RawJson {
    RawJson::new_unchecked(json!({ "uri": uri }).to_string())
}

/// Returns the parameters of a prompt.
pub(crate) fn prompt_params(name: &str, arguments: &Value) -> RawJson {
    RawJson::new_unchecked(json!({"name": name, "arguments": arguments}).to_string())
}
