//! The library over real processes: the demo server, started by a host.

use std::ffi::OsString;
use std::sync::Arc;

use wharf::catalog::ListFreshness;
use wharf::guard::GuardProgram;
use wharf::spec::{Environment, ServerEntry, ServerName, ServerSpec, StdioSpec, ToolId};
use wharf::tools::AllowAllGate;
use wharf::{CallOptions, Host, HostBuilder, RawJson, ServerState};
use wharf_testkit::test_home::TestHome;

use crate::support::WHARF;

fn name(text: &str) -> ServerName {
    ServerName::new(text).unwrap()
}

/// The demo server under this name, with these arguments.
fn demo(server: &str, arguments: &[&str]) -> ServerEntry {
    let args = std::iter::once("demo-server").chain(arguments.iter().copied()).map(OsString::from).collect();
    let spec = StdioSpec { program: WHARF.into(), args, ..StdioSpec::default() };
    ServerEntry::new(name(server), ServerSpec::Stdio(spec))
}

fn lazy(mut entry: ServerEntry) -> ServerEntry {
    entry.settings.lazy = true;
    entry
}

fn builder(home: &TestHome) -> HostBuilder {
    let surroundings = Environment { env: Vec::new(), cwd: home.path("project") };
    Host::builder().gate(Arc::new(AllowAllGate)).guard(GuardProgram::At(WHARF.into())).environment(surroundings)
}

async fn echo(host: &Host, server: &str) -> String {
    let arguments = RawJson::parse(r#"{"text":"Ahoy!"}"#).unwrap();
    let reply = host.call(&ToolId::new(&name(server), "echo"), &arguments, CallOptions::default()).await.unwrap();
    reply.text().unwrap()
}

#[tokio::test]
async fn lazy_server_has_cached_catalog_before_it_starts() {
    let home = TestHome::new();
    let state = home.path("state");
    let host = builder(&home).state_dir(&state).servers([demo("quay", &[])]).start().await.unwrap();
    host.wait_until_settled().await;
    let offered = host.catalog().visible_tools().count();
    assert!(offered > 10, "{offered}");
    host.close().await;

    let host = builder(&home).state_dir(&state).servers([lazy(demo("quay", &[]))]).start().await.unwrap();
    let status = host.status_of("quay").unwrap();
    assert_eq!((status.state, status.connected.is_none()), (ServerState::Idle, true));
    let offers = status.offers.unwrap();
    assert_eq!(offers.tools, offered);
    assert!(matches!(offers.freshness, ListFreshness::Kept { .. }), "{:?}", offers.freshness);
    assert_eq!(echo(&host, "quay").await, "Ahoy!");
    let status = host.status_of("quay").unwrap();
    assert_eq!((status.state, status.offers.unwrap().freshness), (ServerState::Ready, ListFreshness::Live));
    host.close().await;

    // What is reached in another way is another server.
    let other = lazy(demo("quay", &["--revision", "2025-06-18"]));
    let host = builder(&home).state_dir(&state).servers([other]).start().await.unwrap();
    assert!(host.status_of("quay").unwrap().offers.is_none());
    host.close().await;
}

#[tokio::test]
async fn unavailable_servers_do_not_delay_the_others() {
    let home = TestHome::new();
    let missing = StdioSpec { program: "no-such-server".into(), ..StdioSpec::default() };
    let missing = ServerEntry::new(name("missing"), ServerSpec::Stdio(missing));
    let dies = StdioSpec { program: "/bin/false".into(), ..StdioSpec::default() };
    let dies = ServerEntry::new(name("dies"), ServerSpec::Stdio(dies));
    let host = builder(&home).servers([missing, dies, demo("quay", &[])]).start().await.unwrap();
    assert_eq!(echo(&host, "quay").await, "Ahoy!");
    host.connect("missing").await.unwrap_err();
    let status = host.status_of("missing").unwrap();
    assert_eq!(status.state, ServerState::Failed);
    assert!(status.last_error.unwrap().to_string().contains("not found in PATH"));
    let error = host.call(&ToolId::new(&name("missing"), "x"), &RawJson::empty_object(), CallOptions::default()).await;
    let error = error.unwrap_err();
    assert!(error.to_string().contains("`missing` has failed") && error.hint().is_some(), "{error}");
    host.close().await;
}

#[tokio::test]
async fn server_set_changes_while_servers_run() {
    let home = TestHome::new();
    let host = builder(&home).servers([demo("stays", &[]), demo("goes", &[])]).start().await.unwrap();
    host.wait_until_settled().await;
    let before = host.status_of("stays").unwrap().connected.unwrap().pid;
    let mut changed = demo("stays", &[]);
    changed.settings.exclude_tools = vec!["crash".to_owned()];
    let mut changes = host.set_servers(vec![changed, demo("comes", &[])]).await;
    changes.added.sort();
    assert_eq!((changes.added, changes.removed), (vec![name("comes")], vec![name("goes")]));
    assert_eq!(changes.changed, [name("stays")]);
    assert_eq!(echo(&host, "comes").await, "Ahoy!");
    assert_eq!(echo(&host, "stays").await, "Ahoy!");
    assert_eq!(host.status_of("stays").unwrap().connected.unwrap().pid, before, "a filter needs no restart");
    let mut versions = host.catalog_changes();
    let crash = ToolId::new(&name("stays"), "crash");
    while host.catalog().tool(&crash).is_some() {
        versions.changed().await.unwrap();
    }
    let unknown = host.status_of("goes").unwrap_err().to_string();
    assert!(unknown.contains("no server named `goes`"), "{unknown}");
    host.close().await;
}
