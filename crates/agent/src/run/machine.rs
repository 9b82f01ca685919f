//! The state machine: events in, effects out.

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
    /// Completion of [`RunEffect::Gather`].
    Gathered(RequestInputs),
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
    pub offering: Arc<ToolOffer>,
}

/// An action for the driver.
#[derive(Debug)]
pub(crate) enum RunEffect {
    /// Collect the tools to offer, and the notes if the machine [accepts them](RunMachine::takes_notes).
    Gather,
    /// Send the [conversation](RunMachine::conversation) to the model.
    Ask,
    /// Close the response stream.
    HangUp,
    /// Call a tool.
    Call { id: String, tool: String, arguments: RawJson },
    /// Cancel all calls.
    Withdraw,
    /// Send an event to the observer.
    Tell(RunEvent),
}

/// Decides the actions of an agent.
pub(crate) struct RunMachine {
    limits: AgentLimits,
    /// Maximum tokens of the conversation.
    room: u64,
    conversation: Arc<Conversation>,
    /// The conversation before its images were removed. Discarded once the model responds, which shows that the images
    /// were the cause.
    with_pictures: Option<Arc<Conversation>>,
    phase: RunPhase,
    /// Blocks of the next user turn that are not in the conversation yet.
    unsaid: Vec<TurnBlock>,
    /// Tools offered in the last request.
    offering: Option<Arc<ToolOffer>>,
    requests: u32,
    /// Input and output tokens of the last response.
    counted: u64,
    gauge: TokenEstimator,
    ids: CallIds,
    repeats: LoopDetector,
    /// The model repeated its calls: one more request follows, without tools.
    is_final: bool,
    /// Calls that the person refused in this run. Bounded by the calls of a run.
    denied: HashSet<CallSignature>,
    effects: Vec<RunEffect>,
}

enum RunPhase {
    Gathering,
    Answering(PartialResponse),
    Calling(CallRound),
    Over,
}

impl RunMachine {
    /// Starts a run with the person's message. Returns the machine and the first effects. A message that repeats the
    /// last unanswered one is not added again. `max_tokens` is the output limit of one response.
    pub fn start(
        mut conversation: Conversation,
        said: Vec<TurnBlock>,
        limits: AgentLimits,
        max_tokens: u32,
    ) -> (Self, Vec<RunEffect>) {
        repair::repair(&mut conversation, UNKNOWN_RESULT);
        let unsaid = new_user_blocks(&conversation, said);
        let mut machine = Self {
            limits,
            room: max_conversation_tokens(limits.context, max_tokens),
            phase: RunPhase::Gathering,
            unsaid,
            offering: None,
            requests: 0,
            counted: 0,
            gauge: TokenEstimator::default(),
            ids: CallIds::from_conversation(&conversation),
            repeats: LoopDetector::new(limits.repeats),
            is_final: false,
            denied: HashSet::new(),
            effects: Vec::new(),
            conversation: Arc::new(conversation),
            with_pictures: None,
        };
        machine.request_inputs();
        let effects = std::mem::take(&mut machine.effects);
        (machine, effects)
    }

