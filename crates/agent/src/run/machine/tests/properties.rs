//! Property tests with arbitrary sequences of events.

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum ArbitraryEvent {
    RequestPrepared {
        notes: usize,
    },
    Text(&'static str),
    Thinking,
    Block(TurnBlock),
    Usage(u64),
    Done(StopReason),
    Failed(ModelError),
    OutOfRequests,
    /// Ends one of the pending calls, if there is one.
    CallEnded(usize, ResultBlock),
    Cancelled,
}

fn arbitrary_event() -> impl Strategy<Value = ArbitraryEvent> {
    use ArbitraryEvent::*;
    let id = prop_oneof![Just(""), Just("1"), Just("2"), Just("ü:3")];
    let tool = prop_oneof![Just("a"), Just("b")];
    let malformed = prop_oneof![4 => Just(None), 1 => Just(Some("{".to_owned()))];
    let made = (id, tool, malformed).prop_map(|(id, name, malformed)| {
        Block(TurnBlock::ToolCall { id: id.into(), name: name.into(), arguments: RawJson::empty_object(), malformed })
    });
    let stop = prop_oneof![
        2 => Just(StopReason::EndTurn),
        6 => Just(StopReason::ToolCalls),
        3 => Just(StopReason::MaxTokens),
        1 => Just(StopReason::Refused),
        2 => Just(StopReason::Paused),
        1 => Just(StopReason::Other("x".into())),
    ];
    let error = prop_oneof![
        1 => Just(failure("context_length_exceeded")),
        1 => Just(failure("down")),
        2 => Just(rejection(400)),
        1 => Just(rejection(502)),
    ];
    let result = prop_oneof![
        2 => Just(ResultBlock::Text("xxx".into())),
        2 => Just(ResultBlock::Text("x".repeat(5000))),
        1 => Just(ResultBlock::Image { media_type: "image/png".into(), data: "aGk=".into() }),
    ];
    prop_oneof![
        6 => (0..3usize).prop_map(|notes| RequestPrepared { notes }),
        3 => prop_oneof![Just("he"), Just(" "), Just("llo")].prop_map(Text),
        1 => Just(Thinking),
        2 => prop_oneof![Just(text("hello")), Just(text("")), Just(text("he"))].prop_map(Block),
        1 => Just(Block(reasoning_block())),
        6 => made,
        1 => (0..2000u64).prop_map(Usage),
        5 => stop.prop_map(Done),
        3 => error.prop_map(Failed),
        1 => Just(OutOfRequests),
        8 => (0..5usize, result).prop_map(|(at, result)| CallEnded(at, result)),
        1 => Just(Cancelled),
    ]
}

impl MachineFixture {
    fn apply(&mut self, event: ArbitraryEvent) {
        match event {
            ArbitraryEvent::RequestPrepared { notes } => {
                let queue = wharf_tools::NoteQueue::default();
                (0..notes).for_each(|number| queue.push("server", &number.to_string()));
                // As in the driver: notes stay queued while the machine does not accept them.
                let notes = if self.machine.takes_notes() { queue.take_all() } else { Vec::new() };
                self.step(RunInput::RequestPrepared(RequestInputs { notes, tool_offer: all_tools_offer() }));
            }
            ArbitraryEvent::Text(text) => self.model(ModelEvent::TextDelta(text.into())),
            ArbitraryEvent::Thinking => self.model(ModelEvent::ThinkingDelta("hm".into())),
            ArbitraryEvent::Block(block) => self.model(ModelEvent::BlockDone(block)),
            ArbitraryEvent::Usage(input) => self.model(ModelEvent::Usage { input, output: 1, cached: 0 }),
            ArbitraryEvent::Done(stop) => self.model(ModelEvent::Done { stop }),
            ArbitraryEvent::Failed(error) => self.step(RunInput::Failed(error)),
            ArbitraryEvent::OutOfRequests => self.step(RunInput::OutOfRequests),
            ArbitraryEvent::CallEnded(at, result) => {
                let id = self.open.get(at).cloned().unwrap_or_else(|| "nobody".to_owned());
                self.end_call_with(&id, result);
            }
            ArbitraryEvent::Cancelled => self.step(RunInput::Cancelled),
        }
    }

    fn ids(&self, of: impl Fn(&RunEvent) -> Option<&String>) -> Vec<String> {
        let mut ids: Vec<String> = self.events.iter().filter_map(of).cloned().collect();
        ids.sort();
        ids
    }

    fn check_ended(&self) {
        let ended = self.events.iter().filter(|event| matches!(event, RunEvent::Ended(_)));
        assert_eq!((ended.count(), self.run_ending().is_some()), (1, true), "{:?}", self.events);
        assert_eq!(find_defect(self.machine.conversation()), None);
        let begun = self.ids(|event| match event {
            RunEvent::CallBegun { id, .. } => Some(id),
            _ => None,
        });
        let ended = self.ids(|event| match event {
            RunEvent::CallEnded { id, .. } => Some(id),
            _ => None,
        });
        assert_eq!(begun, ended);
    }

    fn is_shortened(&self) -> bool {
        self.events.iter().any(|event| matches!(event, RunEvent::Shortened { .. }))
    }

    /// Reports whether the event is a well-formed call in the answering phase.
    fn accepts_call(&self, event: &ArbitraryEvent) -> bool {
        let is_call = matches!(event, ArbitraryEvent::Block(TurnBlock::ToolCall { malformed: None, .. }));
        is_call && matches!(self.machine.phase, RunPhase::ReceivingResponse(_))
    }

    /// Checks that the reported turns equal the conversation, apart from images, unless it was shortened.
    fn check_saved(&self, before: &Conversation) {
        if self.is_shortened() {
            return;
        }
        let mut saved = before.clone();
        for event in &self.events {
            if let RunEvent::Turn(turn) = event {
                repair::append_turn(&mut saved, turn.clone());
            }
        }
        let mut kept = self.machine.conversation().as_ref().clone();
        [&mut saved, &mut kept].into_iter().for_each(|conversation| _ = remove_images(conversation));
        assert_eq!(saved, kept);
    }
}

/// Returns the number of well-formed calls.
fn calls(conversation: &Conversation) -> usize {
    let blocks = conversation.turns.iter().flat_map(|turn| &turn.blocks);
    blocks.filter(|block| matches!(block, TurnBlock::ToolCall { malformed: None, .. })).count()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_event_sequence_ends_once_and_stays_well_formed(
        runs in prop::collection::vec(prop::collection::vec(arbitrary_event(), 0..60), 1..3),
        context in prop_oneof![Just(2000u64), Just(200_000)],
    ) {
        let mut conversation = Conversation::default();
        for happenings in runs {
            let (user_input, limits) = (vec![text("hi"), image_block()], AgentLimits { context, ..AgentLimits::default() });
            let mut fixture = MachineFixture::with_blocks(conversation.clone(), user_input, limits, MAX_TOKENS);
            let mut accepted_calls = calls(&conversation);
            for event in happenings {
                accepted_calls += usize::from(fixture.accepts_call(&event));
                fixture.apply(event);
            }
            fixture.step(RunInput::Cancelled);
            fixture.check_ended();
            fixture.check_saved(&conversation);
            conversation = fixture.machine.conversation().as_ref().clone();
            prop_assert!(fixture.is_shortened() || calls(&conversation) == accepted_calls, "{conversation:?}");
        }
    }
}
