//! A call and its questions to the client, from the request to the response.
//!
//! A client of a handshake revision is asked on the call's stream. A stateless client gets the questions as a result:
//! the call is parked until the client returns with answers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use wharf::wire::{Era, JsonLimits, RpcError, code, object_members};
use wharf::{InputRound, RawJson};

use crate::bridge::ParkTable;
use crate::errors::{invalid_params, rpc_error, rpc_error_with};
use crate::gateway::GatewayShared;
use crate::progress::ProgressRelay;
use crate::request_state::{RequestState, StateBinding};
use crate::requests::ClientRequest;
use crate::route::{CallRoute, QuestionWay, RequestStream, RouteParts, SheetQuestions};
use crate::tasks;
use crate::upstream::{CallOutcome, CallTarget, UpstreamCall, box_future};
use crate::upstream_task::{self, TaskUse};

/// The parked calls of a gateway.
pub(crate) struct ParkedCalls {
    table: Mutex<ParkTable<StartedCall>>,
    max_time: Duration,
}

impl ParkedCalls {
    pub fn new(max_time: Duration) -> Self {
        Self { table: Mutex::default(), max_time }
    }

    fn table(&self) -> MutexGuard<'_, ParkTable<StartedCall>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of parked calls.
    pub fn len(&self) -> usize {
        self.table().len()
    }

    /// Cancels all parked calls.
    pub fn close(&self) {
        let all = self.table().take_all();
        drop(all);
    }
}

/// A call that runs in a task of its own, so that it can outlive the request that started it. Dropping it cancels it.
pub(crate) struct StartedCall {
    route: Arc<CallRoute>,
    questions: Arc<SheetQuestions>,
    outcome: oneshot::Receiver<Result<CallOutcome, RpcError>>,
    task: AbortHandle,
}

impl StartedCall {
    pub fn route(&self) -> &CallRoute {
        &self.route
    }

    pub fn questions(&self) -> Arc<SheetQuestions> {
        Arc::clone(&self.questions)
    }

    /// Waits for the end of the call.
    ///
    /// # Cancel safety
    ///
    /// Cancel-safe: the call continues until `self` is dropped.
    pub async fn finish(&mut self) -> Result<CallOutcome, RpcError> {
        let lost = || Err(rpc_error(code::INTERNAL, "internal error of the gateway"));
        (&mut self.outcome).await.unwrap_or_else(|_| lost())
    }
}

