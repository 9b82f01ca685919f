//! The set of servers changes while they are in use: what becomes of each, and of their calls.

pub mod site;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::json;
use wharf::spec::{ActivationState, ServerEntry};
use wharf::{CallOptions, Host, HostError, ListingMode, LocalEntry, ServerSetChanges, ServerState};

use self::site::Site;
use crate::fixture::{Fake, none, open_builder, server, settings, tool, until};
use crate::library;

/// A server of the site, of some generation.
fn entry(site: &Site, name: &str, generation: usize) -> ServerEntry {
    ServerEntry::new(server(name), site.spec(&format!("{name}/{generation}")))
}

async fn who(host: &Host, name: &str) -> Result<String, HostError> {
    let reply = host.call(&tool(name, "who"), &none(), CallOptions::default()).await?;
    Ok(reply.text().unwrap())
}

/// What became of which servers, in a line.
fn told(changes: &ServerSetChanges) -> String {
    let list = |names: &[wharf::spec::ServerName]| names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(" ");
    let errors: Vec<String> = changes.errors.iter().map(|(name, why)| format!("{}: {why}", name.as_str())).collect();
    format!(
        "+{} -{} ~{} ={} !{}",
        list(&changes.added),
        list(&changes.removed),
        list(&changes.changed),
        list(&changes.unchanged),
        errors.join(", ")
    )
}

/// F13: in-process servers are part of the set, too.
#[tokio::test]
async fn in_process_servers_are_replaced_at_run_time() {
    let (one, other) = (Fake::new("one").factory(), Fake::new("other").factory());
    let local = |name: &str, make: &wharf::LocalFactory| LocalEntry::new(server(name), Arc::clone(make));
    let host = open_builder().start().await.unwrap();
    let changes = host.set_all_servers(Vec::new(), vec![local("one", &one)]).await;
    assert_eq!(told(&changes), "+one - ~ = !");
    assert_eq!(who(&host, "one").await.unwrap(), "one 1");
    let changes = host.set_all_servers(Vec::new(), vec![local("one", &one), local("other", &other)]).await;
    assert_eq!(told(&changes), "+other - ~ =one !");
    let changes = host.set_all_servers(Vec::new(), vec![local("other", &Fake::new("new").factory())]).await;
    assert_eq!(told(&changes), "+ -one ~other = !");
    assert!(matches!(who(&host, "one").await, Err(HostError::UnknownServer { .. })));
    assert_eq!(who(&host, "other").await.unwrap(), "new 1");
    assert_eq!(told(&host.set_servers(Vec::new()).await), "+ - ~ = !");
    assert_eq!(who(&host, "other").await.unwrap(), "new 1");
    host.close().await;
}

/// A tool is neither offered a moment too long nor a moment too late.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn excluded_tools_are_left_out_when_set_servers_returns() {
    let site = Site::open();
    let host = open_builder().servers([entry(&site, "a", 1)]).start().await.unwrap();
    host.wait_until_settled().await;
    let is_offered = || host.catalog().tools().any(|tool| &*tool.id.tool == "who");
    for is_excluded in [true, false].repeat(50) {
        let mut changed = entry(&site, "a", 1);
        changed.settings.exclude_tools = if is_excluded { vec!["who".to_owned()] } else { Vec::new() };
        assert_eq!(told(&host.set_servers(vec![changed]).await), "+ - ~a = !");
        assert_eq!(is_offered(), !is_excluded);
    }
    host.close().await;
}

