//! The state machine: events in, effects out.

use std::sync::Arc;

use wharf_json::RawJson;
use wharf_tools::AgentNote;

use super::call_ids::CallIds;
use super::call_round::CallRound;
use super::context_window::{ShortenCost, ShortenScope, TokenEstimator, leave_out_pictures, room, shorten};
use super::loop_detector::{CallSignature, LoopDetector};
use super::note_blocks::noted;
use super::partial_response::{PartialResponse, SkippedCalls, TRUNCATED_REASON};
use super::requested_call::RequestedCall;
use super::{CallReport, RunEnding, RunEvent};
use crate::agent::AgentLimits;
use crate::conversation::{Conversation, ConversationTurn, TurnBlock, TurnRole};
use crate::provider::{ModelError, ModelEvent, StopReason};
use crate::repair;
use crate::tool_offer::ToolOffer;

const CANCELLED_RESULT: &str = "cancelled by the user";
const INTERRUPTED_RESULT: &str = "not executed: the response was interrupted";
const REFUSED_RESULT: &str = "not executed: the response was refused";
const UNKNOWN_RESULT: &str = "no result was recorded; the call may or may not have executed";
/// Message sent to the model to continue when the person's message is empty.
const CONTINUE_MESSAGE: &str = "Continue.";

/// An input of the machine.
pub(crate) enum RunInput {
    /// Completion of [`Effect::Gather`].
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
    /// Collect the tools to offer, and the notes if the machine [accepts them](Machine::takes_notes).
    Gather,
    /// Send the [conversation](Machine::conversation) to the model.
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
    pub fn begin(
        mut conversation: Conversation,
        said: Vec<TurnBlock>,
        limits: AgentLimits,
        max_tokens: u32,
    ) -> (Self, Vec<RunEffect>) {
        repair::mend(&mut conversation, UNKNOWN_RESULT);
        let unsaid = unsaid(&conversation, said);
        let mut machine = Self {
            limits,
            room: room(limits.context, max_tokens),
            phase: RunPhase::Gathering,
            unsaid,
            offering: None,
            requests: 0,
            counted: 0,
            gauge: TokenEstimator::default(),
            ids: CallIds::of(&conversation),
            repeats: LoopDetector::new(limits.repeats),
            effects: Vec::new(),
            conversation: Arc::new(conversation),
            with_pictures: None,
        };
        machine.go_on();
        let effects = std::mem::take(&mut machine.effects);
        (machine, effects)
    }