impl Drop for StartedCall {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The route of a call, which ends with it.
struct OpenRoute {
    shared: Arc<GatewayShared>,
    route: Arc<CallRoute>,
}

impl Drop for OpenRoute {
    fn drop(&mut self) {
        self.shared.routes.close(self.route.tag);
    }
}

/// Makes the call of a request and returns its result.
pub(crate) async fn answer(request: &ClientRequest, target: CallTarget) -> Result<RawJson, RpcError> {
    match request.client.era {
        Era::Handshake if tasks::is_wanted(request) => {
            if !makes_tasks(request, &target).await {
                return Err(rpc_error(code::METHOD_NOT_FOUND, "the tool does not support tasks"));
            }
            let how = Continuation { tasks: TaskUse::Announce, ..Continuation::default() };
            tasks::adopt(request, spawn(request, &target, how))
        }
        Era::Handshake => {
            let route = open_route(request, &target, QuestionWay::Requests(Arc::clone(&request.questions)));
            match upstream(request, &route.route, target, Continuation::default()).perform().await? {
                CallOutcome::Complete(result) | CallOutcome::InputRequired(result) => Ok(result),
            }
        }
        Era::Stateless => answer_stateless(request, target).await,
    }
}

/// How a stateless client continues a call.
#[derive(Default)]
struct Continuation {
    round: Option<InputRound>,
    is_permitted: bool,
    tasks: TaskUse,
}

/// Reports whether a task can be made of a call.
async fn makes_tasks(request: &ClientRequest, target: &CallTarget) -> bool {
    let CallTarget::Tool { id, .. } = target else { return false };
    let host = &request.shared.host;
    let connection = match host.connection(id.server.as_str()) {
        Ok(connection) => Some(connection),
        Err(_) => box_future(host.wait_until_ready(id.server.as_str())).await.ok(),
    };
    let support = host.catalog().tool(id).map(|tool| tool.definition.task_support).unwrap_or_default();
    connection.is_some_and(|connection| upstream_task::makes_tasks(&connection, support))
}

async fn answer_stateless(request: &ClientRequest, target: CallTarget) -> Result<RawJson, RpcError> {
    let responses = request.message.param("inputResponses");
    let sealed: Option<String> = request.param("requestState")?;
    let state = match sealed {
        None => None,
        Some(sealed) => {
            let opened = RequestState::open(&request.shared.sealing_key, binding(request, &target), &sealed);
            Some(opened.ok_or_else(|| invalid_params("`requestState` is not valid for this request"))?)
        }
    };
    let continuation = match state {
        Some(RequestState::Parked { call }) => {
            let parked = request.shared.parked.table().take(call, Instant::now());
            match (parked, &target) {
                (Some(call), _) => return resume(request, &target, call, responses).await,
                // A read begins anew.
                (None, CallTarget::Request { .. }) => Continuation::default(),
                (None, CallTarget::Tool { .. }) => {
                    let message = "the call waited too long for its answers, or the gateway was restarted; \
                                   check whether the action took effect before retrying";
                    let data = json!({"reason": "outcome_unknown"});
                    return Err(rpc_error_with(code::INTERNAL, message, &data));
                }
            }
        }
        Some(RequestState::Relayed { state, is_permitted }) => {
            Continuation { round: Some(InputRound { responses, state }), is_permitted, tasks: TaskUse::Follow }
        }
        None => {
            let round = responses.map(|responses| InputRound { responses: Some(responses), state: None });
            Continuation { round, ..Continuation::default() }
        }
    };
    start(request, target, continuation).await
}

async fn start(request: &ClientRequest, target: CallTarget, mut how: Continuation) -> Result<RawJson, RpcError> {
    if request.client.follows_tasks && makes_tasks(request, &target).await {
        how.tasks = TaskUse::Announce;
    }
    if request.client.class.is_none() && how.tasks == TaskUse::Follow {
        // Nothing can be asked, so the call does not outlive its request.
        let route = open_route(request, &target, QuestionWay::Results(Arc::default()));
        let call = upstream(request, &route.route, target.clone(), how);
        return finish(request, &target, call.perform().await?);
    }
    let call = spawn(request, &target, how);
    wait(request, &target, call).await
}

/// Starts a call in a task of its own.
fn spawn(request: &ClientRequest, target: &CallTarget, how: Continuation) -> StartedCall {
    let questions = Arc::<SheetQuestions>::default();
    let route = open_route(request, target, QuestionWay::Results(Arc::clone(&questions)));
    let call = upstream(request, &route.route, target.clone(), how);
    let (done, outcome) = oneshot::channel();
    let own_route = Arc::clone(&route.route);
    let performing = request.shared.runtime.spawn(async move {
        // Ends after the call: a server learns of the end of its call before that of its question.
        let _route = route;
        let _ = done.send(call.perform().await);
    });
    StartedCall { route: own_route, questions, outcome, task: performing.abort_handle() }
}

/// Continues a parked call with the answers of its client.
async fn resume(
    request: &ClientRequest,
    target: &CallTarget,
    call: StartedCall,
    responses: Option<RawJson>,
) -> Result<RawJson, RpcError> {
    call.route.set_stream(Some(stream(request)));
    request.shared.instances.resume(target.server(), call.route.tag);
    if let Some(responses) = responses {
        call.questions.answer(&responses);
    }
    wait(request, target, call).await
}

/// Waits for the result of a call, or for its next question.
async fn wait(request: &ClientRequest, target: &CallTarget, mut call: StartedCall) -> Result<RawJson, RpcError> {
    let (route, questions) = (Arc::clone(&call.route), call.questions());
    tokio::select! {
        biased;
        outcome = call.finish() => finish(request, target, outcome?),
        () = wait_for_announced_task(request, &route) => tasks::adopt(request, call),
        () = questions.wait_for_questions() => park(request, target, call),
    }
}

/// Waits until a task is made of the call, if its client follows tasks.
async fn wait_for_announced_task(request: &ClientRequest, route: &CallRoute) {
    if !request.client.follows_tasks {
        return std::future::pending().await;
    }
    route.wait_for_server_task().await;
}

/// Parks a call and returns its questions.
fn park(request: &ClientRequest, target: &CallTarget, call: StartedCall) -> Result<RawJson, RpcError> {
    let (shared, number) = (&request.shared, call.route.tag.0);
    let state = RequestState::Parked { call: number }.seal(&shared.sealing_key, binding(request, target));
    let state = state.ok_or_else(|| rpc_error(code::INTERNAL, "the call's state cannot be sealed"))?;
    let requests = call.questions.to_requests();
    call.route.set_stream(None);
    shared.instances.park(target.server(), call.route.tag);
    let expires = Instant::now() + shared.parked.max_time;
    let parked = shared.parked.table().park(number, target.server(), expires, call);
    parked.map_err(|_| rpc_error(code::INTERNAL, "too many calls wait for answers of clients; try again later"))?;
    let gateway = Arc::downgrade(shared);
    drop(shared.runtime.spawn(async move {
        tokio::time::sleep_until(expires).await;
        if let Some(gateway) = gateway.upgrade() {
            let expired = gateway.parked.table().take_expired(Instant::now());
            drop(expired);
        }
    }));
    Ok(RawJson::new_unchecked(format!(
        r#"{{"resultType":"input_required","inputRequests":{},"requestState":{}}}"#,
        requests.as_str(),
        json!(state)
    )))
}

/// Returns the result of a call. The state of a server is sealed, so that no other principal can present it.
fn finish(request: &ClientRequest, target: &CallTarget, outcome: CallOutcome) -> Result<RawJson, RpcError> {
    let result = match outcome {
        CallOutcome::Complete(result) => return Ok(result),
        CallOutcome::InputRequired(result) => result,
    };
    let invalid = || rpc_error(code::INTERNAL, "the server's input request is invalid");
    let members = object_members(&result, &JsonLimits::default()).map_err(|_| invalid())?;
    let state = members.iter().find(|(key, _)| key == "requestState").map(|(_, state)| state.clone());
    let state = RequestState::Relayed { state, is_permitted: true };
    let sealed = state.seal(&request.shared.sealing_key, binding(request, target)).ok_or_else(invalid)?;
    let mut text = format!("{{\"requestState\":{}", json!(sealed));
    for (key, value) in members.iter().filter(|(key, _)| key != "requestState") {
        text.push_str(&format!(",{}:{}", json!(key), value.as_str()));
    }
    text.push('}');
    Ok(RawJson::new_unchecked(text))
}

fn binding<'a>(request: &'a ClientRequest, target: &'a CallTarget) -> StateBinding<'a> {
    StateBinding {
        principal: &request.client.principal,
        method: target.method(),
        target: target.name(),
        arguments: target.arguments(),
    }
}

fn stream(request: &ClientRequest) -> RequestStream {
    let progress = ProgressRelay::from_request(&request.message, &request.out);
    RequestStream { out: Arc::clone(&request.out), progress }
}

fn open_route(request: &ClientRequest, target: &CallTarget, way: QuestionWay) -> OpenRoute {
    let parts = RouteParts {
        client: request.client.clone(),
        server: target.server().to_string(),
        target: target.name().to_owned(),
        unasked: request.view.options.unasked.clone(),
        way,
        stream: stream(request),
    };
    OpenRoute { shared: Arc::clone(&request.shared), route: request.shared.routes.open(parts) }
}

fn upstream(
    request: &ClientRequest,
    route: &Arc<CallRoute>,
    target: CallTarget,
    Continuation { round, is_permitted, tasks }: Continuation,
) -> UpstreamCall {
    let (shared, route) = (Arc::clone(&request.shared), Arc::clone(route));
    UpstreamCall { shared, route, target, meta: request.forwarded_meta(), round, is_permitted, tasks }
}
