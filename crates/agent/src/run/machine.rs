//! The state machine: inputs in, effects out.

use std::collections::HashSet;
use std::sync::Arc;

use wharf_json::RawJson;
use wharf_tools::AgentNote;

use super::call_ids::CallIds;
use super::call_round::CallRound;
use super::context_window::{
    ShortenCost, ShortenScope, TokenEstimator, max_conversation_tokens, remove_images, shorten,
};
use super::loop_detector::{CallSignature, LoopDetector};
use super::note_blocks::note_blocks;
use super::partial_response::{PartialResponse, SkippedCalls, TRUNCATED_REASON};
use super::requested_call::RequestedCall;
use super::{CallReport, RunEnding, RunEvent};
use crate::agent::AgentLimits;
use crate::conversation::{Conversation, ConversationTurn, TurnBlock, TurnRole};
use crate::provider::{ModelError, ModelEvent, StopReason, ToolChoice};
use crate::repair;
use crate::tool_offer::ToolOffer;

const CANCELLED_RESULT: &str = "cancelled by the user";
const INTERRUPTED_RESULT: &str = "not executed: the response was interrupted";
const DENIED_RESULT: &str = "not executed, and the user was not asked again: the user denied this exact call earlier in \
                             this turn. Do not repeat it. Try another way, or tell the user what you need.";
const REFUSED_RESULT: &str = "not executed: the response was refused";
const UNKNOWN_RESULT: &str = "no result was recorded; the call may or may not have executed";
/// Message with the last request of a run that repeated its calls.
const FINAL_ANSWER_MESSAGE: &str = "You repeated the same call. Tools are no longer available. Answer now with what you have, and say what is missing.";
const NO_TOOLS_RESULT: &str = "not executed: tools are no longer available";
/// Message sent to the model to continue when the person's message is empty.
const CONTINUE_MESSAGE: &str = "Continue.";

/// An input of the machine.
pub(crate) enum RunInput {
    /// Completion of [`RunEffect::PrepareRequest`].
    RequestPrepared(RequestInputs),
    /// The request budget is exhausted, because sub-agents or the parent run used it.
    OutOfRequests,
    /// An event of the response stream.
    Model(ModelEvent),
    /// The request failed or the response broke off.
    Failed(ModelError),
    /// A tool call has ended.
    CallEnded {
        id: String,
        report: CallReport,
    },
    Cancelled,
}

/// Inputs of a request besides the conversation.
pub(crate) struct RequestInputs {
    pub notes: Vec<AgentNote>,
    pub tool_offer: Arc<ToolOffer>,
}

/// An action for the driver.
#[derive(Debug)]
pub(crate) enum RunEffect {
    /// Collect the tools to offer, and the notes if the machine [accepts them](RunMachine::takes_notes).
    PrepareRequest,
    /// Send the [conversation](RunMachine::conversation) to the model.
    SendRequest,
    /// Close the response stream.
    CloseStream,
    /// Call a tool.
    Call { id: String, tool: String, arguments: RawJson },
    /// Cancel all calls.
    CancelCalls,
    /// Send an event to the observer.
    Emit(RunEvent),
}

/// Decides the actions of an agent.
pub(crate) struct RunMachine {
    limits: AgentLimits,
    /// Maximum tokens of the conversation.
    max_conversation_tokens: u64,
    conversation: Arc<Conversation>,
    /// The conversation before its images were removed. Discarded once the model responds, which shows that the images
    /// were the cause.
    with_images: Option<Arc<Conversation>>,
    phase: RunPhase,
    /// Blocks of the next user turn that are not in the conversation yet.
    pending_user_blocks: Vec<TurnBlock>,
    /// Tools offered in the last request.
    tool_offer: Option<Arc<ToolOffer>>,
    requests: u32,
    /// Input and output tokens of the last response.
    last_usage: u64,
    token_estimator: TokenEstimator,
    ids: CallIds,
    repeats: LoopDetector,
    /// The model repeated its calls: one more request follows, without tools.
    is_final: bool,
    /// Calls that the person refused in this run. Bounded by the calls of a run.
    denied: HashSet<CallSignature>,
    effects: Vec<RunEffect>,
}

