//! Calls that somebody else makes: judged, counted and written down like any other.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use wharf::policy::{Rule, RuleAction, RuleAuthority, RuleOrigin, SourcedRule};
use wharf::spec::ServerEntry;
use wharf::tools::{Gate, GateDecision, GatedCall, ToolCaller};
use wharf::{CallOptions, Host, HostBuilder, HostError, ListingMode, ServerState};

use crate::fixture::{Act, Asked, Fake, none, open_builder, scripted, server, settings, tool, until};
use crate::roster::site::Site;

fn person() -> CallOptions {
    CallOptions::default().caller(ToolCaller::person())
}

fn builder(fake: &Fake) -> HostBuilder {
    let rule = Rule::new("mcp__one__never", RuleAction::Deny);
    let origin = RuleOrigin { place: "config.json:7".to_owned(), authority: RuleAuthority::User };
    let mut settings = settings();
    settings.max_concurrent = Some(1);
    Host::builder().rules([SourcedRule { rule, origin }]).local_with(server("one"), settings, fake.factory())
}

#[tokio::test(start_paused = true)]
async fn denied_call_gets_no_permit() {
    let fake = Fake::new("one");
    let host = builder(&fake).start().await.unwrap();
    host.wait_until_ready("one").await.unwrap();
    let Err(HostError::Denied(refusal)) = host.permit(&tool("one", "never"), &none(), person()).await else {
        panic!("a rule denies it")
    };
    assert!(refusal.to_string().contains("config.json:7"), "{refusal}");
    let unasked = host.permit(&tool("one", "who"), &none(), CallOptions::default()).await;
    assert!(matches!(unasked, Err(HostError::Denied(_))), "a model has to be allowed");
    assert!(matches!(host.permit(&tool("one", "woh"), &none(), person()).await, Err(HostError::UnknownTool { .. })));
    host.close().await;
}

#[tokio::test]
async fn permit_counts_as_call_until_finished() {
    let place = tempfile::tempdir().unwrap();
    let fake = Fake::new("one");
    let host = builder(&fake).state_dir(place.path().join("state")).start().await.unwrap();
    let permit = host.permit(&tool("one", "who"), &none(), person()).await.unwrap();
    assert_eq!(host.status_of("one").unwrap().in_flight, 1);
    // The server is given one call at a time, and this is it.
    let waiting =
        host.permit(&tool("one", "who"), &none(), person().timeout(std::time::Duration::from_millis(10))).await;
    assert!(matches!(waiting, Err(HostError::NotInTime { .. })));
    let answer = permit.connection().call_tool("who", &none(), Default::default()).await.unwrap();
    permit.finish(Ok(&answer));
    assert_eq!(host.status_of("one").unwrap().in_flight, 0);
    drop(host.permit(&tool("one", "who"), &none(), person()).await.unwrap());
    let stats = host.stats_of("one").unwrap();
    assert_eq!(stats.iter().map(|stats| stats.calls).collect::<Vec<_>>(), [1]);
    host.close().await;
    let audit = std::fs::read_to_string(place.path().join("state/audit.jsonl")).unwrap();
    let entry = |line: &str| serde_json::from_str::<Value>(line).unwrap()["entry"].take();
    let calls: Vec<Value> = audit.lines().map(entry).filter(|entry| entry["event"] == "call").collect();
    assert_eq!(calls.iter().map(|call| &call["success"]).collect::<Vec<_>>(), [&json!(true), &json!(false)], "{audit}");
}

/// Goes on with a future once; it is not done then.
async fn begin<T>(waiting: &mut (impl Future<Output = T> + Unpin)) {
    tokio::select! {
        biased;
        _ = waiting => panic!("it has nothing to wait for"),
        () = std::future::ready(()) => {}
    }
}

/// One that is waited for is in use: it is not stopped for want of it.
#[tokio::test(start_paused = true)]
async fn permit_counts_as_call_while_waiting_for_server() {
    let fake = Fake::new("one");
    let host = builder(&fake).start().await.unwrap();
    host.wait_until_ready("one").await.unwrap();
    fake.end.notify_one();
    until(|| host.status_of("one").unwrap().state == ServerState::Reconnecting).await;
    let (id, arguments) = (tool("one", "who"), none());
    let in_flight = || host.status_of("one").unwrap().in_flight;
    let mut withdrawn = Box::pin(host.permit(&id, &arguments, person()));
    begin(&mut withdrawn).await;
    assert_eq!(in_flight(), 1);
    drop(withdrawn);
    assert_eq!(in_flight(), 0);
    let permit = host.permit(&id, &arguments, person()).await.unwrap();
    assert_eq!((in_flight(), fake.made()), (1, 2));
    drop(permit);
    assert_eq!(in_flight(), 0);
    host.close().await;
}

