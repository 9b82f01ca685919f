//! Runs with sub-agents.

use std::sync::Mutex;

use wharf_testkit::modeld::{Recorded, When};

use super::*;
use crate::sub_agent::SubAgent;

fn text(text: &str) -> When {
    When::Text(text.into())
}

fn result(text: &str) -> When {
    When::ToolResult(text.into())
}

/// The agent delegates a task to a sub-agent, which makes this call.
fn delegation_script(call: Answer) -> Script {
    let task = json!({ "description": "look for it", "prompt": "the task" });
    Script::default().when(text("the task"), call).when(text("begin"), Answer::call("Agent", task))
}

async fn fixture(script: Script) -> AgentFixture {
    let fixture = AgentFixture::new(script);
    let model = fixture.model(ApiFormat::Anthropic).await;
    let sub_agent = SubAgent::new(model, &fixture.registry, AgentLimits::default());
    fixture.registry.register(Arc::new(sub_agent.with_effort(Some(ReasoningEffort::Low))));
    fixture
}

#[tokio::test]
async fn last_message_is_the_outcome_and_caller_is_sub_agent() {
    let script = delegation_script(Answer::call("ping", json!({})))
        .when(result("found pong"), Answer::text("done"))
        .when(result("pong"), Answer::text("found pong"));
    let fixture = fixture(script).await;
    let callers = WaitableCounter::new();
    let (seen, notes) = (callers.clone(), fixture.registry.notes().clone());
    fixture.tool("ping", move |call: ToolInvocation| {
        if call.caller == (ToolCaller { name: "sub-agent".into(), ..ToolCaller::agent() }) {
            seen.add();
        }
        notes.push("files", "for the agent above");
        async { Ok(ToolOutcome::from_text("pong")) }
    });
    let agent = fixture.agent(ApiFormat::Anthropic).await;
    let (events, conversation) = fixture.run_to_end(&agent, Conversation::default(), "begin").await;
    assert_eq!(run_ending(&events), Some(&RunEnding::Done), "{:?}", fixture.modeld.refusals());
    assert_eq!((results(&conversation), last_words(&conversation)), (vec!["found pong".into()], "done"));
    let message = events.iter().find_map(|event| match event {
        RunEvent::CallProgress { progress, .. } => progress.message.clone(),
        _ => None,
    });
    assert_eq!((message.as_deref(), callers.value()), (Some("look for it: ping"), 1));
    let noted = |request: &Recorded| request.body.to_string().contains("for the agent above");
    assert_eq!(fixture.modeld.requests().iter().map(noted).collect::<Vec<_>>(), [false, false, false, true]);
    let offered: Vec<Vec<String>> = fixture
        .modeld
        .requests()
        .iter()
        .map(|request| request.tool_names().into_iter().map(str::to_owned).collect())
        .collect();
    assert_eq!(offered, [vec!["Agent", "ping"], vec!["ping"], vec!["ping"], vec!["Agent", "ping"]]);
}

#[tokio::test]
async fn sub_agent_has_no_agent_tool_and_no_late_tools() {
    let script = delegation_script(Answer::call("add", json!({})))
        .when(result("unknown tool Agent"), Answer::text("found out"))
        .when(result("added"), Answer::call("late", json!({})).with_block(Say::call("Agent", json!({}))))
        .when(result("found out"), Answer::text("done"));
    let fixture = Arc::new(fixture(script).await);
    let adding = Arc::downgrade(&fixture);
    fixture.tool("add", move |_| {
        adding.upgrade().unwrap().tool("late", async |_| Ok(ToolOutcome::from_text("too late")));
        async { Ok(ToolOutcome::from_text("added")) }
    });
    let agent = fixture.agent(ApiFormat::Anthropic).await;
    let (events, _) = fixture.run_to_end(&agent, Conversation::default(), "begin").await;
    assert_eq!(run_ending(&events), Some(&RunEnding::Done), "{:?}", fixture.modeld.refusals());
    let body = fixture.modeld.requests()[3].body.to_string();
    assert!(body.contains("unknown tool late") && !body.contains("too late"), "{body}");
}

#[tokio::test]
async fn unfinished_sub_agent_reports_the_reason() {
    let script = delegation_script(Answer { stop: Some(wharf_testkit::modeld::Stop::Refusal), ..Answer::text("no") })
        .when(result("the model refused"), Answer::text("done"));
    let fixture = fixture(script).await;
    let agent = fixture.agent(ApiFormat::Anthropic).await;
    let (_, conversation) = fixture.run_to_end(&agent, Conversation::default(), "begin").await;
    assert_eq!(results(&conversation), ["!the sub-agent did not finish: the model refused\nIts last message: no"]);
}

/// A sub-agent that never finishes, and a parent agent that delegates again.
fn endless_script() -> Script {
    let task = json!({ "description": "look again", "prompt": "the task" });
    delegation_script(Answer::call("ping", json!({})))
        .when(result("did not finish"), Answer::call("Agent", task))
        .when(result("pong"), Answer::call("ping", json!({})))
}

