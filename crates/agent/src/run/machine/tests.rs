mod properties;
mod shortening;

use wharf_tools::{AllowAllGate, BoxFuture, Registry, Tool, ToolDescription, ToolError, ToolInvocation, ToolOutcome};

use super::*;
use crate::conversation::ResultBlock;
use crate::provider::{ApiErrorMessage, ApiFormat};
use crate::repair::find_defect;

/// Less than the reserved part of the context, so it has no effect.
const MAX_TOKENS: u32 = 100;

/// A machine under test with its recorded output.
struct MachineFixture {
    machine: RunMachine,
    events: Vec<RunEvent>,
    /// Names of the effects, without `Tell`.
    done: Vec<&'static str>,
    /// Ids of the pending calls.
    open: Vec<String>,
}

impl MachineFixture {
    fn new(conversation: Conversation, user_input: &str, limits: AgentLimits) -> Self {
        Self::with_blocks(conversation, vec![text(user_input)], limits, MAX_TOKENS)
    }

    fn with_blocks(
        conversation: Conversation,
        user_input: Vec<TurnBlock>,
        limits: AgentLimits,
        max_tokens: u32,
    ) -> Self {
        let (machine, effects) = RunMachine::start(conversation, user_input, limits, max_tokens);
        let mut fixture = Self { machine, events: Vec::new(), done: Vec::new(), open: Vec::new() };
        fixture.take(effects);
        fixture
    }

    fn in_first_request() -> Self {
        let mut fixture = Self::new(Conversation::default(), "hi", AgentLimits::default());
        fixture.prepare_request();
        fixture
    }

    fn take(&mut self, effects: Vec<RunEffect>) {
        for effect in effects {
            let word = match effect {
                RunEffect::Emit(event) => {
                    self.events.push(event);
                    continue;
                }
                RunEffect::Call { id, .. } => {
                    self.open.push(id);
                    "call"
                }
                RunEffect::CancelCalls => {
                    self.open.clear();
                    "cancel calls"
                }
                RunEffect::PrepareRequest => "prepare request",
                RunEffect::SendRequest => "send request",
                RunEffect::CloseStream => "close stream",
            };
            self.done.push(word);
        }
    }

    fn step(&mut self, event: RunInput) {
        let effects = self.machine.step(event);
        self.take(effects);
    }

    fn prepare_request(&mut self) {
        self.step(RunInput::RequestPrepared(RequestInputs { notes: Vec::new(), tool_offer: all_tools_offer() }));
    }

    fn model(&mut self, event: ModelEvent) {
        self.step(RunInput::Model(event));
    }

    /// Feeds a response with these blocks.
    fn answer(&mut self, blocks: &[TurnBlock], stop: StopReason) {
        blocks.iter().for_each(|block| self.model(ModelEvent::BlockDone(block.clone())));
        self.model(ModelEvent::Done { stop });
    }

    /// Feeds a response with calls and their results.
    fn round(&mut self, calls: &[(&str, &str)]) {
        let blocks: Vec<TurnBlock> =
            calls.iter().enumerate().map(|(at, (tool, _))| call(&at.to_string(), tool)).collect();
        self.answer(&blocks, StopReason::ToolCalls);
        for (id, (_, result)) in std::mem::take(&mut self.open).into_iter().zip(calls) {
            self.end_call(&id, result);
        }
        self.prepare_request();
    }

    fn end_call(&mut self, id: &str, text: &str) {
        self.end_call_with(id, ResultBlock::Text(text.into()));
    }

    fn end_call_with(&mut self, id: &str, result: ResultBlock) {
        self.open.retain(|open| open != id);
        let report = CallReport::new(vec![result], false);
        self.step(RunInput::CallEnded { id: id.into(), report });
    }

    /// Checks the turns in shorthand and the ending.
    fn check(&self, turns: &str, ending: Option<RunEnding>) {
        assert_eq!(shape(self.machine.conversation()), turns);
        assert_eq!(find_defect(self.machine.conversation()), None);
        assert_eq!(self.run_ending(), ending.as_ref());
    }

    fn run_ending(&self) -> Option<&RunEnding> {
        match self.events.last() {
            Some(RunEvent::Ended(ending)) => Some(ending),
            _ => None,
        }
    }
}

/// Names of the available tools.
const NAMES: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "poll", "t"];

struct NamedTool(Arc<ToolDescription>);

impl Tool for NamedTool {
    fn description(&self) -> &Arc<ToolDescription> {
        &self.0
    }

    fn call(&self, _: ToolInvocation) -> BoxFuture<'_, Result<ToolOutcome, ToolError>> {
        unreachable!("the machine makes no calls itself")
    }
}

