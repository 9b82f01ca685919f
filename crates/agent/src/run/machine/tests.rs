mod properties;
mod room;

use wharf_tools::{AllowAllGate, Call, Description, Outcome, Pending, Registry, Tool, ToolError};

use super::*;
use crate::conversation::ResultBlock;
use crate::provider::{Format, Said};
use crate::whole::flaw;

/// Less than the reserved part of the context, so it has no effect.
const MAX_TOKENS: u32 = 100;

/// A machine under test with its recorded output.
struct Play {
    machine: Machine,
    told: Vec<RunEvent>,
    /// Names of the effects, without `Tell`.
    done: Vec<&'static str>,
    /// Ids of the pending calls.
    open: Vec<String>,
}

impl Play {
    fn new(conversation: Conversation, said: &str, limits: AgentLimits) -> Self {
        Self::with(conversation, vec![text(said)], limits, MAX_TOKENS)
    }

    fn with(conversation: Conversation, said: Vec<Block>, limits: AgentLimits, max_tokens: u32) -> Self {
        let (machine, effects) = Machine::begin(conversation, said, limits, max_tokens);
        let mut play = Self { machine, told: Vec::new(), done: Vec::new(), open: Vec::new() };
        play.take(effects);
        play
    }

    fn begun() -> Self {
        let mut play = Self::new(Conversation::default(), "hi", AgentLimits::default());
        play.gather();
        play
    }

    fn take(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            let word = match effect {
                Effect::Tell(event) => {
                    self.told.push(event);
                    continue;
                }
                Effect::Call { id, .. } => {
                    self.open.push(id);
                    "call"
                }
                Effect::Withdraw => {
                    self.open.clear();
                    "withdraw"
                }
                Effect::Gather => "gather",
                Effect::Ask => "ask",
                Effect::HangUp => "hang up",
            };
            self.done.push(word);
        }
    }

    fn step(&mut self, event: Event) {
        let effects = self.machine.step(event);
        self.take(effects);
    }

    fn gather(&mut self) {
        self.step(Event::Gathered(Gathered { notes: Vec::new(), offering: offering() }));
    }

    fn model(&mut self, event: ModelEvent) {
        self.step(Event::Model(event));
    }

    /// Feeds a response with these blocks.
    fn answer(&mut self, blocks: &[Block], stop: Stop) {
        blocks.iter().for_each(|block| self.model(ModelEvent::BlockDone(block.clone())));
        self.model(ModelEvent::Done { stop });
    }

    /// Feeds a response with calls and their results.
    fn round(&mut self, calls: &[(&str, &str)]) {
        let blocks: Vec<Block> = calls.iter().enumerate().map(|(at, (tool, _))| call(&at.to_string(), tool)).collect();
        self.answer(&blocks, Stop::ToolCalls);
        for (id, (_, result)) in std::mem::take(&mut self.open).into_iter().zip(calls) {
            self.end_call(&id, result);
        }
        self.gather();
    }

    fn end_call(&mut self, id: &str, text: &str) {
        self.end_call_with(id, ResultBlock::Text(text.into()));
    }

    fn end_call_with(&mut self, id: &str, result: ResultBlock) {
        self.open.retain(|open| open != id);
        let report = CallReport::new(vec![result], false);
        self.step(Event::CallEnded { id: id.into(), report });
    }

    /// Checks the turns in shorthand and the ending.
    fn check(&self, turns: &str, ending: Option<Ending>) {
        assert_eq!(shape(self.machine.conversation()), turns);
        assert_eq!(flaw(self.machine.conversation()), None);
        assert_eq!(self.ending(), ending.as_ref());
    }

    fn ending(&self) -> Option<&Ending> {
        match self.told.last() {
            Some(RunEvent::Ended(ending)) => Some(ending),
            _ => None,
        }
    }
}

/// Names of the available tools.
const NAMES: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "poll", "t"];

struct Named(Arc<Description>);

impl Tool for Named {
    fn description(&self) -> &Arc<Description> {
        &self.0
    }