enum RunPhase {
    PreparingRequest,
    ReceivingResponse(PartialResponse),
    Calling(CallRound),
    Over,
}

impl RunMachine {
    /// Starts a run with the person's message. Returns the machine and the first effects. A message that repeats the
    /// last unanswered one is not added again. `max_tokens` is the output limit of one response.
    pub fn start(
        mut conversation: Conversation,
        user_input: Vec<TurnBlock>,
        limits: AgentLimits,
        max_tokens: u32,
    ) -> (Self, Vec<RunEffect>) {
        repair::repair(&mut conversation, UNKNOWN_RESULT);
        let pending_user_blocks = new_user_blocks(&conversation, user_input);
        let mut machine = Self {
            limits,
            max_conversation_tokens: max_conversation_tokens(limits.context, max_tokens),
            phase: RunPhase::PreparingRequest,
            pending_user_blocks,
            tool_offer: None,
            requests: 0,
            last_usage: 0,
            token_estimator: TokenEstimator::default(),
            ids: CallIds::from_conversation(&conversation),
            repeats: LoopDetector::new(limits.repeats),
            is_final: false,
            denied: HashSet::new(),
            effects: Vec::new(),
            conversation: Arc::new(conversation),
            with_images: None,
        };
        machine.prepare_next_request();
        let effects = std::mem::take(&mut machine.effects);
        (machine, effects)
    }

    /// Processes an input. Inputs that do not fit the current phase are ignored.
    pub fn step(&mut self, input: RunInput) -> Vec<RunEffect> {
        match input {
            RunInput::RequestPrepared(inputs) => self.on_request_prepared(inputs),
            RunInput::OutOfRequests => self.on_out_of_requests(),
            RunInput::Model(event) => self.on_model_event(event),
            RunInput::Failed(error) => self.on_failure(error),
            RunInput::CallEnded { id, report } => self.on_call_ended(id, report),
            RunInput::Cancelled => self.cancel(),
        }
        std::mem::take(&mut self.effects)
    }

    pub fn conversation(&self) -> &Arc<Conversation> {
        &self.conversation
    }

    /// Returns the conversation at the end of the run.
    pub fn into_conversation(self) -> Arc<Conversation> {
        self.conversation
    }

    pub fn is_over(&self) -> bool {
        matches!(self.phase, RunPhase::Over)
    }

