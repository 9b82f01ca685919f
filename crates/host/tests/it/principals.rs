//! Answers to permission prompts hold for the principal that gave them.

use std::sync::{Arc, Mutex};

use wharf::policy::{RuleAction, RuleWriteError};
use wharf::tools::{Principal, RefusalReason, ToolCaller};
use wharf::{Ask, AskReply, Asker, CallOptions, Host, HostError, PermissionAnswer, PermissionAsk};

use crate::fixture::{none, server, settings, tool};
use crate::permission::{Shifty, rule};

type OpenPrompt = (PermissionAsk, AskReply<PermissionAnswer>);

/// Holds every prompt until the test answers it.
#[derive(Clone, Default)]
struct HeldPrompts {
    open: Arc<Mutex<Vec<OpenPrompt>>>,
    count: Arc<tokio::sync::watch::Sender<usize>>,
}

impl Asker for HeldPrompts {
    fn ask(&self, ask: Ask) {
        let Ask::Permission(question, reply) = ask else { panic!("only permissions are asked here") };
        self.open.lock().unwrap().push((question, reply));
        self.count.send_modify(|count| *count += 1);
    }
}

impl HeldPrompts {
    /// Waits until so many prompts have been made in all.
    async fn wait_for(&self, count: usize) {
        self.count.subscribe().wait_for(|seen| *seen >= count).await.unwrap();
    }

    /// Answers the prompt of a principal, and returns it.
    fn answer(&self, principal: &Principal, answer: PermissionAnswer) -> PermissionAsk {
        let mut open = self.open.lock().unwrap();
        let at = open.iter().position(|(question, _)| question.principal == *principal).expect("no such prompt");
        let (question, reply) = open.remove(at);
        reply.answer(answer);
        question
    }

    fn count(&self) -> usize {
        *self.count.borrow()
    }
}

struct Fixture {
    server: Shifty,
    prompts: HeldPrompts,
    rules: Arc<Mutex<Vec<String>>>,
    host: Host,
}

async fn fixture() -> Fixture {
    let (math, prompts, rules) = (Shifty::new(), HeldPrompts::default(), Arc::new(Mutex::new(Vec::new())));
    let sink = Arc::clone(&rules);
    let host = Host::builder()
        .local_with(server("math"), settings(), math.factory())
        .asker(Arc::new(prompts.clone()))
        .on_rule(Arc::new(move |rule| sink.lock().unwrap().push(rule.tool.clone())));
    Fixture { server: math, prompts, rules, host: host.start().await.unwrap() }
}

impl Fixture {
    fn call(&self, principal: &Principal) -> tokio::task::JoinHandle<Result<(), HostError>> {
        let host = self.host.clone();
        let caller = ToolCaller::agent().on_behalf_of(principal.clone());
        tokio::spawn(async move {
            host.call(&tool("math", "add"), &none(), CallOptions::default().caller(caller)).await.map(drop)
        })
    }

    /// Makes a call that is prompted for, and answers the prompt.
    async fn call_and_answer(&self, principal: &Principal, answer: PermissionAnswer) -> Result<(), HostError> {
        let before = self.prompts.count();
        let call = self.call(principal);
        self.prompts.wait_for(before + 1).await;
        self.prompts.answer(principal, answer);
        call.await.unwrap()
    }
}

fn clients() -> (Principal, Principal) {
    (Principal::client("ada"), Principal::client("bob"))
}

#[tokio::test(start_paused = true)]
async fn session_answer_permits_calls_of_its_principal_only() {
    let fixture = fixture().await;
    let (ada, bob) = clients();
    fixture.call_and_answer(&ada, PermissionAnswer::Session).await.unwrap();
    fixture.call(&ada).await.unwrap().unwrap();
    assert_eq!(fixture.prompts.count(), 1, "the answer is remembered for the client that gave it");
    for other in [&bob, &Principal::local()] {
        let refused = fixture.call_and_answer(other, PermissionAnswer::No).await;
        let Err(HostError::Denied(refusal)) = refused else { panic!("{refused:?}") };
        assert_eq!(refusal.reason, RefusalReason::SaidNo { because: None });
    }
    assert_eq!(fixture.server.calls(), 2);
    fixture.host.forget_principal(&ada);
    fixture.call_and_answer(&ada, PermissionAnswer::No).await.unwrap_err();
    fixture.host.close().await;
}

#[tokio::test(start_paused = true)]
async fn open_prompt_of_one_principal_does_not_delay_another() {
    let fixture = fixture().await;
    let (ada, bob) = clients();
    let (first, second) = (fixture.call(&ada), fixture.call(&bob));
    fixture.prompts.wait_for(2).await;
    fixture.prompts.answer(&bob, PermissionAnswer::Once);
    second.await.unwrap().unwrap();
    assert!(!first.is_finished());
    fixture.prompts.answer(&ada, PermissionAnswer::No);
    first.await.unwrap().unwrap_err();
    fixture.host.close().await;
}

/// The answer to a prompt that outlives the session allows its own call, and nothing of the next session.
#[tokio::test(start_paused = true)]
async fn answer_after_the_end_of_a_session_is_not_remembered() {
    let fixture = fixture().await;
    let (ada, _) = clients();
    let call = fixture.call(&ada);
    fixture.prompts.wait_for(1).await;
    fixture.host.forget_principal(&ada);
    fixture.prompts.answer(&ada, PermissionAnswer::Session);
    call.await.unwrap().unwrap();
    fixture.call_and_answer(&ada, PermissionAnswer::No).await.unwrap_err();
    fixture.host.close().await;
}

#[tokio::test(start_paused = true)]
async fn always_of_a_client_writes_no_rule() {
    let fixture = fixture().await;
    let (ada, bob) = clients();
    let call = fixture.call(&ada);
    fixture.prompts.wait_for(1).await;
    let question = fixture.prompts.answer(&ada, PermissionAnswer::Always);
    assert_eq!(question.always, Err(RuleWriteError::OneClient));
    call.await.unwrap().unwrap();
    fixture.call(&ada).await.unwrap().unwrap();
    assert_eq!((fixture.prompts.count(), fixture.rules.lock().unwrap().len()), (1, 0));
    fixture.call_and_answer(&bob, PermissionAnswer::No).await.unwrap_err();
    fixture.call_and_answer(&Principal::local(), PermissionAnswer::Always).await.unwrap();
    assert_eq!(*fixture.rules.lock().unwrap(), ["mcp__math__add"]);
    fixture.host.close().await;
}

/// A client's answer about a changed definition holds for that call: only the user approves a definition for all.
#[tokio::test(start_paused = true)]
async fn client_does_not_approve_a_changed_definition_for_others() {
    let fixture = fixture().await;
    let (ada, bob) = clients();
    fixture.host.set_rules(vec![rule("mcp__math__add", RuleAction::Allow)]).unwrap();
    fixture.call(&bob).await.unwrap().unwrap();
    fixture.server.describe("Adds two numbers and mails them.");
    fixture.host.reconnect("math").await.unwrap();
    fixture.host.wait_until_settled().await;
    fixture.call_and_answer(&ada, PermissionAnswer::Session).await.unwrap();
    fixture.call_and_answer(&bob, PermissionAnswer::No).await.unwrap_err();
    fixture.call_and_answer(&ada, PermissionAnswer::No).await.unwrap_err();
    fixture.call_and_answer(&Principal::local(), PermissionAnswer::Session).await.unwrap();
    fixture.call(&bob).await.unwrap().unwrap();
    fixture.host.close().await;
}
