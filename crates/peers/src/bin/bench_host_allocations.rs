//! Allocations of a call through the host, compared with the same call on its connection, by payload size.
//!
//! A separate program, so that counting does not affect timings.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints and panics on errors")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;
use wharf::{CallOptions, Connection, Host, RawJson};
use wharf_peers::{
    InlineEcho, RuntimeFlavour, ServerKind, allow_rule, block_on, good_tool, server_name, wait_until_answered,
};

const PAYLOADS: [usize; 3] = [64, 64 << 10, 1 << 20];
/// Measured calls of each kind, after the same number of warm-up calls.
const CALLS: u64 = 200;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

/// The system allocator with counters.
struct CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn count(bytes: usize) {
    ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    BYTES.fetch_add(bytes as u64, Ordering::Relaxed);
}

#[expect(unsafe_code, reason = "only an allocator can count allocations")]
// SAFETY: every method passes its arguments unchanged to the system allocator.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller upholds the contract of the system allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: `place` came from the same allocator with the same layout.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        // SAFETY: `place` came from the same allocator with the same layout.
        unsafe { System.realloc(place, layout, size) }
    }
}

fn main() {
    block_on(RuntimeFlavour::Current, measure());
}

async fn measure() {
    let name = server_name(ServerKind::Good, 0);
    let host =
        Host::builder().rules([allow_rule(&name, "echo")]).local(name.clone(), || InlineEcho).start().await.unwrap();
    wait_until_answered(&host, 1).await;
    let connection = host.connection(name.as_str()).unwrap();
    let mut rows = Vec::new();
    for payload in PAYLOADS {
        let arguments = RawJson::from_value(&json!({ "text": "x".repeat(payload) })).unwrap();
        measure_host(&host, &arguments).await;
        measure_connection(&connection, &arguments).await;
        let (by_host, by_connection) =
            (measure_host(&host, &arguments).await, measure_connection(&connection, &arguments).await);
        rows.push(json!({
            "payload": payload, "host": by_host, "connection": by_connection,
            "more_allocations": by_host.0 - by_connection.0, "more_bytes": by_host.1 - by_connection.1,
        }));
    }
    host.close().await;
    println!("{}", json!(rows));
}

/// Returns allocations and bytes per call through the host.
async fn measure_host(host: &Host, arguments: &RawJson) -> (f64, f64) {
    let tool = good_tool(0, "echo");
    let before = read_counters();
    for _ in 0..CALLS {
        black_box(host.call(&tool, arguments, CallOptions::default()).await.unwrap());
    }
    per_call_since(before)
}

/// Returns allocations and bytes per call on the connection.
async fn measure_connection(connection: &Connection, arguments: &RawJson) -> (f64, f64) {
    let before = read_counters();
    for _ in 0..CALLS {
        let options = wharf_client::RequestOptions::default();
        black_box(connection.call_tool_raw("echo", arguments, options).await.unwrap());
    }
    per_call_since(before)
}

fn read_counters() -> (u64, u64) {
    (ALLOCATIONS.load(Ordering::Relaxed), BYTES.load(Ordering::Relaxed))
}

fn per_call_since((allocations, bytes): (u64, u64)) -> (f64, f64) {
    let now = read_counters();
    ((now.0 - allocations) as f64 / CALLS as f64, (now.1 - bytes) as f64 / CALLS as f64)
}
