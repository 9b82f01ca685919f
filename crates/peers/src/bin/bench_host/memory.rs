//! Memory of an idle host and its guards.

use serde_json::json;
use wharf_peers::{ServerKind, host_builder, server_entry, wait_until_answered};

use crate::process::{children, memory};
use crate::{BenchFigures, HostBenchOptions};

/// Measures the memory in KiB of an idle host with `options.good` connected servers, after listing.
pub async fn measure(options: HostBenchOptions) -> BenchFigures {
    let servers =
        (0..options.good).map(|number| server_entry(&options.server, ServerKind::Good, number, None)).collect();
    let host = host_builder(servers).start().await.unwrap();
    wait_until_answered(&host, options.good).await;
    tokio::time::sleep(options.time).await;
    let (own, guards) = (std::process::id(), children());
    assert_eq!(guards.len(), options.good, "one guard for each server");
    let of_guards = |what: &str| guards.iter().map(|guard| memory(*guard, what)).sum::<u64>();
    let figures = json!({
        "servers": options.good, "host_rss": memory(own, "Rss"), "host_pss": memory(own, "Pss"),
        "host_anonymous": memory(own, "Anonymous"), "guards_pss": of_guards("Pss"),
        "guards_anonymous": of_guards("Pss_Anon"), "guards_rss": of_guards("Rss"),
    });
    host.close().await;
    figures
}
