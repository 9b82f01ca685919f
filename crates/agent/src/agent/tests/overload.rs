//! Runs with an overloaded model API.

use wharf_testkit::modeld::AnswerFailure;

use super::*;
use crate::provider::ModelError;

#[tokio::test]
async fn retry_event_precedes_the_response() {
    for format in FORMATS {
        let busy = Answer::fail(AnswerFailure::Status(503, Some("0".into())));
        let fixture = AgentFixture::with_responses([busy, Answer::text("done")]);
        let agent = fixture.agent(format).await;
        let (events, conversation) = fixture.run_to_end(&agent, Conversation::default(), "go").await;
        assert_eq!(last_words(&conversation), "done");
        let [RunEvent::Turn(_), RunEvent::RequestSent { request: 1 }, wait, RunEvent::Text(_), ..] = events.as_slice()
        else {
            panic!("{format}: {events:?}")
        };
        assert!(matches!(wait, RunEvent::Waiting { because: ModelError::Refused { status: 503, .. }, .. }), "{wait:?}");
    }
}

#[tokio::test]
async fn run_can_be_cancelled_during_retry_delay() {
    let fixture = AgentFixture::with_responses([Answer::fail(AnswerFailure::Status(503, Some("60".into())))]);
    let agent = fixture.agent(ApiFormat::Anthropic).await;
    let mut run = agent.start_run(Conversation::default(), vec![TurnBlock::Text("go".into())]);
    while !matches!(run.next_event().await, Some(RunEvent::Waiting { .. })) {}
    run.cancel();
    assert_eq!(run_ending(&collect_events(&mut run).await), Some(&RunEnding::Cancelled));
}