#[tokio::test]
async fn set_servers_reports_each_change() {
    let site = Site::open();
    let inside = Fake::new("inside");
    let builder = open_builder().local_with(server("inside"), settings(), inside.factory());
    let host = builder.servers([entry(&site, "a", 1), entry(&site, "b", 1)]).start().await.unwrap();
    assert_eq!(who(&host, "b").await.unwrap(), "b 1");
    let mut kept = entry(&site, "c", 1);
    let changes = host.set_servers(vec![entry(&site, "b", 1), kept.clone(), entry(&site, "inside", 1)]).await;
    assert_eq!(told(&changes), "+c -a ~ =b !inside: an in-process server has this name");
    assert!(matches!(who(&host, "a").await, Err(HostError::UnknownServer { .. })));
    assert_eq!(who(&host, "c").await.unwrap(), "c 1");
    assert_eq!(who(&host, "inside").await.unwrap(), "inside 1");
    // Kept in another way it is the same server; reached in another way it is another.
    kept.settings.admission = ActivationState::Disabled;
    let changes = host.set_servers(vec![kept, entry(&site, "b", 2), entry(&site, "b", 3)]).await;
    assert_eq!(told(&changes), "+ - ~b c = !b: duplicate name: the first entry is used");
    assert_eq!(who(&host, "b").await.unwrap(), "b 2");
    assert_eq!(host.status_of("c").unwrap().state, ServerState::Disabled);
    let changes = host.set_servers(vec![entry(&site, "b", 2), entry(&site, "c", 1)]).await;
    assert_eq!(told(&changes), "+ - ~c =b !");
    assert_eq!(who(&host, "c").await.unwrap(), "c 1");
    assert_eq!(host.status().len(), 3);
    host.close().await;
}

/// What a lazy server once listed is offered again as soon as it may be used, without starting it.
#[tokio::test]
async fn manually_disabled_server_stays_disabled_across_edits() {
    let site = Site::open();
    let host = open_builder().servers([entry(&site, "a", 1)]).start().await.unwrap();
    host.disable("a").await.unwrap();
    let state = |host: &Host| host.status_of("a").unwrap().state;
    // Somebody edits another server's entry, then how this one is kept, then how it is reached.
    let changes = host.set_servers(vec![entry(&site, "a", 1), entry(&site, "b", 1)]).await;
    assert_eq!((told(&changes).as_str(), state(&host)), ("+b - ~ =a !", ServerState::Disabled));
    let mut kept = entry(&site, "a", 1);
    kept.settings.trust = true;
    assert_eq!(told(&host.set_servers(vec![kept]).await), "+ -b ~a = !");
    assert_eq!(state(&host), ServerState::Disabled);
    host.set_servers(vec![entry(&site, "a", 2)]).await;
    assert_eq!(state(&host), ServerState::Disabled);
    host.enable("a").await.unwrap();
    assert_eq!(who(&host, "a").await.unwrap(), "a 2");
    // What is told last counts.
    let mut disabled = entry(&site, "a", 2);
    disabled.settings.admission = ActivationState::Disabled;
    host.set_servers(vec![disabled]).await;
    assert_eq!(state(&host), ServerState::Disabled);
    host.close().await;
}

#[tokio::test]
async fn enabled_lazy_server_offers_its_cached_tools() {
    let (site, state) = (Site::open(), tempfile::tempdir().unwrap());
    let mut lazy = entry(&site, "a", 1);
    lazy.settings.lazy = true;
    let host = open_builder().state_dir(state.path()).servers([lazy.clone()]).start().await.unwrap();
    assert_eq!(who(&host, "a").await.unwrap(), "a 1");
    let kept = state.path().join("catalogs");
    until(|| kept.read_dir().is_ok_and(|mut files| files.any(|file| is_catalog(&file.unwrap().path())))).await;
    for by_hand in [false, true] {
        let mut disabled = lazy.clone();
        disabled.settings.admission = ActivationState::Disabled;
        host.set_servers(vec![disabled]).await;
        assert_eq!(host.catalog().tools().count(), 0);
        if by_hand {
            host.enable("a").await.unwrap();
        } else {
            host.set_servers(vec![lazy.clone()]).await;
        }
        assert_eq!((host.status_of("a").unwrap().state, host.catalog().tools().count()), (ServerState::Idle, 1));
    }
    host.close().await;
}

/// A host for one call does not ask for resources. What it keeps does not say that there are none.
#[tokio::test]
async fn lists_skipped_by_one_shot_host_are_fetched_later() {
    let (site, state) = (Site::open(), tempfile::tempdir().unwrap());
    let mut lazy = entry(&site, "books", 1);
    lazy.settings.lazy = true;
    let builder = || open_builder().state_dir(state.path()).servers([lazy.clone()]);
    let once = builder().listing_mode(ListingMode::ToolsOnce).start().await.unwrap();
    assert_eq!(who(&once, "books").await.unwrap(), "books 1");
    once.close().await;
    for unknown in [true, false] {
        let host = builder().start().await.unwrap();
        assert_eq!((host.status_of("books").unwrap().state, host.catalog().tools().count()), (ServerState::Idle, 1));
        let all = library::call(&host, "ListMcpResources", json!({})).await.unwrap().text();
        assert_eq!(all.contains("not listed yet: books"), unknown, "{all}");
        let found = library::data(&host, "ListMcpResources", json!({ "server": "books" })).await;
        assert_eq!(found[0]["uri"], "book:one", "{found}");
        // The second time it is known without starting the server.
        let state = if unknown { ServerState::Ready } else { ServerState::Idle };
        assert_eq!(host.status_of("books").unwrap().state, state);
        host.close().await;
    }
}

