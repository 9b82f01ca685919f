//! An agent that has agents.

use wharf_testkit::modeld::{Recorded, When};

use super::*;
use crate::sub_agent::SubAgent;

fn text(text: &str) -> When {
    When::Text(text.into())
}

fn result(text: &str) -> When {
    When::ToolResult(text.into())
}

/// The agent gives a task to another, which makes this call.
fn delegating(call: Answer) -> Script {
    let task = json!({ "description": "look for it", "prompt": "the task" });
    Script::default().when(text("the task"), call).when(text("begin"), Answer::call("Agent", task))
}

async fn stage(script: Script) -> Stage {
    let stage = Stage::new(script);
    let model = stage.model(Format::Anthropic).await;
    stage.registry.register(Arc::new(SubAgent::new(model, &stage.registry, AgentLimits::default())));
    stage
}

#[tokio::test]
async fn its_last_words_are_the_outcome_and_its_calls_are_its_own() {
    let script = delegating(Answer::call("ping", json!({})))
        .when(result("found pong"), Answer::text("done"))
        .when(result("pong"), Answer::text("found pong"));
    let stage = stage(script).await;
    let callers = Count::new();
    let (seen, notes) = (callers.clone(), stage.registry.notes().clone());
    stage.tool("ping", move |call: Call| {
        if call.caller == (Caller { name: "sub-agent".into(), consent: wharf_tools::Consent::Ask }) {
            seen.add();
        }
        notes.push("files", "for the agent above");
        async { Ok(Outcome::text_of("pong")) }
    });
    let agent = stage.agent(Format::Anthropic).await;
    let (events, conversation) = stage.play(&agent, Conversation::default(), "begin").await;
    assert_eq!(ending(&events), Some(&Ending::Done), "{:?}", stage.modeld.refusals());
    assert_eq!((results(&conversation), last_words(&conversation)), (vec!["found pong".into()], "done"));
    let message = events.iter().find_map(|event| match event {
        RunEvent::CallProgress { progress, .. } => progress.message.clone(),
        _ => None,
    });
    assert_eq!((message.as_deref(), callers.so_far()), (Some("look for it: ping"), 1));
    let noted = |request: &Recorded| request.body.to_string().contains("for the agent above");
    assert_eq!(stage.modeld.requests().iter().map(noted).collect::<Vec<_>>(), [false, false, false, true]);
    let offered: Vec<Vec<String>> = stage
        .modeld
        .requests()
        .iter()
        .map(|request| request.tool_names().into_iter().map(str::to_owned).collect())
        .collect();
    assert_eq!(offered, [vec!["Agent", "ping"], vec!["ping"], vec!["ping"], vec!["Agent", "ping"]]);
}

#[tokio::test]
async fn it_cannot_delegate_and_gets_no_new_tools() {
    let script = delegating(Answer::call("add", json!({})))
        .when(result("no tool Agent"), Answer::text("found out"))
        .when(result("added"), Answer::call("late", json!({})).and(Say::call("Agent", json!({}))))
        .when(result("found out"), Answer::text("done"));
    let stage = Arc::new(stage(script).await);
    let adding = Arc::downgrade(&stage);
    stage.tool("add", move |_| {
        adding.upgrade().unwrap().tool("late", async |_| Ok(Outcome::text_of("too late")));
        async { Ok(Outcome::text_of("added")) }
    });
    let agent = stage.agent(Format::Anthropic).await;
    let (events, _) = stage.play(&agent, Conversation::default(), "begin").await;
    assert_eq!(ending(&events), Some(&Ending::Done), "{:?}", stage.modeld.refusals());
    let told = stage.modeld.requests()[3].body.to_string();
    assert!(told.contains("there is no tool late") && !told.contains("too late"), "{told}");
}

#[tokio::test]
async fn why_it_did_not_finish_is_told() {
    let script = delegating(Answer { stop: Some(wharf_testkit::modeld::Stop::Refusal), ..Answer::text("no") })
        .when(result("the model refused"), Answer::text("done"));
    let stage = stage(script).await;
    let agent = stage.agent(Format::Anthropic).await;
    let (_, conversation) = stage.play(&agent, Conversation::default(), "begin").await;
    assert_eq!(results(&conversation), ["!the sub-agent did not finish: the model refused\nThe last it said: no"]);
}

#[tokio::test]
async fn cancelled_with_its_agent_it_ends_and_so_do_its_calls() {
    let stage = stage(delegating(Answer::call("hang", json!({})).and(Say::call("hang", json!({}))))).await;
    let (begun, left) = cancelled::hang(&stage);
    let mut run =
        stage.agent(Format::Anthropic).await.start(Conversation::default(), vec![Block::Text("begin".into())]);
    begun.reached(2).await;
    run.cancel();
    left.reached(2).await;
    assert_eq!(results(&run.finish().await), ["!cancelled by the person"]);
}
