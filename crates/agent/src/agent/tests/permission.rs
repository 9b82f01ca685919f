//! Calls that a person is asked about.

use std::time::Duration;

use wharf_tools::{CallRefusal, Gate, GateDecision, GatedCall, RefusalReason};

use super::*;

/// A gate that asks about every call: the person takes a minute, then gives the same answer.
struct MinuteGate {
    answer: Result<(), CallRefusal>,
    asked: Arc<AtomicUsize>,
}

impl Gate for MinuteGate {
    fn check(&self, _: GatedCall<'_>) -> GateDecision {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let answer = self.answer.clone();
        GateDecision::Ask(Box::pin(async move {
            tokio::time::pause();
            tokio::time::advance(Duration::from_secs(60)).await;
            tokio::time::resume();
            answer
        }))
    }
}

fn fixture(answer: Result<(), CallRefusal>, turns: Vec<Answer>) -> (AgentFixture, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let gate = MinuteGate { answer, asked: Arc::clone(&asked) };
    let registry = Arc::new(Registry::new(Arc::new(gate)));
    (AgentFixture { modeld: Modeld::start(Script::from_turns(turns)).unwrap(), registry }, asked)
}

/// U6.
#[tokio::test]
async fn duration_of_a_call_excludes_the_wait_for_the_person() {
    let (fixture, asked) = fixture(Ok(()), vec![echo_response(&["a"]), Answer::text("done")]);
    fixture.echo();
    let agent = fixture.agent(ApiFormat::Anthropic).await;
    let (events, _) = fixture.run_to_end(&agent, Conversation::default(), "go").await;
    let durations = events.iter().filter_map(|event| match event {
        RunEvent::CallEnded { report, .. } => Some(report.duration),
        _ => None,
    });
    let durations: Vec<Duration> = durations.collect();
    assert_eq!((durations.len(), asked.load(Ordering::SeqCst)), (1, 1));
    assert!(durations[0] < Duration::from_secs(30), "{durations:?}");
}

/// U6.
#[tokio::test]
async fn denied_call_is_not_asked_again_in_the_same_run() {
    let no = CallRefusal::new(RefusalReason::SaidNo { because: None });
    let turns = vec![echo_response(&["a"]), echo_response(&["a"]), echo_response(&["b"]), Answer::text("done")];
    let (fixture, asked) = fixture(Err(no), turns);
    fixture.echo();
    let agent = fixture.agent(ApiFormat::Anthropic).await;
    let (_, conversation) = fixture.run_to_end(&agent, Conversation::default(), "go").await;
    let results_text = results(&conversation);
    assert_eq!(asked.load(Ordering::SeqCst), 2, "{results_text:?}");
    assert_eq!(
        (results_text[0].as_str(), results_text[2].as_str()),
        ("!call refused: denied by the user", "!call refused: denied by the user")
    );
    assert!(results_text[1].starts_with("!not executed, and the user was not asked again"), "{results_text:?}");
    // The next message of the person may lead to the same question.
    fixture.modeld.push_answer(echo_response(&["a"]));
    fixture.modeld.push_answer(Answer::text("done"));
    fixture.run_to_end(&agent, conversation, "try again").await;
    assert_eq!(asked.load(Ordering::SeqCst), 3);
}