fn is_catalog(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "json")
}

#[tokio::test]
async fn server_requiring_login_waits_in_auth_required() {
    let site = Site::open();
    let host = open_builder().servers([entry(&site, "login", 1)]).start().await.unwrap();
    host.wait_until_settled().await;
    assert_eq!(host.status_of("login").unwrap().state, ServerState::AuthRequired);
    let refused = who(&host, "login").await.unwrap_err();
    assert!(refused.needs_login(), "{refused}");
    let again = host.connect("login").await.unwrap_err();
    assert!(again.needs_login(), "{again}");
    host.set_servers(vec![entry(&site, "welcome", 1)]).await;
    assert_eq!(who(&host, "welcome").await.unwrap(), "welcome 1");
    host.close().await;
}

/// C18: whoever edits a server away does not take the answers of calls under way from their callers.
#[tokio::test]
async fn call_in_flight_on_removed_server_completes() {
    let site = Site::open();
    let host = open_builder().servers([entry(&site, "held", 1)]).start().await.unwrap();
    host.wait_until_settled().await;
    let calling = tokio::spawn({
        let host = host.clone();
        async move { who(&host, "held").await }
    });
    until(|| host.status_of("held").unwrap().in_flight == 1).await;
    assert_eq!(told(&host.set_servers(Vec::new()).await), "+ -held ~ = !");
    assert!(matches!(who(&host, "held").await, Err(HostError::UnknownServer { .. })));
    assert!(!calling.is_finished());
    site::let_go();
    assert_eq!(calling.await.unwrap().unwrap(), "held 1");
    host.close().await;
}

/// Servers are replaced under two hundred callers. No call fails, and each is answered by its own server: by the one that
/// was there when it was made, or by one that took its place meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replacing_servers_never_loses_or_misroutes_calls() {
    const NAMES: [&str; 3] = ["a", "b", "c"];
    const LAST: usize = 25;
    let site = Site::open();
    let all = |generation: usize| NAMES.map(|name| entry(&site, name, generation)).to_vec();
    let host = open_builder().servers(all(1)).start().await.unwrap();
    host.wait_until_settled().await;
    let (least, done) = (Arc::new(AtomicUsize::new(1)), Arc::new(AtomicBool::new(false)));
    let callers: Vec<_> = (0..200)
        .map(|caller| {
            let (host, name) = (host.clone(), NAMES[caller % NAMES.len()]);
            let (least, done) = (Arc::clone(&least), Arc::clone(&done));
            tokio::spawn(async move {
                let mut calls = 0;
                while !done.load(Ordering::SeqCst) {
                    check_caller(&host, name, least.load(Ordering::SeqCst)).await;
                    calls += 1;
                }
                calls
            })
        })
        .collect();
    for generation in 2..=LAST {
        host.set_servers(all(generation)).await;
        least.store(generation, Ordering::SeqCst);
        // Until some of this generation have been answered.
        check_caller(&host, "a", generation).await;
    }
    done.store(true, Ordering::SeqCst);
    for caller in callers {
        assert!(caller.await.unwrap() > 0);
    }
    for name in NAMES {
        assert_eq!(who(&host, name).await.unwrap(), format!("{name} {LAST}"));
        assert_eq!(host.status_of(name).unwrap().in_flight, 0);
    }
    host.close().await;
}

async fn check_caller(host: &Host, name: &str, least: usize) {
    let said = who(host, name).await.unwrap_or_else(|error| panic!("a call of {name} was lost: {error:?}"));
    let (by, generation) = said.split_once(' ').unwrap();
    assert_eq!(by, name);
    let generation: usize = generation.parse().unwrap();
    assert!(generation >= least, "answered by generation {generation}, which {least} had replaced");
}
