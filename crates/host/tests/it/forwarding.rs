//! Requirements of a gateway on a host: forwarded input rounds, and an audit log that is required.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::sync::Notify;
use wharf::policy::RuleAction;
use wharf::tools::{Principal, ToolCaller};
use wharf::{
    AuditMode, AuditSink, CallOptions, Host, HostBuilder, HostError, InputHandling, LocalFactory, RawJson, ResultKind,
};
use wharf_client::ClientSender;

use crate::fixture::{Scripted, none, server, settings, tool};
use crate::permission::{Shifty, rule};

/// A server that asks for input until it gets it, and then returns the params of the call.
fn asking_server() -> LocalFactory {
    Arc::new(|| {
        let act = |message: Value, outbox: &ClientSender| {
            let params = &message["params"];
            let result = match message["method"].as_str() {
                Some("server/discover") => {
                    json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} } })
                }
                Some("tools/list") => {
                    json!({ "tools": [{ "name": "ask", "inputSchema": { "type": "object" } }] })
                }
                Some("tools/call") if params.get("inputResponses").is_none() => json!({
                    "resultType": "input_required",
                    "inputRequests": { "a": { "method": "elicitation/create", "params": { "message": "m" } } },
                    "requestState": "sealed",
                }),
                Some("tools/call") => json!({
                    "content": [],
                    "structuredContent": [params["inputResponses"], params["requestState"]],
                }),
                _ => return,
            };
            outbox.send(json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string());
        };
        Ok(Box::new(Scripted { act, end: Arc::new(Notify::new()) }))
    })
}

#[tokio::test(start_paused = true)]
async fn input_round_of_a_request_reaches_the_server() {
    let host = Host::builder().local_with(server("form"), settings(), asking_server());
    let host = host.rules([rule("mcp__form__ask", RuleAction::Allow)]).start().await.unwrap();
    let mut options = CallOptions::default();
    options.request.inputs = InputHandling::Forward;
    let request = |params: Value| {
        let (host, options) = (host.clone(), options.clone());
        async move {
            let params = RawJson::from_value(&params).unwrap();
            host.request(&server("form"), "tools/call", Some(&params), options).await
        }
    };
    let asked = request(json!({ "name": "ask" })).await.unwrap();
    assert_eq!(asked.kind, ResultKind::InputRequired);
    let round = json!({ "name": "ask", "inputResponses": { "a": { "action": "decline" } }, "requestState": "sealed" });
    let answer = request(round).await.unwrap();
    let answer: Value = serde_json::from_str(answer.result.as_str()).unwrap();
    assert_eq!(answer["structuredContent"], json!([{ "a": { "action": "decline" } }, "sealed"]));
    let refused = request(json!({ "name": "ask", "other": 1 })).await.unwrap_err();
    assert!(refused.to_string().contains("does not accept the parameter `other`"), "{refused}");
    host.close().await;
}

/// Keeps entries until it is told to fail.
#[derive(Clone, Default)]
struct MemorySink {
    entries: Arc<Mutex<Vec<Value>>>,
    fails: Arc<AtomicBool>,
}

impl AuditSink for MemorySink {
    fn write(&self, entry: &str) -> io::Result<()> {
        if self.fails.load(Ordering::SeqCst) {
            return Err(io::Error::other("the collector is gone"));
        }
        self.entries.lock().unwrap().push(serde_json::from_str(entry).unwrap());
        Ok(())
    }
}

fn audited(math: &Shifty, sink: &MemorySink, mode: AuditMode) -> HostBuilder {
    Host::builder()
        .local_with(server("math"), settings(), math.factory())
        .rules([rule("mcp__math__add", RuleAction::Allow)])
        .audit_sink(sink.clone())
        .audit_mode(mode)
}

async fn call(host: &Host) -> Result<(), HostError> {
    let caller = ToolCaller::agent().on_behalf_of(Principal::client("ada"));
    host.call(&tool("math", "add"), &none(), CallOptions::default().caller(caller)).await.map(drop)
}

#[tokio::test]
async fn call_without_a_required_audit_entry_is_not_made() {
    let (math, sink) = (Shifty::new(), MemorySink::default());
    let host = audited(&math, &sink, AuditMode::Required).start().await.unwrap();
    call(&host).await.unwrap();
    sink.fails.store(true, Ordering::SeqCst);
    let refused = call(&host).await.unwrap_err();
    assert!(matches!(refused, HostError::NotAudited { .. }) && refused.is_retryable(), "{refused:?}");
    assert_eq!(refused.hint().unwrap(), "make the audit log writable, then call it again");
    assert_eq!(math.calls(), 1);
    sink.fails.store(false, Ordering::SeqCst);
    call(&host).await.unwrap();
    assert_eq!(math.calls(), 2);
    host.close().await;
    let entries = sink.entries.lock().unwrap();
    let events: Vec<&str> = entries.iter().map(|entry| entry["event"].as_str().unwrap()).collect();
    let begun = events.iter().filter(|event| **event == "begin").count();
    assert_eq!(begun, 2, "{events:?}");
    assert!(entries.iter().all(|entry| entry["principal"] == "ada"), "{entries:?}");
}

#[tokio::test]
async fn call_is_made_if_a_best_effort_audit_entry_fails() {
    let (math, sink) = (Shifty::new(), MemorySink::default());
    sink.fails.store(true, Ordering::SeqCst);
    let host = audited(&math, &sink, AuditMode::BestEffort).start().await.unwrap();
    call(&host).await.unwrap();
    assert_eq!(math.calls(), 1);
    host.close().await;
}

#[tokio::test]
async fn required_audit_log_needs_a_destination() {
    let started = Host::builder().audit_mode(AuditMode::Required).start().await;
    let error = started.err().unwrap().to_string();
    assert_eq!(
        error,
        "cannot open the audit log: the audit log is required, but there is neither a state directory nor a sink"
    );
}
