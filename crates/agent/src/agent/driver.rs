//! Driver of one run: executes the effects of the state machine and feeds events back to it.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use super::calls::{CallQueue, QueuedCall};
use super::response_stream::ResponseInFlight;
use super::{Agent, ModelUsage, RunBudget};
use crate::conversation::{Conversation, TurnBlock};
use crate::provider::{ModelError, ModelEvent};
use crate::run::{RequestInputs, RunEffect, RunEvent, RunInput, RunMachine};
use crate::tool_offer::ToolOffer;

/// Executes the decisions of a state machine.
pub(super) struct AgentDriver {
    agent: Agent,
    events: mpsc::Sender<RunEvent>,
    cancelled: Arc<Notify>,
    run_budget: Arc<RunBudget>,
    /// The machine waits for [`RunEffect::PrepareRequest`] to complete.
    must_prepare_request: bool,
    response: Option<ResponseInFlight>,
    calls: CallQueue,
    /// Start times of the pending calls.
    started: HashMap<String, Instant>,
    /// Tools currently offered to the model, with the registry version they were built from.
    tool_offer: Option<(u64, Arc<ToolOffer>)>,
}

/// An event from one of the driver's sources.
enum AgentDriverEvent {
    Cancelled,
    PrepareRequest,
    StreamItem(Result<ModelEvent, ModelError>),
    CallEnded(RunInput),
}

impl AgentDriver {
    pub fn new(agent: Agent, events: mpsc::Sender<RunEvent>, cancelled: Arc<Notify>) -> Self {
        let run_budget = RunBudget::new(agent.request_budget());
        let calls = CallQueue::new(agent.clone(), events.downgrade(), run_budget.clone());
        let (response, started, tool_offer) = Default::default();
        Self { agent, events, cancelled, run_budget, must_prepare_request: false, response, calls, started, tool_offer }
    }

    /// Runs to the end. Dropping the future closes the connection to the model and cancels all calls.
    pub async fn run(mut self, conversation: Conversation, user_input: Vec<TurnBlock>) -> Conversation {
        let max_tokens = self.agent.model.provider().max_tokens;
        let (mut machine, mut effects) = RunMachine::start(conversation, user_input, self.agent.limits, max_tokens);
        loop {
            for effect in effects {
                self.perform(effect, &machine).await;
            }
            if machine.is_over() {
                return Arc::unwrap_or_clone(machine.into_conversation());
            }
            effects = match self.next_event().await {
                AgentDriverEvent::Cancelled => machine.step(RunInput::Cancelled),
                AgentDriverEvent::PrepareRequest => {
                    let inputs = self.prepare_request(&machine).await;
                    machine.step(inputs)
                }
                AgentDriverEvent::StreamItem(item) => machine.step(self.on_stream_item(item)),
                AgentDriverEvent::CallEnded(event) => {
                    self.report_delegated_usage().await;
                    machine.step(event)
                }
            };
        }
    }

    async fn next_event(&mut self) -> AgentDriverEvent {
        tokio::select! {
            biased;
            () = self.cancelled.notified() => AgentDriverEvent::Cancelled,
            () = std::future::ready(()), if self.must_prepare_request => AgentDriverEvent::PrepareRequest,
            item = next_stream_item(&mut self.response) => AgentDriverEvent::StreamItem(item),
            (id, report) = self.calls.next_finished() => AgentDriverEvent::CallEnded(RunInput::CallEnded { id, report }),
        }
    }

    async fn perform(&mut self, effect: RunEffect, machine: &RunMachine) {
        match effect {
            RunEffect::PrepareRequest => self.must_prepare_request = true,
            RunEffect::SendRequest => self.send_request(machine).await,
            RunEffect::CloseStream => self.response = None,
            RunEffect::Call { id, tool, arguments } => self.calls.add(QueuedCall { id, tool, arguments }),
            RunEffect::CancelCalls => self.cancel_calls().await,
            RunEffect::Emit(event) => self.send_event(event).await,
        }
    }

    /// Takes a request from the budget and collects the notes and tools for it.
    async fn prepare_request(&mut self, machine: &RunMachine) -> RunInput {
        self.must_prepare_request = false;
        if !self.run_budget.take_request() {
            return RunInput::OutOfRequests;
        }
        let tool_offer = self.current_offer().await;
        let notes = if machine.takes_notes() { self.agent.take_notes() } else { Vec::new() };
        RunInput::RequestPrepared(RequestInputs { notes, tool_offer })
    }

    /// Returns the tools to offer. Rebuilds the offer only if the registry has changed, on a blocking thread, because
    /// indexing many tools takes time.
    async fn current_offer(&mut self) -> Arc<ToolOffer> {
        let snapshot = self.agent.registry.snapshot();
        if let Some((version, tool_offer)) = &self.tool_offer
            && *version == snapshot.version()
        {
            return tool_offer.clone();
        }
        let most_tokens = self.agent.limits.max_tool_tokens();
        let (agent, version) = (self.agent.clone(), snapshot.version());
        let format = agent.model.provider().format;
        let make =
            move || Arc::new(ToolOffer::from_snapshot(&snapshot, format, most_tokens, |name| agent.may_call(name)));
        // Without a thread the run goes on, and this thread indexes.
        let tool_offer = match wharf_threads::run_blocking(make.clone()).await {
            Ok(tool_offer) => tool_offer,
            Err(_) => make(),
        };
        self.tool_offer = Some((version, tool_offer.clone()));
        tool_offer
    }

    async fn send_request(&mut self, machine: &RunMachine) {
        let tool_offer = match &self.tool_offer {
            Some((_, tool_offer)) => tool_offer.clone(),
            None => self.current_offer().await,
        };
        self.response = Some(ResponseInFlight::prepare(
            &self.agent,
            machine.conversation().clone(),
            tool_offer,
            machine.tool_choice(),
        ));
    }

    /// Converts a stream item to an event. Drops the stream after its last item.
    fn on_stream_item(&mut self, item: Result<ModelEvent, ModelError>) -> RunInput {
        if matches!(item, Err(_) | Ok(ModelEvent::Done { .. })) {
            self.response = None;
        }
        item.map_or_else(RunInput::Failed, RunInput::Model)
    }

    async fn cancel_calls(&mut self) {
        self.calls.cancel_all().await;
        self.report_delegated_usage().await;
    }

    async fn report_delegated_usage(&mut self) {
        if let Some(ModelUsage { requests, input, output, cached }) = self.run_budget.take_usage() {
            self.send_event(RunEvent::Delegated { requests, input, output, cached }).await;
        }
    }

    /// Sends an event to the observer and waits while the channel is full. Backpressure reaches the model, not the
    /// servers.
    async fn send_event(&mut self, event: RunEvent) {
        let event = self.add_duration(event);
        // The observer may be gone.
        let _ = self.events.send(event).await;
    }

    /// Adds the duration to a call report, because the machine has no clock.
    fn add_duration(&mut self, mut event: RunEvent) -> RunEvent {
        match &mut event {
            RunEvent::CallBegun { id, .. } => {
                self.started.insert(id.clone(), Instant::now());
            }
            RunEvent::CallEnded { id, report } => {
                let elapsed = self.started.remove(id).map(|started| started.elapsed()).unwrap_or_default();
                report.duration = elapsed.saturating_sub(self.calls.take_person_time(id));
            }
            _ => {}
        }
        event
    }
}

/// Returns the next item of the response stream. Waits forever if no request is in flight.
async fn next_stream_item(response: &mut Option<ResponseInFlight>) -> Result<ModelEvent, ModelError> {
    match response {
        Some(response) => response.next().await,
        None => std::future::pending().await,
    }
}
