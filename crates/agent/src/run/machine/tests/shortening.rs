//! Shortening of conversations by the machine.

use super::*;

#[test]
fn oversized_conversation_is_shortened() {
    let mut fixture =
        MachineFixture::new(Conversation::default(), "hi", AgentLimits { context: 1000, ..AgentLimits::default() });
    fixture.prepare_request();
    fixture.round(&[("a", &"x".repeat(3900))]);
    assert!(!fixture.events.iter().any(|event| matches!(event, RunEvent::Shortened { .. })));
    fixture.round(&[("a", "2")]);
    assert!(fixture.events.iter().any(|event| matches!(event, RunEvent::Shortened { results: 1, answers: 0 })));
    assert!(shape(fixture.machine.conversation()).contains("bytes removed)"));
    assert_eq!(find_defect(fixture.machine.conversation()), None);
}

#[test]
fn response_tokens_are_reserved() {
    for (max_tokens, expected) in [(0, 160_000), (32_000, 160_000), (64_000, 136_000), (1_000_000, 100_000)] {
        assert_eq!(max_conversation_tokens(200_000, max_tokens), expected);
    }
    let limits = AgentLimits { context: 1000, ..AgentLimits::default() };
    for (max_tokens, is_shortened) in [(200, false), (400, true)] {
        let mut fixture = MachineFixture::with_blocks(Conversation::default(), vec![text("hi")], limits, max_tokens);
        fixture.prepare_request();
        fixture.round(&[("a", &"x".repeat(2600))]);
        fixture.round(&[("a", "2")]);
        let was_shortened = fixture.events.iter().any(|event| matches!(event, RunEvent::Shortened { .. }));
        assert_eq!(was_shortened, is_shortened, "{max_tokens}");
    }
}

#[test]
fn context_overflow_shortens_until_nothing_is_left() {
    let outgrown = || failure("context_length_exceeded");
    let mut fixture = MachineFixture::in_first_request();
    let long = "x".repeat(90_000);
    ["a", "b", "c"].into_iter().for_each(|tool| fixture.round(&[(tool, &long)]));
    let size = |fixture: &MachineFixture| shape(fixture.machine.conversation()).len();
    let mut sizes = vec![size(&fixture)];
    while fixture.run_ending().is_none() {
        fixture.step(RunInput::Failed(outgrown()));
        fixture.prepare_request();
        sizes.push(size(&fixture));
    }
    assert!(sizes.windows(2).all(|pair| pair[1] <= pair[0]), "{sizes:?}");
    assert!((90_000..140_000).contains(&sizes[1]) && (1..600).contains(&sizes[sizes.len() - 1]), "{sizes:?}");
    assert_eq!(fixture.run_ending(), Some(&RunEnding::Failed(outgrown())));
    assert_eq!(
        fixture.events.iter().filter(|event| matches!(event, RunEvent::Shortened { .. })).count(),
        sizes.len() - 2
    );
    let mut fixture = MachineFixture::in_first_request();
    fixture.step(RunInput::Failed(outgrown()));
    fixture.check("hi", Some(RunEnding::Failed(outgrown())));
}

#[test]
fn overflow_retries_count_against_the_request_limit() {
    let mut fixture =
        MachineFixture::new(Conversation::default(), "hi", AgentLimits { requests: 3, ..AgentLimits::default() });
    fixture.prepare_request();
    fixture.round(&[("a", &"x".repeat(900_000))]);
    for _ in 0..2 {
        fixture.step(RunInput::Failed(failure("context_length_exceeded")));
        fixture.prepare_request();
    }
    assert_eq!(fixture.run_ending(), Some(&RunEnding::Failed(failure("context_length_exceeded"))));
    assert_eq!(fixture.done.iter().filter(|done| **done == "send request").count(), 3);
}

/// Starts a run with an image in its first request.
fn run_with_image() -> MachineFixture {
    let user_input = vec![text("see"), image_block()];
    let mut fixture =
        MachineFixture::with_blocks(Conversation::default(), user_input, AgentLimits::default(), MAX_TOKENS);
    fixture.prepare_request();
    fixture
}

#[test]
fn rejected_images_are_removed_permanently() {
    let in_words = ModelError::Failed(ApiErrorMessage { kind: None, text: "no image input".into() });
    for error in [rejection(400), rejection(500), in_words] {
        let mut fixture = run_with_image();
        fixture.step(RunInput::Failed(error));
        fixture.prepare_request();
        fixture.check("see (image removed)", None);
        assert!(fixture.events.iter().any(|event| matches!(event, RunEvent::ImagesRemoved { images: 1 })));
        fixture.round(&[("a", "1")]);
        fixture.step(RunInput::Failed(rejection(400)));
        fixture.check("see (image removed) | !0 | ?0=1", Some(RunEnding::Failed(rejection(400))));
    }
    for error in [rejection(429), rejection(404), rejection(502), failure("down")] {
        let mut fixture = run_with_image();
        fixture.step(RunInput::Failed(error.clone()));
        fixture.check("see ~", Some(RunEnding::Failed(error)));
    }
    let mut fixture = MachineFixture::in_first_request();
    fixture.step(RunInput::Failed(rejection(400)));
    fixture.check("hi", Some(RunEnding::Failed(rejection(400))));
}

#[test]
fn images_are_restored_if_their_removal_does_not_help() {
    let waiting = || ModelEvent::Waiting { time: std::time::Duration::ZERO, because: rejection(500) };
    for (event, ending) in [
        (RunInput::Failed(rejection(500)), RunEnding::Failed(rejection(500))),
        (RunInput::Failed(ModelError::Incomplete), RunEnding::Failed(ModelError::Incomplete)),
        (RunInput::Cancelled, RunEnding::Cancelled),
    ] {
        let mut fixture = run_with_image();
        fixture.step(RunInput::Failed(rejection(500)));
        let notes = wharf_tools::NoteQueue::default();
        notes.push("files", "changed");
        fixture
            .step(RunInput::RequestPrepared(RequestInputs { notes: notes.take_all(), tool_offer: all_tools_offer() }));
        fixture.model(waiting());
        fixture.step(event);
        fixture.check("see ~ Note from `files` (not from the user):\n> changed", Some(ending));
    }
    let mut fixture = run_with_image();
    fixture.step(RunInput::Failed(rejection(500)));
    fixture.step(RunInput::OutOfRequests);
    fixture.check("see ~", Some(RunEnding::OutOfRequests));
}

#[test]
fn notes_do_not_exhaust_the_context() {
    let limits = AgentLimits { context: 20_000, ..AgentLimits::default() };
    let mut fixture = MachineFixture::new(Conversation::default(), "hi", limits);
    let notes = wharf_tools::NoteQueue::default();
    for number in 0..50 {
        (0..4).for_each(|_| notes.push("loud", &"x".repeat(4000)));
        fixture
            .step(RunInput::RequestPrepared(RequestInputs { notes: notes.take_all(), tool_offer: all_tools_offer() }));
        fixture.answer(&[call("1", "a")], StopReason::ToolCalls);
        let id = fixture.open.remove(0);
        fixture.end_call(&id, &number.to_string());
        let size = shape(fixture.machine.conversation()).len();
        assert!(size < 20_000 * 4, "{size} after {number}");
    }
    assert_eq!(fixture.run_ending(), None);
}