    fn call(&self, _: Call) -> Pending<'_, Result<Outcome, ToolError>> {
        unreachable!("a machine calls nobody")
    }
}

fn offering() -> Arc<ToolOffer> {
    let registry = Registry::new(Arc::new(AllowAllGate));
    for name in NAMES {
        registry.register(Arc::new(Named(Arc::new(Description::new(name, "", RawJson::empty_object())))));
    }
    Arc::new(ToolOffer::of(&registry.snapshot(), Format::Anthropic, u64::MAX, |_| true))
}

fn call(id: &str, tool: &str) -> Block {
    Block::ToolCall { id: id.into(), name: tool.into(), arguments: RawJson::empty_object(), malformed: None }
}

fn text(text: &str) -> Block {
    Block::Text(text.into())
}

fn picture() -> Block {
    Block::Image { media_type: "image/png".into(), data: "aGk=".into() }
}

fn thought() -> Block {
    Block::Thinking { provider: "p".into(), raw: RawJson::empty_object() }
}

fn failure(kind: &str) -> ModelError {
    ModelError::Failed(Said { kind: Some(kind.into()), text: String::new() })
}

fn refused(status: u16) -> ModelError {
    ModelError::Refused { status, said: Said::default(), retry_after: None }
}

/// Formats turns as `hi | hello !1 | ?1=done`, separated by `|`. `~` is reasoning, `-1` an error result.
fn shape(conversation: &Conversation) -> String {
    let block = |block: &Block| match block {
        Block::Text(text) | Block::Relayed(text) => text.clone(),
        Block::ToolCall { id, .. } => format!("!{id}"),
        Block::ToolResult { id, is_error: true, .. } => format!("-{id}"),
        Block::ToolResult { id, content, .. } => match &content[0] {
            ResultBlock::Text(text) => format!("?{id}={text}"),
            ResultBlock::Image { .. } => format!("?{id}"),
        },
        _ => "~".to_owned(),
    };
    let turn = |turn: &Turn| turn.blocks.iter().map(block).collect::<Vec<_>>().join(" ");
    conversation.turns.iter().map(turn).collect::<Vec<_>>().join(" | ")
}

#[test]
fn an_answer_without_calls_is_the_end() {
    for (blocks, stop, turns, ending) in [
        (vec![text("hello")], Stop::EndTurn, "hi | hello", Ending::Done),
        (vec![thought(), text("hello")], Stop::ToolCalls, "hi | ~ hello", Ending::Done),
        (vec![text("hello")], Stop::Other("new".into()), "hi | hello", Ending::Done),
        (vec![], Stop::EndTurn, "hi", Ending::Done),
        (vec![thought()], Stop::EndTurn, "hi", Ending::Done),
        (vec![text("no")], Stop::Refused, "hi | no", Ending::Refused),
        (vec![text("long")], Stop::MaxTokens, "hi | long", Ending::TooLong),
        (vec![text("a"), call("1", "t")], Stop::MaxTokens, "hi | a !1 | -1", Ending::TooLong),
        (vec![call("1", "t")], Stop::Refused, "hi | !1 | -1", Ending::Refused),
    ] {
        let mut play = Play::begun();
        play.answer(&blocks, stop);
        play.check(turns, Some(ending));
        assert_eq!(play.done, ["gather", "ask"]);
    }
}

#[test]
fn results_go_back_in_the_order_of_the_calls_in_one_turn() {
    let mut play = Play::begun();
    play.answer(&[thought(), text("look"), call("1", "a"), call("2", "b"), call("3", "c")], Stop::ToolCalls);
    assert_eq!(play.open, ["1", "2", "3"]);
    for id in ["3", "1", "1", "nobody", "2"] {
        play.end_call(id, &format!("r{id}"));
    }
    play.gather();
    play.check("hi | ~ look !1 !2 !3 | ?1=r1 ?2=r2 ?3=r3", None);
    assert_eq!(play.done, ["gather", "ask", "call", "call", "call", "gather", "ask"]);
    let ended = play.told.iter().filter(|event| matches!(event, RunEvent::CallEnded { .. }));
    assert_eq!(ended.count(), 3);
}

