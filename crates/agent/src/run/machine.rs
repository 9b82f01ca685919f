//! The machine: what happened in, what to do out.

use std::sync::Arc;

use wharf_json::Raw;
use wharf_spec::Shown;
use wharf_tools::{Note, Outcome};

use super::answer::Answer;
use super::ids::Ids;
use super::noted::noted;
use super::repeats::{Deed, Repeats};
use super::results;
use super::room::{Gauge, Reach, shorten};
use super::round::Round;
use super::{CallReport, Ending, RunEvent};
use crate::agent::AgentLimits;
use crate::conversation::{Block, Conversation, Role, Turn};
use crate::offer::{Meaning, Offering};
use crate::provider::{ModelError, ModelEvent, Stop};
use crate::whole;

const CANCELLED: &str = "cancelled by the person";
const BROKEN_OFF: &str = "not carried out: the answer broke off before it was whole";
const TOO_LONG: &str = "not carried out: the answer was longer than it may be";
const REFUSED: &str = "not carried out: the answer was refused";
const UNANSWERED: &str = "nobody knows what came of this call";
/// What is said to a model that is to go on when the person has nothing to add.
const GO_ON: &str = "Go on.";

/// Something that happened.
pub(crate) enum Event {
    /// What [`Effect::Gather`] asked for.
    Gathered(Gathered),
    /// The model said something.
    Model(ModelEvent),
    /// The model could not be asked, or broke off.
    Failed(ModelError),
    /// A call has ended.
    CallEnded {
        id: String,
        report: CallReport,
    },
    Cancelled,
}

/// What a request is made of, besides the conversation.
pub(crate) struct Gathered {
    pub notes: Vec<Note>,
    pub offering: Arc<Offering>,
}

/// Something to do.
#[derive(Debug)]
pub(crate) enum Effect {
    /// See what there is to tell the model, and which tools there are. Notes only where they [can be
    /// told](Machine::takes_notes).
    Gather,
    /// Ask the model what the [conversation](Machine::conversation) says.
    Ask,
    /// Listen to the model no longer.
    HangUp,
    /// Call a tool.
    Call { id: String, tool: String, arguments: Raw },
    /// Withdraw all calls.
    Withdraw,
    /// Tell whoever watches.
    Tell(RunEvent),
}

/// Decides what an agent does when.
pub(crate) struct Machine {
    limits: AgentLimits,
    conversation: Arc<Conversation>,
    phase: Phase,
    /// What goes next from the user's side, and is not part of the conversation yet.
    unsaid: Vec<Block>,
    /// What the model was offered last.
    offering: Option<Arc<Offering>>,
    requests: u32,
    /// Tokens of the last answer and what it was asked with.
    counted: u64,
    gauge: Gauge,
    ids: Ids,
    repeats: Repeats,
    /// Whether the conversation was shortened because the API did not take it.
    is_squeezed: bool,
    effects: Vec<Effect>,
}

enum Phase {
    Gathering,
    Answering(Answer),
    Calling(Round),
    Over,
}

impl Machine {
    /// A run that begins with what the person said, and what to do first. What was said last already, and was not
    /// answered, is not said twice.
    pub fn begin(mut conversation: Conversation, said: Vec<Block>, limits: AgentLimits) -> (Self, Vec<Effect>) {
        whole::mend(&mut conversation, UNANSWERED);
        let unsaid = unsaid(&conversation, said);
        let mut machine = Self {
            limits,
            phase: Phase::Gathering,
            unsaid,
            offering: None,
            requests: 0,
            counted: 0,
            gauge: Gauge::default(),
            ids: Ids::of(&conversation),
            repeats: Repeats::new(limits.repeats),
            is_squeezed: false,
            effects: Vec::new(),
            conversation: Arc::new(conversation),
        };
        machine.go_on();
        let effects = std::mem::take(&mut machine.effects);
        (machine, effects)
    }

    /// Takes what happened. What comes when nobody waits for it is left alone.
    pub fn step(&mut self, event: Event) -> Vec<Effect> {
        match event {
            Event::Gathered(gathered) => self.gathered(gathered),
            Event::Model(event) => self.heard(event),
            Event::Failed(error) => self.failed(error),
            Event::CallEnded { id, report } => self.call_ended(id, report),
            Event::Cancelled => self.cancel(),
        }
        std::mem::take(&mut self.effects)
    }