    /// Processes an event. Events that do not fit the current phase are ignored.
    pub fn step(&mut self, event: RunInput) -> Vec<RunEffect> {
        match event {
            RunInput::Gathered(gathered) => self.gathered(gathered),
            RunInput::OutOfRequests => self.run_out(),
            RunInput::Model(event) => self.heard(event),
            RunInput::Failed(error) => self.failed(error),
            RunInput::CallEnded { id, report } => self.call_ended(id, report),
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

    /// Reports whether the next turn is the user's, which can carry notes.
    pub fn takes_notes(&self) -> bool {
        let is_asking = self.conversation.turns.last().is_some_and(|last| last.role == TurnRole::User);
        is_asking || !self.unsaid.is_empty()
    }

    fn go_on(&mut self) {
        if self.requests >= self.limits.requests {
            return self.end(RunEnding::OutOfRequests);
        }
        self.phase = RunPhase::Gathering;
        self.effects.push(RunEffect::Gather);
    }

    fn run_out(&mut self) {
        if matches!(self.phase, RunPhase::Gathering) {
            self.end(RunEnding::OutOfRequests);
        }
    }

    fn gathered(&mut self, RequestInputs { notes, offering }: RequestInputs) {
        if !matches!(self.phase, RunPhase::Gathering) {
            return;
        }
        for (block, event) in noted(notes) {
            self.unsaid.push(block);
            self.tell(event);
        }
        self.say_unsaid();
        self.gauge.definitions = offering.tokens();
        self.offering = Some(offering);
        let estimate = self.gauge.estimate(&self.conversation);
        self.make_room(estimate.saturating_sub(self.room), ShortenScope::Old);
        self.requests += 1;
        self.phase = RunPhase::Answering(PartialResponse::default());
        self.tell(RunEvent::Asking { request: self.requests });
        self.effects.push(RunEffect::Ask);
    }

    /// Shortens the conversation. Reports whether any content could be removed.
    fn make_room(&mut self, excess: u64, reach: ShortenScope) -> bool {
        if excess == 0 {
            return false;
        }
        let cost = shorten(Arc::make_mut(&mut self.conversation), excess, reach);
        let ShortenCost { results, answers } = cost;
        if cost != ShortenCost::default() {
            self.tell(RunEvent::Shortened { results, answers });
        }
        cost != ShortenCost::default()
    }

    fn heard(&mut self, event: ModelEvent) {
        let RunPhase::Answering(answer) = &mut self.phase else { return };
        if !matches!(event, ModelEvent::Waiting { .. }) {
            self.with_pictures = None;
        }
        match event {
            ModelEvent::Waiting { time, because } => self.tell(RunEvent::Waiting { time, because }),
            ModelEvent::TextDelta(text) => {
                answer.add_text(&text);
                self.tell(RunEvent::Text(text));
            }
            ModelEvent::ThinkingDelta(text) => self.tell(RunEvent::Thinking(text)),
            ModelEvent::BlockDone(block) => answer.add(self.ids.settle(block)),
            ModelEvent::Usage { input, output, cached } => {
                self.counted = input.saturating_add(output);
                self.tell(RunEvent::Usage { input, output, cached });
            }
            ModelEvent::Done { stop } => {
                let answer = std::mem::take(answer);
                self.answered(answer, &stop);
            }
            ModelEvent::ToolCallBegun { .. } | ModelEvent::ToolCallDelta { .. } => {}
        }
    }

    fn answered(&mut self, answer: PartialResponse, stop: &StopReason) {
        match stop {
            StopReason::MaxTokens => self.too_long(answer),
            StopReason::Refused => self.stop(answer.whole(), REFUSED_RESULT, RunEnding::Refused),
            StopReason::Paused => self.act_on(answer.unchanged(), &SkippedCalls::new(), Self::go_on),
            StopReason::EndTurn | StopReason::ToolCalls | StopReason::Other(_) => {
                self.act_on(answer.whole(), &SkippedCalls::new(), |machine| machine.end(RunEnding::Done));
            }
        }
    }

    /// Executes the calls that were complete when the response reached its token limit. Ends the run if there are none.
    fn too_long(&mut self, answer: PartialResponse) {
        let (blocks, unmade) = answer.too_long();
        let is_made = |block: &TurnBlock| matches!(block, TurnBlock::ToolCall { id, .. } if !unmade.contains_key(id));
        match blocks.iter().any(is_made) {
            true => self.act_on(blocks, &unmade, Self::go_on),
            false => self.stop(blocks, TRUNCATED_REASON, RunEnding::TooLong),
        }
    }

    /// Executes the calls of a response except those in `unmade`. Runs `otherwise` if the response has no calls.
    fn act_on(&mut self, blocks: Vec<TurnBlock>, unmade: &SkippedCalls, otherwise: impl FnOnce(&mut Self)) {
        let wanted = blocks.iter().filter_map(|block| RequestedCall::of(block, self.offering.as_deref()));
        let wanted: Vec<RequestedCall> = wanted.map(|wanted| wanted.unless(unmade)).collect();
        self.say(TurnRole::Assistant, blocks);
        self.gauge.count(std::mem::take(&mut self.counted), &self.conversation);
        if wanted.is_empty() {
            return otherwise(self);
        }
        let deeds: Vec<CallSignature> = wanted.iter().map(|wanted| wanted.deed).collect();
        let repeated = self.repeats.refuse_round(&deeds);
        let mut round = CallRound::default();
        for wanted in wanted {
            // The results of earlier calls in the same response are not known yet, unless those calls were refused.
            let repeated = repeated.or_else(|| if round.has_deeds() { None } else { self.repeats.refuse(wanted.deed) });
            match repeated {
                Some(times) => self.refuse(wanted, times, &mut round),
                None => self.make(wanted, &mut round),
            }
        }
        self.repeats.note_round(round.has_deeds());
        self.phase = RunPhase::Calling(round);
        self.end_round();
    }

    /// Refuses a repeated call with an error result.
    fn refuse(&mut self, RequestedCall { id, tool, .. }: RequestedCall, times: u32, round: &mut CallRound) {
        round.answer(id, None, CallReport::error(repeats_itself(times)));
        self.tell(RunEvent::Repeated { tool, times });
    }

    /// Executes one call, unless its result is already known.
    fn make(&mut self, RequestedCall { id, tool, arguments, deed, answer }: RequestedCall, round: &mut CallRound) {
        self.tell(RunEvent::CallBegun { id: id.clone(), tool: tool.clone(), arguments: arguments.clone() });
        match answer {
            Some(report) => {
                round.answer(id.clone(), Some(deed), report.clone());
                self.tell(RunEvent::CallEnded { id, report });
            }
            None => {
                round.open(id.clone(), deed);
                self.effects.push(RunEffect::Call { id, tool, arguments });
            }
        }
    }

    fn call_ended(&mut self, id: String, report: CallReport) {
        let RunPhase::Calling(round) = &mut self.phase else { return };
        if round.end(&id, &report) {
            self.tell(RunEvent::CallEnded { id, report });
            self.end_round();
        }
    }

    /// Continues once all calls of a response have results.
    fn end_round(&mut self) {
        let RunPhase::Calling(round) = &mut self.phase else { return };
        if !round.is_over() {
            return;
        }
        let round = std::mem::take(round);
        self.repeats.record(round.deeds());
        self.unsaid = round.into_results();
        match self.repeats.is_hopeless() {
            true => self.end(RunEnding::Looping),
            false => self.go_on(),
        }
    }

    fn failed(&mut self, error: ModelError) {
        let RunPhase::Answering(answer) = &mut self.phase else { return };
        let answer = std::mem::take(answer);
        let may_ask = self.requests < self.limits.requests && answer.is_empty();
        if may_ask && self.give_way(&error) {
            return self.go_on();
        }
        self.stop(answer.cut(), INTERRUPTED_RESULT, RunEnding::Failed(error));
    }

    /// Removes the content that may have caused the error. Reports whether there was any.
    fn give_way(&mut self, error: &ModelError) -> bool {
        error.is_outgrown() && self.squeeze() || error.may_mind_pictures() && self.leave_out_pictures()
    }

    /// Shortens the conversation by about half of its estimated size, because the estimate was too low.
    fn squeeze(&mut self) -> bool {
        let excess = self.gauge.estimate(&self.conversation).div_ceil(2).max(1);
        self.make_room(excess, ShortenScope::All) || self.make_room(excess, ShortenScope::Utmost)
    }

    fn leave_out_pictures(&mut self) -> bool {
        let with_pictures = Arc::clone(&self.conversation);
        let pictures = leave_out_pictures(Arc::make_mut(&mut self.conversation));
        if pictures > 0 {
            self.with_pictures = Some(with_pictures);
            self.tell(RunEvent::PicturesLeftOut { pictures });
        }
        pictures > 0
    }

    fn cancel(&mut self) {
        match std::mem::replace(&mut self.phase, RunPhase::Over) {
            RunPhase::Over => {}
            RunPhase::Gathering => self.end(RunEnding::Cancelled),
            RunPhase::Answering(answer) => {
                self.effects.push(RunEffect::HangUp);
                self.stop(answer.cut(), CANCELLED_RESULT, RunEnding::Cancelled);
            }
            RunPhase::Calling(round) => self.withdraw(round),
        }
    }

    fn withdraw(&mut self, mut round: CallRound) {
        self.effects.push(RunEffect::Withdraw);
        for id in round.open_ids() {
            let report = CallReport::error(CANCELLED_RESULT);
            round.end(&id, &report);
            self.tell(RunEvent::CallEnded { id, report });
        }
        self.unsaid = round.into_results();
        self.end(RunEnding::Cancelled);
    }

    /// Ends the run with a response whose calls are not executed.
    fn stop(&mut self, blocks: Vec<TurnBlock>, why: &str, ending: RunEnding) {
        self.unsaid = repair::refusals(repair::calls(&blocks), why);
        self.say(TurnRole::Assistant, blocks);
        self.end(ending);
    }

    fn end(&mut self, ending: RunEnding) {
        self.say_unsaid();
        // The retry without images failed as well, so the images are probably not the cause.
        if let Some(with_pictures) = self.with_pictures.take() {
            self.conversation = with_pictures;
        }
        self.phase = RunPhase::Over;
        self.tell(RunEvent::Ended(ending));
    }

    fn say_unsaid(&mut self) {
        let blocks = std::mem::take(&mut self.unsaid);
        self.say(TurnRole::User, blocks);
    }

    fn say(&mut self, role: TurnRole, blocks: Vec<TurnBlock>) {
        if !blocks.is_empty() {
            let turn = ConversationTurn { role, blocks };
            for conversation in std::iter::once(&mut self.conversation).chain(&mut self.with_pictures) {
                repair::add(Arc::make_mut(conversation), turn.clone());
            }
            self.tell(RunEvent::Turn(turn));
        }
    }

    fn tell(&mut self, event: RunEvent) {
        self.effects.push(RunEffect::Tell(event));
    }
}

/// Returns the new part of the person's message. Without any message to answer, returns a request to go on.
fn unsaid(conversation: &Conversation, mut said: Vec<TurnBlock>) -> Vec<TurnBlock> {
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

fn repeats_itself(times: u32) -> String {
    format!(
        "not executed: this exact call was made {times} times with the same result. Use what you \
         have, try something else, or say what is blocking you."
    )
}

#[cfg(test)]
mod tests;