    /// Returns whether the model may call tools in the current request.
    pub fn tool_choice(&self) -> ToolChoice<'static> {
        if self.is_final { ToolChoice::Never } else { ToolChoice::Auto }
    }

    /// Reports whether the next turn is the user's, which can carry notes.
    pub fn takes_notes(&self) -> bool {
        let is_asking = self.conversation.turns.last().is_some_and(|last| last.role == TurnRole::User);
        is_asking || !self.pending_user_blocks.is_empty()
    }

    fn prepare_next_request(&mut self) {
        if self.requests >= self.limits.requests {
            return self.end(self.out_of_requests_ending());
        }
        self.phase = RunPhase::PreparingRequest;
        self.effects.push(RunEffect::PrepareRequest);
    }

    fn on_out_of_requests(&mut self) {
        if matches!(self.phase, RunPhase::PreparingRequest) {
            self.end(self.out_of_requests_ending());
        }
    }

    fn out_of_requests_ending(&self) -> RunEnding {
        if self.is_final { RunEnding::Looping } else { RunEnding::OutOfRequests }
    }

    fn on_request_prepared(&mut self, RequestInputs { notes, tool_offer }: RequestInputs) {
        if !matches!(self.phase, RunPhase::PreparingRequest) {
            return;
        }
        for (block, event) in note_blocks(notes) {
            self.pending_user_blocks.push(block);
            self.emit(event);
        }
        self.flush_pending();
        self.token_estimator.definitions = tool_offer.tokens();
        self.tool_offer = Some(tool_offer);
        let estimate = self.token_estimator.estimate(&self.conversation);
        self.shorten_by(estimate.saturating_sub(self.max_conversation_tokens), ShortenScope::Old);
        self.requests += 1;
        self.phase = RunPhase::ReceivingResponse(PartialResponse::default());
        self.emit(RunEvent::RequestSent { request: self.requests });
        self.effects.push(RunEffect::SendRequest);
    }

    /// Shortens the conversation. Reports whether any content could be removed.
    fn shorten_by(&mut self, excess: u64, reach: ShortenScope) -> bool {
        if excess == 0 {
            return false;
        }
        let cost = shorten(Arc::make_mut(&mut self.conversation), excess, reach);
        let ShortenCost { results, answers } = cost;
        if cost != ShortenCost::default() {
            self.emit(RunEvent::Shortened { results, answers });
        }
        cost != ShortenCost::default()
    }

    fn on_model_event(&mut self, event: ModelEvent) {
        let RunPhase::ReceivingResponse(response) = &mut self.phase else { return };
        if !matches!(event, ModelEvent::Waiting { .. }) {
            self.with_images = None;
        }
        match event {
            ModelEvent::Waiting { time, because } => self.emit(RunEvent::Waiting { time, because }),
            ModelEvent::TextDelta(text) => {
                response.add_text(&text);
                self.emit(RunEvent::Text(text));
            }
            ModelEvent::ThinkingDelta(text) => self.emit(RunEvent::Thinking(text)),
            ModelEvent::BlockDone(block) => response.add(self.ids.assign_unique_id(block)),
            ModelEvent::Usage { input, output, cached } => {
                self.last_usage = input.saturating_add(output);
                self.emit(RunEvent::Usage { input, output, cached });
            }
            ModelEvent::Done { stop } => {
                let response = std::mem::take(response);
                self.on_response_done(response, &stop);
            }
            ModelEvent::ToolCallBegun { .. } | ModelEvent::ToolCallDelta { .. } => {}
        }
    }

    fn on_response_done(&mut self, response: PartialResponse, stop: &StopReason) {
        match stop {
            _ if self.is_final => self.end_without_calls(response.into_complete(), NO_TOOLS_RESULT, RunEnding::Looping),
            StopReason::MaxTokens => self.on_truncated(response),
            StopReason::Refused => self.end_without_calls(response.into_complete(), REFUSED_RESULT, RunEnding::Refused),
            StopReason::Paused => {
                self.execute_calls(response.into_unmodified(), &SkippedCalls::new(), Self::prepare_next_request)
            }
            StopReason::EndTurn | StopReason::ToolCalls | StopReason::Other(_) => {
                self.execute_calls(response.into_complete(), &SkippedCalls::new(), |machine| {
                    machine.end(RunEnding::Done)
                });
            }
        }
    }

    /// Executes the calls that were complete when the response reached its token limit. Ends the run if there are none.
    fn on_truncated(&mut self, response: PartialResponse) {
        let (blocks, skipped) = response.into_truncated();
        let is_executed =
            |block: &TurnBlock| matches!(block, TurnBlock::ToolCall { id, .. } if !skipped.contains_key(id));
        match blocks.iter().any(is_executed) {
            true => self.execute_calls(blocks, &skipped, Self::prepare_next_request),
            false => self.end_without_calls(blocks, TRUNCATED_REASON, RunEnding::TooLong),
        }
    }

    /// Executes the calls of a response except those in `skipped`. Runs `otherwise` if the response has no calls.
    fn execute_calls(&mut self, blocks: Vec<TurnBlock>, skipped: &SkippedCalls, otherwise: impl FnOnce(&mut Self)) {
        let requested = blocks.iter().filter_map(|block| RequestedCall::from_block(block, self.tool_offer.as_deref()));
        let requested: Vec<RequestedCall> = requested.map(|requested| requested.skip_if_listed(skipped)).collect();
        self.add_turn(TurnRole::Assistant, blocks);
        self.token_estimator.record(std::mem::take(&mut self.last_usage), &self.conversation);
        if requested.is_empty() {
            return otherwise(self);
        }
        let signatures: Vec<CallSignature> = requested.iter().map(|requested| requested.signature).collect();
        let repeated = self.repeats.check_round(&signatures);
        let mut round = CallRound::default();
        for requested in requested {
            // The results of earlier calls in the same response are not known yet, unless those calls were refused.
            let repeated = repeated.or_else(|| {
                if round.has_accepted_calls() { None } else { self.repeats.check_call(requested.signature) }
            });
            match repeated {
                Some(times) => self.refuse_repetition(requested, times, &mut round),
                None => self.execute_call(requested, &mut round),
            }
        }
        self.repeats.record_refusals(round.has_accepted_calls());
        self.phase = RunPhase::Calling(round);
        self.finish_round_if_done();
    }

    /// Refuses a repeated call with an error result.
    fn refuse_repetition(&mut self, RequestedCall { id, tool, .. }: RequestedCall, times: u32, round: &mut CallRound) {
        round.add_finished(id, None, CallReport::error(repetition_message(times)));
        self.emit(RunEvent::Repeated { tool, times });
    }

    /// Executes one call, unless its result is already known or the person has refused the same call in this run.
    fn execute_call(
        &mut self,
        RequestedCall { id, tool, arguments, signature, answer }: RequestedCall,
        round: &mut CallRound,
    ) {
        self.emit(RunEvent::CallBegun { id: id.clone(), tool: tool.clone(), arguments: arguments.clone() });
        let denied = || self.denied.contains(&signature).then(|| CallReport::error(DENIED_RESULT));
        match answer.or_else(denied) {
            Some(report) => {
                round.add_finished(id.clone(), Some(signature), report.clone());
                self.emit(RunEvent::CallEnded { id, report });
            }
            None => {
                round.add_pending(id.clone(), signature);
                self.effects.push(RunEffect::Call { id, tool, arguments });
            }
        }
    }

    fn on_call_ended(&mut self, id: String, report: CallReport) {
        let RunPhase::Calling(round) = &mut self.phase else { return };
        if round.finish_call(&id, &report) {
            self.denied.extend(round.signature(&id).filter(|_| report.is_refused));
            self.emit(RunEvent::CallEnded { id, report });
            self.finish_round_if_done();
        }
    }

    /// Continues once all calls of a response have results.
    fn finish_round_if_done(&mut self) {
        let RunPhase::Calling(round) = &mut self.phase else { return };
        if !round.is_over() {
            return;
        }
        let round = std::mem::take(round);
        self.repeats.record(round.accepted_calls());
        self.pending_user_blocks = round.into_results();
        if self.repeats.gave_up() {
            self.is_final = true;
            self.pending_user_blocks.push(TurnBlock::Text(FINAL_ANSWER_MESSAGE.to_owned()));
        }
        self.prepare_next_request();
    }

    fn on_failure(&mut self, error: ModelError) {
        let RunPhase::ReceivingResponse(response) = &mut self.phase else { return };
        let response = std::mem::take(response);
        let may_ask = self.requests < self.limits.requests && response.is_empty();
        if may_ask && self.shrink_for_error(&error) {
            return self.prepare_next_request();
        }
        self.end_without_calls(response.into_interrupted(), INTERRUPTED_RESULT, RunEnding::Failed(error));
    }

    /// Removes the content that may have caused the error. Reports whether there was any.
    fn shrink_for_error(&mut self, error: &ModelError) -> bool {
        error.exceeds_context() && self.shrink_hard() || error.may_reject_images() && self.remove_images()
    }

    /// Shortens the conversation by about half of its estimated size, because the estimate was too low.
    fn shrink_hard(&mut self) -> bool {
        let excess = self.token_estimator.estimate(&self.conversation).div_ceil(2).max(1);
        self.shorten_by(excess, ShortenScope::All) || self.shorten_by(excess, ShortenScope::Utmost)
    }

    fn remove_images(&mut self) -> bool {
        let with_images = Arc::clone(&self.conversation);
        let images = remove_images(Arc::make_mut(&mut self.conversation));
        if images > 0 {
            self.with_images = Some(with_images);
            self.emit(RunEvent::ImagesRemoved { images });
        }
        images > 0
    }

    fn cancel(&mut self) {
        match std::mem::replace(&mut self.phase, RunPhase::Over) {
            RunPhase::Over => {}
            RunPhase::PreparingRequest => self.end(RunEnding::Cancelled),
            RunPhase::ReceivingResponse(response) => {
                self.effects.push(RunEffect::CloseStream);
                self.end_without_calls(response.into_interrupted(), CANCELLED_RESULT, RunEnding::Cancelled);
            }
            RunPhase::Calling(round) => self.cancel_round(round),
        }
    }

    fn cancel_round(&mut self, mut round: CallRound) {
        self.effects.push(RunEffect::CancelCalls);
        for id in round.pending_ids() {
            let report = CallReport::error(CANCELLED_RESULT);
            round.finish_call(&id, &report);
            self.emit(RunEvent::CallEnded { id, report });
        }
        self.pending_user_blocks = round.into_results();
        self.end(RunEnding::Cancelled);
    }

    /// Ends the run with a response whose calls are not executed.
    fn end_without_calls(&mut self, blocks: Vec<TurnBlock>, why: &str, ending: RunEnding) {
        self.pending_user_blocks = repair::error_results(repair::call_ids(&blocks), why);
        self.add_turn(TurnRole::Assistant, blocks);
        self.end(ending);
    }

    fn end(&mut self, ending: RunEnding) {
        self.flush_pending();
        // The retry without images failed as well, so the images are probably not the cause.
        if let Some(with_images) = self.with_images.take() {
            self.conversation = with_images;
        }
        self.phase = RunPhase::Over;
        self.emit(RunEvent::Ended(ending));
    }

    fn flush_pending(&mut self) {
        let blocks = std::mem::take(&mut self.pending_user_blocks);
        self.add_turn(TurnRole::User, blocks);
    }

    fn add_turn(&mut self, role: TurnRole, blocks: Vec<TurnBlock>) {
        if !blocks.is_empty() {
            let turn = ConversationTurn { role, blocks };
            for conversation in std::iter::once(&mut self.conversation).chain(&mut self.with_images) {
                repair::append_turn(Arc::make_mut(conversation), turn.clone());
            }
            self.emit(RunEvent::Turn(turn));
        }
    }

    fn emit(&mut self, event: RunEvent) {
        self.effects.push(RunEffect::Emit(event));
    }
}

/// Returns the new part of the person's message. Without any message to answer, returns a request to go on.
fn new_user_blocks(conversation: &Conversation, mut user_input: Vec<TurnBlock>) -> Vec<TurnBlock> {
    user_input.retain(|block| match block {
        TurnBlock::Text(text) | TurnBlock::Relayed(text) => !text.trim().is_empty(),
        TurnBlock::Image { .. } => true,
        _ => false,
    });
    let last = conversation.turns.last().filter(|last| last.role == TurnRole::User);
    match last {
        Some(last) if last.blocks.ends_with(&user_input) => Vec::new(),
        None if user_input.is_empty() => vec![TurnBlock::Text(CONTINUE_MESSAGE.to_owned())],
        _ => user_input,
    }
}

fn repetition_message(times: u32) -> String {
    format!(
        "not executed: this exact call was made {times} times with the same result. Use what you \
         have, try something else, or say what is blocking you."
    )
}

#[cfg(test)]
mod tests;
