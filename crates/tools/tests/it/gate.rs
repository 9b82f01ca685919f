use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::oneshot;
use wharf_json::RawJson;
use wharf_tools::{
    AllowAllGate, BoxFuture, CallRefusal, CallerConsent, GateDecision, GatedCall, RefusalReason, Registry,
    RegistryCallError, Tool, ToolCaller, ToolDescription, ToolError, ToolErrorKind, ToolInvocation, ToolOutcome,
};

use crate::fixture::{Sign, Told, call};

fn no() -> CallRefusal {
    CallRefusal::new(RefusalReason::SaidNo { because: None })
}

/// What a gate says, how the call ends, and how often the tool is reached.
async fn check(
    say: impl Fn(GatedCall<'_>) -> GateDecision + Send + Sync + 'static,
    ends: Result<&str, CallRefusal>,
    reached: usize,
) {
    let (gate, tool) = (Told::new(say), Sign::new("files", "read", "was read"));
    let registry = Registry::new(gate.clone());
    registry.register(tool.clone());
    let ended = match registry.call("read", call()).await {
        Ok(outcome) => Ok(outcome.blocks[0].as_text().into_owned()),
        Err(RegistryCallError::Denied(refusal)) => Err(refusal),
        Err(failure) => panic!("{failure}"),
    };
    assert_eq!(ended, ends.map(str::to_owned));
    assert_eq!((gate.count(), tool.count()), (1, reached));
}

#[tokio::test]
async fn gate_decision_runs_or_refuses_the_call_once() {
    check(|_| GateDecision::Pass, Ok("was read"), 1).await;
    check(|_| GateDecision::Refuse(no()), Err(no()), 0).await;
    check(|_| GateDecision::Ask(Box::pin(async { Ok(()) })), Ok("was read"), 1).await;
    check(|_| GateDecision::Ask(Box::pin(async { Err(no()) })), Err(no()), 0).await;
}

#[tokio::test]
async fn gate_receives_caller_tool_and_arguments() {
    let gate = Told::new(|attempt| {
        let GatedCall { caller, tool, arguments } = attempt;
        let source = tool.source.as_ref().expect("somebody else's tool");
        assert_eq!((&*tool.name, &*source.provider, arguments.as_str()), ("read", "files", r#"{"n":1}"#));
        match caller.consent {
            CallerConsent::Ask => GateDecision::Refuse(no()),
            CallerConsent::Given => GateDecision::Pass,
        }
    });
    let registry = Registry::new(gate.clone());
    registry.register(Sign::new("files", "read", ""));
    let arguments = RawJson::parse(r#"{"n":1}"#).unwrap();
    for (caller, passes) in [(ToolCaller::agent(), false), (ToolCaller::person(), true)] {
        assert_eq!(registry.call("read", ToolInvocation::new(arguments.clone(), caller)).await.is_ok(), passes);
    }
    assert_eq!(gate.count(), 2);
}

#[tokio::test]
async fn uncallable_names_do_not_reach_the_gate() {
    let gate = Told::new(|_| GateDecision::Pass);
    let registry = Registry::new(gate.clone());
    registry.register(Sign::new("one", "both", ""));
    registry.register(Sign::new("two", "both", ""));
    assert!(matches!(registry.call("both", call()).await, Err(RegistryCallError::Withheld { .. })));
    assert!(matches!(registry.call("none", call()).await, Err(RegistryCallError::Unknown { .. })));
    assert_eq!(gate.count(), 0);
}

/// What happens to the tool while a person is asked, and which tool is called after the yes, if any.
async fn check_meanwhile(meanwhile: impl FnOnce(&Registry), expected: Option<&str>) {
    let (answer, asked) = oneshot::channel::<()>();
    let asked = std::sync::Mutex::new(Some(asked));
    let gate = Told::new(move |_| {
        let asked = asked.lock().expect("no test thread panics").take().expect("asked once");
        GateDecision::Ask(Box::pin(async { asked.await.map_err(|_| no()) }))
    });
    let registry = Arc::new(Registry::new(gate.clone()));
    let tool = Sign::new("files", "read", "as approved");
    registry.register(tool.clone());
    let calling = tokio::spawn({
        let registry = registry.clone();
        async move { registry.call("read", call()).await }
    });
    while gate.count() == 0 {
        tokio::task::yield_now().await;
    }
    meanwhile(&registry);
    answer.send(()).expect("it is waited for");
    match (calling.await.expect("the call does not panic"), expected) {
        (Ok(outcome), Some(expected)) => assert_eq!(outcome.blocks[0].as_text(), expected),
        (Err(RegistryCallError::Denied(refusal)), None) => assert_eq!(refusal.reason, RefusalReason::PermissionStale),
        (ended, expected) => panic!("{ended:?} instead of {expected:?}"),
    }
    assert_eq!(gate.count(), 1);
}

#[tokio::test]
async fn approval_applies_only_to_the_shown_tool() {
    check_meanwhile(|_| (), Some("as approved")).await;
    let same = Sign::new("files", "read", "as approved");
    check_meanwhile(|registry| registry.register(same.clone()), Some("as approved")).await;
    assert_eq!(same.count(), 1, "the one in its place is called");
    check_meanwhile(|registry| registry.register(Sign::new("files", "read", "changed")), None).await;
    check_meanwhile(|registry| registry.register(Sign::new("evil", "read", "as approved")), None).await;
    check_meanwhile(|registry| assert!(registry.remove("read")), None).await;
    check_meanwhile(
        |registry| {
            registry.remove("read");
            registry.register(Sign::new("evil", "read", "as approved"));
        },
        None,
    )
    .await;
}

/// Says when it is dropped.
struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn dropped_call_withdraws_the_question() {
    let dropped = Arc::new(AtomicBool::new(false));
    let gate = Told::new({
        let dropped = dropped.clone();
        move |_| {
            let guard = Dropped(dropped.clone());
            GateDecision::Ask(Box::pin(async move {
                let _guard = guard;
                std::future::pending().await
            }))
        }
    });
    let registry = Registry::new(gate);
    let tool = Sign::new("", "read", "");
    registry.register(tool.clone());
    let mut calling = Box::pin(registry.call("read", call()));
    tokio::select! {
        biased;
        ended = &mut calling => panic!("{ended:?}"),
        () = std::future::ready(()) => (),
    }
    assert!(!dropped.load(Ordering::SeqCst));
    drop(calling);
    assert!(dropped.load(Ordering::SeqCst));
    assert_eq!(tool.count(), 0);
}

/// Fails as it is told to.
struct Broken(Arc<ToolDescription>);

impl Tool for Broken {
    fn description(&self) -> &Arc<ToolDescription> {
        &self.0
    }

    fn call(&self, _: ToolInvocation) -> BoxFuture<'_, Result<ToolOutcome, ToolError>> {
        Box::pin(async { Err(ToolError::new(ToolErrorKind::TimedOut, "no answer within 5 s")) })
    }
}

#[tokio::test]
async fn refusals_and_failures_are_error_outcomes() {
    let refused = Registry::new(Told::new(|_| GateDecision::Refuse(no())));
    let failed = Registry::new(Arc::new(AllowAllGate));
    for (registry, told) in [(&refused, "call refused: denied by the user"), (&failed, "no answer within 5 s")] {
        let description = ToolDescription::new("break", "", RawJson::empty_object());
        registry.register(Arc::new(Broken(Arc::new(description))));
        let outcome = registry.call("break", call()).await.unwrap_err().to_outcome();
        assert_eq!((outcome.text(), outcome.is_error), (told.to_owned(), true));
    }
}