fn all_tools_offer() -> Arc<ToolOffer> {
    let registry = Registry::new(Arc::new(AllowAllGate));
    for name in NAMES {
        registry.register(Arc::new(NamedTool(Arc::new(ToolDescription::new(name, "", RawJson::empty_object())))));
    }
    Arc::new(ToolOffer::from_snapshot(&registry.snapshot(), ApiFormat::Anthropic, u64::MAX, |_| true))
}

fn call(id: &str, tool: &str) -> TurnBlock {
    TurnBlock::ToolCall { id: id.into(), name: tool.into(), arguments: RawJson::empty_object(), malformed: None }
}

fn text(text: &str) -> TurnBlock {
    TurnBlock::Text(text.into())
}

fn image_block() -> TurnBlock {
    TurnBlock::Image { media_type: "image/png".into(), data: "aGk=".into() }
}

fn reasoning_block() -> TurnBlock {
    TurnBlock::Thinking { provider: "p".into(), raw: RawJson::empty_object() }
}

fn failure(kind: &str) -> ModelError {
    ModelError::Failed(ApiErrorMessage { kind: Some(kind.into()), text: String::new() })
}

fn rejection(status: u16) -> ModelError {
    ModelError::Refused { status, message: ApiErrorMessage::default(), retry_after: None }
}

/// Formats turns as `hi | hello !1 | ?1=done`, separated by `|`. `~` is reasoning, `-1` an error result.
fn shape(conversation: &Conversation) -> String {
    let block = |block: &TurnBlock| match block {
        TurnBlock::Text(text) | TurnBlock::Relayed(text) => text.clone(),
        TurnBlock::ToolCall { id, .. } => format!("!{id}"),
        TurnBlock::ToolResult { id, is_error: true, .. } => format!("-{id}"),
        TurnBlock::ToolResult { id, content, .. } => match &content[0] {
            ResultBlock::Text(text) => format!("?{id}={text}"),
            ResultBlock::Image { .. } => format!("?{id}"),
        },
        _ => "~".to_owned(),
    };
    let turn = |turn: &ConversationTurn| turn.blocks.iter().map(block).collect::<Vec<_>>().join(" ");
    conversation.turns.iter().map(turn).collect::<Vec<_>>().join(" | ")
}

#[test]
fn response_without_calls_to_execute_ends_the_run() {
    for (blocks, stop, turns, ending) in [
        (vec![text("hello")], StopReason::EndTurn, "hi | hello", RunEnding::Done),
        (vec![reasoning_block(), text("hello")], StopReason::ToolCalls, "hi | ~ hello", RunEnding::Done),
        (vec![text("hello")], StopReason::Other("new".into()), "hi | hello", RunEnding::Done),
        (vec![], StopReason::EndTurn, "hi", RunEnding::Done),
        (vec![reasoning_block()], StopReason::EndTurn, "hi", RunEnding::Done),
        (vec![text("no")], StopReason::Refused, "hi | no", RunEnding::Refused),
        (vec![text("long")], StopReason::MaxTokens, "hi | long", RunEnding::TooLong),
        (vec![text("a"), call("1", "t")], StopReason::MaxTokens, "hi | a !1 | -1", RunEnding::TooLong),
        (vec![call("1", "t")], StopReason::Refused, "hi | !1 | -1", RunEnding::Refused),
    ] {
        let mut fixture = MachineFixture::in_first_request();
        fixture.answer(&blocks, stop);
        fixture.check(turns, Some(ending));
        assert_eq!(fixture.done, ["prepare request", "send request"]);
    }
}

#[test]
fn results_follow_call_order_in_one_turn() {
    let mut fixture = MachineFixture::in_first_request();
    fixture.answer(
        &[reasoning_block(), text("look"), call("1", "a"), call("2", "b"), call("3", "c")],
        StopReason::ToolCalls,
    );
    assert_eq!(fixture.open, ["1", "2", "3"]);
    for id in ["3", "1", "1", "nobody", "2"] {
        fixture.end_call(id, &format!("r{id}"));
    }
    fixture.prepare_request();
    fixture.check("hi | ~ look !1 !2 !3 | ?1=r1 ?2=r2 ?3=r3", None);
    assert_eq!(
        fixture.done,
        ["prepare request", "send request", "call", "call", "call", "prepare request", "send request"]
    );
    let ended = fixture.events.iter().filter(|event| matches!(event, RunEvent::CallEnded { .. }));
    assert_eq!(ended.count(), 3);
}

#[test]
fn malformed_call_gets_error_result_without_execution() {
    let mut fixture = MachineFixture::in_first_request();
    let TurnBlock::ToolCall { id, name, arguments, .. } = call("1", "a") else { panic!() };
    fixture
        .answer(&[TurnBlock::ToolCall { id, name, arguments, malformed: Some("{\"a".into()) }], StopReason::ToolCalls);
    fixture.prepare_request();
    fixture.check("hi | !1 | -1", None);
    assert_eq!(fixture.done, ["prepare request", "send request", "prepare request", "send request"]);
    let TurnBlock::ToolResult { content, .. } = &fixture.machine.conversation().turns[2].blocks[0] else { panic!() };
    assert!(
        matches!(&content[0], ResultBlock::Text(text) if text.contains("the arguments are not a JSON object: {\"a"))
    );
}