#[tokio::test]
async fn sub_agent_requests_count_against_the_parent_limit() {
    let fixture = fixture(endless_script()).await;
    let number = AtomicUsize::new(0);
    fixture.tool("ping", move |_| {
        let pong = format!("pong {}", number.fetch_add(1, Ordering::SeqCst));
        async { Ok(ToolOutcome::from_text(pong)) }
    });
    for (requests, own) in [(4, 1), (40, 2)] {
        let before = fixture.modeld.requests().len();
        let agent =
            fixture.agent_within(ApiFormat::Anthropic, AgentLimits { requests, ..AgentLimits::default() }).await;
        let (events, _) = fixture.run_to_end(&agent, Conversation::default(), "begin").await;
        assert_eq!(run_ending(&events), Some(&RunEnding::OutOfRequests), "{:?}", fixture.modeld.refusals());
        assert_eq!(fixture.modeld.requests().len() - before, usize::try_from(requests).unwrap());
        let asked = events.iter().filter(|event| matches!(event, RunEvent::RequestSent { .. })).count();
        let delegated = events.iter().filter_map(|event| match event {
            RunEvent::Delegated { requests, .. } => Some(*requests),
            _ => None,
        });
        assert_eq!((asked, delegated.sum::<u32>()), (own, requests - u32::try_from(own).unwrap()));
    }
}

#[tokio::test]
async fn sub_agent_reports_usage_and_inherits_effort() {
    let script = delegation_script(Answer::call("ping", json!({})))
        .when(result("found pong"), Answer::text("done"))
        .when(result("pong"), Answer::text("found pong"));
    let fixture = fixture(script).await;
    fixture.tool("ping", async |_| Ok(ToolOutcome::from_text("pong")));
    let agent = fixture.agent(ApiFormat::Anthropic).await;
    let (events, _) = fixture.run_to_end(&agent, Conversation::default(), "begin").await;
    let own = events.iter().filter(|event| matches!(event, RunEvent::Usage { .. })).count();
    let delegated: Vec<&RunEvent> = events.iter().filter(|event| matches!(event, RunEvent::Delegated { .. })).collect();
    let [RunEvent::Delegated { requests: 2, input, output, .. }] = &delegated[..] else { panic!("{delegated:?}") };
    assert!((own, *input > 0, *output > 0) == (2, true, true), "{delegated:?}");
    let thinks = |request: &Recorded| request.body.get("thinking").is_some();
    // The request after a call without reasoning is sent without thinking parameters.
    assert!(fixture.modeld.requests()[..2].iter().all(thinks));
}

/// Wraps a sub-agent and captures the progress sink of the parent run.
struct SinkCapturingSubAgent(SubAgent, Arc<Mutex<Option<ProgressSink>>>);

impl Tool for SinkCapturingSubAgent {
    fn description(&self) -> &Arc<ToolDescription> {
        self.0.description()
    }

    fn call(&self, call: ToolInvocation) -> BoxFuture<'_, ToolCallResult> {
        self.1.lock().unwrap().clone_from(&call.progress);
        self.0.call(call)
    }
}

#[tokio::test]
async fn parent_cancel_cancels_sub_agent_calls_first() {
    let fixture =
        AgentFixture::new(delegation_script(Answer::call("hang", json!({})).with_block(Say::call("hang", json!({})))));
    let sub_agent = SubAgent::new(fixture.model(ApiFormat::Anthropic).await, &fixture.registry, AgentLimits::default());
    let sink = Arc::<Mutex<Option<ProgressSink>>>::default();
    fixture.registry.register(Arc::new(SinkCapturingSubAgent(sub_agent, sink.clone())));
    let (begun, left) = (WaitableCounter::new(), WaitableCounter::new());
    let (beginning, leaving) = (begun.clone(), left.clone());
    fixture.tool("hang", move |_| {
        let (beginning, leaving) = (beginning.clone(), DropReporter(leaving.clone(), sink.lock().unwrap().clone()));
        async move {
            let _leaving = leaving;
            beginning.add();
            std::future::pending().await
        }
    });
    let mut run = fixture
        .agent(ApiFormat::Anthropic)
        .await
        .start_run(Conversation::default(), vec![TurnBlock::Text("begin".into())]);
    begun.wait_for(2).await;
    assert_eq!(left.value(), 0);
    run.cancel();
    let events = collect_events(&mut run).await;
    assert_eq!(run_ending(&events), Some(&RunEnding::Cancelled));
    let outcomes = events.iter().filter_map(|event| match event {
        RunEvent::CallProgress { progress, .. } if progress.message.is_none() => Some("left"),
        RunEvent::Delegated { requests: 1, .. } => Some("counted"),
        RunEvent::CallEnded { .. } => Some("ended"),
        _ => None,
    });
    assert_eq!(outcomes.collect::<Vec<_>>(), ["left", "left", "counted", "ended"]);
    assert_eq!(results(&run.finish().await), ["!cancelled by the user"]);
}
