use super::*;
use wharf_wire::View as _;

fn id(tool: &str) -> ToolId {
    ToolId::new(&ServerName::new("one").unwrap(), tool)
}

fn pinned(tool: &str, definition: &str) -> PinSet {
    let mut pins = PinSet::default();
    pins.approve(ServerOrigin::User, id(tool), Fingerprint([1; 32]), definition).unwrap();
    pins
}

fn file(path: &str) -> ServerOrigin {
    ServerOrigin::File(Path::new(path).into())
}

#[test]
fn releases_round_trip_with_their_origin() {
    let released = |origin| (origin, id("t"), Fingerprint([2; 32]));
    let all = HashSet::from([released(ServerOrigin::User), released(file("/p/.mcp.json"))]);
    let text = serde_json::to_string(&ReleasedFile::from_released(all.iter())).unwrap();
    assert!(text.contains(r#""definedIn":"/p/.mcp.json""#), "{text}");
    assert_eq!(serde_json::from_str::<ReleasedFile>(&text).unwrap().into_released(), all);
}

#[tokio::test]
async fn state_of_two_hosts_is_merged() {
    let place = tempfile::tempdir().unwrap();
    let event_bus = Arc::new(EventBus::new());
    let (one, _) = StateDirectory::open(place.path().join("d")).await.unwrap();
    let (two, _) = StateDirectory::open(place.path().join("d")).await.unwrap();
    for (disk, tool) in [(&one, "a"), (&two, "b")] {
        disk.save_pins(move || Some(pinned(tool, "{}")), Arc::clone(&event_bus));
        disk.save_released(
            HashSet::from([(ServerOrigin::User, id(tool), Fingerprint([2; 32]))]),
            Arc::clone(&event_bus),
        );
        disk.flush().await;
    }
    let (_, approved) = StateDirectory::open(place.path().join("d")).await.unwrap();
    let mut both = pinned("a", "{}");
    both.merge(&pinned("b", "{}"));
    assert_eq!(approved.pins, both);
    let released = ["a", "b"].map(|tool| (ServerOrigin::User, id(tool), Fingerprint([2; 32])));
    assert_eq!(approved.released, released.into());
}

#[tokio::test]
async fn damaged_file_is_reported_and_not_overwritten() {
    let place = tempfile::tempdir().unwrap();
    let event_bus = Arc::new(EventBus::new());
    let mut events = event_bus.subscribe();
    let (disk, _) = StateDirectory::open(place.path().join("d")).await.unwrap();
    let file = place.path().join("d").join("approved-tools.json");
    std::fs::write(&file, "{").unwrap();
    disk.save_pins(|| Some(pinned("a", "{}")), Arc::clone(&event_bus));
    disk.flush().await;
    let Some(crate::events::EventDelivery::Event(told)) = events.next().await else { panic!("nothing was told") };
    assert!(matches!(told.event, Event::NotKept { .. }), "{told:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "{");
}

#[tokio::test]
async fn writes_run_in_order_and_survive_a_panic() {
    let (writes, done) = (Arc::new(WriteQueue::default()), Arc::new(Mutex::new(Vec::new())));
    for n in 0..200 {
        let done = Arc::clone(&done);
        writes.push(move || {
            assert_ne!(n, 7, "on purpose");
            done.lock().unwrap().push(n);
        });
    }
    writes.pending.subscribe().wait_for(|pending| *pending == 0).await.unwrap();
    assert_eq!(*done.lock().unwrap(), (0..200).filter(|n| *n != 7).collect::<Vec<_>>());
}

#[test]
fn schema_1_releases_are_dropped() {
    assert!(serde_json::from_str::<ReleasedFile>(r#"{"schema":4,"tools":[]}"#).is_err());
    let hex = "ab".repeat(32);
    for (text, expected) in [
        (format!(r#"{{"schema":1,"fingerprints":["{hex}"]}}"#), 0),
        (format!(r#"{{"schema":2,"tools":[{{"server":"a","tool":"t","fingerprint":"{hex}"}}]}}"#), 1),
    ] {
        assert_eq!(serde_json::from_str::<ReleasedFile>(&text).unwrap().into_released().len(), expected, "{text}");
    }
}

#[test]
fn long_definitions_are_reduced_to_fingerprints() {
    let mut pins = PinSet::default();
    for n in 0..120 {
        pins.approve(ServerOrigin::User, id(&n.to_string()), Fingerprint([1; 32]), &"x".repeat(120 << 10)).unwrap();
    }
    let text = serialize_pins(pins).unwrap();
    assert!(text.len() < MAX_PINS_BYTES);
    let read: PinSet = serde_json::from_slice(&text).unwrap();
    assert_eq!(read.tool_state(ServerOrigin::USER, &id("5"), &Fingerprint([1; 32])), wharf_policy::PinState::Known);
}

#[test]
fn expired_catalog_caches_are_removed() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("one-x.json");
    std::fs::write(&file, "{}").unwrap();
    remove_expired(place.path(), SystemTime::now() + CATALOG_CACHE_EXPIRY / 2);
    assert!(file.exists());
    remove_expired(place.path(), SystemTime::now() + CATALOG_CACHE_EXPIRY * 2);
    assert!(!file.exists());
}

#[tokio::test]
async fn caching_tools_alone_preserves_other_cached_lists() {
    use crate::catalog::ListName::{Prompts, Resources};
    let place = tempfile::tempdir().unwrap();
    let (disk, _) = StateDirectory::open(place.path().join("d")).await.unwrap();
    let name = ServerName::new("one").unwrap();
    let spec = ServerSpec::Http(wharf_spec::HttpSpec::new("http://127.0.0.1/".parse().unwrap()));
    let server = CatalogCacheKey { name: &name, origin: ServerOrigin::USER, spec: &spec };
    let bounds = &wharf_json::JsonLimits::default();
    let listed = |tool: &str, unasked: &[crate::catalog::ListName]| {
        let text = format!(r#"{{"name":"{tool}","inputSchema":{{"type":"object"}}}}"#);
        let tool = wharf_wire::ToolDefinition::from_raw(wharf_json::RawJson::parse(text).unwrap(), bounds).unwrap();
        ServerLists { tools: vec![tool], unasked: unasked.to_vec(), ..ServerLists::default() }
    };
    let names = |listed: &ServerLists| listed.tools[0].name.clone();
    for (tool, all, asked_not, expected) in [
        ("a", false, &[Resources, Prompts][..], &[Resources, Prompts][..]),
        ("b", true, &[], &[]),
        ("c", false, &[Resources, Prompts], &[]),
    ] {
        match all {
            true => disk.cache_lists(&server, &listed(tool, asked_not)),
            false => disk.cache_tools(&server, listed(tool, asked_not)),
        }
        disk.flush().await;
        let found = disk.cached_lists(&server).await.unwrap();
        assert_eq!((names(&found).as_str(), &found.unasked[..]), (tool, expected));
    }
    let origin = &file("/p/.mcp.json");
    assert!(
        disk.cached_lists(&CatalogCacheKey { origin, ..server }).await.is_none(),
        "a project's server of that name"
    );
}