#[test]
fn complete_calls_of_truncated_response_are_executed() {
    let mut fixture = MachineFixture::in_first_request();
    fixture
        .answer(&[text("look"), call("1", "a"), call("2", "a"), call("3", "b"), call("4", "c")], StopReason::MaxTokens);
    assert_eq!(fixture.open, ["1", "3"]);
    for id in ["1", "3"] {
        fixture.end_call(id, &format!("r{id}"));
    }
    fixture.prepare_request();
    fixture.check("hi | look !1 !2 !3 !4 | ?1=r1 -2 ?3=r3 -4", None);
    fixture.model(ModelEvent::BlockDone(call("5", "c")));
    fixture.model(ModelEvent::TextDelta("and th".into()));
    fixture.model(ModelEvent::Done { stop: StopReason::MaxTokens });
    assert_eq!(fixture.open, ["5"]);
}

#[test]
fn paused_response_continues_in_same_turn() {
    let mut fixture = MachineFixture::in_first_request();
    fixture.answer(&[text("wait")], StopReason::Paused);
    assert!(!fixture.machine.takes_notes());
    fixture.prepare_request();
    fixture.answer(&[text("done")], StopReason::EndTurn);
    fixture.check("hi | wait done", Some(RunEnding::Done));
}

#[test]
fn conversation_is_well_formed_after_any_cancellation() {
    let end = |mut fixture: MachineFixture, turns: &str| {
        fixture.step(RunInput::Cancelled);
        fixture.check(turns, Some(RunEnding::Cancelled));
        fixture.done
    };
    let fixture = MachineFixture::new(Conversation::default(), "hi", AgentLimits::default());
    assert_eq!(end(fixture, "hi"), ["prepare request"]);
    assert_eq!(end(MachineFixture::in_first_request(), "hi"), ["prepare request", "send request", "close stream"]);
    let mut fixture = MachineFixture::in_first_request();
    fixture.model(ModelEvent::BlockDone(reasoning_block()));
    fixture.model(ModelEvent::TextDelta("hel".into()));
    end(fixture, "hi | ~ hel");
    let mut fixture = MachineFixture::in_first_request();
    fixture.model(ModelEvent::BlockDone(call("1", "a")));
    end(fixture, "hi | !1 | -1");
    let mut fixture = MachineFixture::in_first_request();
    fixture.answer(&[call("1", "a"), call("2", "a")], StopReason::ToolCalls);
    fixture.end_call("2", "r");
    assert_eq!(end(fixture, "hi | !1 !2 | -1 ?2=r").last(), Some(&"cancel calls"));
    let mut fixture = MachineFixture::in_first_request();
    fixture.answer(&[call("1", "a")], StopReason::ToolCalls);
    fixture.end_call("1", "r");
    end(fixture, "hi | !1 | ?1=r");
}

#[test]
fn failed_run_can_be_retried() {
    let mut fixture = MachineFixture::in_first_request();
    fixture.step(RunInput::Failed(ModelError::Incomplete));
    fixture.check("hi", Some(RunEnding::Failed(ModelError::Incomplete)));
    let conversation = || fixture.machine.conversation().as_ref().clone();
    for (user_input, turns) in [("hi", "hi"), ("", "hi"), ("ho", "hi ho")] {
        let mut again = MachineFixture::new(conversation(), user_input, AgentLimits::default());
        again.prepare_request();
        again.check(turns, None);
    }
    let mut fixture = MachineFixture::in_first_request();
    fixture.model(ModelEvent::TextDelta("hel".into()));
    fixture.step(RunInput::Failed(ModelError::Incomplete));
    fixture.check("hi | hel", Some(RunEnding::Failed(ModelError::Incomplete)));
    let mut again = MachineFixture::new(fixture.machine.conversation().as_ref().clone(), "", AgentLimits::default());
    again.prepare_request();
    again.check("hi | hel | Continue.", None);
}

