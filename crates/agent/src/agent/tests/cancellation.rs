//! Cancelled runs.

use wharf_testkit::pty::PATIENCE;

use super::*;

/// Registers a tool that never returns. Returns counters of its starts and drops.
fn register_hanging_tool(fixture: &AgentFixture) -> (WaitableCounter, WaitableCounter) {
    let (begun, left) = (WaitableCounter::new(), WaitableCounter::new());
    let (beginning, leaving) = (begun.clone(), left.clone());
    fixture.tool("hang", move |call| {
        let (beginning, leaving) = (beginning.clone(), DropReporter(leaving.clone(), call.progress));
        async move {
            let _leaving = leaving;
            beginning.add();
            std::future::pending().await
        }
    });
    (begun, left)
}

/// Waits with a timeout for the model API fixture.
async fn with_timeout<T>(seen: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, seen).await.expect("the model API sees it")
}

fn hanging_calls(times: usize) -> Answer {
    let thinking = Answer::default().with_block(Say::Thinking("now".into())).with_block(Say::Text("wait".into()));
    (0..times).fold(thinking, |answer, number| answer.with_block(Say::call("hang", json!({ "number": number }))))
}

#[tokio::test]
async fn cancelled_run_cancels_all_ten_calls_before_it_ends() {
    for format in FORMATS {
        let fixture = AgentFixture::with_responses([hanging_calls(10)]);
        let (begun, left) = register_hanging_tool(&fixture);
        let agent = fixture.agent(format).await;
        let mut run = agent.start_run(Conversation::default(), vec![TurnBlock::Text("go".into())]);
        begun.wait_for(10).await;
        assert_eq!(left.value(), 0);
        run.cancel();
        let events = collect_events(&mut run).await;
        assert_eq!((run_ending(&events), left.value()), (Some(&RunEnding::Cancelled), 10));
        let outcomes = events.iter().filter_map(|event| match event {
            RunEvent::CallProgress { .. } => Some("left"),
            RunEvent::CallEnded { .. } => Some("ended"),
            _ => None,
        });
        assert_eq!(outcomes.collect::<Vec<_>>(), [["left"; 10], ["ended"; 10]].concat());
        let conversation = run.finish().await;
        assert_eq!(results(&conversation), ["!cancelled by the user"; 10]);
        fixture.check_continuation(&agent, conversation).await;
    }
}

#[tokio::test]
async fn queued_calls_are_not_started_after_cancellation() {
    let fixture = AgentFixture::with_responses([hanging_calls(10)]);
    let (begun, left) = register_hanging_tool(&fixture);
    let limits = AgentLimits { calls_at_once: 3, ..AgentLimits::default() };
    let mut run =
        fixture.agent_within(ApiFormat::Anthropic, limits).await.start_run(Conversation::default(), Vec::new());
    begun.wait_for(3).await;
    run.cancel();
    assert_eq!(results(&run.finish().await).len(), 10);
    assert_eq!((begun.value(), left.value()), (3, 3));
}

#[tokio::test]
async fn cancel_during_response_preserves_partial_text() {
    for format in FORMATS {
        let fixture = AgentFixture::with_responses([Answer::text(&"word ".repeat(100)).held_at("never", 5)]);
        let agent = fixture.agent(format).await;
        let mut run = agent.start_run(Conversation::default(), vec![TurnBlock::Text("go".into())]);
        while !matches!(run.next_event().await, Some(RunEvent::Text(_))) {}
        run.cancel();
        let events = collect_events(&mut run).await;
        assert_eq!(run_ending(&events), Some(&RunEnding::Cancelled));
        with_timeout(fixture.modeld.wait_for_disconnect(1)).await;
        let conversation = run.finish().await;
        assert!(last_words(&conversation).starts_with("word "), "{format}: {conversation:?}");
        fixture.check_continuation(&agent, conversation).await;
    }
}

#[tokio::test]
async fn cancel_before_response_preserves_user_turn_once() {
    let fixture = AgentFixture::with_responses([Answer::text("late").held_at("never", 0)]);
    let agent = fixture.agent(ApiFormat::ChatCompletions).await;
    let mut run = agent.start_run(Conversation::default(), vec![TurnBlock::Text("go on".into())]);
    with_timeout(fixture.modeld.wait_for_request(1)).await;
    run.cancel();
    let conversation = run.finish().await;
    with_timeout(fixture.modeld.wait_for_disconnect(1)).await;
    assert_eq!(conversation.turns.len(), 1);
    fixture.check_continuation(&agent, conversation).await;
    assert_eq!(fixture.modeld.requests()[1].body["messages"], json!([{ "role": "user", "content": "go on" }]));
}

#[tokio::test]
async fn dropped_run_cancels_its_calls() {
    let fixture = AgentFixture::with_responses([hanging_calls(4)]);
    let (begun, left) = register_hanging_tool(&fixture);
    let run = fixture
        .agent(ApiFormat::Responses)
        .await
        .start_run(Conversation::default(), vec![TurnBlock::Text("go".into())]);
    begun.wait_for(4).await;
    drop(run);
    left.wait_for(4).await;
}