    pub fn conversation(&self) -> &Arc<Conversation> {
        &self.conversation
    }

    /// The conversation, at the end.
    pub fn into_conversation(self) -> Arc<Conversation> {
        self.conversation
    }

    pub fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over)
    }

    /// Whether what goes next is the user's turn, in which notes can stand.
    pub fn takes_notes(&self) -> bool {
        let is_asking = self.conversation.turns.last().is_some_and(|last| last.role == Role::User);
        is_asking || !self.unsaid.is_empty()
    }

    fn go_on(&mut self) {
        if self.requests >= self.limits.requests {
            return self.end(Ending::OutOfRequests);
        }
        self.phase = Phase::Gathering;
        self.effects.push(Effect::Gather);
    }

    fn gathered(&mut self, Gathered { notes, offering }: Gathered) {
        if !matches!(self.phase, Phase::Gathering) {
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
        self.make_room(estimate.saturating_sub(self.limits.context / 5 * 4), Reach::Old);
        self.ask();
    }

    fn ask(&mut self) {
        self.requests += 1;
        self.phase = Phase::Answering(Answer::default());
        self.tell(RunEvent::Asking { request: self.requests });
        self.effects.push(Effect::Ask);
    }

    /// Says whether there was anything to take away.
    fn make_room(&mut self, excess: u64, reach: Reach) -> bool {
        let results = if excess == 0 { 0 } else { shorten(Arc::make_mut(&mut self.conversation), excess, reach) };
        if results > 0 {
            self.tell(RunEvent::Shortened { results });
        }
        results > 0
    }

    fn heard(&mut self, event: ModelEvent) {
        let Phase::Answering(answer) = &mut self.phase else { return };
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

    fn answered(&mut self, answer: Answer, stop: &Stop) {
        self.is_squeezed = false;
        match stop {
            Stop::MaxTokens => self.stop(answer.cut(), TOO_LONG, Ending::TooLong),
            Stop::Refused => self.stop(answer.whole(), REFUSED, Ending::Refused),
            Stop::Paused => self.act_on(answer.unchanged(), Self::go_on),
            Stop::EndTurn | Stop::ToolCalls | Stop::Other(_) => {
                self.act_on(answer.whole(), |machine| machine.end(Ending::Done));
            }
        }
    }

    /// Makes the calls of an answer; where there are none, does what is to be done then.
    fn act_on(&mut self, blocks: Vec<Block>, otherwise: impl FnOnce(&mut Self)) {
        let mut round = Round::default();
        let calls: Vec<Block> =
            blocks.iter().filter(|block| matches!(block, Block::ToolCall { .. })).cloned().collect();
        self.say(Role::Assistant, blocks);
        self.gauge.count(std::mem::take(&mut self.counted), &self.conversation);
        if calls.is_empty() {
            return otherwise(self);
        }
        for call in calls {
            self.make(call, &mut round);
        }
        self.repeats.note_round(round.has_deeds());
        self.phase = Phase::Calling(round);
        self.end_round();
    }

    /// Makes one call, or answers it without making it.
    fn make(&mut self, call: Block, round: &mut Round) {
        let Block::ToolCall { id, name, arguments, malformed } = call else { return };
        let meaning = match (&malformed, &self.offering) {
            (Some(text), _) => Meaning::Answer(Outcome::error(misspelt(text))),
            (None, Some(offering)) => offering.meaning(&name, &arguments),
            (None, None) => Meaning::Call { tool: name.clone(), arguments: arguments.clone() },
        };
        let (tool, arguments, answer) = match meaning {
            Meaning::Call { tool, arguments } => (tool, arguments, None),
            Meaning::Answer(outcome) => (name, arguments, Some(results::report(&outcome))),
        };
        let deed = Deed::of(&tool, &arguments, malformed.as_deref());
        // What came of the calls before it in the same answer is not known yet, unless they were refused.
        let repeated = if round.has_deeds() { None } else { self.repeats.refuse(deed) };
        if let Some(times) = repeated {
            round.answer(id, None, CallReport::error(repeats_itself(times)));
            return self.tell(RunEvent::Repeated { tool, times });
        }
        self.tell(RunEvent::CallBegun { id: id.clone(), tool: tool.clone(), arguments: arguments.clone() });
        match answer {
            Some(report) => {
                round.answer(id.clone(), Some(deed), report.clone());
                self.tell(RunEvent::CallEnded { id, report });
            }
            None => {
                round.open(id.clone(), deed);
                self.effects.push(Effect::Call { id, tool, arguments });
            }
        }
    }

    fn call_ended(&mut self, id: String, report: CallReport) {
        let Phase::Calling(round) = &mut self.phase else { return };
        if round.end(&id, &report) {
            self.tell(RunEvent::CallEnded { id, report });
            self.end_round();
        }
    }

    /// Goes on once all calls of an answer have their results.
    fn end_round(&mut self) {
        let Phase::Calling(round) = &mut self.phase else { return };
        if !round.is_over() {
            return;
        }
        let round = std::mem::take(round);
        round.deeds().for_each(|(deed, report)| self.repeats.record(deed, report));
        self.unsaid = round.into_results();
        match self.repeats.is_hopeless() {
            true => self.end(Ending::Looping),
            false => self.go_on(),
        }
    }

    fn failed(&mut self, error: ModelError) {
        let Phase::Answering(answer) = &mut self.phase else { return };
        let answer = std::mem::take(answer);
        let may_ask = self.requests < self.limits.requests && !self.is_squeezed && answer.is_empty();
        if error.is_outgrown() && may_ask && self.squeeze() {
            return self.ask();
        }
        self.stop(answer.cut(), BROKEN_OFF, Ending::Failed(error));
    }

    /// Makes the conversation about half as long as it seems to be, since it is longer than it seems.
    fn squeeze(&mut self) -> bool {
        self.is_squeezed = true;
        self.make_room(self.gauge.estimate(&self.conversation).div_ceil(2), Reach::All)
    }

    fn cancel(&mut self) {
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Over => {}
            Phase::Gathering => self.end(Ending::Cancelled),
            Phase::Answering(answer) => {
                self.effects.push(Effect::HangUp);
                self.stop(answer.cut(), CANCELLED, Ending::Cancelled);
            }
            Phase::Calling(round) => self.withdraw(round),
        }
    }

    fn withdraw(&mut self, mut round: Round) {
        self.effects.push(Effect::Withdraw);
        for id in round.open_ids() {
            let report = CallReport::error(CANCELLED);
            round.end(&id, &report);
            self.tell(RunEvent::CallEnded { id, report });
        }
        self.unsaid = round.into_results();
        self.end(Ending::Cancelled);
    }

    /// Ends with an answer whose calls are not made.
    fn stop(&mut self, blocks: Vec<Block>, why: &str, ending: Ending) {
        self.unsaid = whole::refusals(whole::calls(&blocks), why);
        self.say(Role::Assistant, blocks);
        self.end(ending);
    }

    fn end(&mut self, ending: Ending) {
        self.say_unsaid();
        self.phase = Phase::Over;
        self.tell(RunEvent::Ended(ending));
    }

    fn say_unsaid(&mut self) {
        let blocks = std::mem::take(&mut self.unsaid);
        self.say(Role::User, blocks);
    }

    fn say(&mut self, role: Role, blocks: Vec<Block>) {
        if !blocks.is_empty() {
            let turn = Turn { role, blocks };
            whole::add(Arc::make_mut(&mut self.conversation), turn.clone());
            self.tell(RunEvent::Turn(turn));
        }
    }

    fn tell(&mut self, event: RunEvent) {
        self.effects.push(Effect::Tell(event));
    }
}

/// What is new of what the person said; something to go on with, where there is nothing at all to answer.
fn unsaid(conversation: &Conversation, mut said: Vec<Block>) -> Vec<Block> {
    said.retain(|block| match block {
        Block::Text(text) => !text.trim().is_empty(),
        Block::Image { .. } => true,
        _ => false,
    });
    let last = conversation.turns.last().filter(|last| last.role == Role::User);
    match last {
        Some(last) if last.blocks.ends_with(&said) => Vec::new(),
        None if said.is_empty() => vec![Block::Text(GO_ON.to_owned())],
        _ => said,
    }
}

fn misspelt(text: &str) -> String {
    let text = Shown::line(text, 200);
    format!("nothing was called: the arguments are not one JSON object, but begin so: {text}\nCall it again with one.")
}

fn repeats_itself(times: u32) -> String {
    format!(
        "not carried out: this very call was made {times} times, and the result was the same each time. Use what you \
         have, do something else, or say what stands in the way."
    )
}

#[cfg(test)]
mod tests;