#[test]
fn repetition_is_reported_then_the_model_answers_without_tools() {
    let mut fixture = MachineFixture::in_first_request();
    for _ in 0..5 {
        fixture.round(&[("a", "same")]);
    }
    let repeated = |fixture: &MachineFixture| {
        let times = fixture.events.iter().filter_map(|event| match event {
            RunEvent::Repeated { tool, times } if tool == "a" => Some(*times),
            _ => None,
        });
        times.collect::<Vec<_>>()
    };
    assert_eq!((repeated(&fixture), fixture.run_ending()), (vec![3, 4], None));
    assert_eq!(fixture.done.iter().filter(|done| **done == "call").count(), 3);
    assert_eq!(fixture.machine.tool_choice(), ToolChoice::Auto);
    fixture.round(&[("a", "same")]);
    assert_eq!((repeated(&fixture), fixture.run_ending()), (vec![3, 4, 5], None));
    assert_eq!(fixture.machine.tool_choice(), ToolChoice::Never);
    fixture.answer(&[TurnBlock::Text("That is all.".into())], StopReason::EndTurn);
    assert_eq!(fixture.run_ending(), Some(&RunEnding::Looping));
    let last = fixture.machine.conversation().turns.last().unwrap();
    assert_eq!(last.blocks, [TurnBlock::Text("That is all.".into())]);
    assert_eq!(find_defect(fixture.machine.conversation()), None);
}

#[test]
fn call_in_the_final_answer_is_not_executed() {
    let mut fixture = MachineFixture::in_first_request();
    (0..7).for_each(|_| fixture.round(&[("a", "same")]));
    assert_eq!(fixture.run_ending(), Some(&RunEnding::Looping));
    assert_eq!(fixture.done.iter().filter(|done| **done == "call").count(), 3);
    assert_eq!(find_defect(fixture.machine.conversation()), None);
    let limits = AgentLimits { requests: 6, ..AgentLimits::default() };
    let mut fixture = MachineFixture::new(Conversation::default(), "hi", limits);
    fixture.prepare_request();
    (0..6).for_each(|_| fixture.round(&[("a", "same")]));
    assert_eq!(fixture.run_ending(), Some(&RunEnding::Looping), "no request is left for an answer");
}

#[test]
fn varied_calls_do_not_end_the_run() {
    let mut fixture = MachineFixture::in_first_request();
    for number in 0..20 {
        fixture.round(&[("poll", &number.to_string()), ("a", "same")]);
    }
    assert!(!fixture.events.iter().any(|event| matches!(event, RunEvent::Repeated { .. })));
    (0..2).for_each(|_| fixture.round(&[("a", "same")]));
    fixture.round(&[("b", "other"), ("a", "same")]);
    assert!(!fixture.events.iter().any(|event| matches!(event, RunEvent::Repeated { .. })));
    for _ in 0..3 {
        (0..3).for_each(|_| fixture.round(&[("a", "same")]));
        fixture.round(&[("b", "other")]);
    }
    assert_eq!(fixture.run_ending(), None);
}

#[test]
fn request_limit_ends_the_run() {
    let mut fixture =
        MachineFixture::new(Conversation::default(), "hi", AgentLimits { requests: 2, ..AgentLimits::default() });
    fixture.prepare_request();
    fixture.round(&[("a", "1")]);
    fixture.round(&[("a", "2")]);
    fixture.check("hi | !0 | ?0=1 | !0_2 | ?0_2=2", Some(RunEnding::OutOfRequests));
    let fixture =
        MachineFixture::new(Conversation::default(), "hi", AgentLimits { requests: 0, ..AgentLimits::default() });
    fixture.check("hi", Some(RunEnding::OutOfRequests));
}

#[test]
fn loop_of_ten_parallel_calls_ends_the_run() {
    let mut fixture = MachineFixture::in_first_request();
    let ten: Vec<(&str, &str)> = NAMES[..10].iter().map(|name| (*name, "same")).collect();
    (0..7).for_each(|_| fixture.round(&ten));
    assert_eq!(fixture.run_ending(), Some(&RunEnding::Looping));
    assert_eq!(fixture.done.iter().filter(|done| **done == "call").count(), 30);
    assert_eq!(find_defect(fixture.machine.conversation()), None);
}

#[test]
fn exhausted_shared_budget_ends_the_run_at_next_request() {
    let mut fixture = MachineFixture::in_first_request();
    fixture.step(RunInput::OutOfRequests);
    assert_eq!(fixture.run_ending(), None, "it is being answered");
    fixture.answer(&[call("1", "a")], StopReason::ToolCalls);
    fixture.end_call("1", "r");
    fixture.step(RunInput::OutOfRequests);
    fixture.check("hi | !1 | ?1=r", Some(RunEnding::OutOfRequests));
}

#[test]
fn notes_follow_the_results() {
    let notes = wharf_tools::NoteQueue::default();
    notes.push("files", "changed");
    let mut fixture = MachineFixture::in_first_request();
    fixture.answer(&[call("1", "a")], StopReason::ToolCalls);
    fixture.end_call("1", "r");
    fixture.step(RunInput::RequestPrepared(RequestInputs { notes: notes.take_all(), tool_offer: all_tools_offer() }));
    fixture.check("hi | !1 | ?1=r Note from `files` (not from the user):\n> changed", None);
    assert!(fixture.events.iter().any(|event| matches!(event, RunEvent::Noted { from, .. } if from == "files")));
}