#[test]
fn a_call_that_cannot_be_read_is_answered_and_not_made() {
    let mut play = Play::begun();
    let Block::ToolCall { id, name, arguments, .. } = call("1", "a") else { panic!() };
    play.answer(&[Block::ToolCall { id, name, arguments, malformed: Some("{\"a".into()) }], Stop::ToolCalls);
    play.gather();
    play.check("hi | !1 | -1", None);
    assert_eq!(play.done, ["gather", "ask", "gather", "ask"]);
    let Block::ToolResult { content, .. } = &play.machine.conversation().turns[2].blocks[0] else { panic!() };
    assert!(matches!(&content[0], ResultBlock::Text(text) if text.contains("begin so: {\"a")));
}

#[test]
fn calls_that_were_whole_before_an_answer_became_too_long_are_made() {
    let mut play = Play::begun();
    play.answer(&[text("look"), call("1", "a"), call("2", "a"), call("3", "b"), call("4", "c")], Stop::MaxTokens);
    assert_eq!(play.open, ["1", "3"]);
    for id in ["1", "3"] {
        play.end_call(id, &format!("r{id}"));
    }
    play.gather();
    play.check("hi | look !1 !2 !3 !4 | ?1=r1 -2 ?3=r3 -4", None);
    play.model(ModelEvent::BlockDone(call("5", "c")));
    play.model(ModelEvent::TextDelta("and th".into()));
    play.model(ModelEvent::Done { stop: Stop::MaxTokens });
    assert_eq!(play.open, ["5"]);
}

#[test]
fn a_paused_answer_goes_on_in_the_same_turn() {
    let mut play = Play::begun();
    play.answer(&[text("wait")], Stop::Paused);
    assert!(!play.machine.takes_notes());
    play.gather();
    play.answer(&[text("done")], Stop::EndTurn);
    play.check("hi | wait done", Some(Ending::Done));
}

#[test]
fn cancelled_at_any_moment_the_conversation_is_whole() {
    let end = |mut play: Play, turns: &str| {
        play.step(Event::Cancelled);
        play.check(turns, Some(Ending::Cancelled));
        play.done
    };
    let play = Play::new(Conversation::default(), "hi", AgentLimits::default());
    assert_eq!(end(play, "hi"), ["gather"]);
    assert_eq!(end(Play::begun(), "hi"), ["gather", "ask", "hang up"]);
    let mut play = Play::begun();
    play.model(ModelEvent::BlockDone(thought()));
    play.model(ModelEvent::TextDelta("hel".into()));
    end(play, "hi | ~ hel");
    let mut play = Play::begun();
    play.model(ModelEvent::BlockDone(call("1", "a")));
    end(play, "hi | !1 | -1");
    let mut play = Play::begun();
    play.answer(&[call("1", "a"), call("2", "a")], Stop::ToolCalls);
    play.end_call("2", "r");
    assert_eq!(end(play, "hi | !1 !2 | -1 ?2=r").last(), Some(&"withdraw"));
    let mut play = Play::begun();
    play.answer(&[call("1", "a")], Stop::ToolCalls);
    play.end_call("1", "r");
    end(play, "hi | !1 | ?1=r");
}

#[test]
fn after_a_failure_one_can_just_try_again() {
    let mut play = Play::begun();
    play.step(Event::Failed(ModelError::Incomplete));
    play.check("hi", Some(Ending::Failed(ModelError::Incomplete)));
    let conversation = || play.machine.conversation().as_ref().clone();
    for (said, turns) in [("hi", "hi"), ("", "hi"), ("ho", "hi ho")] {
        let mut again = Play::new(conversation(), said, AgentLimits::default());
        again.gather();
        again.check(turns, None);
    }
    let mut play = Play::begun();
    play.model(ModelEvent::TextDelta("hel".into()));
    play.step(Event::Failed(ModelError::Incomplete));
    play.check("hi | hel", Some(Ending::Failed(ModelError::Incomplete)));
    let mut again = Play::new(play.machine.conversation().as_ref().clone(), "", AgentLimits::default());
    again.gather();
    again.check("hi | hel | Go on.", None);
}