/// A server of the site that is given one call at a time.
fn narrow(site: &Site, generation: usize) -> ServerEntry {
    let mut entry = ServerEntry::new(server("a"), site.spec(&format!("a/{generation}")));
    entry.settings.max_concurrent = Some(1);
    entry
}

#[tokio::test]
async fn tool_excluded_while_permit_waits_is_unknown() {
    let site = Site::open();
    let host = open_builder().servers([narrow(&site, 1)]).start().await.unwrap();
    let (id, arguments) = (tool("a", "who"), none());
    let first = host.permit(&id, &arguments, person()).await.unwrap();
    let mut second = Box::pin(host.permit(&id, &arguments, person()));
    begin(&mut second).await;
    let mut excluding = narrow(&site, 1);
    excluding.settings.exclude_tools = vec!["who".to_owned()];
    host.set_servers(vec![excluding]).await;
    drop(first);
    assert!(matches!(second.await, Err(HostError::UnknownTool { .. })));
    assert_eq!(host.status_of("a").unwrap().in_flight, 0);
    host.close().await;
}

/// What takes the place of a server may be trusted less, so the gate is passed once more.
#[tokio::test]
async fn waiting_permit_moves_to_the_replacement_server() {
    let site = Site::open();
    let gate = Arc::new(Counting::default());
    let builder = Host::builder().gate(Arc::clone(&gate) as Arc<dyn Gate>).servers([narrow(&site, 1)]);
    let host = builder.start().await.unwrap();
    let (id, arguments) = (tool("a", "who"), none());
    let first = host.permit(&id, &arguments, person()).await.unwrap();
    let mut second = Box::pin(host.permit(&id, &arguments, person()));
    begin(&mut second).await;
    host.set_servers(vec![narrow(&site, 2)]).await;
    assert_eq!(gate.0.load(Ordering::SeqCst), 2);
    drop(first);
    let second = second.await.unwrap();
    assert_eq!(gate.0.load(Ordering::SeqCst), 3);
    let answer = second.connection().call_tool_raw("who", &arguments, Default::default()).await.unwrap();
    assert!(answer.result.as_str().contains("a 2"), "{}", answer.result.as_str());
    drop(second);
    assert_eq!(host.status_of("a").unwrap().in_flight, 0);
    host.close().await;
}

/// A gate that lets everything pass and counts it.
#[derive(Default)]
struct Counting(AtomicUsize);

impl Gate for Counting {
    fn check(&self, _: GatedCall<'_>) -> GateDecision {
        self.0.fetch_add(1, Ordering::SeqCst);
        GateDecision::Pass
    }
}

#[tokio::test(start_paused = true)]
async fn tools_once_mode_lists_tools_only() {
    for (attention, expected) in [
        (ListingMode::ToolsOnce, &["server/discover", "tools/list"][..]),
        (
            ListingMode::Full,
            &[
                "prompts/list",
                "resources/list",
                "resources/templates/list",
                "server/discover",
                "subscriptions/listen",
                "tools/list",
            ],
        ),
    ] {
        let methods = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&methods);
        let factory = scripted("one", move |asked: &Asked<'_>| {
            heard.lock().unwrap().push(asked.method.to_owned());
            let offers = json!({ "tools": { "listChanged": true }, "resources": {}, "prompts": {} });
            match asked.method {
                "server/discover" => {
                    Act::Answer(json!({ "supportedVersions": ["2026-07-28"], "capabilities": offers }))
                }
                "tools/list" => Act::Ordinary,
                "subscriptions/listen" => Act::Nothing,
                _ => Act::Refuse,
            }
        });
        let host = Host::builder().listing_mode(attention).local_with(server("one"), settings(), factory);
        let host = host.start().await.unwrap();
        host.wait_until_ready("one").await.unwrap();
        if attention == ListingMode::Full {
            host.wait_until_settled().await;
        }
        let mut methods = std::mem::take(&mut *methods.lock().unwrap());
        methods.sort();
        methods.dedup();
        assert_eq!(methods, expected);
        assert!(host.catalog().tool(&tool("one", "who")).is_some());
        host.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn wait_until_ready_reports_the_startup_error() {
    let factory: wharf::LocalFactory = Arc::new(|| Err("no rope".to_owned()));
    let mut settings = settings();
    settings.reconnect = wharf::spec::ReconnectPolicy::Off;
    let host = Host::builder().local_with(server("one"), settings, factory).start().await.unwrap();
    let Err(HostError::Unavailable { last_error: Some(error), .. }) = host.wait_until_ready("one").await else {
        panic!("it cannot be made")
    };
    assert!(error.to_string().contains("no rope"), "{error}");
    host.close().await;
}