    /// Processes an event. Events that do not fit the current phase are ignored.
    pub fn step(&mut self, event: RunInput) -> Vec<RunEffect> {
        match event {
            RunInput::Gathered(gathered) => self.on_gathered(gathered),
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
        is_asking || !self.unsaid.is_empty()
    }

    fn request_inputs(&mut self) {
        if self.requests >= self.limits.requests {
            return self.end(self.out_of_requests_ending());
        }
        self.phase = RunPhase::Gathering;
        self.effects.push(RunEffect::Gather);
    }

    fn on_out_of_requests(&mut self) {
        if matches!(self.phase, RunPhase::Gathering) {
            self.end(self.out_of_requests_ending());
        }
    }

    fn out_of_requests_ending(&self) -> RunEnding {
        if self.is_final { RunEnding::Looping } else { RunEnding::OutOfRequests }
    }

    fn on_gathered(&mut self, RequestInputs { notes, offering }: RequestInputs) {
        if !matches!(self.phase, RunPhase::Gathering) {
            return;
        }
        for (block, event) in note_blocks(notes) {
            self.unsaid.push(block);
            self.emit(event);
        }
        self.flush_pending();
        self.gauge.definitions = offering.tokens();
        self.offering = Some(offering);
        let estimate = self.gauge.estimate(&self.conversation);
        self.shorten_by(estimate.saturating_sub(self.room), ShortenScope::Old);
        self.requests += 1;
        self.phase = RunPhase::Answering(PartialResponse::default());
        self.emit(RunEvent::Asking { request: self.requests });
        self.effects.push(RunEffect::Ask);
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
        let RunPhase::Answering(answer) = &mut self.phase else { return };
        if !matches!(event, ModelEvent::Waiting { .. }) {
            self.with_pictures = None;
        }
        match event {
            ModelEvent::Waiting { time, because } => self.emit(RunEvent::Waiting { time, because }),
            ModelEvent::TextDelta(text) => {
                answer.add_text(&text);
                self.emit(RunEvent::Text(text));
            }
            ModelEvent::ThinkingDelta(text) => self.emit(RunEvent::Thinking(text)),
            ModelEvent::BlockDone(block) => answer.add(self.ids.assign_unique_id(block)),
            ModelEvent::Usage { input, output, cached } => {
                self.counted = input.saturating_add(output);
                self.emit(RunEvent::Usage { input, output, cached });
            }
            ModelEvent::Done { stop } => {
                let answer = std::mem::take(answer);
                self.on_response_done(answer, &stop);
            }
            ModelEvent::ToolCallBegun { .. } | ModelEvent::ToolCallDelta { .. } => {}
        }
    }

    fn on_response_done(&mut self, answer: PartialResponse, stop: &StopReason) {
        match stop {
            _ if self.is_final => self.end_without_calls(answer.into_complete(), NO_TOOLS_RESULT, RunEnding::Looping),
            StopReason::MaxTokens => self.on_truncated(answer),
            StopReason::Refused => self.end_without_calls(answer.into_complete(), REFUSED_RESULT, RunEnding::Refused),
            StopReason::Paused => {
                self.execute_calls(answer.into_unmodified(), &SkippedCalls::new(), Self::request_inputs)
            }
            StopReason::EndTurn | StopReason::ToolCalls | StopReason::Other(_) => {
                self.execute_calls(answer.into_complete(), &SkippedCalls::new(), |machine| {
                    machine.end(RunEnding::Done)
                });
            }
        }
    }

    /// Executes the calls that were complete when the response reached its token limit. Ends the run if there are none.
    fn on_truncated(&mut self, answer: PartialResponse) {
        let (blocks, unmade) = answer.into_truncated();
        let is_made = |block: &TurnBlock| matches!(block, TurnBlock::ToolCall { id, .. } if !unmade.contains_key(id));
        match blocks.iter().any(is_made) {
            true => self.execute_calls(blocks, &unmade, Self::request_inputs),
            false => self.end_without_calls(blocks, TRUNCATED_REASON, RunEnding::TooLong),
        }
    }

    /// Executes the calls of a response except those in `unmade`. Runs `otherwise` if the response has no calls.
    fn execute_calls(&mut self, blocks: Vec<TurnBlock>, unmade: &SkippedCalls, otherwise: impl FnOnce(&mut Self)) {
        let wanted = blocks.iter().filter_map(|block| RequestedCall::from_block(block, self.offering.as_deref()));
        let wanted: Vec<RequestedCall> = wanted.map(|wanted| wanted.skip_if_listed(unmade)).collect();
        self.add_turn(TurnRole::Assistant, blocks);
        self.gauge.record(std::mem::take(&mut self.counted), &self.conversation);
        if wanted.is_empty() {
            return otherwise(self);
        }
        let deeds: Vec<CallSignature> = wanted.iter().map(|wanted| wanted.signature).collect();
        let repeated = self.repeats.check_round(&deeds);
        let mut round = CallRound::default();
        for wanted in wanted {
            // The results of earlier calls in the same response are not known yet, unless those calls were refused.
            let repeated = repeated
                .or_else(|| if round.has_accepted_calls() { None } else { self.repeats.check_call(wanted.signature) });
            match repeated {
                Some(times) => self.refuse_repetition(wanted, times, &mut round),
                None => self.execute_call(wanted, &mut round),
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
        self.unsaid = round.into_results();
        if self.repeats.gave_up() {
            self.is_final = true;
            self.unsaid.push(TurnBlock::Text(FINAL_ANSWER_MESSAGE.to_owned()));
        }
        self.request_inputs();
    }

    fn on_failure(&mut self, error: ModelError) {
        let RunPhase::Answering(answer) = &mut self.phase else { return };
        let answer = std::mem::take(answer);
        let may_ask = self.requests < self.limits.requests && answer.is_empty();
        if may_ask && self.shrink_for_error(&error) {
            return self.request_inputs();
        }
        self.end_without_calls(answer.into_interrupted(), INTERRUPTED_RESULT, RunEnding::Failed(error));
    }

    /// Removes the content that may have caused the error. Reports whether there was any.
    fn shrink_for_error(&mut self, error: &ModelError) -> bool {
        error.exceeds_context() && self.shrink_hard() || error.may_reject_images() && self.remove_images()
    }

    /// Shortens the conversation by about half of its estimated size, because the estimate was too low.
    fn shrink_hard(&mut self) -> bool {
        let excess = self.gauge.estimate(&self.conversation).div_ceil(2).max(1);
        self.shorten_by(excess, ShortenScope::All) || self.shorten_by(excess, ShortenScope::Utmost)
    }

    fn remove_images(&mut self) -> bool {
        let with_pictures = Arc::clone(&self.conversation);
        let pictures = remove_images(Arc::make_mut(&mut self.conversation));
        if pictures > 0 {
            self.with_pictures = Some(with_pictures);
            self.emit(RunEvent::PicturesLeftOut { pictures });
        }
        pictures > 0
    }

    fn cancel(&mut self) {
        match std::mem::replace(&mut self.phase, RunPhase::Over) {
            RunPhase::Over => {}
            RunPhase::Gathering => self.end(RunEnding::Cancelled),
            RunPhase::Answering(answer) => {
                self.effects.push(RunEffect::HangUp);
                self.end_without_calls(answer.into_interrupted(), CANCELLED_RESULT, RunEnding::Cancelled);
            }
            RunPhase::Calling(round) => self.cancel_round(round),
        }
    }

    fn cancel_round(&mut self, mut round: CallRound) {
        self.effects.push(RunEffect::Withdraw);
        for id in round.pending_ids() {
            let report = CallReport::error(CANCELLED_RESULT);
            round.finish_call(&id, &report);
            self.emit(RunEvent::CallEnded { id, report });
        }
        self.unsaid = round.into_results();
        self.end(RunEnding::Cancelled);
    }

    /// Ends the run with a response whose calls are not executed.
    fn end_without_calls(&mut self, blocks: Vec<TurnBlock>, why: &str, ending: RunEnding) {
        self.unsaid = repair::error_results(repair::call_ids(&blocks), why);
        self.add_turn(TurnRole::Assistant, blocks);
        self.end(ending);
    }

    fn end(&mut self, ending: RunEnding) {
        self.flush_pending();
        // The retry without images failed as well, so the images are probably not the cause.
        if let Some(with_pictures) = self.with_pictures.take() {
            self.conversation = with_pictures;
        }
        self.phase = RunPhase::Over;
        self.emit(RunEvent::Ended(ending));
    }

    fn flush_pending(&mut self) {
        let blocks = std::mem::take(&mut self.unsaid);
        self.add_turn(TurnRole::User, blocks);
    }

    fn add_turn(&mut self, role: TurnRole, blocks: Vec<TurnBlock>) {
        if !blocks.is_empty() {
            let turn = ConversationTurn { role, blocks };
            for conversation in std::iter::once(&mut self.conversation).chain(&mut self.with_pictures) {
                repair::append_turn(Arc::make_mut(conversation), turn.clone());
            }
            self.emit(RunEvent::Turn(turn));
        }
    }

    fn emit(&mut self, event: RunEvent) {
        self.effects.push(RunEffect::Tell(event));
    }
}

/// Returns the new part of the person's message. Without any message to answer, returns a request to go on.
fn new_user_blocks(conversation: &Conversation, mut said: Vec<TurnBlock>) -> Vec<TurnBlock> {
    said.retain(|block| match block {
        TurnBlock::Text(text) | TurnBlock::Relayed(text) => !text.trim().is_empty(),
        TurnBlock::Image { .. } => true,
        _ => false,
    });
    let last = conversation.turns.last().filter(|last| last.role == TurnRole::User);
    match last {
        Some(last) if last.blocks.ends_with(&said) => Vec::new(),
        None if said.is_empty() => vec![TurnBlock::Text(CONTINUE_MESSAGE.to_owned())],
        _ => said,
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