#[test]
fn who_repeats_himself_is_told_and_then_stopped() {
    let mut play = Play::begun();
    for _ in 0..5 {
        play.round(&[("a", "same")]);
    }
    let repeated = |play: &Play| {
        let times = play.told.iter().filter_map(|event| match event {
            RunEvent::Repeated { tool, times } if tool == "a" => Some(*times),
            _ => None,
        });
        times.collect::<Vec<_>>()
    };
    assert_eq!((repeated(&play), play.ending()), (vec![3, 4], None));
    assert_eq!(play.done.iter().filter(|done| **done == "call").count(), 3);
    play.round(&[("a", "same")]);
    assert_eq!((repeated(&play), play.ending()), (vec![3, 4, 5], Some(&Ending::Looping)));
    assert_eq!(flaw(play.machine.conversation()), None);
}

#[test]
fn who_does_something_else_is_not_stopped() {
    let mut play = Play::begun();
    for number in 0..20 {
        play.round(&[("poll", &number.to_string()), ("a", "same")]);
    }
    assert!(!play.told.iter().any(|event| matches!(event, RunEvent::Repeated { .. })));
    (0..2).for_each(|_| play.round(&[("a", "same")]));
    play.round(&[("b", "other"), ("a", "same")]);
    assert!(!play.told.iter().any(|event| matches!(event, RunEvent::Repeated { .. })));
    for _ in 0..3 {
        (0..3).for_each(|_| play.round(&[("a", "same")]));
        play.round(&[("b", "other")]);
    }
    assert_eq!(play.ending(), None);
}

#[test]
fn requests_are_counted() {
    let mut play = Play::new(Conversation::default(), "hi", AgentLimits { requests: 2, ..AgentLimits::default() });
    play.gather();
    play.round(&[("a", "1")]);
    play.round(&[("a", "2")]);
    play.check("hi | !0 | ?0=1 | !0_2 | ?0_2=2", Some(Ending::OutOfRequests));
    let play = Play::new(Conversation::default(), "hi", AgentLimits { requests: 0, ..AgentLimits::default() });
    play.check("hi", Some(Ending::OutOfRequests));
}

#[test]
fn a_loop_of_ten_calls_at_once_is_noticed_and_ended() {
    let mut play = Play::begun();
    let ten: Vec<(&str, &str)> = NAMES[..10].iter().map(|name| (*name, "same")).collect();
    (0..6).for_each(|_| play.round(&ten));
    assert_eq!(play.ending(), Some(&Ending::Looping));
    assert_eq!(play.done.iter().filter(|done| **done == "call").count(), 30);
    assert_eq!(flaw(play.machine.conversation()), None);
}

#[test]
fn requests_that_others_made_are_counted() {
    let mut play = Play::begun();
    play.step(Event::OutOfRequests);
    assert_eq!(play.ending(), None, "it is being answered");
    play.answer(&[call("1", "a")], Stop::ToolCalls);
    play.end_call("1", "r");
    play.step(Event::OutOfRequests);
    play.check("hi | !1 | ?1=r", Some(Ending::OutOfRequests));
}

#[test]
fn notes_stand_behind_the_results() {
    let notes = wharf_tools::Notes::default();
    notes.push("files", "changed");
    let mut play = Play::begun();
    play.answer(&[call("1", "a")], Stop::ToolCalls);
    play.end_call("1", "r");
    play.step(Event::Gathered(Gathered { notes: notes.take(), offering: offering() }));
    play.check("hi | !1 | ?1=r Note from `files` (not from the user):\n> changed", None);
    assert!(play.told.iter().any(|event| matches!(event, RunEvent::Noted { from, .. } if from == "files")));
}
